"""Conditions on the fields of decoded keys and values, as SQL writes them: ``value.user.id = 7``.

==========  ========================================================================================
condition   comparisons with ``AND``, ``OR``, ``NOT`` and parentheses
comparison  ``field = constant``; also ``!=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``
null        ``field IS NULL``, ``field IS NOT NULL``
several     ``field IN (constant, …)``, ``field BETWEEN constant AND constant``, both with ``NOT``
field       ``value`` or ``key``, then names with points: ``value.user.id``, ``value."odd name"``
constant    a number, ``TRUE``, ``FALSE``, or text in single quotes, where ``''`` is a quote
==========  ========================================================================================

Null passes ``IS NULL`` alone, and what is unknown stays unknown under ``NOT``, as in SQL.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import pyarrow as pa

from pylog.lazy_modules import LazyModule
from pylog.typed.field_constants import Constant, compared

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.compute as pc
else:
    pc = LazyModule("pyarrow.compute")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),.])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_OPERATORS = ("=", "!=", "<>", "<", "<=", ">", ">=")
_MOST_NESTED = 100
_MOST_NAMED = 20


class FieldCondition(NamedTuple):
    """A condition as an expression of pyarrow, and the columns that it is about."""

    expression: pc.Expression
    columns: tuple[str, ...]


def parse_condition(text: str, columns: Mapping[str, pa.DataType]) -> FieldCondition:
    """Return what a condition says of rows with such decoded columns.

    Raises
    ------
    ValueError
        It cannot be read, there is no such field, or a constant is not of the field's type.
    """
    parser = _Parser(text, columns)
    expression = parser.whole()
    return FieldCondition(expression, tuple(parser.used))


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.upper() == word


class _Field(NamedTuple):
    name: str
    type: pa.DataType
    expression: pc.Expression


class _Parser:
    """Reads one condition from left to right."""

    def __init__(self, text: str, columns: Mapping[str, pa.DataType]) -> None:
        self._text, self._columns = text, columns
        self._token = self._token_at(0)
        self._depth = 0
        self.used: dict[str, None] = {}

    def whole(self) -> pc.Expression:
        expression = self._disjunction()
        if self._token.kind != "end":
            self._fail("expected AND, OR or the end")
        return expression

    def _token_at(self, at: int) -> _Token:
        match = _TOKEN.match(self._text, at)
        if match is None:
            rest = self._text[at:].lstrip()
            what = "this quote does not end" if rest[0] in "'\"" else "this is not understood"
            raise ValueError(f"the condition cannot be read from {rest!r} on: {what}")
        kind = str(match.lastgroup)
        return _Token(kind, match[kind], match.start(kind))

    def _next(self) -> _Token:
        token = self._token
        self._token = self._token_at(token.start + len(token.text))
        return token

    def _fail(self, expected: str) -> NoReturn:
        rest = self._text[self._token.start :]
        place = f"from {rest!r} on" if rest else "to its end"
        raise ValueError(f"the condition cannot be read {place}: {expected}")

    def _takes(self, word: str) -> bool:
        """Go on after a keyword, or a sign, if it comes next."""
        token = self._token
        if token.is_word(word) or (token.kind == "sign" and token.text == word):
            self._next()
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            self._fail(f"expected {word}")

    def _disjunction(self) -> pc.Expression:
        expression = self._conjunction()
        while self._takes("OR"):
            expression |= self._conjunction()
        return expression

    def _conjunction(self) -> pc.Expression:
        expression = self._term()
        while self._takes("AND"):
            expression &= self._term()
        return expression

    def _term(self) -> pc.Expression:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise ValueError(f"the condition has more than {_MOST_NESTED} parentheses in another")
        if self._takes("NOT"):
            expression = ~self._term()
        elif self._takes("("):
            expression = self._disjunction()
            self._expect(")")
        else:
            expression = self._comparison()
        self._depth -= 1
        return expression

    def _comparison(self) -> pc.Expression:
        field = self._field()
        if self._takes("IS"):
            is_not = self._takes("NOT")
            self._expect("NULL")
            is_null = field.expression.is_null()
            return ~is_null if is_not else is_null
        is_not = self._takes("NOT")
        if self._takes("IN"):
            expression = self._members(field)
        elif self._takes("BETWEEN"):
            low = self._compared(field, ">=")
            self._expect("AND")
            expression = low & self._compared(field, "<=")
        elif is_not or self._token.text not in _OPERATORS:
            if self._token.text == "==":
                self._fail("write = for ==")
            names = "IN or BETWEEN" if is_not else f"{' '.join(_OPERATORS)} IS IN or BETWEEN"
            self._fail(f"expected {names} after {field.name}")
        else:
            operator = self._next().text
            return self._compared(field, "!=" if operator == "<>" else operator)
        return ~expression if is_not else expression

    def _members(self, field: _Field) -> pc.Expression:
        self._expect("(")
        expression = self._compared(field, "=")
        while self._takes(","):
            expression |= self._compared(field, "=")
        self._expect(")")
        return expression

    def _compared(self, field: _Field, operator: str) -> pc.Expression:
        constant = self._constant()
        try:
            return compared(field.expression, field.type, operator, constant)
        except ValueError as error:
            raise ValueError(f"{field.name} {error}{_fields_within(field)}") from None

    def _constant(self) -> Constant:
        token = self._token
        if token.kind == "text":
            return Constant("text", self._next().text[1:-1].replace("''", "'"))
        if token.kind == "number":
            return Constant("number", self._next().text)
        for word in ("TRUE", "FALSE"):
            if self._takes(word):
                return Constant("boolean", word)
        if token.is_word("NULL"):
            self._fail("nothing equals NULL: write IS NULL or IS NOT NULL")
        if token.kind in ("quoted", "word"):
            name = token.text.strip('"')
            self._fail(f"expected a constant; text is in single quotes: '{name}'")
        return self._fail("expected a number, text in single quotes, TRUE or FALSE")

    def _field(self) -> _Field:
        if self._token.kind not in ("word", "quoted"):
            self._fail("expected a field, such as value.id")
        column = self._name()
        path = []
        while self._takes("."):
            if self._token.kind not in ("word", "quoted"):
                self._fail('expected a name after the point; odd ones are quoted: value."a-b"')
            path.append(self._name())
        if column not in self._columns:
            raise ValueError(self._no_column(column))
        self.used[column] = None
        kind, name = self._columns[column], column
        for each in path:
            kind = _member(kind, name, each)
            name = f"{name}.{each}"
        return _Field(name, kind, pc.field(column, *path) if path else pc.field(column))

    def _name(self) -> str:
        token = self._next()
        return token.text[1:-1].replace('""', '"') if token.kind == "quoted" else token.text

    def _no_column(self, name: str) -> str:
        if name in ("key", "value"):
            return f"{name}s are bytes here: give --{name}-format, or {name}_format"
        for column, kind in self._columns.items():
            if name in _names_of(kind):
                return f"there is no column {name}: write {column}.{name}"
        columns = " and ".join(self._columns)
        first = next(iter(self._columns))
        members = _names_of(self._columns[first])
        known = f"; {first} has {_listed(members)}" if members else ""
        return f"there is no column {name}: fields are those of {columns}{known}"


def _member(kind: pa.DataType, name: str, member: str) -> pa.DataType:
    """Return the type of a field within what has a type."""
    if not pa.types.is_struct(kind):
        raise ValueError(f"{name} has no fields, it is a {kind}")
    names = _names_of(kind)
    if names.count(member) == 1:
        return kind.field(member).type
    near = difflib.get_close_matches(member.lower(), [each.lower() for each in names], n=1)
    meant = [each for each in names if [each.lower()] == near]
    hint = f"; did you mean {name}.{meant[0]}?" if meant else ""
    raise ValueError(f"{name} has no field {member!r}: it has {_listed(names)}{hint}")


def _names_of(kind: pa.DataType) -> list[str]:
    return [each.name for each in kind] if pa.types.is_struct(kind) else []


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    end = f" and {more} more" if more > 0 else ""
    return f"{', '.join(names[:_MOST_NAMED]) or 'no fields'}{end}"


def _fields_within(field: _Field) -> str:
    names = _names_of(field.type)
    return f"; its fields are {_listed(names)}" if names else ""
