"""Offset and time indexes: the layout of their entries, search, and what is wrong with them.

Common to ``.index`` and ``.timeindex``:

* Entries follow each other from byte 0, big-endian, without header and without checksum.
* An entry is two integers; one of them is an offset, relative to the segment's base offset.
* Both columns increase strictly from entry to entry. So a look-up is a floor search by one of them.

Where the entries' bytes are is another matter (`StoredEntries`): the owner of a segment has them
all in memory (`pylog.indexes.abstract_index`), readers fetch a page of the file when they need it
(`PagedEntries`). What they find there:

* A broker creates the file at its full size (``segment.index.bytes``, 10 MiB unless configured),
  filled with zeros, maps it into memory and writes entries in place. It cuts the file to its
  entries when the segment is rolled and when the log is closed; after a crash, and while a broker
  runs, the last segment's index keeps its zero tail.
* The tail begins at the first slot above 0 whose relative offset is 0. Relative offsets increase
  strictly, so only slot 0 can hold a real 0.
* A trailing partial entry is not an entry.

Source: AbstractIndex (KIP-33; Kafka 3.9 and 4.3), DumpLogSegments for the rule of the tail.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Self, TypeVar

from pylog.errors import SegmentVanishedError, UnreadableFileError
from pylog.files.storage import open_file

if TYPE_CHECKING:
    import os
    import struct
    from collections.abc import Iterator
    from types import TracebackType

    from pylog.files.byte_source import ByteSource


PAGE_BYTES = 4096
_CACHED_PAGES = 32
_END_ENTRIES = 16
"""Entries at the end of a file, which are read by themselves. A look-up by time asks every segment
before the one that it looks for for its last two entries, and for nothing else."""

EntryT = TypeVar("EntryT")
MAX_RELATIVE_OFFSET = 2**31 - 1
"""How far above the base offset of its segment an indexed offset can be."""
_COLUMNS = (itemgetter(0), itemgetter(1))


class StoredEntries(ABC):
    """The bytes of an index's entries, in a file or in memory."""

    __slots__ = ()
    entry_struct: struct.Struct  # layout of an entry: two integers
    size_bytes: int  # Length of the file. It may have room for more entries than there are.
    defect: str | None  # why the file cannot be read, None if it can

    @property
    def slot_count(self) -> int:
        """How many whole entries the file has room for."""
        return self.size_bytes // self.entry_struct.size

    @abstractmethod
    def __len__(self) -> int:
        """Return how many entries there are."""

    @abstractmethod
    def __getitem__(self, slot: int) -> tuple[int, int]:
        """Return the two integers at ``slot``."""

    @abstractmethod
    def close(self) -> None:
        """Release the file; a second call does nothing."""


class PagedEntries(StoredEntries):
    """Pairs of integers by slot, as stored, up to the zero tail.

    The length is taken once, at construction; bytes that vanish later read as zeros. Not shared
    between threads: every look-up changes the page cache (at most 128 KiB). A first look-up in a
    full 10 MiB file reads about a dozen pages, the next ones fewer.
    """

    __slots__ = (
        "_end",
        "_end_bytes",
        "_end_position",
        "_entry_count",
        "_last_number",
        "_last_page",
        "_page_bytes",
        "_pages",
        "_relative_offset_column",
        "_source",
        "defect",
        "entry_struct",
        "size_bytes",
    )

    def __init__(
        self,
        source: ByteSource | None,
        entry_struct: struct.Struct,
        relative_offset_column: int,
        defect: str | None = None,
    ) -> None:
        self.defect = defect
        self.size_bytes = 0 if source is None else source.size()
        self._source = source
        self.entry_struct = entry_struct
        self._relative_offset_column = relative_offset_column
        # Whole entries per page, so that none lies across two pages.
        self._page_bytes = PAGE_BYTES - PAGE_BYTES % entry_struct.size
        self._pages: dict[int, bytes] = {}
        self._last_number, self._last_page = -1, b""  # most look-ups stay on one page
        self._end: bytes | None = None
        self._end_bytes = _END_ENTRIES * entry_struct.size
        self._end_position = max(0, self.slot_count - _END_ENTRIES) * entry_struct.size
        self._entry_count: int | None = None

    def __len__(self) -> int:
        """Return how many entries there are before the zero tail."""
        if self._entry_count is None:
            self._entry_count = self._find_zero_tail()
        return self._entry_count

    def __getitem__(self, slot: int) -> tuple[int, int]:
        """Return the two integers at ``slot``, which is not checked: zeros past the end."""
        position = slot * self.entry_struct.size
        if 0 <= position - self._end_position < self._end_bytes:
            if self._end is None:
                self._end = self._read(self._end_position, self._end_bytes)
            first, second = self.entry_struct.unpack_from(self._end, position - self._end_position)
            return first, second
        number, at = divmod(position, self._page_bytes)
        page = self._last_page if number == self._last_number else self._page(number)
        first, second = self.entry_struct.unpack_from(page, at)
        return first, second

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if self._source is not None:
            self._source.close()

    def _find_zero_tail(self) -> int:
        """Return the slot at which the zero tail begins, `slot_count` if there is none."""
        slots = self.slot_count
        if slots <= 1 or not self._is_zero(slots - 1):
            return slots
        count = 1 + bisect_left(range(1, slots), True, key=self._is_zero)  # noqa: FBT003
        # Differs from Kafka: its tools show slot 0 of a preallocated, unused index as an entry.
        # For a time index that would claim that the segment begins with timestamp 0.
        return 0 if count == 1 and self[0] == (0, 0) else count

    def _is_zero(self, slot: int) -> bool:
        return self[slot][self._relative_offset_column] == 0

    def _page(self, number: int) -> bytes:
        page = self._pages.pop(number, None)
        if page is None:
            page = self._read(number * self._page_bytes, self._page_bytes)
            if len(self._pages) >= _CACHED_PAGES:
                del self._pages[next(iter(self._pages))]  # the least recently used
        self._pages[number] = page
        self._last_number, self._last_page = number, page
        return page

    def _read(self, position: int, length: int) -> bytes:
        """Return bytes of the file, followed by zeros where it has become shorter."""
        data = b"" if self._source is None else self._source.read_at(position, length)
        return data.ljust(length, b"\0")


class EntryLayout(NamedTuple):
    """The fields of an index entry, and its size."""

    struct: struct.Struct  # two big-endian integers
    relative_offset_column: int  # which of the two is the relative offset


class IndexEntries(ABC, Generic[EntryT]):
    """The entries of one index.

    What an index says is a hint: nothing in the file proves it, so a caller verifies every answer
    against the log. Whatever the bytes are, no method raises because of them and every search
    ends after at most log2(slots) steps; on unsorted bytes it ends at some entry.
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
        """Return the entries of file ``path``; none if that is missing or unreadable."""
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
        """Return the entry at ``slot``, which counts from 0."""
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
