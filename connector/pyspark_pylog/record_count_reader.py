"""The reader behind ``pyspark_pylog.table(…).count()``: batch headers, and no record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_pylog.batch_reader import PylogBatchReader
from pyspark_pylog.errors import advice_added
from pyspark_pylog.record_counts import COUNT
from pyspark_pylog.spark_schema import read_schema
from pyspark_pylog.task_partition import TaskPartition
from pyspark_pylog.worker_process import prepare_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pyspark_pylog.options import ReadOptions


_SPLIT_TIMES = 4
"""Counting a gigabyte takes less than two of Spark's tasks cost, so that it is split less."""


class RecordCountReader(DataSourceReader):
    """Plans as `PylogBatchReader` does; its tasks count what that one's would read.

    Parameters
    ----------
    options
        Checked options of a read of records.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return input partitions of the records, fewer than a read of them has."""
        most_bytes = _SPLIT_TIMES * self._options.max_partition_bytes
        options = replace(self._options, columns=("offset",), max_partition_bytes=most_bytes)
        return PylogBatchReader(options, read_schema(options)).partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one row: how many records the partition has."""
        if not isinstance(partition, TaskPartition):  # Spark's stand-in for "no partitions"
            return
        import pyarrow as pa  # noqa: PLC0415 - looking for the data source does not need it

        prepare_worker()
        with advice_added():
            records = sum(
                task.count(
                    mode=self._options.mode,
                    max_decompressed_bytes=self._options.max_decompressed_bytes,
                )
                for task in partition.tasks
            )
        # Not by pa.array, which imports pandas wherever it is installed.
        buffers = [None, pa.py_buffer(records.to_bytes(8, "little"))]
        yield pa.RecordBatch.from_arrays(
            [pa.Array.from_buffers(pa.int64(), 1, buffers)],
            schema=pa.schema([pa.field(COUNT, pa.int64())]),
        )
