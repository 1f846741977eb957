"""The batch reader: a topic-partition directory is an input partition; many small ones share some.

Spark pickles the reader before it calls `partitions`, so whatever a task needs travels in its
input partition. ``partitions`` runs once a ``load()`` (Spark 4.1 and later): a DataFrame is a
snapshot of the log at its first action. In Spark 4.0 it runs at each action.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

import pylog
from pylog import ReadMode, RecordFilter
from pyspark_pylog.errors import advice_added
from pyspark_pylog.options import MILLISECONDS
from pyspark_pylog.schemas import (
    check_columns,
    check_damaged_rows_fit,
    check_schema,
    read_schema,
    record_columns,
)
from pyspark_pylog.spark_workarounds.pushed_filters import (
    PushFilters,
    is_pruning,
    warn_if_never_pushed,
)
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pylog.jobs import ScanTask
    from pylog.results import LogDirectory
    from pyspark_pylog.options import LoadOptions


_LOGGER = logging.getLogger(__name__)


# Which topic-partitions share an input partition: many small ones do, as Spark packs small files.
#
# One task of a Python source costs Spark tens of milliseconds, however little it reads. Where a log
# directory holds thousands of small topic-partitions, that is nearly all of a query's time.


MANY = 200
"""More tasks than these are packed, into no fewer: the process that plans does not know how many
cores the session has, and few sessions have more."""

OPENING_COST_BYTES = 4 << 20
"""What opening a topic-partition counts for, as Spark's ``spark.sql.files.openCostInBytes``."""

_Item = TypeVar("_Item")


def pack(
    items: Sequence[_Item],
    options: LoadOptions,
    size_of: Callable[[_Item], int],
    offsets_of: Callable[[_Item], int],
    *,
    opening_cost_bytes: int = OPENING_COST_BYTES,
) -> Iterator[tuple[_Item, ...]]:
    """Yield ``items`` in groups, one for each input partition. Order is kept.

    As Spark's ``FilePartition.maxSplitBytes``: a group is as large as makes `MANY` groups (in mode
    "auto"), or ``min_partitions`` if that is more, and not larger than ``max_partition_bytes``,
    opening costs included, or ``max_records_per_partition`` offsets. A single item may be.
    """
    least = options.min_partitions or 1
    if options.pack_partitions == "auto":
        least = max(least, MANY)
    if options.pack_partitions == "false" or len(items) <= least:
        yield from ((item,) for item in items)
        return
    weights = [size_of(item) + opening_cost_bytes for item in items]
    most_weight = min(options.max_partition_bytes, -(-sum(weights) // least))
    most_offsets = options.max_records_per_partition
    group: list[_Item] = []
    weight = offsets = given = 0
    for place, item in enumerate(items):
        weight += weights[place]
        offsets += offsets_of(item)
        # Those that follow could each be a group of their own, and that would still be too few.
        is_needed = given + len(items) - place < least
        is_over = weight > most_weight or (most_offsets is not None and offsets > most_offsets)
        if group and (is_over or is_needed):
            yield tuple(group)
            given += 1
            group, weight, offsets = [], weights[place], offsets_of(item)
        group.append(item)
    yield tuple(group)


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
    partition: InputPartition, schema: pa.Schema, options: LoadOptions, **advice: str
) -> Iterator[pa.RecordBatch]:
    """Yield the records of one input partition; none for Spark's stand-in for "no partitions"."""
    if not isinstance(partition, TaskPartition):
        return
    prepare_worker()
    finish = TimestampColumn.of(schema, options)
    with advice_added(**advice):
        for task in partition.tasks:
            batches = task.read(
                schema if finish is None else finish.decoded,
                mode=options.mode,
                max_decompressed_bytes=options.max_decompressed_bytes,
            )
            yield from batches if finish is None else map(finish.convert, batches)


class PylogBatchReader(DataSourceReader):
    """Plans on the driver, reads on executors."""

    def __init__(self, options: LoadOptions, schema: StructType) -> None:
        check_read_schema(options, schema)
        self._options = options
        self._schema = arrow_schema(schema)
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
        groups = pack(
            tasks,
            options,
            lambda task: task.size_bytes,
            lambda task: task.end_offset - task.start_offset,
        )
        return [TaskPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one input partition."""
        return read_task_partition(partition, self._schema, self._options)

    def _where(self) -> RecordFilter | None:
        """Return the predicates that leave out records here, whoever gave them."""
        options = self._options
        where = RecordFilter() if options.where is None else options.where
        if is_pruning(options.pushdown):
            where &= self._pushed.where
        if where == RecordFilter():
            return None
        return replace(
            where,
            timestamp_disorder=options.timestamp_disorder,
            trusts_batch_timestamps=options.trust_batch_timestamps,
        )


def check_read_schema(options: LoadOptions, schema: StructType) -> None:
    """Raise ``ValueError`` unless records fit into ``schema``, and the options make that one."""
    check_schema(schema, record_columns(options))
    check_columns(options, schema)
    if options.mode is ReadMode.PERMISSIVE:
        check_damaged_rows_fit(schema)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for ``schema``."""
    import pyarrow as pa  # noqa: PLC0415

    demanded = pylog.record_schema(schema.fieldNames())
    for place, field in enumerate(demanded):
        of_spark = schema[field.name]
        kind = field.type
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
