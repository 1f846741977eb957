"""Tests of what records hold: values and headers, one class a kind.

A test decides by a whole value. It also says which bytes the record has at the least, so that
batches without them need not be decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from pylog.reading.required_text import required_text

if TYPE_CHECKING:
    import re

    Headers = list[dict[str, object]] | None

_REPLACED = "\ufffd"
"""What a header's name has in the place of bytes that are not UTF-8."""


class ContentTest(Protocol):
    """Decides about one column of a record."""

    @property
    def column(self) -> str:
        """The column, ``value`` or ``headers``."""

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """Groups of byte strings; a record that passes has one of each group in its bytes."""

    def holds(self, value: object) -> bool:
        """Whether a record with this in the column passes."""


@dataclass(frozen=True, slots=True)
class ValueContains:
    """The value has these bytes in it. A record without a value never passes."""

    content: bytes

    column: ClassVar[str] = "value"

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """The bytes themselves."""
        return ((self.content,),) if self.content else ()

    def holds(self, value: object) -> bool:
        """Whether it has them."""
        return isinstance(value, bytes) and self.content in value


@dataclass(frozen=True, slots=True)
class ValueMatches:
    """A regular expression is found in the value, by Python's rules.

    One of ``str`` is looked for in the text that the value is in UTF-8, where bytes that are not
    UTF-8 are lone surrogates, as of ``surrogateescape``; one of ``bytes`` in the value's bytes.
    """

    pattern: re.Pattern[str] | re.Pattern[bytes]

    column: ClassVar[str] = "value"

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """Text that every match has in it."""
        pattern = self.pattern.pattern
        codec = "utf-8" if isinstance(pattern, str) else "latin-1"
        text = pattern if isinstance(pattern, str) else pattern.decode(codec)
        text = required_text(text, self.pattern.flags)
        try:
            return ((text.encode(codec, "surrogateescape"),),) if text else ()
        except UnicodeEncodeError:
            return ()  # a surrogate that stands for no byte: no text has it

    def holds(self, value: object) -> bool:
        """Whether it is found."""
        if not isinstance(value, bytes):
            return False
        if isinstance(self.pattern.pattern, str):
            value = value.decode("utf-8", "surrogateescape")
        return self.pattern.search(value) is not None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class HasHeader:
    """The record has a header of this name and, unless it is None, of this value."""

    name: str
    value: bytes | None = None

    column: ClassVar[str] = "headers"

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """The name and the value."""
        name = b"" if _REPLACED in self.name else self.name.encode("utf-8", "surrogatepass")
        return tuple((each,) for each in (name, self.value) if each)

    def holds(self, headers: object) -> bool:
        """Whether there is such a header."""
        return isinstance(headers, list) and any(
            each["key"] == self.name and (self.value is None or each["value"] == self.value)
            for each in headers
        )
