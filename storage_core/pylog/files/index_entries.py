"""What an entry of an offset or time index means: layout, search, and what is wrong with it.

Common to ``.index`` and ``.timeindex``:

* Entries follow each other from byte 0, big-endian, without header and without checksum.
* An entry is two integers; one of them is an offset, relative to the segment's base offset.
* Both columns increase strictly from entry to entry. So a look-up is a floor search by one of them.

Where the entries' bytes are is another matter (`pylog.files.stored_entries`): readers fetch a page
of the file at a time (`pylog.files.paged_entries`), the owner of a segment has them all in memory
(`pylog.indexes.loaded_entries`).

Source: AbstractIndex (KIP-33; Kafka 3.9 and 4.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Self, TypeVar

from pylog.errors import SegmentVanishedError, UnreadableFileError
from pylog.files.paged_entries import PagedEntries
from pylog.files.storage import open_file

if TYPE_CHECKING:
    import os
    import struct
    from collections.abc import Iterator
    from types import TracebackType

    from pylog.files.byte_source import ByteSource
    from pylog.files.stored_entries import StoredEntries

EntryT = TypeVar("EntryT")

MAX_RELATIVE_OFFSET = 2**31 - 1
"""How far above the base offset of its segment an indexed offset can be."""

_COLUMNS = (itemgetter(0), itemgetter(1))


class EntryLayout(NamedTuple):
    """How an entry is stored.

    Attributes
    ----------
    struct
        Two big-endian integers.
    relative_offset_column
        Which of the two is the relative offset.
    """

    struct: struct.Struct
    relative_offset_column: int


class IndexEntries(ABC, Generic[EntryT]):
    """The entries of one index.

    What an index says is a hint: nothing in the file proves it, so a caller verifies every answer
    against the log. Whatever the bytes are, no method raises because of them and every search
    ends after at most log2(slots) steps; on unsorted bytes it ends at some entry.

    Parameters
    ----------
    stored
        Where the entries' bytes are.
    base_offset
        Base offset of the segment, to which the entries' offsets are relative.
    """

    __slots__ = ("base_offset", "stored")

    layout: ClassVar[EntryLayout]

    def __init__(self, stored: StoredEntries, base_offset: int) -> None:
        self.stored = stored
        self.base_offset = base_offset

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], base_offset: int, *, leaves_page_cache: bool = False
    ) -> Self:
        """Return the entries of file ``path``; none if that is missing or unreadable.

        They are read when they are asked for, see `PagedEntries`. A local file that cannot be
        opened (it is a FIFO, say) is a hint that nobody can use; `find_defect` says why.

        Raises
        ------
        LogDirectoryError
            The file is remote and cannot be opened.
        """
        try:
            return cls.paged(open_file(path, leaves_page_cache=leaves_page_cache), base_offset)
        except SegmentVanishedError:
            return cls.empty(base_offset)
        except UnreadableFileError as error:
            return cls.paged(None, base_offset, error.reason)

    @classmethod
    def empty(cls, base_offset: int) -> Self:
        """Return an index without entries, in place of one that is missing."""
        return cls.paged(None, base_offset)

    @classmethod
    def paged(cls, source: ByteSource | None, base_offset: int, defect: str | None = None) -> Self:
        """Return the entries of a file that is open already; see `PagedEntries`."""
        return cls(PagedEntries(source, *cls.layout, defect), base_offset)

    @property
    def slot_count(self) -> int:
        """How many whole entries the file has room for, those of a zero tail included."""
        return self.stored.slot_count

    @property
    def entry_count(self) -> int:
        """How many entries there are; a zero tail has none."""
        return len(self.stored)

    def entry(self, slot: int) -> EntryT:
        """Return the entry at ``slot``, which counts from 0.

        Raises
        ------
        ValueError
            ``slot`` is not in ``0 .. entry_count - 1``.
        """
        stored = self.stored
        count = len(stored)
        if not 0 <= slot < count:
            msg = f"slot {slot} is not in 0 .. {count - 1}"
            raise ValueError(msg)
        return self._decode(*stored[slot])

    def last_entry(self) -> EntryT | None:
        """Return the last entry, None if there is none."""
        count = len(self.stored)
        return self._decode(*self.stored[count - 1]) if count else None

    def __iter__(self) -> Iterator[EntryT]:
        for slot in range(len(self.stored)):
            yield self._decode(*self.stored[slot])

    def first_slot_at_offset(self, offset: int) -> int:
        """Return the slot of the first entry at or above an offset; `entry_count` if none is."""
        column = self.layout.relative_offset_column
        return self._first_slot_at_least(column, offset - self.base_offset)

    def find_defect(self) -> str | None:
        """Return what Kafka's ``sanityCheck`` would complain about, None if nothing."""
        stored = self.stored
        defect = stored.defect or self._find_wrong_entry()
        width = self.layout.struct.size
        if defect is None and stored.size_bytes % width:
            return f"index length {stored.size_bytes} is not a multiple of the entry size {width}"
        return defect

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self.stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def _decode(self, first: int, second: int) -> EntryT:
        """Return the entry that the two stored integers make."""

    def _find_wrong_entry(self) -> str | None:
        """Return why the last entry cannot be one of this segment, None if it can."""
        count = len(self.stored)
        if not count:
            return None
        last_offset = self.base_offset + self.stored[count - 1][self.layout.relative_offset_column]
        if last_offset < self.base_offset:
            return f"last index offset {last_offset} is below base offset {self.base_offset}"
        return None

    def _first_slot_at_least(self, column: int, target: int) -> int:
        """Return the first slot whose ``column`` is >= ``target``, `entry_count` if none is."""
        stored = self.stored
        count = len(stored)
        if count and stored[count - 1][column] < target:
            return count  # what is asked most often: where a log ends
        return bisect_left(stored, target, 0, count, key=_COLUMNS[column])

    def _floor_fields(self, column: int, target: int) -> tuple[int, int] | None:
        """Return the last entry whose ``column`` is <= ``target``, as stored; None if none is."""
        slot = self._first_slot_at_least(column, target + 1) - 1
        return self.stored[slot] if slot >= 0 else None


def goes_up(before: tuple[int, int], entry: tuple[int, int]) -> bool:
    """Whether an entry may stand after another one: it is above it in both columns."""
    return before[0] < entry[0] and before[1] < entry[1]
