r"""A small JSON path, and whether a value has something there: ``$.roles[0]``, ``$.items[*].id=7``.

================== ==========================================================================
``$``              the whole value
``.name``          a member of an object; letters, digits, ``_`` and ``-``
``['any name']``   the same for any name, in single or double quotes, ``\`` before a quote
``[0]`` ``[-1]``   an element of an array, counted from its beginning or its end
``[*]`` ``.*``     every element of an array, every member of an object
``=TEXT``          at the end: one of the places has this value. TEXT is JSON (``42``, ``true``,
                   ``null``, ``"42"``), or else a string as it stands there
================== ==========================================================================

Without ``=``, it is enough that there is such a place, also one that holds ``null``. These are the
simple parts of RFC 9535; filters, slices and ``..`` are not known. Numbers are compared by value
and exactly: ``1.0`` is ``1``. What is not JSON in UTF-8 has no places.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, NoReturn

from pylog.reading.json_scan import scan_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.reading.json_scan import Step

_EVERY = "*"
_STEP = re.compile(
    r"""\.(?P<name>[\w-]+|\*)
      | \[\s*(?:(?P<index>-?[0-9]{1,9})|(?P<every>\*)|'(?P<one>(?:[^'\\]|\\.)*)'
              |"(?P<two>(?:[^"\\]|\\.)*)")\s*\]""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonPath:
    """The test that a value is JSON and has something at a path; `parse` makes it.

    Attributes
    ----------
    text
        The path, and what is expected there, as it was written.
    steps
        From the whole value to the places.
    expected
        JSON of what one of the places has; None if it is enough that there is one.
    """

    text: str
    steps: tuple[Step, ...]
    expected: str | None = None

    column: ClassVar[str] = "value"

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Return the test that ``text`` stands for.

        Raises
        ------
        ValueError
            It is not such a path.
        """
        if not text.startswith("$"):
            _refuse(text, 0)
        steps: list[Step] = []
        at = 1
        while at < len(text) and text[at] != "=":
            step = _STEP.match(text, at)
            if step is None:
                _refuse(text, at)
            steps.append(_step(step))
            at = step.end()
        if at == len(text):
            return cls(text, tuple(steps))
        return cls(text, tuple(steps), _as_json(text[at + 1 :]))

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        r"""What a value has in its bytes: each name, and a string, or else the ``\`` of an escape.

        JSON may write every character as ``\u0041``.
        """
        texts = [step for step in self.steps if isinstance(step, str)]
        if self.expected is not None and self.expected.startswith('"'):
            texts.append(json.loads(self.expected))
        return tuple((text.encode("utf-8", "surrogatepass"), b"\\") for text in texts if text)

    def holds(self, value: object) -> bool:
        """Whether a record's value passes."""
        if not isinstance(value, bytes):
            return False
        try:
            text = value.decode()
            if sum(map(value.count, _STRUCTURE)) > _MOST_PARSED:
                return self._holds_in(text)
            try:
                document = _parsed(text)
            except (ArithmeticError, RecursionError):  # an absurd exponent; nested deeply
                return self._holds_in(text)
        except ValueError:
            return False  # not JSON
        places = _places([document], self.steps)
        if self.expected is None:
            return next(iter(places), _NOTHING) is not _NOTHING
        expected = _parsed(self.expected)
        return any(_is_same(place, expected) for place in places)

    def _holds_in(self, text: str) -> bool:
        """Return what `holds` does, of a document that is not to be made into objects as a whole.

        Raises
        ------
        ValueError
            It is not JSON.
        """
        places = scan_places(text, self.steps)
        if self.expected is None:
            return next(places, None) is not None
        expected = _parsed(self.expected)
        is_container = isinstance(expected, dict | list)
        return any(
            (text[start] in "[{") == is_container and _is_text_of(text[start:end], expected)
            for start, end in places
        )


_NOTHING = object()
_STRUCTURE = (b",", b"[", b"{")
_MOST_PARSED = 1 << 20
"""Values that a document is made into at the most: each takes some hundred bytes."""


def _is_text_of(text: str, expected: object) -> bool:
    try:
        return _is_same(_parsed(text), expected)
    except (ArithmeticError, RecursionError):
        return False  # what is expected could be read


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return int(match["index"])
    if match["every"] is not None or match["name"] == _EVERY:
        return None
    if match["name"] is not None:
        return match["name"]
    quoted = match["one"] if match["one"] is not None else match["two"]
    return _ESCAPED.sub(r"\1", quoted)


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
        documents = _below(documents, step)
    return documents


def _below(documents: Iterable[object], step: Step) -> Iterator[object]:
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


def _is_same(one: object, other: object) -> bool:
    """Whether two values are the same JSON; to Python, true would be 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other
