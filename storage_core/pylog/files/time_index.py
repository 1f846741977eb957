"""Time index, ``<base offset>.timeindex``: from which offset on a timestamp can occur.

===== ===== ============================================================
pos   width field (big-endian, signed)
===== ===== ============================================================
0     8     timestamp: the largest one in the segment so far, ms
8     4     relative offset: where it occurred, minus the base offset
===== ===== ============================================================

Both columns increase, strictly. An entry ``(t, o)`` says: no record at or before offset ``o`` has
a timestamp above ``t``; so the first record with a timestamp above ``t`` is found by reading from
``o`` on. The offset is the last one of the first batch that carried the timestamp; leaders up to
3.7 stored the record's own offset for uncompressed batches. A segment whose records have no
timestamps (message format v0) has no entries. Brokers before 0.10.1 have no such file.

Source: TimeIndex, LogSegment.append (KIP-33; Kafka 3.9 and 4.3; KAFKA-16310 for the offset).
"""

from __future__ import annotations

import struct
from typing import ClassVar

from pylog.files.index_entries import EntryLayout, IndexEntries
from pylog.model import NO_TIMESTAMP, TimestampOffset

TIMESTAMP_COLUMN = 0
TIME_OFFSET_COLUMN = 1
TIME_INDEX_LAYOUT = EntryLayout(struct.Struct(">qi"), TIME_OFFSET_COLUMN)


class TimeIndexEntries(IndexEntries[TimestampOffset]):
    """Running maxima of the timestamps of one segment. See `IndexEntries`."""

    __slots__ = ()

    layout: ClassVar[EntryLayout] = TIME_INDEX_LAYOUT

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the entry with the largest timestamp that is not above ``timestamp`` (ms)."""
        fields = self._floor_fields(TIMESTAMP_COLUMN, timestamp)
        if fields is None or fields[TIME_OFFSET_COLUMN] < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self._decode(*fields)

    def floor_slot(self, timestamp: int) -> int:
        """Return the slot of the entry with the largest timestamp not above; -1 if none is."""
        return self._first_slot_at_least(TIMESTAMP_COLUMN, timestamp + 1) - 1

    def _find_wrong_entry(self) -> str | None:
        """Return why the last entry cannot be one of this segment, None if it can."""
        stored = self.stored
        count = len(stored)
        if count:
            first, last = stored[0][TIMESTAMP_COLUMN], stored[count - 1][TIMESTAMP_COLUMN]
            if last < first:
                return f"last index timestamp {last} is below the first one, {first}"
        return super()._find_wrong_entry()

    def _decode(self, first: int, second: int) -> TimestampOffset:
        return TimestampOffset(first, self.base_offset + second)
