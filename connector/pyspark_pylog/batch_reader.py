"""The batch reader: a topic-partition directory is an input partition; many small ones share some.

Spark pickles the reader before it calls `partitions`, so whatever a task needs travels in its
input partition. ``partitions`` runs once a ``load()`` (Spark 4.1 and later): a DataFrame is a
snapshot of the log at its first action. In Spark 4.0 it runs at each action.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

import pylog
from pylog import ReadMode, RecordFilter
from pyspark_pylog.errors import advice_added
from pyspark_pylog.options import MILLISECONDS
from pyspark_pylog.schemas import (
    check_columns,
    check_damaged_rows_fit,
    check_record_schema,
    read_schema,
)
from pyspark_pylog.spark_workarounds.pushed_filters import (
    PushFilters,
    is_pruning,
    warn_if_never_pushed,
)
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker
from pyspark_pylog.task_packing import pack
from pyspark_pylog.typed_columns import as_decoded, in_sparks_types, spark_type, typed_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.jobs import ScanTask
    from pylog.results import LogDirectory, TypedRecords
    from pyspark_pylog.options import LoadOptions

_LOGGER = logging.getLogger(__name__)
COUNT = "records"
COUNT_SCHEMA = StructType([StructField(COUNT, LongType())])
_SPLIT_TIMES = 4
"""Counting a gigabyte takes less than two of Spark's tasks cost, so that it is split less."""
_MOST_NAMES = 20
TIMESTAMP = "timestamp"
_REASON = "_corrupt_record"
_MOST_MILLISECONDS = (2**63 - 1) // 1000
ADVICE_ON_TIMES = ": read with option timestampUnit=milliseconds"
_TOO_FAR = f"ms is more than a TIMESTAMP holds{ADVICE_ON_TIMES}"


@dataclass(frozen=True, slots=True)
class TaskPartition(InputPartition):
    """The `ScanTask`s of one Spark task, read one after the other."""

    tasks: tuple[ScanTask, ...]


