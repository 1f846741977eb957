r"""A small JSON path, and whether a value has something there: ``$.roles[0]``, ``$.items[*].id=7``.

================== ==========================================================================
``$``              the whole value
``.name``          a member of an object; letters, digits, ``_`` and ``-``
``['any name']``   the same for any name, in single or double quotes, ``\`` before a quote
``[0]`` ``[-1]``   an element of an array, counted from its beginning or its end
``[*]`` ``.*``     every element of an array, every member of an object
``=TEXT``          at the end: one of the places has this value. TEXT is JSON (``42``, ``true``,
                   ``null``, ``"42"``), or else a string as it stands there, unless it begins with
                   ``=``, is in single quotes, or has a blank at an end
``!=TEXT``         one of the places has another value
``<TEXT`` ``<=TEXT`` ``>TEXT`` ``>=TEXT``
                   one of the places has a number that is less, or a string that comes before,
                   and so on; TEXT is a number or a string
================== ==========================================================================

Without a comparison, it is enough that there is such a place, also one that holds ``null``. These
are the simple parts of RFC 9535; filters, slices and ``..`` are not known. Numbers are compared by
value and exactly: ``1.0`` is ``1``. Strings are compared by their characters' code points, which
puts times of ISO 8601 in order. Nothing else is less or greater, a number and a string neither.
What is not JSON in UTF-8 has no places.
"""

from __future__ import annotations

import json
import operator
import re
import struct
from collections import deque
from dataclasses import dataclass
from decimal import MIN_ETINY, Decimal
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in all but name
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_ARRAY, _OBJECT = b"[{"
_CLOSING = {_ARRAY: "]", _OBJECT: "}"}

Step = str | int | None
"""A member's name, an element's index, or None for all members and elements."""


