"""Partitions and positions to `ScanTask`s: which bytes hold the offsets asked for.

Reads side files, index entries and a few batch headers; READ_COMMITTED may scan headers
(`pylog.reading.transactions`). No record is decoded but for timestamp look-ups, and for the last
records of a range: markers, aborted records, gaps that compaction leaves and filters all lie
between, so these are counted from the end, a range of offsets at a time, each twice as long as the
one after it.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, LogDirectoryError, LogStorageError
from pylog.files.file_names import LOG_FILE_SUFFIX, file_name_prefix
from pylog.files.looks import Looks
from pylog.lazy_modules import LazyModule
from pylog.locations import printable_location
from pylog.log_file.batch_walk import HIGHEST_OFFSET
from pylog.model import EARLIEST, LATEST, IsolationLevel, spec_for
from pylog.reading.early_batches import late_part
from pylog.reading.log_view import read_steadily
from pylog.reading.offset_resolution import clip, resolve_end, resolve_start
from pylog.reading.pending_commit import PendingCommit
from pylog.reading.scan_task import ScanTask
from pylog.reading.slicing import segment_slices
from pylog.reading.splitting import offset_ranges, split_tasks
from pylog.reading.task_range import SegmentSlice
from pylog.reading.transactions import find_aborted_transactions, find_last_stable_offset
from pylog.text.words import offsets_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pylog.model import OffsetSpecs
    from pylog.reading import record_filter
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter

    Ranges = dict[str, tuple[int, int]]
    """By partition directory: the first offset, and the one before which to stop."""
    OffsetReader = Callable[[ScanTask], Iterator[pa.RecordBatch]]
else:
    record_filter = LazyModule("pylog.reading.record_filter")


def chosen_offset_ranges(view: LogView, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of ``[start, end)`` in the segments chosen, adjacent ones as one."""
    places = {segment.base_offset: index for index, segment in enumerate(view.segments)}
    ranges: list[tuple[int, int]] = []
    for base_offset in view.directory.segments:
        if base_offset not in places:
            name = file_name_prefix(base_offset) + LOG_FILE_SUFFIX
            reason = f"segment file {name} is not part of the log any more"
            raise LogDirectoryError(reason, view.directory.path)
        limit = view.limit_offset(places[base_offset])
        low = max([start, base_offset, *(high for _, high in ranges[-1:])])
        high = max(low, end if limit is None else min(end, limit))
        if ranges and ranges[-1][1] == low:
            low = ranges.pop()[0]
        ranges.append((low, high))
    return ranges


