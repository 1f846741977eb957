"""The reader of ``option("table", …)``: each topic-partition is in one input partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

import pylog
from pylog.errors import LogDirectoryError, TimestampOverflowError
from pylog.results import DamageReport
from pyspark_pylog.batch_reader import warn_if_no_topic_matches
from pyspark_pylog.errors import advice_added
from pyspark_pylog.schemas import (
    arrow_table_schema,
    check_columns,
    check_table_schema,
    typed_latest,
)
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker
from pyspark_pylog.task_packing import pack
from pyspark_pylog.typed_columns import as_decoded, in_sparks_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pylog.results import LogView, MetadataTable
    from pyspark_pylog.options import LoadOptions

_OF_DAMAGE = (
    "look at another replica, set option mode=DROPMALFORMED, which leaves the damage out, or leave "
    "the partition out by subscribe, assign"
)


@dataclass(frozen=True, slots=True)
class ViewPartition(InputPartition):
    """The logs of one Spark task, as the driver found them."""

    views: tuple[LogView, ...]


class DirectoriesPartition(InputPartition):
    """One Spark task, for rows that are about no partition."""

    def __init__(self) -> None:
        super().__init__("log directories")


class PylogTableReader(DataSourceReader):
    """Lists directories on the driver, reads headers and side files on executors."""

    def __init__(self, options: LoadOptions, schema: StructType) -> None:
        self._typed = typed_latest(options)
        check_table_schema(options.table, schema, self._typed)
        check_columns(options, schema)
        self._options = options
        self._schema = arrow_table_schema(options.table, schema, self._typed)

    def partitions(self) -> list[InputPartition]:
        """Return input partitions for the topic-partitions; many small ones share some."""
        prepare_worker()
        options = self._options
        with advice_added(_OF_DAMAGE):
            directory = options.directory()
            has_directory_rows = pylog.jobs.metadata_table(options.table).has_directory_rows
            is_empty = (
                has_directory_rows and not len(directory) and not any(options.choice.values())
            )
            views = [] if is_empty else directory.select(**options.choice)
            pylog.jobs.check_specs(options.ending, [view.topic_partition for view in views])
        warn_if_no_topic_matches(directory, options.subscribe_pattern)
        if options.mode.skips_damage:
            views = [view.with_damage(DamageReport()) for view in views]
        views.sort(key=lambda view: view.topic_partition)
        groups = pack(views, options, _size_bytes, lambda _: 0)
        found: list[InputPartition] = [ViewPartition(group) for group in groups]
        if has_directory_rows:
            found.insert(0, DirectoriesPartition())
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one input partition."""
        if not isinstance(partition, ViewPartition | DirectoriesPartition):
            return  # Spark's stand-in for "no partitions"
        prepare_worker()
        with advice_added(_OF_DAMAGE):
            options = self._options
            table = self._table()
            table, rows_of_directories = table.bound(options.paths, **options.choice)
            if isinstance(partition, DirectoriesPartition):
                for batch in rows_of_directories():
                    yield batch.select(self._schema.names).cast(self._schema)
                return
            for view in partition.views:
                rows = table.rows_of(view)
                if self._typed is not None:
                    rows = in_sparks_types(rows, self._in_milliseconds(), self._typed)
                yield from _as_spark_demands(rows, self._schema, view)

    def _table(self) -> MetadataTable:
        options = self._options
        most = options.max_decompressed_bytes
        if self._typed is not None:
            return pylog.jobs.decoded_latest(
                *(self._typed, as_decoded(self._in_milliseconds(), self._typed), options.mode),
                end=options.ending,
                max_decompressed_bytes=most,
            )
        return pylog.jobs.metadata_table(
            options.table,
            check_keys=options.check_keys,
            end=options.ending,
            max_decompressed_bytes=most,
        )

    def _in_milliseconds(self) -> pa.Schema:
        """Return the schema of the batches with timestamps of records as they are stored."""
        import pyarrow as pa  # noqa: PLC0415 - looking for the data source does not need it

        at = self._schema.get_field_index("timestamp")
        if at < 0:
            return self._schema
        return self._schema.set(at, pa.field("timestamp", pa.timestamp("ms", "UTC")))


def _size_bytes(view: LogView) -> int:
    """Return the bytes of a log; 0 for one that cannot be listed, which its task will say."""
    try:
        return view.size_bytes
    except LogDirectoryError:
        return 0


def _as_spark_demands(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, view: LogView
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of ``schema`` with its types, in its order."""
    import pyarrow as pa  # noqa: PLC0415 - looking for the data source does not need it

    for batch in batches:
        columns = []
        for field in schema:
            try:
                columns.append(batch.column(field.name).cast(field.type))
            except pa.ArrowInvalid as error:
                reason = (
                    f"a {field.name} does not fit into 64-bit microseconds; leave the column out "
                    f"(columns), partition {view.topic_partition}"
                )
                raise TimestampOverflowError(reason, view.directory.path) from error
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
