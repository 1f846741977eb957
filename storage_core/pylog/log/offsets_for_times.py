"""Offsets by timestamp, as an owned log answers them.

===== ======================= =============================================================
value name                    answer
===== ======================= =============================================================
-1    LATEST_TIMESTAMP        the log's end
-2    EARLIEST_TIMESTAMP      the log start offset
-3    MAX_TIMESTAMP           the first record of the log's largest timestamp; the first one
                              of the log where none has a timestamp, but not of format v0
-4    EARLIEST_LOCAL_…        the log start offset: nothing lies on tiered storage
-5    LATEST_TIERED_…         none
>= 0                          the first record, by offset, with that timestamp or a later one
===== ======================= =============================================================

The segment is the first one whose largest timestamp is not below; where a segment has no
timestamps (format v0), the time its file was changed counts. Later segments are not tried if that
one gives nothing. Timestamps need not be ordered.

Source: UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.record_times import RecordTimes
from pylog.model import NO_TIMESTAMP
from pylog.record.batch_header import MAGIC_VALUE_V0
from pylog.record.batch_scan import Window, find_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState
    from pylog.log_file.batch_walk import PositionedHeader


LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


class OffsetForTime(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch if that has one."""

    timestamp: int
    offset: int
    leader_epoch: int | None


def find_offset_by_timestamp(state: LogState, timestamp: int) -> OffsetForTime | None:
    """Return the answer for ``timestamp``, ms or a special value; None if there is none."""
    if timestamp < LATEST_TIERED_TIMESTAMP:
        msg = f"timestamp {timestamp} is neither a time nor one of -1 to {LATEST_TIERED_TIMESTAMP}"
        raise ValueError(msg)
    epochs = state.leader_epochs
    start = state.log_start_offset
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        earliest = epochs.earliest_entry
        is_known = earliest is not None and earliest.start_offset <= start
        return OffsetForTime(
            NO_TIMESTAMP, start, earliest.epoch if is_known and earliest is not None else None
        )
    if timestamp == LATEST_TIMESTAMP:
        return OffsetForTime(NO_TIMESTAMP, state.log_end_offset, epochs.latest_epoch)
    if timestamp == LATEST_TIERED_TIMESTAMP:
        return None
    if timestamp == MAX_TIMESTAMP:
        return _find_max_timestamp(state)
    return _find_first_at(state, timestamp)


def _find_max_timestamp(state: LogState) -> OffsetForTime | None:
    latest = max(
        state.local_log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp
    )
    timestamp, offset = latest.max_timestamp_so_far
    first = latest.translate_offset(offset)
    is_carrier = first is not None and first.header.max_timestamp == timestamp
    position = first.position if first is not None and is_carrier else 0
    for batch in latest.log.batches_from(position):
        if batch.header.max_timestamp == timestamp:
            has_timestamps = batch.header.magic > MAGIC_VALUE_V0
            records = _records_of(latest, batch, timestamp) if has_timestamps else ()
            return next((each for each in records if each.timestamp == timestamp), None)
    return None


def _find_first_at(state: LogState, timestamp: int) -> OffsetForTime | None:
    start = state.log_start_offset
    for segment in state.local_log.segments:
        if segment.largest_timestamp >= timestamp:
            entry = segment.time_index.lookup(timestamp)
            position = segment.offset_index.lookup(max(entry.offset, start)).position
            batches = segment.log.batches_from(position)
            records = (
                record
                for batch in batches
                if batch.header.max_timestamp >= timestamp
                for record in _records_of(segment, batch, timestamp)
                if record.offset >= start
            )
            return next(records, None)
    return None


def _records_of(
    segment: LogSegment, batch: PositionedHeader, timestamp: int
) -> Iterator[OffsetForTime]:
    """Yield the records of a batch that are not before ``timestamp``."""
    data = segment.log.read_at(batch.position, batch.header.size_bytes)
    scan = find_batches(np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8))
    window = Window.of(scan, str(segment.log.path), batch.position)
    epoch = batch.header.partition_leader_epoch
    for offset, stamp in RecordTimes().from_timestamp(window, timestamp):
        yield OffsetForTime(stamp, offset, epoch if epoch >= 0 else None)
