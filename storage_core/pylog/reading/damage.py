"""What a reader does at damage, and which bytes it has left out.

FAILFAST raises an error with file, position and cause. The other two modes skip exactly the damaged
bytes: from the first wrong batch to the next intact one (`pylog.log_file.resynchronisation`).
The names are those of Spark's file sources.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeVar

from pylog.errors import LogStorageError, SegmentVanishedError
from pylog.locations import printable_location
from pylog.text.words import counted, offsets_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_Value = TypeVar("_Value")
_MOST_NOTES = 3


class Attempts:
    """Reads values, and keeps what went wrong, so that a row has whatever can be read."""

    def __init__(self) -> None:
        self.errors: list[LogStorageError] = []
        self._texts: set[str] = set()

    def read(self, value: Callable[[], _Value]) -> _Value | None:
        """Return what ``value`` does, None where that raises an error of ours."""
        try:
            return value()
        except LogStorageError as error:
            text = str(error)
            if text not in self._texts:
                self._texts.add(text)
                self.errors.append(error)
            return None

    def ensure_all_there(self) -> None:
        """Raise `SegmentVanishedError` if a file was gone: a new look has all of them."""
        for error in self.errors:
            if isinstance(error, SegmentVanishedError):
                raise error

    def notes(self) -> list[str]:
        """Return a line for each of the first errors, and one that says how many are left."""
        shown = [f"Unreadable: {error}" for error in self.errors[:_MOST_NOTES]]
        more = len(self.errors) - len(shown)
        return [*shown, f"Unreadable: {more} more"] if more else shown


_LOGGER = logging.getLogger(__name__)


ReadModeName = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]


class ReadMode(StrEnum):
    """What a reader does at damage.

    Attributes
    ----------
    FAILFAST
        It is an error.
    DROPMALFORMED
        The damaged range is skipped, logged and reported.
    PERMISSIVE
        As DROPMALFORMED, and each damaged range is also a row of nulls.
    """

    FAILFAST = "FAILFAST"
    DROPMALFORMED = "DROPMALFORMED"
    PERMISSIVE = "PERMISSIVE"

    @classmethod
    def parse(cls, text: str | ReadMode) -> ReadMode:
        """Return the mode that ``text`` names, in any case; ``ValueError`` otherwise."""
        try:
            return cls(text.strip().upper())
        except ValueError:
            msg = f"mode {text!r} is not one of {', '.join(cls)}"
            raise ValueError(msg) from None

    @property
    def skips_damage(self) -> bool:
        """Whether reading continues after damage."""
        return self is not ReadMode.FAILFAST


@dataclass(frozen=True, slots=True, order=True)
class DamagedRange:
    """Bytes of a ``.log`` file that were left out.

    Attributes
    ----------
    path
        The file.
    position, end_position
        Bytes ``[position, end_position)``.
    next_offset
        The lowest offset that records of this range may have: the one after the last intact batch.
    end_offset
        The offset that they lie below: the first of the next intact batch, or the last one of a
        compressed v0/v1 wrapper. None if nothing sound follows in the file, and there is no next
        file whose name says it. It is at or below ``next_offset`` if the sound offsets leave no
        room between them: it is then unknown which offsets the bytes held.
    reason
        What is wrong with the first of the bytes.
    is_kept
        Whether the batch there is intact but for its base offset, which no checksum covers, and its
        neighbours prove its place, so that readers have its records all the same: under their own
        offsets, and without those that the log has already.
    is_unreadable
        Whether the file could not be opened or read, so that nobody knows what the bytes are. The
        path is that of the directory if that could not be listed.
    """

    path: str
    position: int
    end_position: int
    next_offset: int
    end_offset: int | None
    reason: str
    is_unreadable: bool = False
    is_kept: bool = False

    @property
    def nbytes(self) -> int:
        """Nothing that counts, beside record batches."""
        return 0

    def __str__(self) -> str:
        path = printable_location(self.path)
        if self.is_unreadable:
            return f"{path}: cannot be read; {self._missing('are')}: {self.reason}"
        where = f"bytes {self.position} to {self.end_position - 1} are damaged"
        if self.is_kept:
            return (
                f"{path}: {where}, their records are given as "
                f"{offsets_text(self.next_offset, self.end_offset)}, which their neighbours leave "
                f"for them: {self.reason}"
            )
        return f"{path}: {where}; {self._missing('may be')}: {self.reason}"

    def _missing(self, are: str) -> str:
        if self.end_offset is None:
            return f"records from offset {self.next_offset} on {are} missing"
        if self.end_offset <= self.next_offset:
            between = f"between batches that meet at {self.end_offset}"
            return f"records of unknown offsets {are} missing, {between}"
        offsets = offsets_text(self.next_offset, self.end_offset)
        count = self.end_offset - self.next_offset
        are = "is" if are == "are" and count == 1 else are
        return f"{counted(count, 'record')} {are} missing, {offsets}"


@dataclass(slots=True)
class DamageReport:
    """Collects the damaged ranges that a reader skips.

    It iterates over `ranges`, and is true if there is one.

    Attributes
    ----------
    ranges
        The damaged ranges, each once, in the order in which they were skipped.
    is_logged
        Whether each one is logged, as a warning.
    skip_count
        How many times a range was skipped, including ranges that were known already.
    """

    ranges: list[DamagedRange] = field(default_factory=list)
    is_logged: bool = True
    skip_count: int = 0
    _offsets: tuple[int, int] | None = field(default=None, repr=False)
    _above: DamageReport | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[DamagedRange]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def add(self, damaged_range: DamagedRange) -> None:
        """Note a range that has been skipped."""
        self.skip_count += not damaged_range.is_kept
        if damaged_range not in self.ranges and self._may_hold_wanted(damaged_range):
            self.ranges.append(damaged_range)
            if self._above is not None:
                self._above.add(damaged_range)
            elif self.is_logged:
                _LOGGER.warning("%s", damaged_range)

    def take(self) -> list[DamagedRange]:
        """Return what was noted since the last time, and forget it."""
        taken, self.ranges = self.ranges, []
        return taken

    def for_one_read(self, start_offset: int, end_offset: int) -> DamageReport:
        """Return an empty report that passes on to this one whatever is added to it.

        A reader needs to know which damage it has come across itself, this time: this report may
        have it already, from an earlier read, or be shared with another reader. A range is left out
        if the intact batches on both sides of it show that its offsets lie outside ``[start_offset,
        end_offset)``: on the way to its first record, a reader may come across damage that does not
        concern it.
        """
        return DamageReport(_offsets=(start_offset, end_offset), _above=self)

    def for_one_walk(self) -> DamageReport:
        """Return an empty report whose ranges come here, too: its `skip_count` is one reader's."""
        return DamageReport(_above=self)

    def _may_hold_wanted(self, damaged_range: DamagedRange) -> bool:
        if self._offsets is None or damaged_range.end_offset is None:
            return True
        start, end = self._offsets
        # The range has no room for offsets: nobody knows which records are missing.
        if damaged_range.end_offset <= damaged_range.next_offset:
            return damaged_range.next_offset >= start
        return damaged_range.next_offset < end and damaged_range.end_offset > start
