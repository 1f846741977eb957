"""JSON that is looked through where it lies, and not made into objects, however deep and long.

Python's own parser is faster, but it refuses what is nested deeper than its stack, and an empty
array of two bytes costs it 64. Here memory is that of the text and of a byte for each level.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in all but name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_ARRAY, _OBJECT = b"[{"
_CLOSING = {_ARRAY: "]", _OBJECT: "}"}

Step = str | int | None
"""A member's name, an element's index, or None for all members and elements."""


def scan_places(text: str, steps: Iterable[Step]) -> Iterator[tuple[int, int]]:
    """Yield where in a document the values begin and end that are at a path.

    Parameters
    ----------
    text
        The document.
    steps
        From the whole value to the places.

    Raises
    ------
    ValueError
        The text is not JSON; before the first place.
    """
    start = _after_space(text, 0)
    if _after_space(text, end_of_value(text, start)) < len(text):
        msg = "text follows the document"
        raise ValueError(msg)
    starts: Iterable[int] = [start]
    for step in steps:
        starts = _below(text, starts, step)
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


def _below(text: str, starts: Iterable[int], step: Step) -> Iterator[int]:
    for start in starts:
        if text[start] == "{" and not isinstance(step, int):
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
