"""Comparisons of a column with a literal in SQL text: ``offset > 5 AND topic = 'orders'``.

A client of Spark Connect sends conditions as text and has no parser of Spark's. What is read here
is a small part of SQL in which nothing can be mistaken: a conjunction, of which each member is
either understood whole or passed over whole. Text with anything in it that could change where it is
cut (escapes, comments, variables, queries, CASE, OR outside parentheses) gives nothing: less is
left out then, and Spark evaluates the condition all the same.

Source: SqlBaseLexer.g4, SqlBaseParser.g4 (Spark 4.0 to 4.3).
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, NamedTuple

from pylog import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<word>[A-Za-z0-9_]+)
    | (?P<quoted>'[^']*'|`[^`]*`|"[^"]*")
    | (?P<sign><=>|<>|!=|<=|>=|==|=|<|>|\|\||[-+*/%.,()])
    )""",
    re.VERBOSE,
)
_UNREADABLE = re.compile(r"\\|--|/\*|\$\{")
"""An escape, a comment or a variable, wherever it stands."""
_REFUSED_WORDS = frozenset({"CASE", "SELECT", "FROM", "WITH", "VALUES", "TABLE", "MAP", "REDUCE"})
_MOST_NESTED = 30

# Literals whose meaning no setting of the session changes. 'it''s' and 'a' 'b' are none: versions
# of Spark read them differently.
_INTEGER = r"-?[ \t\r\n]*[0-9]+"
_TEXT = r"'[^']*'"
_BYTES = r"X[ \t\r\n]*'(?:[0-9A-F]{2})*'"
_CALL = r"timestamp_(?:micros|millis|seconds)[ \t\r\n]*\([ \t\r\n]*-?[ \t\r\n]*[0-9]+[ \t\r\n]*\)"
# A date, or a date and a time of day, and perhaps the distance from UTC: nothing that asks the
# clock, as 'now' and a time of day alone do. What it means depends on the session's time zone.
_INSTANT = (
    r"'[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[ T][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]{1,6})?"
    r"(?:\ ?(?:Z|UTC|[-+][0-9]{1,2}:[0-9]{2}))?)?'"
)
_TYPED = rf"(?:TIMESTAMP|DATE)[ \t\r\n]*{_INSTANT}"
_VALUE = rf"{_INTEGER}|{_TEXT}|{_BYTES}|{_CALL}|{_TYPED}|NULL"
_COLUMN = r"`?(?P<column>[A-Z]+)`?"
_SIGN = r"(?P<sign><=>|==|=|<=|>=|<|>)"
_GAP = r"[ \t\r\n]*"


def _shape(*parts: str) -> re.Pattern[str]:
    return re.compile(_GAP + _GAP.join(parts) + _GAP, re.IGNORECASE)


_COMPARISON = _shape(_COLUMN, _SIGN, f"(?P<value>{_VALUE})")
_MIRRORED = _shape(f"(?P<value>{_VALUE})", _SIGN, _COLUMN)
_BETWEEN = _shape(_COLUMN, r"\bBETWEEN\b", f"(?P<low>{_VALUE})", r"\bAND\b", f"(?P<high>{_VALUE})")
_IN = _shape(
    _COLUMN, r"\bIN", r"\(", f"(?P<values>(?:{_VALUE})(?:{_GAP},{_GAP}(?:{_VALUE}))*)", r"\)"
)
_EACH = re.compile(_VALUE, re.IGNORECASE)
_OPERATORS = {"<=>": "=", "==": "="}
_SEEN_FROM_RIGHT = {">": "<", ">=": "<=", "<": ">", "<=": ">="}

_MOST_INTEGER = 2**63 - 1
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECONDS = {"timestamp_micros": 1, "timestamp_millis": 1_000, "timestamp_seconds": 1_000_000}


class WrittenInstant(NamedTuple):
    """A literal compared with ``timestamp`` whose meaning depends on the session's time zone.

    Attributes
    ----------
    text
        The literal.
    begin, end
        Where it stands in the condition, ``end`` exclusive.
    """

    text: str
    begin: int
    end: int


class Conjunction(NamedTuple):
    """What was understood of a condition.

    Attributes
    ----------
    comparisons
        What every row that passes fulfils.
    instants
        Those that `comparisons` leave out, in the order of the text.
    """

    comparisons: list[Comparison]
    instants: list[WrittenInstant]


class _UnreadableError(ValueError):
    """The text is not of the part of SQL that is read here."""


class _Token(NamedTuple):
    text: str
    begin: int
    end: int


def read_conjunction(condition: str) -> Conjunction:
    """Return the comparisons of a condition, as far as they are understood."""
    found = Conjunction([], [])
    if _UNREADABLE.search(condition) or not condition.isascii():
        return found
    try:
        members = list(_members(list(_tokens(condition))))
    except _UnreadableError:
        return found
    for begin, end in members:
        for column, operator, literals in _read_member(condition, begin, end):
            _add(found, column, operator, literals)
    return found


