"""Offset index, ``<base offset>.index``: where in the ``.log`` file an offset is.

===== ===== ============================================================
pos   width field (big-endian, signed)
===== ===== ============================================================
0     4     relative offset: an offset of the batch minus the base offset
4     4     position: the byte at which the batch begins in ``.log``
===== ===== ============================================================

Both columns increase. The offset is the batch's last one; brokers up to 1.1 stored its first,
brokers up to 3.9.0 and 4.0.0 the last one of a whole produce request together with the position
of that request's first batch. All of them allow the same search: the batch at the position found
begins at or before the wanted offset, and the exact batch is found by walking on from there. The
index is sparse (one entry per ``index.interval.bytes``) and never holds the segment's first
batch.

Source: OffsetIndex, LogSegment.append (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import struct
from typing import ClassVar

from pylog.files.index_entries import EntryLayout, IndexEntries
from pylog.model import OffsetPosition

OFFSET_COLUMN = 0
POSITION_COLUMN = 1
OFFSET_INDEX_LAYOUT = EntryLayout(struct.Struct(">ii"), OFFSET_COLUMN)


class OffsetIndexEntries(IndexEntries[OffsetPosition]):
    """Offsets and byte positions of some batches of one segment. See `IndexEntries`."""

    __slots__ = ()

    layout: ClassVar[EntryLayout] = OFFSET_INDEX_LAYOUT

    @property
    def last_offset(self) -> int:
        """The last indexed offset, the base offset if there is none."""
        last = self.last_entry()
        return self.base_offset if last is None else last.offset

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the entry with the largest offset that is not above ``target_offset``."""
        start = OffsetPosition(self.base_offset, 0)
        fields = self._floor_fields(OFFSET_COLUMN, target_offset - self.base_offset)
        if fields is None or min(fields) < 0:
            return start
        return self._decode(*fields)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size_bytes: int
    ) -> OffsetPosition | None:
        """Return the first entry at or after the end of a range of bytes, None if there is none.

        Differs from Kafka, which takes the entry after the right one where that is the first of
        its search: only more aborted transactions are named, which begin after the range.
        """
        end_position = fetch_offset.position + fetch_size_bytes
        slot = self.first_slot_from_position(end_position)
        return self.entry(slot) if slot < self.entry_count else None

    def floor_slot(self, target_offset: int) -> int:
        """Return the slot of the entry with the largest offset not above; -1 if there is none."""
        target = target_offset - self.base_offset
        return self._first_slot_at_least(OFFSET_COLUMN, target + 1) - 1

    def first_slot_from_position(self, position: int) -> int:
        """Return the slot of the first entry at or after a byte; `entry_count` if there is none."""
        return self._first_slot_at_least(POSITION_COLUMN, position)

    def _decode(self, first: int, second: int) -> OffsetPosition:
        return OffsetPosition(self.base_offset + first, second)
