"""How far a scan is, in bytes of those that it planned to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pylog.locations import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pylog.reading.scan_task import ScanTask


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

    def __init__(self, tasks: Iterable[ScanTask]) -> None:
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
