"""The entries of an index file, read a page at a time when they are asked for.

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

from bisect import bisect_left
from typing import TYPE_CHECKING

from pylog.files.stored_entries import StoredEntries

if TYPE_CHECKING:
    import struct

    from pylog.files.byte_source import ByteSource

PAGE_BYTES = 4096
_CACHED_PAGES = 32
_END_ENTRIES = 16
"""Entries at the end of a file, which are read by themselves. A look-up by time asks every segment
before the one that it looks for for its last two entries, and for nothing else."""


class PagedEntries(StoredEntries):
    """Pairs of integers by slot, as stored, up to the zero tail.

    The length is taken once, at construction; bytes that vanish later read as zeros. Not shared
    between threads: every look-up changes the page cache (at most 128 KiB). A first look-up in a
    full 10 MiB file reads about a dozen pages, the next ones fewer.

    Parameters
    ----------
    source
        The file, closed by `close`; None stands for one that is missing or cannot be read, which
        has no entries.
    entry_struct, relative_offset_column
        Layout of an entry, see `pylog.files.index_entries.EntryLayout`.
    defect
        Why the file cannot be read, if that is so.
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
