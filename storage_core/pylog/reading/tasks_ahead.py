"""Small tasks that threads read before they are asked for, so that several are read side by side.

A task that hardly fills a window gives threads nothing to share. So each thread reads a whole one,
as one thread does, while the caller's takes their rows in order. A large task is left to
`pylog.reading.windows_ahead` when its turn comes, and a tiny one to the caller's thread: opening
its files is most of its work, for which threads only wait for each other. In modes that skip damage
tasks are read one after the other, since what they leave out is listed in the order in which it is
found.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from pylog.reading.head_start import HeadStart
from pylog.reading.window_ahead import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pylog.reading.reader import TaskReader
    from pylog.reading.scan_task import ScanTask
    from pylog.scheduling.worker_threads import WorkerThreads

    MakeReader = Callable[[ScanTask, WorkerThreads | None], TaskReader]

_SMALL_TASK_BYTES = 1 << 22
_TINY_TASK_BYTES = 1 << 20


def read_side_by_side(
    tasks: Sequence[ScanTask], workers: WorkerThreads, make_reader: MakeReader
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of tasks in order; one more is in flight than there are threads.

    Parameters
    ----------
    tasks
        From one scan of mode FAILFAST.
    workers
        The threads.
    make_reader
        Returns the reader of a task, which uses the threads that it is given.

    Raises
    ------
    LogStorageError
        As of `TaskReader.record_batches`, once all rows before it have been given.
    """
    waiting: deque[HeadStart[pa.RecordBatch] | TaskReader] = deque()
    coming = iter(tasks)
    try:
        while True:
            while len(waiting) <= workers.count and (task := next(coming, None)) is not None:
                if task.size_bytes < _TINY_TASK_BYTES:
                    waiting.append(make_reader(task, None))
                elif task.size_bytes > _SMALL_TASK_BYTES or not workers.are_here:
                    waiting.append(make_reader(task, workers))
                else:
                    make = partial(_batches_of, task, make_reader)
                    waiting.append(HeadStart(workers, make, MOST_BYTES))
            if not waiting:
                return
            first = waiting.popleft()
            yield from first if isinstance(first, HeadStart) else first.record_batches()
    finally:
        for each in waiting:
            if isinstance(each, HeadStart):
                each.abandon()


def _batches_of(task: ScanTask, make_reader: MakeReader) -> Iterator[pa.RecordBatch]:
    # With a new reader each time: a forked child begins once more what a thread had begun.
    return make_reader(task, None).record_batches()
