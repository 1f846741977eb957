"""The batch reader: a topic-partition directory is an input partition; many small ones share some.

Spark pickles the reader before it calls `partitions`, so whatever a task needs travels in its
input partition. ``partitions`` runs once a ``load()`` (Spark 4.1 and later): a DataFrame is a
snapshot of the log at its first action. In Spark 4.0 it runs at each action.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

import pylog
from pylog import ReadMode, RecordFilter
from pyspark_pylog.errors import advice_added
from pyspark_pylog.packing import pack
from pyspark_pylog.pattern_warning import warn_if_no_topic_matches
from pyspark_pylog.pushdown import PushFilters, is_pruning, warn_if_never_pushed
from pyspark_pylog.spark_schema import check_damaged_rows_fit, check_schema
from pyspark_pylog.task_partition import TaskPartition, read_task_partition
from pyspark_pylog.worker_process import prepare_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_pylog.options import ReadOptions


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
        The schema is not a selection of our columns, or not the one that option ``columns`` makes.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        check_read_schema(options, schema)
        self._options = options
        self._schema = arrow_schema(schema)
        warn_if_never_pushed(options.pushdown)
        self._pushed = PushFilters()
        self.__dict__["pushFilters"] = self._pushed  # see `pyspark_pylog.pushdown`

    def partitions(self) -> list[InputPartition]:
        """Return input partitions for the topic-partitions that have anything to read."""
        prepare_worker()
        options = self._options
        with advice_added():
            directory = pylog.open_directory(*options.paths, include_stray=options.include_stray)
            warn_if_no_topic_matches(directory, options.subscribe_pattern)
            planned = pylog.scan(
                directory,
                topics=options.subscribe,
                assign=options.assign,
                pattern=options.subscribe_pattern,
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
        return replace(where, timestamp_disorder=options.timestamp_disorder)


def check_read_schema(options: ReadOptions, schema: StructType) -> None:
    """Raise ``ValueError`` unless records fit into ``schema``, and the options make that one."""
    check_schema(schema)
    if options.columns not in (None, tuple(schema.fieldNames())):
        msg = (
            f"option columns says {', '.join(options.columns or ())} and the schema "
            f"{', '.join(schema.fieldNames())}; give one of them"
        )
        raise ValueError(msg)
    if options.mode is ReadMode.PERMISSIVE:
        check_damaged_rows_fit(schema)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark demands of the batches for ``schema``."""
    demanded = pylog.record_schema(schema.fieldNames())
    for place, field in enumerate(demanded):
        demanded = demanded.set(place, field.with_nullable(schema[field.name].nullable))
    return demanded
