"""The entries of an index file as stored: pairs of integers by slot, which counts from 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import struct


class StoredEntries(ABC):
    """Where the bytes of an index's entries are.

    A slot that is asked for is not checked: the caller asks ``len`` first.

    Attributes
    ----------
    entry_struct
        Layout of an entry: two integers.
    size_bytes
        Length of the file. It may have room for more entries than there are.
    defect
        Why the file cannot be read, None if it can.
    """

    __slots__ = ()
    entry_struct: struct.Struct
    size_bytes: int
    defect: str | None

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
