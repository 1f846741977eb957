"""Floor search over a file of fixed-width entries that are sorted by every column.

Common to ``.index`` and ``.timeindex``:

* Entries follow each other from byte 0, big-endian, without header and without checksum.
* A broker creates the file at its full size (``segment.index.bytes``, 10 MiB unless configured),
  filled with zeros, maps it into memory and writes entries in place. It cuts the file to its
  entries when the segment is rolled and when the log is closed; after a crash, and while a broker
  runs, the last segment's index keeps its zero tail.
* The tail begins at the first slot above 0 whose relative offset is 0. Relative offsets increase
  strictly, so only slot 0 can hold a real 0.
* A trailing partial entry is no entry.

Source: AbstractIndex (KIP-33; Kafka 3.9 and 4.3), DumpLogSegments for the rule of the tail.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from pylog.errors import SegmentVanishedError, UnreadableFileError
from pylog.files.storage import open_file

if TYPE_CHECKING:
    import os
    import struct
    from collections.abc import Iterator
    from types import TracebackType

    from pylog.files.byte_source import ByteSource

EntryT = TypeVar("EntryT")

PAGE_BYTES = 4096
_CACHED_PAGES = 32


class FixedWidthIndex(ABC, Generic[EntryT]):
    """The entries of one index file, read a page at a time when they are asked for.

    What an index says is a hint: nothing in the file proves it, so a caller verifies every answer
    against the log. Whatever the bytes are, no method raises because of them and every search
    ends after at most log2(slots) steps; on unsorted bytes it ends at some entry.

    The length is taken once, at construction; bytes that vanish later read as zeros. Not shared
    between threads: every lookup changes the page cache (at most 128 KiB). A first lookup in a
    full 10 MiB file reads about a dozen pages, the next ones fewer.

    Parameters
    ----------
    source
        The file, closed by `close`; None stands for one that is missing or cannot be read, which
        has no entries.
    base_offset
        Base offset of the segment, to which the entries' offsets are relative.
    defect
        Why the file cannot be read, if that is so.
    """

    __slots__ = (
        "_defect",
        "_entry_count",
        "_last_number",
        "_last_page",
        "_page_bytes",
        "_pages",
        "_size_bytes",
        "_source",
        "base_offset",
    )

    entry_struct: ClassVar[struct.Struct]
    """Layout of one entry: two integers, each sorted over the file."""
    relative_offset_column: ClassVar[int]
    """Which of the two is the relative offset."""

    def __init__(
        self, source: ByteSource | None, base_offset: int, defect: str | None = None
    ) -> None:
        self.base_offset = base_offset
        self._source = source
        self._defect = defect
        self._size_bytes = 0 if source is None else source.size()
        # Whole entries per page, so that none lies across two pages.
        self._page_bytes = PAGE_BYTES - PAGE_BYTES % self.entry_struct.size
        self._pages: dict[int, bytes] = {}
        self._last_number, self._last_page = -1, b""  # most look-ups stay on one page
        self._entry_count: int | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], base_offset: int) -> Self:
        """Return the index in file ``path``; one without entries if that is missing or unreadable.

        A local file that cannot be opened (it is a FIFO, say) is a hint that nobody can use;
        `find_defect` says why.

        Raises
        ------
        LogDirectoryError
            The file is remote and cannot be opened.
        """
        try:
            return cls(open_file(path), base_offset)
        except SegmentVanishedError:
            return cls(None, base_offset)
        except UnreadableFileError as error:
            return cls(None, base_offset, error.reason)

    @property
    def slot_count(self) -> int:
        """How many whole entries the file has room for, those of a zero tail included."""
        return self._size_bytes // self.entry_struct.size

    @property
    def entry_count(self) -> int:
        """How many entries there are before the zero tail."""
        if self._entry_count is None:
            self._entry_count = self._find_zero_tail()
        return self._entry_count

    def entry(self, slot: int) -> EntryT:
        """Return the entry at ``slot``, which counts from 0.

        Raises
        ------
        ValueError
            ``slot`` is not in ``0 .. entry_count - 1``.
        """
        count = self.entry_count
        if not 0 <= slot < count:
            msg = f"slot {slot} is not in 0 .. {count - 1}"
            raise ValueError(msg)
        return self._decode(*self._fields(slot))

    def last_entry(self) -> EntryT | None:
        """Return the last entry, None if there is none."""
        return self.entry(self.entry_count - 1) if self.entry_count else None

    def __iter__(self) -> Iterator[EntryT]:
        for slot in range(self.entry_count):
            yield self._decode(*self._fields(slot))

    def find_defect(self) -> str | None:
        """Return what Kafka's ``sanityCheck`` would complain about, None if nothing."""
        if self._defect is not None:
            return self._defect
        width = self.entry_struct.size
        if self._size_bytes % width:
            return f"index length {self._size_bytes} is not a multiple of the entry size {width}"
        if self.entry_count:
            last_offset = self.base_offset + self._relative_offset(self.entry_count - 1)
            if last_offset < self.base_offset:
                return f"last index offset {last_offset} is below base offset {self.base_offset}"
        return None

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if self._source is not None:
            self._source.close()

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

    def _first_slot_at_least(self, column: int, target: int) -> int:
        """Return the first slot whose ``column`` is >= ``target``, ``entry_count`` if none is."""
        count = self.entry_count
        if count and self._fields(count - 1)[column] < target:
            return count  # what is asked most often: where a log ends
        return bisect_left(range(count), target, key=lambda slot: self._fields(slot)[column])

    def _floor_fields(self, column: int, target: int) -> tuple[int, int] | None:
        """Return the last entry whose ``column`` is <= ``target``, as stored; None if none is."""
        slot = self._first_slot_at_least(column, target + 1) - 1
        return self._fields(slot) if slot >= 0 else None

    def _find_zero_tail(self) -> int:
        """Return the slot at which the zero tail begins, `slot_count` if there is none."""
        slots = self.slot_count
        if slots <= 1 or not self._is_zero(slots - 1):
            return slots
        count = 1 + bisect_left(range(1, slots), True, key=self._is_zero)  # noqa: FBT003
        # Differs from Kafka: its tools show slot 0 of a preallocated, unused index as an entry.
        # For a time index that would claim that the segment begins with timestamp 0.
        return 0 if count == 1 and self._fields(0) == (0, 0) else count

    def _is_zero(self, slot: int) -> bool:
        return self._relative_offset(slot) == 0

    def _relative_offset(self, slot: int) -> int:
        return self._fields(slot)[self.relative_offset_column]

    def _fields(self, slot: int) -> tuple[int, int]:
        number, position = divmod(slot * self.entry_struct.size, self._page_bytes)
        first, second = self.entry_struct.unpack_from(self._page(number), position)
        return first, second

    def _page(self, number: int) -> bytes:
        """Return page ``number``, zero-filled where the file has become shorter."""
        if number == self._last_number:
            return self._last_page
        page = self._pages.pop(number, None)
        if page is None:
            page = b""
            if self._source is not None:
                page = self._source.read_at(number * self._page_bytes, self._page_bytes)
            page = page.ljust(self._page_bytes, b"\0")
            if len(self._pages) >= _CACHED_PAGES:
                del self._pages[next(iter(self._pages))]  # the least recently used
        self._pages[number] = page
        self._last_number, self._last_page = number, page
        return page
