"""Offsets by timestamp, as a broker's ListOffsets answers them.

``offset_for_timestamp(t)`` is the lowest offset whose record has a timestamp of at least ``t``;
timestamps need not be in order. Control records count, with the broker's clock as their time: the
answer may be an offset that no consumer is given. The way there: the first segment whose largest
timestamp is at least ``t``; its time index; its offset index; then batch by batch.

Differs from Kafka: where a segment has no time index (format v0, or the file is missing) Kafka
takes the file's modification time for its largest timestamp, and its answers then depend on when
files were copied. Here such a segment's headers are read.

Source: UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp (Kafka 4.3); KIP-79,
KIP-734 (max timestamp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.files.file_names import TIME_INDEX_FILE_SUFFIX
from pylog.files.time_index import TimeIndex
from pylog.model import NO_TIMESTAMP, TimestampOffset
from pylog.record.record_batch import RecordBatch
from pylog.scan.segment_windows import SegmentWindows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.scan.log_segment_view import LogSegmentView
    from pylog.scan.log_view import LogView


def find_offset_for_timestamp(view: LogView, timestamp: int) -> TimestampOffset | None:
    """Return the first record, by offset, whose timestamp is at least ``timestamp`` ms.

    Records below the log start offset do not count. None if there is no such record.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        Bytes that have to be looked at are damaged.
    """
    for index, segment in enumerate(view.segments):
        following = view.next_base_offset(index)
        if following is not None and following <= view.log_start_offset:
            continue
        end = view.segment_end(index)
        with segment.open_log() as source:
            known = _last_time_index_entry(segment, source, end)
            if following is not None and known is not None and known.timestamp < timestamp:
                continue
            start = _start_position(segment, source, timestamp, end)
            for found in _records_from(source, start, end, timestamp):
                if found.offset >= view.log_start_offset:
                    return found
    return None


def find_max_timestamp(view: LogView) -> TimestampOffset | None:
    """Return the largest timestamp of the log and the first offset that carries it.

    None for a log without timestamps.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        Bytes that have to be looked at are damaged.
    """
    best: tuple[int, int, int] | None = None  # timestamp, segment, position
    for index, segment in enumerate(view.segments):
        end = view.segment_end(index)
        with segment.open_log() as source:
            known = _last_time_index_entry(segment, source, end)
            start = 0
            if known is not None:
                batch = segment.find_batch(source, known.offset, end)
                start = batch.position if batch else 0
                if view.next_base_offset(index) is not None:
                    if best is None or known.timestamp > best[0]:
                        best = (known.timestamp, index, start)
                    continue
            for window in SegmentWindows(source, start, end):
                stamps = window.scan.headers.max_timestamps
                place = int(np.argmax(stamps))
                if best is None or stamps[place] > best[0]:
                    position = window.file_position + int(window.scan.headers.positions[place])
                    best = (int(stamps[place]), index, position)
    if best is None or best[0] == NO_TIMESTAMP:
        return None
    timestamp, index, position = best
    with view.segments[index].open_log() as source:
        return next(_records_from(source, position, view.segment_end(index), timestamp), None)


def _last_time_index_entry(
    segment: LogSegmentView, source: ByteSource, end: int
) -> TimestampOffset | None:
    """Return the last time index entry if the batch it points to bears it out, else None.

    Of a rolled segment that is its largest timestamp: Kafka forces an entry at the roll.
    """
    if not segment.has_time_index:
        return None
    with TimeIndex.open(segment.file_path(TIME_INDEX_FILE_SUFFIX), segment.base_offset) as index:
        entry = index.last_entry()
    return entry if entry is not None and _is_borne_out(segment, source, entry, end) else None


def _is_borne_out(
    segment: LogSegmentView, source: ByteSource, entry: TimestampOffset, end: int
) -> bool:
    batch = segment.find_batch(source, entry.offset, end)
    if batch is None or entry.offset < segment.base_offset:
        return False
    return batch.header.max_timestamp == entry.timestamp


def _start_position(segment: LogSegmentView, source: ByteSource, timestamp: int, end: int) -> int:
    """Return a batch position that no earlier record at or above ``timestamp`` precedes."""
    if not segment.has_time_index:
        return 0
    with TimeIndex.open(segment.file_path(TIME_INDEX_FILE_SUFFIX), segment.base_offset) as index:
        entry = index.lookup(timestamp)
    if entry.timestamp == NO_TIMESTAMP or not _is_borne_out(segment, source, entry, end):
        return 0
    batch = segment.find_batch(source, entry.offset, end)
    return 0 if batch is None else batch.position


def _records_from(
    source: ByteSource, start: int, end: int, timestamp: int
) -> Iterator[TimestampOffset]:
    """Yield the records from byte ``start`` on whose timestamp is at least ``timestamp``."""
    windows = SegmentWindows(source, start, end)
    for window in windows:
        view = window.scan.buffer.data
        headers = window.scan.headers
        for place in np.flatnonzero(headers.max_timestamps >= timestamp).tolist():
            batch = RecordBatch(view[int(headers.positions[place]) :])
            batch.ensure_valid()
            for record in batch.records():
                if record.timestamp >= timestamp:
                    yield TimestampOffset(record.timestamp, record.offset)
    if windows.tail.defect is not None:
        raise CorruptRecordError(windows.tail.defect, source.path, windows.tail.position)
