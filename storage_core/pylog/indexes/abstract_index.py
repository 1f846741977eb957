"""What the offset index and the time index of a segment that we own have in common.

What an entry means, and the search for one, stands in `pylog.files.index_entries`. The file is made
at its full size, ``segment.index.bytes`` rounded down to whole entries, all zeros; entries are
written in place; it is cut to its entries when the segment is rolled and when the log is closed,
and grown again when the segment becomes the active one. So the file's length says how many entries
there is room for.

A file that is there is trusted: it holds as many entries as its length has room for, zeros
included. That is right after an orderly shutdown, which trims; after any other, start-up resets
the index of each segment it recovers.

====================  ==========================================================================
crash during          what is found, and what is done
====================  ==========================================================================
creation              an index of length 0 or of zeros; of a segment that is recovered
append                an untrimmed index; of a segment that is recovered
truncation            an index cut to what remains, which is whole, or grown again with zeros
====================  ==========================================================================

Source: AbstractIndex, LazyIndex (Kafka 4.3). Differs from Kafka: no memory mapping, so that a full
disk is an error and not a SIGBUS; entries are kept in memory and written at once. Bytes after a
truncation are zeros again, not the removed entries.
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pylog.errors import CorruptIndexError, IndexOffsetOverflowError, SegmentVanishedError
from pylog.files.index_entries import MAX_RELATIVE_OFFSET, IndexEntries, StoredEntries
from pylog.files.owned_file import OwnedFile

if TYPE_CHECKING:
    import os
    import struct

    from pylog.files.durable_io import DurableIO
    from pylog.files.writable_file import WritableFile


_READ_BYTES = 1 << 20


class LoadedEntries(StoredEntries):
    """Pairs of integers by slot, as stored. The file may be longer: it has room for more."""

    __slots__ = ("content", "defect", "entry_struct", "size_bytes")

    def __init__(self, content: bytearray, size_bytes: int, entry_struct: struct.Struct) -> None:
        self.content = content
        self.size_bytes = size_bytes
        self.entry_struct = entry_struct
        self.defect = None

    @classmethod
    def read(cls, file: WritableFile, entry_struct: struct.Struct) -> LoadedEntries:
        """Return as many entries as the file has room for, zeros included."""
        size = file.size()
        whole = size - size % entry_struct.size
        content = bytearray()
        while len(content) < whole:
            chunk = file.read_at(len(content), min(_READ_BYTES, whole - len(content)))
            if not chunk:  # it has become shorter
                break
            content += chunk
        return cls(content, file.size(), entry_struct)

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self.content) // self.entry_struct.size

    def __getitem__(self, slot: int) -> tuple[int, int]:
        """Return the two integers at ``slot``, which counts from 0."""
        first, second = self.entry_struct.unpack_from(self.content, slot * self.entry_struct.size)
        return first, second

    def close(self) -> None:
        """Do nothing: the file is not kept open."""


EntriesT = TypeVar("EntriesT", bound=IndexEntries[Any])
EntryT = TypeVar("EntryT")


class AbstractIndex(OwnedFile, ABC, Generic[EntriesT, EntryT]):
    """Fixed-width entries of one segment, in memory and in a file.

    One writer at a time; any number of threads may look up meanwhile and see the entries of some
    moment. Entries in memory take what they take in the file; `release` gives the memory back, and
    the next use loads them again.
    """

    __slots__ = ("_is_changed", "_loaded_entries", "base_offset", "max_index_size")

    entries_class: ClassVar[type[IndexEntries[Any]]]
    """The class that decodes the entries."""

    def __init__(
        self, path: str | os.PathLike[str], base_offset: int, max_index_size: int, io: DurableIO
    ) -> None:
        super().__init__(path, io)
        self.base_offset = base_offset
        self.max_index_size = max_index_size
        # None: not loaded. Replaced when entries are removed, so that a reader keeps those it began
        # with; only appending changes them in place.
        self._loaded_entries: EntriesT | None = None
        self._is_changed = False  # since the last flush

    @property
    def entries(self) -> int:
        """Number of entries."""
        return len(self._stored())

    @property
    def max_entries(self) -> int:
        """Number of entries for which the file has room."""
        return self._stored().slot_count

    @property
    def is_full(self) -> bool:
        """Whether the file has no room for another entry."""
        stored = self._stored()
        return len(stored) >= stored.slot_count

    @property
    def length(self) -> int:
        """Length of the file in bytes."""
        return self._stored().size_bytes

    @property
    def size_in_bytes(self) -> int:
        """Length of the entries in bytes."""
        return len(self._stored().content)

    def entry(self, slot: int) -> EntryT:
        """Return the entry at ``slot``, which counts from 0."""
        entries = self._loaded()
        count = entries.entry_count
        if not 0 <= slot < count:
            msg = f"slot {slot} is not in 0 .. {count - 1} of {self.path}"
            raise ValueError(msg)
        entry: EntryT = entries.entry(slot)
        return entry

    def ensure_exists(self) -> None:
        """Raise `SegmentVanishedError` if there is no file."""
        if not self.exists_on_disk:
            reason = "index file does not exist"
            raise SegmentVanishedError(reason, self.path)

    def can_append_offset(self, offset: int) -> bool:
        """Whether ``offset`` fits into 32 bits relative to the base offset."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def sanity_check(self) -> None:
        """Check what Kafka checks before it uses an index."""
        defect = self._loaded().find_defect()
        if defect is not None:
            raise CorruptIndexError(defect, self.path)

    def truncate(self) -> None:
        """Remove all entries; the file keeps its length."""
        self._keep(0)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose offset is at or above ``offset``; the file keeps its length."""
        self._keep(self._loaded().first_slot_at_offset(offset))

    def trim_to_valid_size(self) -> None:
        """Cut the file to its entries."""
        self.resize(self.size_in_bytes)

    def resize(self, new_size: int) -> bool:
        """Give the file the length ``new_size``, rounded down to whole entries.

        Differs from Kafka, which fails if there are more entries than that: they are kept, and
        the file has just room for them.
        """
        stored = self._stored()
        rounded = max(new_size - new_size % self._width, len(stored.content))
        if rounded == stored.size_bytes:
            return False
        self._is_changed = True
        self._file.truncate(rounded)
        stored.size_bytes = rounded
        return True

    def reset(self) -> None:
        """Remove all entries, which are not read, and give the file its full length."""
        with self._lock:
            if self._loaded_entries is None and self.exists_on_disk:
                self._is_changed = True
                self._open(create=False).truncate(0)
        self.truncate()
        self.resize(self.max_index_size)

    def flush(self) -> None:
        """Force the file to disk; makes it if there is none, unless it has been deleted."""
        if not self._is_deleted:
            self._stored()  # which makes the file
            self._file.sync()
            self._is_changed = False

    def maybe_flush(self) -> None:
        """Force the file to disk if it was changed since it was flushed."""
        if self._is_changed:
            self.flush()

    def release(self) -> None:
        """Give descriptor and memory back, changing nothing; the next use loads entries again."""
        with self._lock:
            self._loaded_entries = None
            super().release()

    def _append(self, stored: LoadedEntries, entries: bytes) -> None:
        """Write entries after the last one, which the caller has checked."""
        content = stored.content
        self._is_changed = True
        self._file.write_at(len(content), entries)
        content += entries

    def _ensure_in_range(self, offset: int) -> None:
        """Raise `IndexOffsetOverflowError` unless `can_append_offset`."""
        if not self.can_append_offset(offset):
            reason = (
                f"offset {offset} cannot stand in an index with base offset {self.base_offset}, "
                f"expected {self.base_offset} to {self.base_offset + MAX_RELATIVE_OFFSET}"
            )
            raise IndexOffsetOverflowError(reason, self.path)

    @property
    def _width(self) -> int:
        return self.entries_class.layout.struct.size

    def _loaded(self) -> EntriesT:
        """Return the entries, read from the file or with a new file made at the first use."""
        entries = self._loaded_entries
        if entries is None:
            with self._lock:
                entries = self._loaded_entries
                if entries is None:  # or another thread was faster
                    entries = self._load()
        return entries

    def _stored(self) -> LoadedEntries:
        """Return the bytes of the entries."""
        return self._loaded().stored  # type: ignore[return-value]  # `_load` has made them

    def _load(self) -> EntriesT:
        layout = self.entries_class.layout.struct
        length = self.max_index_size - self.max_index_size % layout.size
        if self._is_deleted:  # for threads that still look something up
            return self._entries_of(LoadedEntries(bytearray(), length, layout))
        self._ensure_usable()
        is_new = not self.exists_on_disk
        if is_new and self.max_index_size < layout.size:
            msg = f"index size {self.max_index_size} is less than one entry, {layout.size} bytes"
            raise ValueError(msg)
        file = self._open(create=is_new)
        try:
            if is_new:
                self._is_changed = True
                file.truncate(length)
                stored = LoadedEntries(bytearray(), length, layout)
            else:
                stored = LoadedEntries.read(file, layout)
        except BaseException:
            super().release()
            raise
        entries = self._entries_of(stored)
        self._loaded_entries = entries  # last: it says that all is there
        return entries

    def _entries_of(self, stored: LoadedEntries) -> EntriesT:
        entries: EntriesT = self.entries_class(stored, self.base_offset)  # type: ignore[assignment]
        return entries

    def _keep(self, count: int) -> None:
        """Keep the first ``count`` entries."""
        stored = self._stored()
        size = count * self._width
        if size >= len(stored.content):
            return
        file, length = self._file, stored.size_bytes
        self._is_changed = True
        file.truncate(size)  # and grown again, so that what follows the entries is zero
        kept = LoadedEntries(stored.content[:size], size, self.entries_class.layout.struct)
        self._loaded_entries = self._entries_of(kept)
        file.truncate(length)
        kept.size_bytes = length
