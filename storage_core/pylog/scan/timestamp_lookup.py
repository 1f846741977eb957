"""Offsets by timestamp, as a broker's ListOffsets answers them.

``offset_for_timestamp(t)`` is the lowest offset whose record has a timestamp of at least ``t``;
timestamps need not be in order. Control records count, with the broker's clock as their time: the
answer may be an offset that no consumer is given. The way there, segment by segment: the time
index, the offset index, then the headers of the batches behind, until one is late enough.

Differs from Kafka: where a segment has no time index (format v0, or the file is missing) Kafka
takes the file's modification time for its largest timestamp, and its answers then depend on when
files were copied. Here such a segment's headers are read.

Source: UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp (Kafka 4.3); KIP-79,
KIP-734 (max timestamp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.record_times import RecordTimes
from pylog.columnar.window import Window
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.files.file_names import TIME_INDEX_FILE_SUFFIX
from pylog.files.time_index import TimeIndex
from pylog.model import NO_TIMESTAMP, TimestampOffset
from pylog.scan.checked_windows import CheckedWindows
from pylog.scan.slicing import slice_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.scan.log_segment_view import LogSegmentView
    from pylog.scan.log_view import LogView
    from pylog.scan.scan_task import SegmentSlice

_FIRST_WINDOW_BYTES = 1 << 14  # the record is a few batches behind the index entry

_BELIEVED_ENTRIES = 2


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
        if following is not None and _is_earlier(segment, timestamp, following):
            continue
        with segment.open_log() as source:
            start = _start_position(view, index, source, timestamp)
            for found in _records_from(view, source, slice_of(view, index, start), timestamp):
                if found.offset >= view.log_start_offset:
                    return found
    return None


def _is_earlier(segment: LogSegmentView, timestamp: int, next_base_offset: int) -> bool:
    """Whether all records of a rolled segment are before ``timestamp``, going by its time index.

    A broker forces the largest timestamp into the index when it rolls a segment, and goes by that
    entry as well. It is believed where it names the segment's very last offset: then nothing is
    missing from the index, and only a wrong timestamp in this one entry could mislead. Otherwise
    the segment's batches are looked at.
    """
    if not segment.has_time_index:
        return False
    path = segment.file_path(TIME_INDEX_FILE_SUFFIX)
    with TimeIndex.open(path, segment.base_offset) as index:
        count = index.entry_count
        if count < _BELIEVED_ENTRIES or count != index.slot_count:
            return False
        before, last = index.entry(count - 2), index.entry(count - 1)
    return (
        0 <= before.timestamp < last.timestamp < timestamp
        and segment.base_offset <= before.offset < last.offset == next_base_offset - 1
    )


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
        with segment.open_log() as source:
            piece = slice_of(view, index, _start_position(view, index, source, None))
            for window in CheckedWindows(source, piece, damage=view.damage):
                headers = window.scan.headers
                # A batch that compaction emptied keeps the timestamp of records that are gone.
                stamps = np.where(headers.record_counts, headers.max_timestamps, NO_TIMESTAMP)
                place = int(np.argmax(stamps))
                if best is None or stamps[place] > best[0]:
                    position = window.file_position + int(headers.positions[place])
                    best = (int(stamps[place]), index, position)
    if best is None or best[0] == NO_TIMESTAMP:
        return None
    timestamp, index, position = best
    with view.segments[index].open_log() as source:
        records = _records_from(view, source, slice_of(view, index, position), timestamp)
        return next(records, None) or _largest_of_all_records(view)


def _largest_of_all_records(view: LogView) -> TimestampOffset | None:
    """Return what `find_max_timestamp` does, where a batch is not as late as its header says."""
    best = None
    for index, segment in enumerate(view.segments):
        with segment.open_log() as source:
            for found in _records_from(view, source, slice_of(view, index), 0):
                if best is None or found.timestamp > best.timestamp:
                    best = found
    return best


def _start_position(view: LogView, index: int, source: ByteSource, timestamp: int | None) -> int:
    """Return a batch position that no record above an indexed timestamp precedes.

    The entry is the last one that is not above ``timestamp``; for None the last one of all, if a
    record bears it out. No record before it is later. What lies behind it is left to be read:
    Kafka forces an entry at the roll that would make this superfluous, but nothing proves that the
    last entry found is that one.
    """
    segment = view.segments[index]
    if not segment.has_time_index:
        return 0
    path = segment.file_path(TIME_INDEX_FILE_SUFFIX)
    with TimeIndex.open(path, segment.base_offset) as time_index:
        entry = time_index.last_entry() if timestamp is None else time_index.lookup(timestamp)
    if entry is None or not segment.base_offset <= entry.offset:
        return 0
    try:
        batch = segment.find_batch(source, entry.offset, view.segment_end(index))
    except CorruptRecordError:
        if view.damage is None:
            raise
        return 0  # from there on all is checked
    if batch is None or batch.header.max_timestamp != entry.timestamp:
        return 0
    return 0 if timestamp is None and batch.header.record_count == 0 else batch.position


def _records_from(
    view: LogView, source: ByteSource, piece: SegmentSlice, timestamp: int
) -> Iterator[TimestampOffset]:
    """Yield the records of a slice whose timestamp is at least ``timestamp``.

    Checksums are verified also of batches that the header says are earlier.
    """
    times = RecordTimes()
    windows = CheckedWindows(
        source, piece, damage=view.damage, first_window_bytes=_FIRST_WINDOW_BYTES
    )
    for window in windows:
        headers = window.scan.headers
        for place in np.flatnonzero(headers.max_timestamps >= timestamp).tolist():
            batch = Window(
                window.scan.buffer,
                headers.select(slice(place, place + 1)),
                piece.path,
                window.file_position,
            )
            try:
                for offset, stamp in times.from_timestamp(batch, timestamp):
                    yield TimestampOffset(stamp, offset)
            except (CorruptRecordError, InvalidRecordError):
                if view.damage is None:
                    raise  # the reader reports it otherwise