def read_task_partition(
    partition: InputPartition,
    schema: pa.Schema,
    options: LoadOptions,
    typed: TypedRecords | None = None,
    **advice: str,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of one input partition; none for Spark's stand-in for "no partitions"."""
    if not isinstance(partition, TaskPartition):
        return
    prepare_worker()
    finish = TimestampColumn.of(schema, options)
    wanted = schema if finish is None else finish.decoded
    with advice_added(**advice):
        for task in partition.tasks:
            batches = task.read(
                wanted if typed is None else as_decoded(wanted, typed),
                mode=options.mode,
                max_decompressed_bytes=options.max_decompressed_bytes,
                typed=typed,
            )
            if typed is not None:
                batches = in_sparks_types(batches, wanted, typed)
            yield from batches if finish is None else map(finish.convert, batches)


class PylogBatchReader(DataSourceReader):
    """Plans on the driver, reads on executors."""

    def __init__(self, options: LoadOptions, schema: StructType) -> None:
        check_read_schema(options, schema)
        self._options = options
        self._typed = typed_records(options)
        self._schema = arrow_schema(schema, self._typed)
        warn_if_never_pushed(options.pushdown)
        self._pushed = PushFilters()
        self.__dict__["pushFilters"] = self._pushed  # see `PushFilters`

    def partitions(self) -> list[InputPartition]:
        """Return input partitions for the topic-partitions that have anything to read."""
        prepare_worker()
        options = self._options
        with advice_added():
            directory = options.directory()
            warn_if_no_topic_matches(directory, options.subscribe_pattern)
            planned = pylog.scan(
                directory,
                **options.choice,
                start=options.starting,
                end=options.ending,
                isolation=options.isolation,
                fail_on_data_loss=options.fail_on_data_loss,
                mode=options.mode,
                max_partition_bytes=options.max_partition_bytes,
                min_partitions=options.min_partitions,
                max_records_per_partition=options.max_records_per_partition,
                where=self._where(),
                use_indexes=options.use_indexes,
                leave_page_cache=options.leave_page_cache,
            )
            tasks = planned.plan()
        if self._typed is not None:
            tasks = [each for each in tasks if self._typed.reads(each.topic_partition.topic)]
        groups = pack(
            tasks,
            options,
            lambda task: task.size_bytes,
            lambda task: task.end_offset - task.start_offset,
        )
        return [TaskPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one input partition."""
        typed = self._typed
        if is_pruning(self._options.pushdown):
            typed = self._pushed.narrowed(typed)
        return read_task_partition(partition, self._schema, self._options, typed)

    def _where(self) -> RecordFilter | None:
        """Return the predicates of the options and of Spark that are applied here."""
        options = self._options
        where = RecordFilter() if options.where is None else options.where
        if is_pruning(options.pushdown):
            where &= self._pushed.where(options.formats)
        if where == RecordFilter():
            return None
        return replace(
            where,
            timestamp_disorder=options.timestamp_disorder,
            trusts_batch_timestamps=options.trust_batch_timestamps,
        )


def check_read_schema(options: LoadOptions, schema: StructType) -> None:
    """Raise ``ValueError`` unless records fit into ``schema``, and the options make that one."""
    check_record_schema(schema, options)
    check_columns(options, schema)
    if options.mode is ReadMode.PERMISSIVE:
        check_damaged_rows_fit(schema)


def arrow_schema(schema: StructType, typed: TypedRecords | None = None) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for ``schema``."""
    import pyarrow as pa  # noqa: PLC0415

    make = pylog.record_schema if typed is None else typed.schema
    demanded = make(schema.fieldNames())
    for place, field in enumerate(demanded):
        of_spark = schema[field.name]
        kind = field.type
        if typed is not None and field.name in typed.columns:
            kind = spark_type(kind).arrow
        if field.name == TIMESTAMP and isinstance(of_spark.dataType, LongType):
            kind = pa.int64()
        demanded = demanded.set(place, field.with_type(kind).with_nullable(of_spark.nullable))
    return demanded


class RecordCountReader(DataSourceReader):
    """Plans as `PylogBatchReader` does; its tasks count what that one's would read."""

    def __init__(self, options: LoadOptions) -> None:
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


def warn_if_no_topic_matches(directory: LogDirectory, pattern: str | None) -> None:
    """Log a warning that names the topics there are, if ``pattern`` is given and matches none."""
    if pattern is None or directory.select(pattern=pattern):
        return
    topics = list(directory.topics)
    names = ", ".join(topics[:_MOST_NAMES])
    if len(topics) > _MOST_NAMES:
        names += f" and {len(topics) - _MOST_NAMES} more"
    _LOGGER.warning(
        "pylog: option subscribePattern is %r, which matches no topic, so there are no rows; "
        "topics found: %s (internal ones are read by subscribe or assign alone)",
        pattern,
        names or "none",
    )


class TimestampColumn(NamedTuple):
    """Makes of milliseconds what option ``timestampUnit``, or the mode, asks for.

    A TIMESTAMP holds microseconds, and milliseconds may be a number too large for it: of a producer
    that took another unit. Mode PERMISSIVE makes null of such a one, with the reason in
    ``_corrupt_record``.
    """

    decoded: pa.Schema  # of the records as they are read
    wanted: pa.Schema

    @classmethod
    def of(cls, wanted: pa.Schema, options: LoadOptions) -> TimestampColumn | None:
        """Return what converts records; None where they are read as they are wanted."""
        place = wanted.get_field_index(TIMESTAMP)
        is_converted = options.timestamp_unit == MILLISECONDS or options.mode is ReadMode.PERMISSIVE
        if place < 0 or not is_converted:
            return None
        [field] = pylog.record_schema([TIMESTAMP], timestamp_unit="ms")
        return cls(wanted.set(place, field.with_nullable(wanted.field(place).nullable)), wanted)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of records with the column as it is wanted."""
        import pyarrow as pa  # noqa: PLC0415 - workers alone need it
        import pyarrow.compute as pc  # noqa: PLC0415

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        milliseconds = columns[TIMESTAMP].view(pa.int64())
        if self.wanted.field(TIMESTAMP).type == pa.int64():
            columns[TIMESTAMP] = milliseconds
            return pa.RecordBatch.from_arrays([*columns.values()], schema=self.wanted)
        is_far = pc.or_(
            pc.greater(milliseconds, _MOST_MILLISECONDS), pc.less(milliseconds, -_MOST_MILLISECONDS)
        )
        near = pc.if_else(is_far, pa.scalar(None, pa.int64()), milliseconds)
        columns[TIMESTAMP] = pc.multiply(near, 1000).cast(self.wanted.field(TIMESTAMP).type)
        if _REASON in columns:
            reason = pc.binary_join_element_wise(
                "timestamp", milliseconds.cast(pa.string()), _TOO_FAR, " "
            )
            columns[_REASON] = pc.if_else(
                is_far.fill_null(pa.scalar(value=False)), reason, columns[_REASON]
            )
        return pa.RecordBatch.from_arrays([*columns.values()], schema=self.wanted)
