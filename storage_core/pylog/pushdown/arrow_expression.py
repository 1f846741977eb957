"""The filter that a consumer of a ``pyarrow.dataset`` hands over, as far as a read can use it.

An expression of pyarrow has no parts that can be asked for; its text is all that shows what it is.
So the text is read, and what was read is written again: unless that gives the same text, it is not
used. The consumer gets the rows that the whole expression passes, as pyarrow evaluates it.
"""

from __future__ import annotations

import datetime as dt
import operator
import pickle
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pylog.reading.comparison import Comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COMPARISON = re.compile(r"\((\w+) (==|>=|>|<=|<) (.+)\)", re.DOTALL)
_MEMBERSHIP = re.compile(
    r"is_in\((\w+), \{value_set=\w+:\[\n(.*)\n\], null_matching_behavior=\w+\}\)", re.DOTALL
)
_IF_VALID = re.compile(r"if_else\(is_valid\((\w+)\), (is_in\(\1, .*), null\[bool\]\)", re.DOTALL)

_OPERATORS: dict[str, Callable[[pc.Expression, pa.Scalar], pc.Expression]] = {
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\{value_set=.*?\n\], null_matching_behavior=\w+\}|[()]| and ', re.DOTALL
)
"""A string, a list, and what terms are told apart by."""
_AMBIGUOUS = (b'",\n', b"\n], null_matching")
_UNITS = {0: "s", 3: "ms", 6: "us"}


def comparisons_of(expression: pc.Expression, schema: pa.Schema) -> Iterator[Comparison]:
    """Yield comparisons that every row has to pass which passes ``expression``.

    Parameters
    ----------
    expression
        About columns of ``schema``.
    schema
        Of the rows.
    """
    # A list shows its strings without escapes, so that one string may look like the end of another
    # one. The pickle holds the bytes of every string as they are.
    content = pickle.dumps(expression)
    if any(each in content for each in _AMBIGUOUS):
        return
    for term in _terms_of(str(expression)):
        compared = _to_comparison(term, schema) or _to_membership(term, schema)
        if compared is not None:
            yield compared


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns that an expression may be about; words of a literal count, too."""
    words = set(re.findall(r"\w+", str(expression)))
    return [name for name in schema.names if name in words]


def _terms_of(text: str) -> Iterator[str]:
    """Yield the terms of a conjunction, which is in parentheses, two by two."""
    ends: dict[
        int, tuple[int, int]
    ] = {}  # by opening parenthesis: that of " and ", the closing one
    opened: list[list[int]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            opened.append([token.start(), -1])
        elif token[0] == " and " and opened:
            opened[-1][1] = token.start()
        elif token[0] == ")" and opened:
            start, middle = opened.pop()
            ends[start] = middle, token.start()
    spans = [(0, len(text))]
    while spans:
        start, end = spans.pop()
        middle, closing = ends.get(start, (-1, -1))
        if middle < 0 or closing != end - 1:
            yield text[start:end]
        else:
            spans += (start + 1, middle), (middle + len(" and "), closing)


def _to_comparison(text: str, schema: pa.Schema) -> Comparison | None:
    match = _COMPARISON.fullmatch(text)
    if match is None or match[1] not in schema.names:
        return None
    column, sign, literal = match.groups()
    value = _scalar(literal, schema.field(column).type)
    if value is None or str(_OPERATORS[sign](pc.field(column), value)) != text:
        return None
    return Comparison(column, sign.replace("==", "="), value.as_py())


def _to_membership(text: str, schema: pa.Schema) -> Comparison | None:
    """Read a list of values; pyarrow's text of a long one lacks most of them."""
    if_valid = _IF_VALID.fullmatch(text)
    text = text if if_valid is None else if_valid[2]
    match = _MEMBERSHIP.fullmatch(text)
    if match is None or match[1] not in schema.names:
        return None
    column, members = match.groups()
    kind = schema.field(column).type
    quote = '"' if kind == pa.binary() else ""
    values = [_scalar(f"{quote}{each.strip()}{quote}", kind) for each in members.split(",\n")]
    if None in values:
        return None
    known = [each.as_py() for each in values if each is not None]
    if str(pc.field(column).isin(pa.array(known, kind))) != text:
        return None
    return Comparison(column, "in", known)


def _scalar(literal: str, kind: pa.DataType) -> pa.Scalar | None:
    """Return a literal's value; None if it is null, or not one that a column of this type has."""
    try:
        if pa.types.is_integer(kind):
            return pa.scalar(int(literal), kind)
        if kind == pa.string():
            return pa.scalar(_unquoted(literal), kind)
        if kind == pa.binary():
            return pa.scalar(bytes.fromhex(_unquoted(literal)), kind)
        if pa.types.is_timestamp(kind) and kind.tz == "UTC" and literal.endswith("Z"):
            unit = _UNITS[len(literal.rpartition(".")[2]) - 1 if "." in literal else 0]
            return pa.scalar(dt.datetime.fromisoformat(literal), pa.timestamp(unit, tz="UTC"))
    except (ValueError, KeyError, OverflowError, pa.ArrowInvalid):
        pass
    return None


def _unquoted(literal: str) -> str:
    if len(literal) < 2 or not literal.startswith('"') or not literal.endswith('"'):
        msg = f"{literal} is not in quotes"
        raise ValueError(msg)
    return literal[1:-1]
