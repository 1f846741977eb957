"""A Python sink that does no work: the floor of what Spark takes to hand rows to Python.

Spark's Python workers import this file, so it imports nothing heavy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_pylog.spark_workarounds.worker_process import prepare_worker

NAME = "dropping"


@dataclass(frozen=True, slots=True)
class Dropped(WriterCommitMessage):
    """How many rows a task was given."""

    rows: int


class DroppingWriter(DataSourceArrowWriter):
    """Takes Arrow batches and drops them."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Dropped:
        """Count the rows."""
        prepare_worker()  # as ours does, since both run in the same workers
        return Dropped(sum(batch.num_rows for batch in iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing."""


class DroppingDataSource(DataSource):
    """``format("dropping")``, without options."""

    @classmethod
    def name(cls) -> str:
        """Return the name that ``format`` takes."""
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> DroppingWriter:  # noqa: FBT001 - Spark's
        """Return the writer; any columns will do."""
        del schema, overwrite
        return DroppingWriter()
