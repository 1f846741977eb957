"""A Python data source that does no work: the ceiling of what Spark takes from Python.

It yields one Arrow batch again and again, built before the first is asked for, or cycles through
`DISTINCT_BYTES` of them, so that memory is read and not only the processor's cache. Spark's Python
workers import this file, so it imports nothing heavy that they do not have anyway. As ours does, it
exempts modules from the collection of garbage: both run in the same workers, so that otherwise it
would depend on who ran first in one whether a task costs 30 ms more.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import cycle

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_pylog.spark_workarounds.worker_process import prepare_worker

NAME = "prebuilt"
DISTINCT_BYTES = 256 << 20
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
ARROW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)


def _batch(partition: int, rows: int, value_bytes: int) -> pa.RecordBatch:
    offsets = np.arange(rows, dtype=np.int64)
    columns = [
        pa.array([b"u0001234"] * rows, pa.binary()),
        pa.array([b"x" * value_bytes] * rows, pa.binary()),
        pa.array([NAME] * rows, pa.string()),
        pa.array(np.full(rows, partition, dtype=np.int32)),
        pa.array(offsets),
        pa.array(offsets).cast(pa.timestamp("us", tz="UTC")),
        pa.array(np.zeros(rows, dtype=np.int32)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)


@lru_cache(maxsize=1)
def _distinct_batches(rows: int, value_bytes: int) -> list[pa.RecordBatch]:
    """Return `DISTINCT_BYTES` of batches; kept by the worker, so that warming up builds them."""
    one = _batch(0, rows, value_bytes)
    return [_copied(one) for _ in range(-(-DISTINCT_BYTES // one.nbytes))]


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch in memory of its own."""
    arrays = [
        pa.Array.from_buffers(
            column.type,
            len(column),
            [each and pa.py_buffer(each.to_pybytes()) for each in column.buffers()],
        )
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


class PrebuiltReader(DataSourceReader):
    """Yields `records` rows over `partitions` partitions, `batch_rows` at a time."""

    def __init__(
        self, records: int, partitions: int, batch_rows: int, value_bytes: int, cycles: int
    ) -> None:
        self._records = records
        self._partitions = partitions
        self._batch_rows = batch_rows
        self._value_bytes = value_bytes
        self._cycles = cycles

    def partitions(self) -> list[InputPartition]:
        """Return one input partition a topic partition."""
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield this partition's share of the rows."""
        prepare_worker()
        number = int(partition.value)
        left = self._records // self._partitions + (number < self._records % self._partitions)
        batches = (
            _distinct_batches(self._batch_rows, self._value_bytes)
            if self._cycles
            else [_batch(number, self._batch_rows, self._value_bytes)]
        )
        for batch in cycle(batches):
            if left <= 0:
                return
            yield batch if left >= batch.num_rows else batch.slice(0, left)
            left -= batch.num_rows


class PrebuiltDataSource(DataSource):
    """``format("prebuilt")`` with options records, partitions, batchrows, valuebytes, cycles."""

    @classmethod
    def name(cls) -> str:
        """Return the name that ``format`` takes."""
        return NAME

    def schema(self) -> str:
        """Return the columns of Spark's ``kafka`` source."""
        return SCHEMA

    def reader(self, schema: StructType) -> PrebuiltReader:
        """Return the reader; the schema is fixed."""
        del schema
        names = ("records", "partitions", "batchrows", "valuebytes", "cycles")
        return PrebuiltReader(*(int(self.options[name]) for name in names))