def instant(microseconds: int) -> dt.datetime | None:
    """Return the instant so long after 1970; None if Python has no such year."""
    try:
        return _EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def instant_of_call(function: str, number: int) -> dt.datetime | None:
    """Return what ``timestamp_millis(number)`` and its like are; None for another function."""
    scale = _MICROSECONDS.get(function.lower())
    return None if scale is None else instant(number * scale)


def _tokens(text: str) -> Iterator[_Token]:
    place, end = 0, len(text.rstrip(" \t\r\n"))
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise _UnreadableError
        kind = match.lastgroup or ""
        token = _Token(match[kind], match.start(kind), match.end(kind))
        if token.text.upper() in _REFUSED_WORDS:
            raise _UnreadableError
        yield token
        place = match.end()


def _members(tokens: Sequence[_Token], depth: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where the members of a conjunction begin and end.

    An AND outside parentheses stands between two members, or belongs to the BETWEEN before it. Of a
    conjunction in parentheses the members are those of the whole.
    """
    if depth > _MOST_NESTED:
        raise _UnreadableError
    nested = betweens = 0
    members: list[list[_Token]] = [[]]
    for token in tokens:
        nested += (token.text == "(") - (token.text == ")")
        word = token.text.upper()
        if nested < 0 or (not nested and word in ("OR", ",")):
            raise _UnreadableError
        if not nested:
            betweens += word == "BETWEEN"
            if word == "AND":
                if not betweens:
                    members.append([])
                    continue
                betweens -= 1
        members[-1].append(token)
    if nested or betweens or not all(members):
        raise _UnreadableError
    for member in members:
        yield from _members_of_one(member, depth)


def _members_of_one(member: Sequence[_Token], depth: int) -> Iterator[tuple[int, int]]:
    if _is_in_parentheses(member):
        try:
            yield from list(_members(member[1:-1], depth + 1))
        except _UnreadableError:  # a disjunction, perhaps
            return
    else:
        yield member[0].begin, member[-1].end


def _is_in_parentheses(member: Sequence[_Token]) -> bool:
    """Whether the first token is a parenthesis that the last one closes."""
    nested = 0
    for place, token in enumerate(member):
        nested += (token.text == "(") - (token.text == ")")
        if not nested:
            return place == len(member) - 1 and place > 0
    return False


def _read_member(
    condition: str, begin: int, end: int
) -> list[tuple[str, str, list[WrittenInstant]]]:
    """Return column, operator and literals of what a member says: nothing, or all of it."""
    if match := _COMPARISON.fullmatch(condition, begin, end):
        sign = _OPERATORS.get(match["sign"], match["sign"])
        return [(match["column"], sign, [_literal(match, "value")])]
    if match := _MIRRORED.fullmatch(condition, begin, end):
        sign = _OPERATORS.get(match["sign"], match["sign"])
        return [(match["column"], _SEEN_FROM_RIGHT.get(sign, sign), [_literal(match, "value")])]
    if match := _BETWEEN.fullmatch(condition, begin, end):
        column = match["column"]
        return [(column, ">=", [_literal(match, "low")]), (column, "<=", [_literal(match, "high")])]
    if match := _IN.fullmatch(condition, begin, end):
        first, last = match.span("values")
        listed = [
            WrittenInstant(each[0], each.start(), each.end())
            for each in _EACH.finditer(condition, first, last)
        ]
        return [(match["column"], "in", listed)]
    return []


def _literal(match: re.Match[str], group: str) -> WrittenInstant:
    return WrittenInstant(match[group], match.start(group), match.end(group))


def _add(
    found: Conjunction, column: str, operator: str, literals: Sequence[WrittenInstant]
) -> None:
    column = column.lower()
    if column == "timestamp":
        # Text in a list is compared as text.
        written = _TYPED if operator == "in" else f"{_TYPED}|{_INSTANT}"
        instants = [each for each in literals if re.fullmatch(written, each.text, re.IGNORECASE)]
        found.instants.extend(instants)
        if instants:
            return
    values = [_value(each.text) for each in literals if each.text.upper() != "NULL"]
    if column == "key":  # Spark compares text with bytes as bytes
        values = [each.encode() if isinstance(each, str) else each for each in values]
    if None in values or (operator != "in" and not values):
        return
    found.comparisons.append(
        Comparison(column, operator, values if operator == "in" else values[0])
    )


def _value(literal: str) -> int | str | bytes | dt.datetime | None:
    """Return what a literal stands for; None if that is not known, or depends on the session."""
    if literal.startswith("'"):
        return literal[1:-1]
    if literal[0] in "xX":
        return bytes.fromhex(literal[1:].strip(" \t\r\n'"))
    function, parenthesis, rest = literal.partition("(")
    digits = re.sub(r"[ \t\r\n)]", "", rest if parenthesis else literal)
    if not re.fullmatch("-?[0-9]{1,19}", digits) or abs(int(digits)) > _MOST_INTEGER:
        return None
    return instant_of_call(function.strip(), int(digits)) if parenthesis else int(digits)
