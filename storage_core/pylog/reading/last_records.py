"""Where the last records of a range begin.

Offsets do not tell: markers of transactions, aborted records, the gaps that compaction leaves and a
filter all lie between. So records are counted from the end, a range of offsets at a time, each
twice as long as the one after it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from pylog.reading.planner import ScanRange, plan_tasks
from pylog.reading.record_filter import RecordFilter, conjunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pylog.reading.log_view import LogView
    from pylog.reading.scan_task import ScanTask

    OffsetReader = Callable[[ScanTask], Iterator[pa.RecordBatch]]

_MOST_OFFSETS = 1 << 22
"""Offsets looked through at once: those of their records are held in memory."""


def plan_last_records(
    views: Sequence[LogView], wanted: ScanRange, count: int, read_offsets: OffsetReader
) -> list[ScanTask]:
    """Return the tasks that read the last ``count`` records of each partition.

    Parameters
    ----------
    views, wanted
        What is read, as of `plan_tasks`.
    count
        How many records of each partition; all of a partition that has fewer.
    read_offsets
        Reads a task's column ``offset``.

    Raises
    ------
    LogStorageError
        As of `plan_tasks`, and what ``read_offsets`` raises of the ranges that it is asked for.
    """
    tasks: list[ScanTask] = []
    for view in views:
        whole = plan_tasks([view], wanted)
        if not whole:
            continue
        start, end = whole[0].start_offset, whole[-1].end_offset
        first = _find_first(view, wanted, (start, end), count, read_offsets)
        tasks += plan_tasks([view], _narrowed(wanted, first, end))
    return tasks


def _find_first(
    view: LogView,
    wanted: ScanRange,
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


def _narrowed(wanted: ScanRange, low: int, high: int) -> ScanRange:
    """Return the part of what is wanted that lies in ``[low, high)``."""
    where = RecordFilter(min_offset=low, max_offset=high - 1)
    return replace(wanted, where=conjunction(wanted.where, where))
