"""Types in Spark's words: ``id BIGINT, tags ARRAY<STRING>, price DECIMAL(10, 2) NOT NULL``.

As in Spark, letters of types may be small or capital, a colon may stand after a name, and a name in
backquotes may be anything. ``VARIANT`` keeps a value as its JSON text. A ``TIMESTAMP`` has a zone
and microseconds; one without zone is ``TIMESTAMP_NTZ``.
"""

from __future__ import annotations

import re

import pyarrow as pa

from pylog.typed.json_types import as_text, is_text

_TOKEN = re.compile(r"(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:]))")
_SIMPLE = {
    **dict.fromkeys(("TINYINT", "BYTE"), pa.int8()),
    **dict.fromkeys(("SMALLINT", "SHORT"), pa.int16()),
    **dict.fromkeys(("INT", "INTEGER"), pa.int32()),
    **dict.fromkeys(("BIGINT", "LONG"), pa.int64()),
    **dict.fromkeys(("FLOAT", "REAL"), pa.float32()),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_DECIMALS = {"DECIMAL", "DEC", "NUMERIC"}
_MOST_DIGITS = 38
_MOST_DEPTH = 64


def field_of_ddl(text: str) -> pa.Field:
    """Return the type that a text describes: fields of a struct, or one type.

    Raises
    ------
    ValueError
        Says what was expected, and where.
    """
    parser = _Parser(text)
    first, second = parser.peek(), parser.peek(1)
    if second in {"", "<", "("} and not first.startswith("`"):
        field = parser.type("", 0)
    else:
        field = pa.field("", parser.fields("", 0))
    if parser.peek():
        raise parser.error("a comma or the end")
    return field


def ddl_of(field: pa.Field) -> str:
    """Return the type of a field in Spark's words; `ValueError` if it has none."""
    kind = field.type
    if is_text(field):
        return "VARIANT"
    if pa.types.is_struct(kind):
        quoted = [f"`{each.name.replace('`', '``')}` {ddl_of(each)}" for each in kind]
        return f"STRUCT<{', '.join(quoted)}>"
    if pa.types.is_map(kind):
        return f"MAP<{ddl_of(kind.key_field)}, {ddl_of(kind.item_field)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{ddl_of(kind.value_field)}>"
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    for word, each in _SIMPLE.items():
        if each == kind:
            return str(word)
    raise ValueError(f"Spark has no type {kind}")


class _Parser:
    """Tokens of a text, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._places: list[int] = []
        self._next = 0
        at, end = 0, len(text.rstrip())
        while at < end:
            at += len(text[at:]) - len(text[at:].lstrip())
            match = _TOKEN.match(text, at)
            if match is None:
                self._places = [at]
                raise self.error("a name or a type")
            self._tokens.append(match[match.lastindex or 0])
            self._places.append(match.start(match.lastindex or 0))
            at = match.end()
        self._places.append(end)

    def peek(self, ahead: int = 0) -> str:
        """Return one of the next tokens; empty at the end."""
        place = self._next + ahead
        return self._tokens[place] if place < len(self._tokens) else ""

    def error(self, expected: str) -> ValueError:
        at = self._places[self._next] if self._next < len(self._places) else len(self._text)
        found = repr(self._text[at : at + 20]) if self._text[at:].strip() else "the end"
        return ValueError(f"expected {expected}, found {found} at character {at} of {self._text!r}")

    def fields(self, end: str, depth: int) -> pa.StructType:
        """Return fields up to a token, which is taken; an empty one is the end."""
        found: list[pa.Field] = []
        while self.peek() != end or not found:
            if found:
                self._take(",", "a comma")
            name = self._name()
            if self.peek() == ":":
                self._next += 1
            field = self.type(name, depth)
            if self.peek().upper() == "NOT":
                self._next += 1
                self._take_word("NULL")
                field = field.with_nullable(False)  # noqa: FBT003 - Arrow's signature
            if self.peek().upper() == "COMMENT":
                self._next += 1
                if not self.peek().startswith("'"):
                    raise self.error("a comment in quotes")
                self._next += 1
            found.append(field)
        self._next += bool(end)
        return pa.struct(found)

    def type(self, name: str, depth: int) -> pa.Field:
        """Return a field of the type that is next."""
        if depth > _MOST_DEPTH:
            raise self.error(f"at most {_MOST_DEPTH} types in each other")
        word = self.peek().upper()
        self._next += 1
        if word in _SIMPLE:
            return pa.field(name, _SIMPLE[word])
        if word == "VARIANT":
            return as_text(name)
        if word in _DECIMALS:
            return pa.field(name, self._decimal())
        if word in {"VARCHAR", "CHAR"}:
            self._numbers(1)
            return pa.field(name, pa.string())
        if word == "ARRAY":
            self._take("<", "<")
            element = self.type("element", depth + 1)
            self._take(">", ">")
            return pa.field(name, pa.list_(element))
        if word == "MAP":
            return pa.field(name, self._map(depth))
        if word == "STRUCT":
            self._take("<", "<")
            if self.peek() == ">":
                self._next += 1
                return pa.field(name, pa.struct([]))
            return pa.field(name, self.fields(">", depth + 1))
        self._next -= 1
        raise self.error("a type")

    def _map(self, depth: int) -> pa.DataType:
        self._take("<", "<")
        key = self.type("key", depth + 1)
        self._take(",", "a comma")
        value = self.type("value", depth + 1)
        self._take(">", ">")
        return pa.map_(key.type, value)

    def _name(self) -> str:
        token = self.peek()
        if token.startswith("`"):
            token = token[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", token):
            raise self.error("a name")
        self._next += 1
        return token

    def _decimal(self) -> pa.DataType:
        if self.peek() != "(":
            return pa.decimal128(10, 0)
        start = self._next
        precision, *rest = self._numbers(2)
        scale = rest[0] if rest else 0
        if not 1 <= precision <= _MOST_DIGITS or scale > precision:
            self._next = start
            raise self.error(f"a precision up to {_MOST_DIGITS} and a scale up to that")
        return pa.decimal128(precision, scale)

    def _numbers(self, most: int) -> list[int]:
        self._take("(", "(")
        numbers: list[int] = []
        while True:
            if not re.fullmatch(r"[0-9]{1,9}", self.peek()):
                raise self.error("a number")
            numbers.append(int(self.peek()))
            self._next += 1
            if len(numbers) == most or self.peek() != ",":
                self._take(")", ")")
                return numbers
            self._next += 1

    def _take(self, token: str, expected: str) -> None:
        if self.peek() != token:
            raise self.error(expected)
        self._next += 1

    def _take_word(self, word: str) -> None:
        if self.peek().upper() != word:
            raise self.error(word)
        self._next += 1
