"""The entries of an index file that we own, all in memory, as stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.index_entries import StoredEntries

if TYPE_CHECKING:
    import struct

    from pylog.files.writable_file import WritableFile

_READ_BYTES = 1 << 20


class LoadedEntries(StoredEntries):
    """Pairs of integers by slot, as stored. The file may be longer: it has room for more.

    Parameters
    ----------
    content
        Whole entries. Entries are only ever added to it, so that a reader of a moment ago still
        finds those it has counted.
    size_bytes
        Length of the file.
    entry_struct
        Layout of an entry: two integers.
    """

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
        """Nothing is open."""
