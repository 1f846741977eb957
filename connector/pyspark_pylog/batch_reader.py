"""The batch reader: one topic-partition directory is one input partition.

Spark pickles the reader before it calls `partitions`, so whatever a task needs travels in its
input partition. ``partitions`` runs once a ``load()`` (Spark 4.1 and later): a DataFrame is a
snapshot of the log at its first action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pylog.columnar.arrow_schema import record_schema
from pylog.model import TopicPartition
from pylog.positions import Timestamp
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import open_directory
from pylog.reading.reader import TaskReader
from pylog.reading.record_filter import RecordFilter
from pylog.reading.scan import scan
from pyspark_pylog.errors import advice_added
from pyspark_pylog.pushdown import PushFilters, is_pruning
from pyspark_pylog.pushed_filters import intersection
from pyspark_pylog.spark_schema import check_damaged_rows_fit, check_schema
from pyspark_pylog.worker_process import exempt_modules_from_collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

    from pylog.positions import OffsetSpec, OffsetSpecs
    from pylog.reading.scan_task import ScanTask
    from pyspark_pylog.options import ReadOptions
    from pyspark_pylog.position_options import Position, Positions


@dataclass(frozen=True, slots=True)
class TaskPartition(InputPartition):
    """The `ScanTask` of one Spark task."""

    task: ScanTask


class PylogBatchReader(DataSourceReader):
    """Plans on the driver, reads on executors.

    Parameters
    ----------
    options
        Checked options.
    schema
        The columns that Spark expects, in order.

    Raises
    ------
    ValueError
        The schema is no selection of our columns, or not the one that option ``columns`` makes.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        check_schema(schema)
        if options.columns not in (None, tuple(schema.fieldNames())):
            msg = (
                f"option columns says {', '.join(options.columns or ())} and the schema "
                f"{', '.join(schema.fieldNames())}; give one of them"
            )
            raise ValueError(msg)
        self._options = options
        self._schema = arrow_schema(schema)
        if options.mode is ReadMode.PERMISSIVE:
            check_damaged_rows_fit(schema)
        self._pushed = PushFilters()
        self.__dict__["pushFilters"] = self._pushed  # see `pyspark_pylog.pushdown`

    def partitions(self) -> list[InputPartition]:
        """Return one input partition for each topic-partition that has anything to read."""
        options = self._options
        with advice_added():
            directory = open_directory(*options.paths, include_stray=options.include_stray)
            planned = scan(
                directory,
                topics=options.subscribe,
                assign=options.assign,
                pattern=options.subscribe_pattern,
                start=to_specs(options.starting),
                end=to_specs(options.ending),
                isolation=options.isolation,
                fail_on_data_loss=options.fail_on_data_loss,
                mode=options.mode,
                max_partition_bytes=options.max_partition_bytes,
                min_partitions=options.min_partitions,
                max_records_per_partition=options.max_records_per_partition,
                where=self._where(),
                use_indexes=options.use_indexes,
            )
            return [TaskPartition(task) for task in planned.plan()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one input partition."""
        if not isinstance(partition, TaskPartition):  # Spark's stand-in for "no partitions"
            return
        with advice_added():
            reader = TaskReader(
                partition.task,
                self._schema,
                mode=self._options.mode,
                max_decompressed_bytes=self._options.max_decompressed_bytes,
            )
            yield from reader.record_batches()
        exempt_modules_from_collection()

    def _where(self) -> RecordFilter | None:
        """Return the predicates that leave out records here, whoever gave them."""
        options = self._options
        fields = dict(options.where or {})
        if is_pruning(options.pushdown):
            fields = intersection(fields, self._pushed.fields)
        if not fields:
            return None
        return RecordFilter(**fields, timestamp_disorder=options.timestamp_disorder)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for ``schema``."""
    return pa.schema(
        [
            field.with_nullable(schema[field.name].nullable)
            for field in record_schema(schema.fieldNames())
        ]
    )


def to_specs(positions: Positions) -> OffsetSpecs:
    """Return positions from options as the library's specs."""
    if isinstance(positions, dict):
        return {
            TopicPartition(*key) if isinstance(key, tuple) else key: _to_spec(position)
            for key, position in positions.items()
        }
    return _to_spec(positions)  # type: ignore[arg-type]


def _to_spec(position: Position) -> OffsetSpec:
    if isinstance(position, tuple):
        _, milliseconds, if_missing = position
        return Timestamp(milliseconds, if_missing)
    return position