_LOGGER = logging.getLogger(__name__)
_WALKED_WHILE_PLANNING = 4 << 30


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What is asked of every partition; see `pylog.reading.scan.scan`."""

    start: OffsetSpecs = EARLIEST
    end: OffsetSpecs = LATEST
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    fail_on_data_loss: bool = True
    max_partition_bytes: int | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    where: RecordFilter | None = None
    begins_with_log: bool = False  # whether a read from the start begins where the log does by then


def plan_tasks(
    views: Sequence[LogView], wanted: ScanRequest, ranges: Ranges | None = None
) -> list[ScanTask]:
    """Return the tasks of all partitions that have anything to read, in the order of ``views``."""
    known = {} if ranges is None else ranges
    looks = Looks()
    while True:
        found = dict(known)
        tasks = [
            task
            for view in views
            for task in _plan_what_can_be_read(view, wanted, found)
            if task.slices
        ]
        if not any(pending.has_changed() for pending in {view.pending for view in views}):
            break
        # Of a job that was committed meanwhile, some partitions would be read with it.
        reason = "commits of jobs come and go faster than a read of all partitions can be planned"
        looks.again(LogDirectoryError(reason, views[0].pending.log_directory))
        views = _with_new_look(views)
    known.update(found)
    return split_tasks(
        tasks,
        max_partition_bytes=wanted.max_partition_bytes,
        min_partitions=wanted.min_partitions,
        skips_damage=any(view.damage is not None for view in views),
    )


def _late_enough(
    slices: tuple[SegmentSlice, ...], where: RecordFilter | None
) -> tuple[SegmentSlice, ...]:
    """Return slices without what is too early for a filter, so that no task is made of it."""
    if where is None or where.min_timestamp is None:
        return slices
    if sum(each.size_bytes for each in slices) > _WALKED_WHILE_PLANNING:
        return slices
    late = (late_part(each, where) for each in slices)
    return tuple(each for each in late if each.size_bytes)


def _with_new_look(views: Sequence[LogView]) -> list[LogView]:
    pending = {each: PendingCommit(each) for each in {view.pending.log_directory for view in views}}
    return [view.refreshed(pending=pending[view.pending.log_directory]) for view in views]


def _plan_what_can_be_read(view: LogView, wanted: ScanRequest, ranges: Ranges) -> list[ScanTask]:
    """Plan one partition; where damage is skipped, a directory that cannot be listed is a task.

    Its reader meets the error, and reports it where what others leave out is reported.
    """
    if view.damage is None or view.unreadable is None:
        return _plan_as_it_is_now(view, wanted, ranges)
    path = view.directory.path
    whole = SegmentSlice(
        path, 0, None, 0, 0, runs_to_segment_end=False, defect=view.unreadable.reason
    )
    return [
        ScanTask(view.directory, (whole,), 0, 2**63 - 1, where=wanted.where, access=view.access)
    ]


def _plan_as_it_is_now(view: LogView, wanted: ScanRequest, ranges: Ranges) -> list[ScanTask]:
    return read_steadily(view, lambda now: plan_partition(now, wanted, ranges))


def plan_partition(view: LogView, wanted: ScanRequest, ranges: Ranges) -> list[ScanTask]:
    """Return the tasks that read the range of one partition; without slices if it is empty.

    Damage that is met on the way (FAILFAST) is met by the reader, after all that is in front of it.
    """
    try:
        return _plan_partition(view, wanted, ranges)
    except CorruptRecordError as error:
        before = view.before_damage(error) if view.damage is None else None
        if before is None:
            raise
        try:
            return _plan_up_to(before, error, wanted, ranges)
        except LogStorageError:  # such as a start behind the damage
            raise error from None


def _plan_up_to(
    before: LogView, error: CorruptRecordError, wanted: ScanRequest, ranges: Ranges
) -> list[ScanTask]:
    """Return the tasks of a log that ends in front of damage, and the error where it is wanted."""
    end_spec = spec_for(wanted.end, before.topic_partition, LATEST)
    if isinstance(end_spec, int) and end_spec > before.log_end_offset:
        end_spec = LATEST
    *others, last = _plan_partition(before, replace(wanted, end=end_spec), ranges)
    asked = resolve_end(end_spec, before, HIGHEST_OFFSET)
    if wanted.where is not None:
        _, asked = wanted.where.clip(last.end_offset, asked)
    segment, chosen = before.segments[-1], before.directory.segments
    if asked <= last.end_offset or (chosen and segment.base_offset not in chosen):
        return [*others, last]
    position = error.position or 0
    damaged = SegmentSlice(
        segment.file_path(),
        last.end_offset,
        None,
        position,
        position,
        runs_to_segment_end=False,
        file_id=segment.file_id,
        defect=error.reason,
        is_corrupt=True,
    )
    return [*others, replace(last, slices=(*last.slices, damaged))]


def _plan_partition(view: LogView, wanted: ScanRequest, ranges: Ranges) -> list[ScanTask]:
    committed = wanted.isolation is IsolationLevel.READ_COMMITTED
    known = ranges.get(view.directory.path)
    start, end = range_before = _resolved_range(view, wanted) if known is None else known
    is_from_earliest = wanted.begins_with_log and (
        spec_for(wanted.start, view.topic_partition, EARLIEST) == EARLIEST
    )
    origin = start  # where the read begins decides which of two overlapping segments it gets
    if wanted.where is not None:
        start, end = wanted.where.clip(start, end)
    if known is not None:
        view, start, end = _still_held(view, start, end, fails=wanted.fail_on_data_loss)
    aborted = find_aborted_transactions(view, start, end, origin=origin) if committed else ()
    # A file that was given is read as it is, whatever lies in the segments before it.
    parts = (
        [(low, low, high) for low, high in chosen_offset_ranges(view, start, end)]
        if view.directory.segments
        else [(origin, start, end)]
    )
    tasks = [
        ScanTask(
            view.directory,
            _late_enough(segment_slices(view, low, high, origin=origin), wanted.where),
            low,
            high,
            aborted,
            wanted.fail_on_data_loss,
            wanted.where,
            committed,
            earliest_offset=range_before[0] if is_from_earliest else None,
            access=view.access,
        )
        for origin, first, last in parts
        for low, high in offset_ranges(first, last, wanted.max_records_per_partition)
    ]
    ranges[view.directory.path] = range_before
    return tasks


def _resolved_range(view: LogView, wanted: ScanRequest) -> tuple[int, int]:
    """Return where the range of one partition begins and ends, whatever a filter says."""
    start_spec = spec_for(wanted.start, view.topic_partition, EARLIEST)
    end_spec = spec_for(wanted.end, view.topic_partition, LATEST)
    if not wanted.fail_on_data_loss:
        start_spec, end_spec = clip(start_spec, view), clip(end_spec, view)
    latest = view.log_end_offset
    if wanted.isolation is IsolationLevel.READ_COMMITTED:
        # An end that is an offset keeps the search from damage after it.
        is_offset = isinstance(end_spec, int) and (
            start_spec == EARLIEST or isinstance(start_spec, int)
        )
        limit = resolve_end(end_spec, view, latest) if is_offset else None
        latest = find_last_stable_offset(view, limit)
    start = resolve_start(start_spec, view, latest)
    end = resolve_end(end_spec, view, latest)
    if start > end and end != latest:
        reason = (
            f"the range of {view.topic_partition} starts at offset {start}, after its end offset "
            f"{end}; the log holds {offsets_text(view.log_start_offset, view.log_end_offset)}"
        )
        raise LogStorageError(reason)
    return start, min(end, latest)


def _still_held(view: LogView, start: int, end: int, *, fails: bool) -> tuple[LogView, int, int]:
    """Return what the log still holds of a range planned before, and a view that has it."""
    if start >= end or view.log_start_offset <= start <= end <= view.log_end_offset:
        return view, start, end
    view = view.refreshed()  # the range may have been found by a later look
    first, last = view.log_start_offset, view.log_end_offset
    if first <= start <= end <= last:
        return view, start, end
    lost = (start, min(first, end)) if start < first else (max(start, last), end)
    reason = (
        f"{printable_location(view.directory.path)}: records of {view.topic_partition} are lost "
        f"since the log was planned to be read, {offsets_text(*lost)}; it holds "
        f"{offsets_text(first, last)} now, which a new scan reads"
    )
    if fails:
        raise LogStorageError(reason)
    _LOGGER.warning("%s", reason)
    return view, max(start, first), min(end, last)


_MOST_OFFSETS = 1 << 22
"""Offsets scanned at once: those of their records are held in memory."""


def plan_last_records(
    views: Sequence[LogView], wanted: ScanRequest, count: int, read_offsets: OffsetReader
) -> list[ScanTask]:
    """Return the tasks that read the last ``count`` records of each partition."""
    tasks: list[ScanTask] = []
    for view in views:
        whole = plan_tasks([view], wanted)
        if not whole or view.unreadable is not None:
            tasks += whole
            continue
        whole[-1].ensure_end_is_found()
        start, end = whole[0].start_offset, whole[-1].end_offset
        first = _find_first(view, wanted, (start, end), count, read_offsets)
        tasks += plan_tasks([view], _narrowed(wanted, first, end))
    return tasks


def _find_first(
    view: LogView,
    wanted: ScanRequest,
    bounds: tuple[int, int],
    count: int,
    read_offsets: OffsetReader,
) -> int:
    """Return the offset of the ``count``-th last record; the first offset if there are fewer."""
    start, high = bounds
    missing, size = count, count
    while high > start:
        low = max(start, high - min(size, _MOST_OFFSETS))
        last: deque[pa.Array] = deque()
        rows = 0
        for task in plan_tasks([view], _narrowed(wanted, low, high)):
            for batch in read_offsets(task):
                last.append(batch.column("offset"))
                rows += batch.num_rows
                while rows - len(last[0]) >= missing:
                    rows -= len(last.popleft())
        if rows >= missing:
            return int(last[0][rows - missing].as_py())
        missing -= rows
        high, size = low, size * 2
    return start


def _narrowed(wanted: ScanRequest, low: int, high: int) -> ScanRequest:
    where = record_filter.RecordFilter(min_offset=low, max_offset=high - 1)
    return replace(wanted, where=record_filter.conjunction(wanted.where, where))
