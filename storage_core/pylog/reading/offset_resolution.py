"""Offsets by timestamp, as a broker's ListOffsets answers them.

``offset_for_timestamp(t)`` is the lowest offset whose record has a timestamp of at least ``t``;
timestamps need not be in order. Control records count, with the broker's clock as their time: the
answer may be an offset that no consumer is given. The way there, segment by segment: the time
index, the offset index, then the headers of the batches after that, until one is late enough.

An entry of a time index says that no record before a certain batch is later than a certain time.
That the batch is there and has that time is checked; that none before it is later is believed,
unless the view uses no indexes. Nothing else that an index file says is believed.

Differs from Kafka: where a segment has no time index (format v0, or the file is missing) Kafka
takes the file's modification time for its largest timestamp, and its answers then depend on when
files were copied. Here such a segment's headers are read.

Source: UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp (Kafka 4.3); KIP-79,
KIP-734 (max timestamp).
"""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.record_times import RecordTimes
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    OffsetOutOfRangeError,
)
from pylog.files.file_names import (
    TIME_INDEX_FILE_SUFFIX,
)
from pylog.files.index_entries import goes_up
from pylog.files.time_index import TimeIndexEntries
from pylog.log_file.batch_walk import has_valid_checksum
from pylog.model import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    FromEnd,
    Timestamp,
    TimestampOffset,
)
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.log_view import find_remote_offsets, remote_offsets_note
from pylog.reading.slicing import open_slice, slice_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.byte_source import ByteSource
    from pylog.model import OffsetSpec
    from pylog.reading.log_view import LogView
    from pylog.reading.task_range import SegmentSlice


_LOGGER = logging.getLogger(__name__)


_FIRST_WINDOW_BYTES = 1 << 14  # the record is a few batches after the index entry

_BELIEVED_ENTRIES = 2


def find_offset_for_timestamp(view: LogView, timestamp: int) -> TimestampOffset | None:
    """Return the first record, by offset, whose timestamp is at least ``timestamp`` ms."""
    passed_over: list[int] = []
    for index in range(len(view.segments)):
        following = view.next_base_offset(index)
        if following is not None and following <= view.log_start_offset:
            continue
        entry = _entry_of_last_offset(view, index)
        if entry is not None and entry.timestamp < timestamp:  # as all its records are
            passed_over.append(index)
            continue
        for each in (*_not_borne_out(view, passed_over), index):
            record = _find_in_segment(view, each, timestamp)
            if record is not None:
                return record
        passed_over = []
    return None


def _find_in_segment(view: LogView, index: int, timestamp: int) -> TimestampOffset | None:
    opened = open_slice(slice_of(view, index), view.damage)
    if opened is None:
        return None
    with opened as source:
        start = _start_position(view, index, source, timestamp)
        for record in _records_from(view, source, slice_of(view, index, start), timestamp):
            if record.offset >= view.log_start_offset:
                return record
    return None


def _entry_of_last_offset(view: LogView, index: int) -> TimestampOffset | None:
    """Return the last time index entry of a rolled segment if it names the very last offset.

    A broker forces the largest timestamp into the index when it rolls a segment, and relies on
    that entry, too. Where it names the segment's very last offset, nothing is missing from the
    index. Of any other segment the batches are looked at.
    """
    segment, following = view.segments[index], view.next_base_offset(index)
    if following is None or not segment.has_time_index:
        return None
    path = segment.file_path(TIME_INDEX_FILE_SUFFIX)
    with TimeIndexEntries.open(path, segment.base_offset) as entries:
        count = entries.entry_count
        if count < _BELIEVED_ENTRIES or count != entries.slot_count:
            return None
        before, last = entries.entry(count - 2), entries.entry(count - 1)
    is_possible = before.timestamp >= 0 and before.offset >= segment.base_offset
    return last if is_possible and goes_up(before, last) and last.offset == following - 1 else None


def _not_borne_out(view: LogView, passed_over: list[int]) -> list[int]:
    """Return which segments, of some in a row, are to be looked at in spite of their time index."""
    place = len(passed_over)
    while place and not _is_borne_out(view, passed_over[place - 1]):
        place -= 1
    return passed_over[place:]


def _is_borne_out(view: LogView, index: int) -> bool:
    entry = _entry_of_last_offset(view, index)
    if entry is None:
        return False
    segment = view.segments[index]
    try:
        with segment.open_log() as source:
            last = segment.find_batch(source, entry.offset, view.segment_end(index))
            return (
                last is not None
                and last.header.last_offset == entry.offset
                and last.header.max_timestamp == entry.timestamp
                and has_valid_checksum(source, last)
            )
    except CorruptRecordError:
        return False


def find_max_timestamp(view: LogView) -> TimestampOffset | None:
    """Return the largest timestamp of the log and the first offset that carries it."""
    best: tuple[int, int, int] | None = None  # timestamp, segment, position
    for index in range(len(view.segments)):
        opened = open_slice(slice_of(view, index), view.damage)
        if opened is None:
            continue
        with opened as source:
            segment_slice = slice_of(view, index, _start_position(view, index, source, None))
            for window in CheckedWindows(source, segment_slice, damage=view.damage):
                headers = window.headers
                # A batch that compaction emptied keeps the timestamp of records that are gone.
                stamps = np.where(headers.record_counts, headers.max_timestamps, NO_TIMESTAMP)
                place = int(np.argmax(stamps))
                if best is None or stamps[place] > best[0]:
                    position = window.position_of(place)
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
    for index in range(len(view.segments)):
        opened = open_slice(slice_of(view, index), view.damage)
        if opened is None:
            continue
        with opened as source:
            for record in _records_from(view, source, slice_of(view, index), 0):
                if best is None or record.timestamp > best.timestamp:
                    best = record
    return best


