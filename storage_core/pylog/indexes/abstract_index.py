"""What the offset index and the time index of a segment that we own have in common.

The file is laid out as `pylog.files.fixed_width_index` says. It is made at its full size,
``segment.index.bytes`` rounded down to whole entries, all zeros; entries are written in place; it
is cut to its entries when the segment is rolled and when the log is closed, and grown again when
the segment becomes the active one. So the file's length says how many entries there is room for.

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
disk is an error and not a SIGBUS; entries are kept in memory and written at once. Bytes behind a
truncation are zeros again, not the removed entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING, ClassVar

from pylog.errors import CorruptIndexError, IndexOffsetOverflowError, SegmentVanishedError
from pylog.files.owned_file import OwnedFile

if TYPE_CHECKING:
    import os
    import struct

    from pylog.files.durable_io import DurableIO
    from pylog.files.writable_file import WritableFile

_MAX_RELATIVE_OFFSET = 2**31 - 1
_READ_BYTES = 1 << 20


class AbstractIndex(OwnedFile, ABC):
    """Fixed-width entries of one segment, in memory and in a file.

    Nothing is opened or made before the first use of the entries. A failed write leaves the
    entries in memory as they were.

    One writer at a time; any number of threads may look up meanwhile and see the entries of some
    moment. Entries in memory take what they take in the file; `close` gives the memory back, and
    the next use loads them again.

    Parameters
    ----------
    path
        The file.
    base_offset
        Base offset of the segment, to which the entries' offsets are relative.
    max_index_size
        Largest length of the file in bytes: ``segment.index.bytes``.
    io
        What the file is changed through.
    """

    __slots__ = (
        "_entries",
        "_is_changed",
        "_length",
        "base_offset",
        "max_index_size",
    )

    entry_struct: ClassVar[struct.Struct]
    """Layout of one entry: two integers, each sorted over the file."""
    relative_offset_column: ClassVar[int]
    """Which of the two is the relative offset."""

    def __init__(
        self, path: str | os.PathLike[str], base_offset: int, max_index_size: int, io: DurableIO
    ) -> None:
        super().__init__(path, io)
        self.base_offset = base_offset
        self.max_index_size = max_index_size
        # None: not loaded. Replaced when entries are removed, so that a reader keeps those it began
        # with; only appending changes it in place.
        self._entries: bytearray | None = None
        self._length = 0
        self._is_changed = False  # since the last flush

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return len(self._loaded()) // self.entry_struct.size

    @property
    def max_entries(self) -> int:
        """How many entries the file has room for."""
        self._loaded()
        return self._length // self.entry_struct.size

    @property
    def is_full(self) -> bool:
        """Whether no entry can be appended."""
        return self.entries >= self.max_entries

    @property
    def length(self) -> int:
        """Length of the file in bytes."""
        self._loaded()
        return self._length

    @property
    def size_in_bytes(self) -> int:
        """Length of the entries in bytes."""
        return len(self._loaded())

    def ensure_exists(self) -> None:
        """Raise `SegmentVanishedError` if there is no file."""
        if not self.exists_on_disk:
            reason = "index file does not exist"
            raise SegmentVanishedError(reason, self.path)

    def can_append_offset(self, offset: int) -> bool:
        """Whether ``offset`` fits into 32 bits relative to the base offset."""
        return 0 <= offset - self.base_offset <= _MAX_RELATIVE_OFFSET

    def sanity_check(self) -> None:
        """Check what Kafka checks before it uses an index.

        Raises
        ------
        CorruptIndexError
            The file's length is no multiple of the entry's, or the last entry contradicts what
            stands before it.
        """
        defect = self._find_defect()
        width = self.entry_struct.size
        if defect is None and self._length % width:
            defect = f"index length {self._length} is not a multiple of the entry size {width}"
        if defect is not None:
            raise CorruptIndexError(defect, self.path)

    def truncate(self) -> None:
        """Remove all entries; the file keeps its length."""
        self._keep(0)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose offset is at or above ``offset``; the file keeps its length."""
        relative = offset - self.base_offset
        self._keep(self._first_slot_at_least(self._loaded(), self.relative_offset_column, relative))

    def trim_to_valid_size(self) -> None:
        """Cut the file to its entries."""
        self.resize(self.size_in_bytes)

    def resize(self, new_size: int) -> bool:
        """Give the file the length ``new_size``, rounded down to whole entries.

        Differs from Kafka, which fails if there are more entries than that: they are kept, and
        the file has just room for them.

        Returns
        -------
        bool
            Whether its length was another one.
        """
        entries = self._loaded()
        rounded = max(new_size - new_size % self.entry_struct.size, len(entries))
        if rounded == self._length:
            return False
        self._is_changed = True
        self._writable().truncate(rounded)
        self._length = rounded
        return True

    def reset(self) -> None:
        """Remove all entries and give the file its full length."""
        self.truncate()
        self.resize(self.max_index_size)

    def flush(self) -> None:
        """Force the file to disk; makes it if there is none, unless it has been deleted."""
        if not self._is_deleted:
            self._writable().sync()
            self._is_changed = False

    def maybe_flush(self) -> None:
        """Force the file to disk if it was changed since it was flushed."""
        if self._is_changed:
            self.flush()

    def release(self) -> None:
        """Give descriptor and memory back, changing nothing; the next use loads entries anew."""
        with self._lock:
            self._entries = None
            super().release()

    @abstractmethod
    def _find_defect(self) -> str | None:
        """Return what is wrong with the entries, None if nothing."""

    def _append(self, entries: bytes) -> None:
        """Write entries behind the last one, which the caller has checked."""
        loaded = self._loaded()
        self._is_changed = True
        self._writable().write_at(len(loaded), entries)
        loaded += entries

    def _relative_offset(self, offset: int) -> int:
        """Return ``offset`` relative to the base offset; IndexOffsetOverflowError if too far."""
        if not self.can_append_offset(offset):
            reason = (
                f"offset {offset} cannot stand in an index with base offset {self.base_offset}, "
                f"expected {self.base_offset} to {self.base_offset + _MAX_RELATIVE_OFFSET}"
            )
            raise IndexOffsetOverflowError(reason, self.path)
        return offset - self.base_offset

    def _fields(self, entries: bytearray, slot: int) -> tuple[int, int]:
        """Return the entry at ``slot`` as stored; a negative slot counts from the end."""
        position = slot * self.entry_struct.size
        if slot < 0:
            position += len(entries)
        first, second = self.entry_struct.unpack_from(entries, position)
        return first, second

    def _first_slot_at_least(self, entries: bytearray, column: int, target: int) -> int:
        """Return the first slot whose ``column`` is >= ``target``; as many as there are if none."""
        slots = range(len(entries) // self.entry_struct.size)
        return bisect_left(slots, target, key=lambda slot: self._fields(entries, slot)[column])

    def _loaded(self) -> bytearray:
        """Return the entries, read from the file or with a new file made at the first use."""
        entries = self._entries
        if entries is None:
            with self._lock:
                entries = self._entries
                if entries is None:  # or another thread was faster
                    entries = self._load()
        return entries

    def _writable(self) -> WritableFile:
        """Return the file, made and loaded at the first use."""
        self._loaded()
        return self._file

    def _load(self) -> bytearray:
        if self._is_deleted:
            return bytearray()  # for whoever still looks something up
        self._ensure_usable()
        width = self.entry_struct.size
        is_new = not self.exists_on_disk
        if is_new and self.max_index_size < width:
            msg = f"index size {self.max_index_size} is less than one entry, {width} bytes"
            raise ValueError(msg)
        file = self._open(create=is_new)
        try:
            if is_new:
                self._is_changed = True
                file.truncate(self.max_index_size - self.max_index_size % width)
                entries = bytearray()
            else:
                entries = _read(file, file.size() - file.size() % width)
            self._length = file.size()
        except BaseException:
            super().release()
            raise
        self._entries = entries  # last: it says that all is there
        return entries

    def _keep(self, count: int) -> None:
        """Keep the first ``count`` entries."""
        entries = self._loaded()
        size = count * self.entry_struct.size
        if size >= len(entries):
            return
        file, length = self._writable(), self._length
        self._is_changed = True
        file.truncate(size)  # and grown again, so that what is behind the entries is zero
        self._entries, self._length = entries[:size], size
        file.truncate(length)
        self._length = length


def _read(file: WritableFile, size_bytes: int) -> bytearray:
    """Return the first ``size_bytes`` of a file, fewer if it has become shorter."""
    content = bytearray()
    while len(content) < size_bytes:
        chunk = file.read_at(len(content), min(_READ_BYTES, size_bytes - len(content)))
        if not chunk:
            break
        content += chunk
    return content