# Python's own parser is faster, but it refuses what is nested deeper than its stack, and an empty
# array of two bytes costs it 64. Here memory is that of the text and of a byte for each level.
def scan_places(
    text: str, steps: Iterable[Step], *, takes_repeated: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield where in a document the values begin and end that are at a path.

    Of members of one name it is the last one's, as for all that parse it; ``takes_repeated`` has
    all of them.
    """
    start = _after_space(text, 0)
    if _after_space(text, end_of_value(text, start)) < len(text):
        msg = "text follows the document"
        raise ValueError(msg)
    starts: Iterable[int] = [start]
    for step in steps:
        starts = _below(text, starts, step, takes_repeated=takes_repeated)
    for each in starts:
        yield each, end_of_value(text, each)


def end_of_value(text: str, at: int) -> int:
    """Return where the value ends that begins at ``at``; `ValueError` if that is not JSON."""
    containers = bytearray()  # those that are open
    while True:
        character = text[at : at + 1]
        if character in ("[", "{"):
            kind = ord(character)
            at = _after_space(text, at + 1)
            if text[at : at + 1] != _CLOSING[kind]:
                containers.append(kind)
                at = at if kind == _ARRAY else _name(text, at)[1]
                continue
            at += 1
        elif character == '"':
            _, at = scanstring(text, at + 1, True)  # noqa: FBT003 - as it is declared
        else:
            at = _end_of_scalar(text, at)
        following = _after_element(text, at, containers)
        if not containers:
            return at if following is None else following
        at = following if following is not None else at


def _end_of_scalar(text: str, at: int) -> int:
    found = _SCALAR.match(text, at)
    if found is None:
        msg = f"no value at character {at}"
        raise ValueError(msg)
    return found.end()


def _after_element(text: str, at: int, containers: bytearray) -> int | None:
    """Close what ends after a value; return where the next value begins, or the last one ended."""
    while containers:
        at = _after_space(text, at)
        character = text[at : at + 1]
        if character == ",":
            at = _after_space(text, at + 1)
            return at if containers[-1] == _ARRAY else _name(text, at)[1]
        if character != _CLOSING[containers[-1]]:
            msg = f"neither a comma nor the end of an array or object at character {at}"
            raise ValueError(msg)
        containers.pop()
        at += 1
    return at


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _name(text: str, at: int) -> tuple[str, int]:
    """Return the name of a member, and where its value begins."""
    if text[at : at + 1] != '"':
        msg = f"no name of a member at character {at}"
        raise ValueError(msg)
    name, at = scanstring(text, at + 1, True)  # noqa: FBT003 - as it is declared
    at = _after_space(text, at)
    if text[at : at + 1] != ":":
        msg = f"no colon after a member's name at character {at}"
        raise ValueError(msg)
    return name, _after_space(text, at + 1)


def _elements(text: str, at: int) -> Iterator[int]:
    """Yield where the elements of an array begin; of a document that is known to be sound."""
    at = _after_space(text, at + 1)
    while text[at] != "]":
        yield at
        at = _after_space(text, end_of_value(text, at))
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield the members of an object and where their values begin; likewise."""
    at = _after_space(text, at + 1)
    while text[at] != "}":
        name, at = _name(text, at)
        yield name, at
        at = _after_space(text, end_of_value(text, at))
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _below(text: str, starts: Iterable[int], step: Step, *, takes_repeated: bool) -> Iterator[int]:
    for start in starts:
        if text[start] == "{" and not isinstance(step, int):
            if takes_repeated:
                members = _members(text, start)
                yield from (at for name, at in members if step is None or name == step)
            else:
                yield from _values(text, start, step)
        elif text[start] == "[" and step is None:
            yield from _elements(text, start)
        elif text[start] == "[" and isinstance(step, int):
            if step >= 0:
                yield from islice(_elements(text, start), step, step + 1)
            else:
                last = deque(_elements(text, start), maxlen=-step)
                yield from islice(last, 0, 1 if len(last) == -step else 0)


def _values(text: str, start: int, name: str | None) -> Iterable[int]:
    """Return where the values of an object's members begin; of several of one name, the last's."""
    if name is None:
        return dict(_members(text, start)).values()
    last = deque((at for each, at in _members(text, start) if each == name), maxlen=1)
    return tuple(last)


_EVERY = "*"
_STEP = re.compile(
    r"""\.(?P<name>[\w-]+|\*)
      | \[\s*(?:(?P<index>-?[0-9]{1,9})|(?P<every>\*)|'(?P<one>(?:[^'\\]|\\.)*)'
              |"(?P<two>(?:[^"\\]|\\.)*)")\s*\]""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_EQUAL, _UNEQUAL = "=", "!="
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARISON = re.compile("[!<>]=|[=<>]")


class Member(NamedTuple):
    """A name in quotes, then a colon and the beginning of a value; see `find_members`."""

    name: bytes
    value: bytes


Needle = bytes | Member

_SHORT_ESCAPES = dict(zip('"\\/\b\f\n\r\t', '"\\/bfnrt', strict=True))
_MOST_SPELLINGS = 12
_MOST_DIGITS = 1_000


def _spellings(text: str) -> tuple[bytes, ...]:
    """Return the string without escapes, and what else each of its spellings has one of."""
    plain = f'"{text}"'.encode("utf-8", "surrogatepass")
    escapes = {f"\\{_SHORT_ESCAPES[each]}" for each in text if each in _SHORT_ESCAPES}
    for unit in struct.iter_unpack("<H", text.encode("utf-16-le", "surrogatepass")):
        digits = f"{unit[0]:04x}"[:3]
        escapes.add(f"\\u{digits[: len(digits) - len(digits.lstrip('0123456789'))]}")
    if len(escapes) > _MOST_SPELLINGS:
        escapes = {"\\"}
    return plain, *sorted(each.encode() for each in escapes)


def _beginning(expected: str | None) -> bytes:
    """Return the bytes that the expected value begins with, to find candidates without parsing."""
    if expected is None:
        return b""
    value = _parsed(expected)
    if isinstance(value, str):
        return _spellings(value)[0]
    if not isinstance(value, Decimal):
        return expected[:1].encode()
    if abs(value.adjusted()) > _MOST_DIGITS or len(value.as_tuple().digits) > _MOST_DIGITS:
        return b""
    digits = f"{value:f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return (digits if value else "0").encode()


@dataclass(frozen=True, slots=True)
class JsonPath:
    """The test that a value is JSON and has something at a path; `parse` makes it.

    ``expected`` is JSON, and ``comparison`` says how a place compares with it.
    """

    text: str
    steps: tuple[Step, ...]
    expected: str | None = None
    comparison: str = _EQUAL

    column: ClassVar[str] = "value"

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Return the test that ``text`` stands for."""
        if not text.startswith("$"):
            _refuse(text, 0)
        steps: list[Step] = []
        at = 1
        while at < len(text) and text[at] not in "=!<>":
            step = _STEP.match(text, at)
            if step is None:
                _refuse(text, at)
            steps.append(_step(step))
            at = step.end()
        if at == len(text):
            return cls(text, tuple(steps))
        compared = _COMPARISON.match(text, at)
        if compared is None:
            _refuse(text, at)
        _ensure_meant(text, text[compared.end() :])
        expected = _as_json(text[compared.end() :])
        if compared[0] in _ORDERS and not isinstance(_parsed(expected), Decimal | str):
            msg = (
                f"JSON path {text!r} compares with {expected}: only numbers and strings are less "
                "or greater; use = or !="
            )
            raise ValueError(msg)
        return cls(text, tuple(steps), expected, compared[0])

    @property
    def required(self) -> tuple[tuple[Needle, ...], ...]:
        """What a value has in its bytes: each name, and what the last of them or a string is.

        Only what a place is to be equal to is known to be there.
        """
        names = [step for step in self.steps if isinstance(step, str)]
        groups: list[tuple[Needle, ...]] = []
        equal = self.expected if self.comparison == _EQUAL else None
        if equal is not None and equal.startswith('"'):
            groups.append(_spellings(json.loads(equal)))
        if self.steps and isinstance(self.steps[-1], str):
            name, *escaped = _spellings(names.pop())
            groups.append((Member(name, _beginning(equal)), *escaped))
        return (*groups, *map(_spellings, names))

    def holds(self, value: object) -> bool:
        """Whether a record's value is JSON that has the expected value at the path."""
        if not isinstance(value, bytes):
            return False
        try:
            text = value.decode()
            if sum(map(value.count, _STRUCTURE)) > _MOST_PARSED:
                return any(True for _ in self.spans(text))
            try:
                document = _parsed(text)
            except (ArithmeticError, RecursionError):  # an absurd exponent; nested deeply
                return any(True for _ in self.spans(text))
        except ValueError:
            return False  # not JSON
        places = _places([document], self.steps)
        if self.expected is None:
            return next(iter(places), _NOTHING) is not _NOTHING
        expected = _parsed(self.expected)
        return any(_compares(place, self.comparison, expected) for place in places)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the places that pass begin and end; `ValueError` for what is not JSON.

        The document is not made into objects as a whole.
        """
        places = scan_places(text, self.steps)
        if self.expected is None:
            yield from places
            return
        expected = _parsed(self.expected)
        is_container = isinstance(expected, dict | list)
        for start, end in places:
            if (text[start] in "[{") != is_container:
                passes = self.comparison == _UNEQUAL
            else:
                passes = _text_compares(text[start:end], self.comparison, expected)
            if passes:
                yield start, end


_NOTHING = object()
_STRUCTURE = (b",", b"[", b"{")
_MOST_PARSED = 1 << 20
"""Values that a document is made into at the most: each takes some hundred bytes."""


def _text_compares(text: str, comparison: str, expected: object) -> bool:
    try:
        place = _parsed(text)
    except RecursionError:
        return comparison == _UNEQUAL  # what is expected could be read
    except ArithmeticError:
        if text[0] in "[{":
            return comparison == _UNEQUAL
        place = _number_beyond(text)
    return _compares(place, comparison, expected)


def _number_beyond(text: str) -> Decimal:
    """Return what is as great, next to any number that can be read, as one that cannot."""
    mantissa, _, exponent = text.lower().partition("e")
    if not mantissa.strip("-0."):
        return Decimal(0)
    size = f"1e{MIN_ETINY}" if exponent.startswith("-") else "Infinity"
    return Decimal(f"-{size}" if text.startswith("-") else size)


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return int(match["index"])
    if match["every"] is not None or match["name"] == _EVERY:
        return None
    if match["name"] is not None:
        return match["name"]
    quoted = match["one"] if match["one"] is not None else match["two"]
    return _ESCAPED.sub(r"\1", quoted)


_UNUSUAL = re.compile(r"=|\s|'.*'$|.*\s$", re.DOTALL)


def _ensure_meant(text: str, expected: str) -> None:
    """Refuse what would be a string that hardly a value has: ``==new``, ``='new'``, ``= new``."""
    if not _UNUSUAL.match(expected):
        return
    try:
        _parsed(expected)
    except (ValueError, ArithmeticError, RecursionError):
        meant = expected.lstrip("= ").strip().strip("'")
        msg = (
            f"JSON path {text!r} compares with {expected!r}: write ={meant}, or "
            f"={json.dumps(expected)} if the string has these signs"
        )
        raise ValueError(msg) from None


def _as_json(text: str) -> str:
    try:
        _parsed(text)
    except (ValueError, ArithmeticError, RecursionError):
        return json.dumps(text)
    return text.strip()


def _parsed(text: str) -> object:
    document: object = json.loads(
        text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse_constant
    )
    return document


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _refuse(text: str, at: int) -> NoReturn:
    msg = (
        f"JSON path {text!r} cannot be read from {text[at:]!r} on: expected a path such as "
        "$.user.roles[0], $['any name'] or $.items[*].id=7"
    )
    raise ValueError(msg)


def _places(documents: Iterable[object], steps: tuple[Step, ...]) -> Iterable[object]:
    for step in steps:
        documents = _children(documents, step)
    return documents


def _children(documents: Iterable[object], step: Step) -> Iterator[object]:
    for document in documents:
        if isinstance(document, dict):
            if step is None:
                yield from document.values()
            elif isinstance(step, str) and step in document:
                yield document[step]
        elif isinstance(document, list):
            if step is None:
                yield from document
            elif isinstance(step, int) and -len(document) <= step < len(document):
                yield document[step]


def _compares(one: object, comparison: str, other: object) -> bool:
    if comparison in _ORDERS:
        return type(one) is type(other) and _ORDERS[comparison](one, other)
    return _is_same(one, other) is (comparison == _EQUAL)


def _is_same(one: object, other: object) -> bool:
    """Whether two values are the same JSON; to Python, true would be 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other