def _start_position(view: LogView, index: int, source: ByteSource, timestamp: int | None) -> int:
    """Return a batch position that no record above an indexed timestamp precedes.

    The entry is the last one that is not above ``timestamp``; for None the last one of all. Its
    batch has to bear out its timestamp. It is believed that no record before that batch is later,
    which only a walk through all headers could prove. What lies after it is left to be read:
    Kafka forces an entry at the roll that would make this superfluous, but nothing proves that the
    last entry found is that one.
    """
    segment = view.segments[index]
    if not segment.has_time_index:
        return 0
    path = segment.file_path(TIME_INDEX_FILE_SUFFIX)
    with TimeIndexEntries.open(path, segment.base_offset) as entries:
        slot = entries.entry_count - 1 if timestamp is None else entries.floor_slot(timestamp)
        if slot < 0 or not _goes_up_around(entries, slot):
            return 0
        entry = entries.entry(slot)
    if entry.offset < segment.base_offset:
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


def _goes_up_around(entries: TimeIndexEntries, slot: int) -> bool:
    """Whether an entry lies between those before and after it, as a broker writes them."""
    around = [
        entries.entry(each) for each in range(max(0, slot - 1), min(slot + 2, entries.entry_count))
    ]
    return all(goes_up(before, entry) for before, entry in pairwise(around))


def _records_from(
    view: LogView, source: ByteSource, segment_slice: SegmentSlice, timestamp: int
) -> Iterator[TimestampOffset]:
    """Yield the records of a slice whose timestamp is at least ``timestamp``."""
    times = RecordTimes()
    windows = CheckedWindows(
        source, segment_slice, damage=view.damage, first_window_bytes=_FIRST_WINDOW_BYTES
    )
    for window in windows:
        headers = window.headers
        for place in np.flatnonzero(headers.max_timestamps >= timestamp).tolist():
            batch = window.select(slice(place, place + 1))
            try:
                for offset, stamp in times.from_timestamp(batch, timestamp):
                    yield TimestampOffset(stamp, offset)
            except (CorruptRecordError, InvalidRecordError):
                if view.damage is None:
                    raise  # the reader reports it otherwise


def clip(spec: OffsetSpec, view: LogView) -> OffsetSpec:
    """Return ``spec``; an offset outside the log gives way to the nearest one, with a warning."""
    if not isinstance(spec, int):
        return spec
    nearest = min(max(spec, view.log_start_offset), view.log_end_offset)
    if nearest != spec:
        _LOGGER.warning(
            "offset %d of %s is not in the log (%d to %d, exclusive): reading from or to %d",
            spec,
            view.topic_partition,
            view.log_start_offset,
            view.log_end_offset,
            nearest,
        )
    return nearest


def resolve_start(spec: OffsetSpec, view: LogView, latest: int) -> int:
    """Return the first offset to read."""
    _warn_of_remote_offsets(spec, view)
    if isinstance(spec, Timestamp):
        record = find_offset_for_timestamp(view, spec.milliseconds)
        if record is not None and record.offset < latest:
            return record.offset
        if spec.if_missing == "error":
            reason = (
                f"no record of {view.topic_partition} has a timestamp of {spec.milliseconds} ms or "
                "later; to start at the end of such partitions, ask for the latest offset there "
                "(Spark: option startingOffsetsByTimestampStrategy=latest)"
            )
            raise LogStorageError(reason)
        return latest
    return _resolve(spec, view, latest)


def _warn_of_remote_offsets(spec: OffsetSpec, view: LogView) -> None:
    """Say it where a read begins, or might, with records that only remote storage has."""
    is_earlier = spec == EARLIEST or isinstance(spec, Timestamp)
    if not is_earlier and not (isinstance(spec, int) and spec < view.local_log_start_offset):
        return
    remote = find_remote_offsets(view)
    if remote is not None:
        _LOGGER.warning("%s: %s", view.topic_partition, remote_offsets_note(remote))


def resolve_end(spec: OffsetSpec, view: LogView, latest: int) -> int:
    """Return the offset before which to stop; see `resolve_start`."""
    if isinstance(spec, Timestamp):
        record = find_offset_for_timestamp(view, spec.milliseconds)
        return latest if record is None or record.offset >= latest else record.offset
    return _resolve(spec, view, latest)


def _resolve(spec: str | int | FromEnd, view: LogView, latest: int) -> int:
    if spec == EARLIEST:
        return view.log_start_offset
    if spec == LATEST:
        return latest
    if spec == MAX_TIMESTAMP:
        record = find_max_timestamp(view)
        return latest if record is None else record.offset
    if isinstance(spec, FromEnd):
        return max(view.log_start_offset, latest - spec.offsets)
    offset = int(spec)
    if not view.log_start_offset <= offset <= view.log_end_offset:
        raise OffsetOutOfRangeError(
            str(view.topic_partition), offset, view.log_start_offset, view.log_end_offset
        )
    return offset
