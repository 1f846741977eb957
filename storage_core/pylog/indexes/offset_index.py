"""Offset index of a segment that we own: where in the ``.log`` file an offset is.

An entry is the last offset of a batch and the position where that batch begins; layout and history
stand in `pylog.files.offset_index`, files and lengths in `pylog.indexes.abstract_index`.

Source: OffsetIndex (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pylog.errors import InvalidOffsetError
from pylog.files.offset_index import ENTRY, POSITION_COLUMN, RELATIVE_OFFSET_COLUMN
from pylog.indexes.abstract_index import AbstractIndex
from pylog.model import OffsetPosition

if TYPE_CHECKING:
    import struct
    from collections.abc import Sequence


class OffsetIndex(AbstractIndex):
    """Offsets and byte positions of some batches. See `AbstractIndex`."""

    __slots__ = ()

    entry_struct: ClassVar[struct.Struct] = ENTRY
    relative_offset_column: ClassVar[int] = RELATIVE_OFFSET_COLUMN

    @property
    def last_offset(self) -> int:
        """The last indexed offset, the base offset if there is none."""
        return self._last_offset(self._loaded())

    def entry(self, slot: int) -> OffsetPosition:
        """Return the entry at ``slot``, which counts from 0.

        Raises
        ------
        ValueError
            There is no such entry.
        """
        entries = self._loaded()
        count = len(entries) // ENTRY.size
        if not 0 <= slot < count:
            msg = f"slot {slot} is not in 0 .. {count - 1} of {self.path}"
            raise ValueError(msg)
        return self._decode(entries, slot)

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the entry with the largest offset that is not above ``target_offset``.

        ``(base_offset, 0)`` if there is none.
        """
        entries = self._loaded()
        relative = target_offset - self.base_offset
        slot = self._first_slot_at_least(entries, RELATIVE_OFFSET_COLUMN, relative + 1) - 1
        return self._decode(entries, slot) if slot >= 0 else OffsetPosition(self.base_offset, 0)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size_bytes: int
    ) -> OffsetPosition | None:
        """Return the first entry at or after the end of a range of bytes, None if there is none.

        Differs from Kafka, which takes the entry after the right one where that is the first of
        its search: only more aborted transactions are named, which begin after the range.

        Parameters
        ----------
        fetch_offset
            Where the range begins; only its position counts.
        fetch_size_bytes
            Length of the range.
        """
        entries = self._loaded()
        end_position = fetch_offset.position + fetch_size_bytes
        slot = self._first_slot_at_least(entries, POSITION_COLUMN, end_position)
        return self._decode(entries, slot) if slot < len(entries) // ENTRY.size else None

    def append(self, offset: int, position: int) -> None:
        """Append an entry, see `append_all`."""
        self.append_all([(offset, position)])

    def append_all(self, new_entries: Sequence[tuple[int, int]]) -> None:
        """Append pairs of offset and position with one write, all or none.

        Raises
        ------
        ValueError
            There is no room for them.
        InvalidOffsetError
            An offset is not above the one before it.
        IndexOffsetOverflowError
            An offset is below the base offset or too far above it.
        """
        entries = self._loaded()
        count, room = len(entries) // ENTRY.size, self.max_entries
        if count + len(new_entries) > room:
            msg = (
                f"{len(new_entries)} entries do not fit into the offset index {self.path}, which "
                f"has {count} of {room}"
            )
            raise ValueError(msg)
        last_offset = self._last_offset(entries) if entries else None
        packed = bytearray()
        for offset, position in new_entries:
            if last_offset is not None and offset <= last_offset:
                reason = f"offset {offset} cannot follow {last_offset} as an index entry"
                raise InvalidOffsetError(reason, self.path, len(entries) + len(packed))
            packed += ENTRY.pack(self._relative_offset(offset), position)
            last_offset = offset
        self._append(bytes(packed))

    def _last_offset(self, entries: bytearray) -> int:
        return self._decode(entries, -1).offset if entries else self.base_offset

    def _find_defect(self) -> str | None:
        last_offset = self.last_offset
        if last_offset < self.base_offset:
            return f"last index offset {last_offset} is below base offset {self.base_offset}"
        return None

    def _decode(self, entries: bytearray, slot: int) -> OffsetPosition:
        relative_offset, position = self._fields(entries, slot)
        return OffsetPosition(self.base_offset + relative_offset, position)
