"""Offsets by timestamp, as an owned log answers them.

===== ======================= =============================================================
value name                    answer
===== ======================= =============================================================
-1    LATEST_TIMESTAMP        the log's end
-2    EARLIEST_TIMESTAMP      the log start offset
-3    MAX_TIMESTAMP           the first record of the log's largest timestamp
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
from pylog.columnar.window import Window
from pylog.model import NO_TIMESTAMP, TimestampOffset
from pylog.record.batch_scan import find_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log.log_segment import LogSegment
    from pylog.log.unified_log import UnifiedLog
    from pylog.log_file.batch_walk import PositionedHeader

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


class OffsetForTime(NamedTuple):
    """A record's timestamp and offset, and its leader epoch if it is known."""

    timestamp: int
    offset: int
    leader_epoch: int | None


def find_offset_by_timestamp(log: UnifiedLog, timestamp: int) -> OffsetForTime | None:
    """Return the answer for ``timestamp``, a time in ms or a special value; None if there is none.

    Raises
    ------
    ValueError
        ``timestamp`` is below the special values.
    CorruptRecordError, InvalidRecordError
        Records that have to be looked at are damaged.
    """
    if timestamp < LATEST_TIERED_TIMESTAMP:
        msg = f"timestamp {timestamp} is neither a time nor one of -1 to {LATEST_TIERED_TIMESTAMP}"
        raise ValueError(msg)
    epochs = log.leader_epochs
    start = log.log_start_offset
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        earliest = epochs.earliest_entry
        is_known = earliest is not None and earliest.start_offset <= start
        return OffsetForTime(
            NO_TIMESTAMP, start, earliest.epoch if is_known and earliest is not None else None
        )
    if timestamp == LATEST_TIMESTAMP:
        return OffsetForTime(NO_TIMESTAMP, log.log_end_offset, epochs.latest_epoch)
    if timestamp == LATEST_TIERED_TIMESTAMP:
        return None
    record = _record_of_max_timestamp(log) if timestamp == MAX_TIMESTAMP else None
    if timestamp >= 0:
        record = _first_record_at(log, timestamp)
    if record is None:
        return None
    return OffsetForTime(record.timestamp, record.offset, epochs.epoch_for_offset(record.offset))


def _record_of_max_timestamp(log: UnifiedLog) -> TimestampOffset | None:
    segments = log.segments
    latest = max(segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)
    timestamp, offset = latest.max_timestamp_so_far
    if timestamp < 0:
        return None
    found = latest.translate_offset(offset)
    if found is None or found.header.max_timestamp != timestamp:
        return next(_records_at(latest, 0, timestamp, 0), None)
    return next(_records_of(latest, found, timestamp, 0), None)


def _first_record_at(log: UnifiedLog, timestamp: int) -> TimestampOffset | None:
    for segment in log.segments:
        if segment.largest_timestamp >= timestamp:
            start = log.log_start_offset
            entry = segment.time_index.lookup(timestamp)
            position = segment.offset_index.lookup(max(entry.offset, start)).position
            return next(_records_at(segment, position, timestamp, start), None)
    return None


def _records_at(
    segment: LogSegment, position: int, timestamp: int, lowest_offset: int
) -> Iterator[TimestampOffset]:
    for found in segment.log.batches_from(position):
        if found.header.max_timestamp >= timestamp:
            yield from _records_of(segment, found, timestamp, lowest_offset)


def _records_of(
    segment: LogSegment, found: PositionedHeader, timestamp: int, lowest_offset: int
) -> Iterator[TimestampOffset]:
    data = segment.log.read_at(found.position, found.header.size_bytes)
    scan = find_batches(np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8))
    batch = Window(scan.buffer, scan.headers, str(segment.log.path), found.position)
    for offset, stamp in RecordTimes().from_timestamp(batch, timestamp):
        if offset >= lowest_offset:
            yield TimestampOffset(stamp, offset)
