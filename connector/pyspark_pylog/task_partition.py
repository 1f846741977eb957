"""The input partition of a read of records: planned on the driver, read by one Spark task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from pyspark_pylog.errors import advice_added
from pyspark_pylog.worker_process import prepare_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog import ScanTask
    from pyspark_pylog.options import ReadOptions


@dataclass(frozen=True, slots=True)
class TaskPartition(InputPartition):
    """The `ScanTask`s of one Spark task, read one after the other."""

    tasks: tuple[ScanTask, ...]


def read_task_partition(
    partition: InputPartition, schema: pa.Schema, options: ReadOptions, **advice: str
) -> Iterator[pa.RecordBatch]:
    """Yield the records of one input partition; none for Spark's stand-in for "no partitions".

    ``advice`` goes to `advice_added`.
    """
    if not isinstance(partition, TaskPartition):
        return
    prepare_worker()
    with advice_added(**advice):
        for task in partition.tasks:
            yield from task.read(
                schema,
                mode=options.mode,
                max_decompressed_bytes=options.max_decompressed_bytes,
            )
