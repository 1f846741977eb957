"""Partitions and positions to `ScanTask`s: which bytes hold the offsets asked for.

Reads side files, index entries and a few batch headers; READ_COMMITTED may scan headers
(`pylog.scan.aborted`). No record is decoded but for timestamp look-ups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError
from pylog.model import IsolationLevel
from pylog.scan.aborted import find_aborted_transactions, find_last_stable_offset
from pylog.scan.offset_spec import EARLIEST, LATEST, clip, resolve_end, resolve_start, spec_for
from pylog.scan.scan_task import ScanTask, SegmentSlice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.scan.log_view import LogView


@dataclass(frozen=True, slots=True)
class ScanRange:
    """What is asked of every partition; see `pylog.scan.scan.scan`."""

    start: object = EARLIEST
    end: object = LATEST
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    fail_on_data_loss: bool = True


def plan_tasks(views: Sequence[LogView], wanted: ScanRange) -> list[ScanTask]:
    """Return one task a partition that has anything to read, in the order of ``views``.

    Raises
    ------
    LogStorageError
        A position cannot be resolved, or a partition's start lies behind its end.
    """
    tasks = [plan_partition(view, wanted) for view in views]
    return [task for task in tasks if task.slices]


def plan_partition(view: LogView, wanted: ScanRange) -> ScanTask:
    """Return the task that reads the range of one partition; without slices if it is empty."""
    committed = wanted.isolation is IsolationLevel.READ_COMMITTED
    latest = find_last_stable_offset(view) if committed else view.log_end_offset
    start_spec = spec_for(wanted.start, view.topic_partition, EARLIEST)
    end_spec = spec_for(wanted.end, view.topic_partition, LATEST)
    if not wanted.fail_on_data_loss:
        start_spec, end_spec = clip(start_spec, view), clip(end_spec, view)
    start = resolve_start(start_spec, view, latest)
    end = resolve_end(end_spec, view, latest)
    if start > end and end != latest:
        reason = (
            f"the range of {view.topic_partition} starts at offset {start}, behind its end {end} "
            f"(exclusive); the log holds offsets {view.log_start_offset} to "
            f"{view.log_end_offset} (exclusive)"
        )
        raise LogStorageError(reason)
    end = min(end, latest)
    aborted = find_aborted_transactions(view, start, end) if committed else ()
    return ScanTask(view.topic_partition, _slices(view, start, end), start, end, aborted)


def _slices(view: LogView, start_offset: int, end_offset: int) -> tuple[SegmentSlice, ...]:
    """Return the byte ranges of every segment that may hold offsets of the range."""
    if start_offset >= end_offset:
        return ()
    slices = []
    first = view.find_segment(start_offset) or 0
    for index in range(first, len(view.segments)):
        segment = view.segments[index]
        if segment.base_offset >= end_offset:
            break
        following = view.next_base_offset(index)
        segment_end = view.segment_end(index)
        start, end = 0, segment_end
        if segment_end and (
            segment.base_offset < start_offset or _ends_inside(following, end_offset)
        ):
            start, end = _positions(view, index, start_offset, end_offset)
        if start >= end:
            continue
        runs_to_end = following is not None and end == segment_end
        slices.append(
            SegmentSlice(
                segment.file_path(), segment.base_offset, following, start, end, runs_to_end
            )
        )
    return tuple(slices)


def _ends_inside(following: int | None, end_offset: int) -> bool:
    return following is None or end_offset < following


def _positions(view: LogView, index: int, start_offset: int, end_offset: int) -> tuple[int, int]:
    """Return the bytes from the batch that holds the first offset to after the last one's."""
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    with segment.open_log() as source:
        start, end = 0, segment_end
        if segment.base_offset < start_offset:
            first = segment.find_batch(source, start_offset, segment_end)
            start = segment_end if first is None else first.position
        covers_the_end = end_offset >= view.log_end_offset
        if _ends_inside(view.next_base_offset(index), end_offset) and not covers_the_end:
            last = segment.find_batch(source, end_offset - 1, segment_end)
            end = segment_end if last is None else last.end_position
    return start, end
