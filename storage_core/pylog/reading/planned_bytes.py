"""Bytes that reads are going to take, and have taken: for bars of progress."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from pylog.locations import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from pylog.reading.task_range import TaskRange
    from pylog.record.batch_scan import Window


class PlannedBytes:
    """How many of the bytes to be read lie before the end of a record batch.

    Parameters
    ----------
    tasks
        Of the scan: `Scan.plan`.

    Attributes
    ----------
    COLUMNS
        What the scan must read for `before_end_of`.
    total
        Bytes of ``.log`` files that the tasks read.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("topic", "partition", "batch")

    def __init__(self, tasks: Iterable[TaskRange]) -> None:
        self.total = 0
        # By topic, partition and segment: what position 0 of the file would have been preceded by.
        self._bases: dict[tuple[str, int, str], int] = {}
        for task in tasks:
            for each in task.slices:
                key = (*task.topic_partition, name_of(each.path))
                self._bases[key] = self.total - each.start_position
                self.total += each.size_bytes

    def before_end_of(self, batch: pa.RecordBatch) -> int:
        """Return the bytes up to the end of the batch on disk that gave the last row."""
        last = batch.slice(batch.num_rows - 1)
        origin = last.column("batch")[0].as_py()
        key = (
            last.column("topic")[0].as_py(),
            last.column("partition")[0].as_py(),
            origin["segment"],
        )
        return self._bases[key] + int(origin["position"]) + int(origin["sizeInBytes"])


class ScannedBytes:
    """Sums over the windows of some reads. Any number of threads may add to them."""

    def __init__(self) -> None:
        self.size_bytes = self.batches = self.records = self.uncounted_batches = 0
        self.on_change: Callable[[int], None] | None = None
        self._lock = threading.Lock()

    def report_to(
        self, progress: Callable[[int, int], None] | None, plan: Callable[[], Iterable[TaskRange]]
    ) -> None:
        """Call ``progress``, if there is one, with the bytes scanned and those planned."""
        if progress is not None:
            total_bytes = sum(task.size_bytes for task in plan())
            self.on_change = lambda size_bytes: progress(size_bytes, total_bytes)

    def add(self, window: Window) -> None:
        """Count the batches of a window."""
        counts = window.headers.record_counts
        is_known = window.headers.has_possible_count
        with self._lock:
            self.size_bytes += window.size_bytes
            self.batches += counts.size
            self.records += int(counts[is_known].sum())
            self.uncounted_batches += counts.size - int(is_known.sum())
            size_bytes = self.size_bytes
        if self.on_change is not None:
            self.on_change(size_bytes)
