"""The entry points that Spark calls: name, schema, readers, writers.

Spark makes an instance at ``load()``, in a process of its own on the driver's machine, pickles it
and unpickles it wherever it plans. Spark imports this module whenever it looks for any Python data
source, so this module and those that it imports at their top need no other package. Whatever reads
directories and records (Arrow, Numba) is reached through the names of `pylog`, which are loaded at
their first use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

import pylog
from pyspark_pylog.batch_reader import PylogBatchReader
from pyspark_pylog.batch_writer import PylogBatchWriter
from pyspark_pylog.errors import advice_added
from pyspark_pylog.missing_stream_reader import MissingStreamReader
from pyspark_pylog.options import RECORDS, ReadOptions
from pyspark_pylog.record_count_reader import RecordCountReader
from pyspark_pylog.record_counts import COUNT_SCHEMA
from pyspark_pylog.spark_schema import read_schema
from pyspark_pylog.stream_writer import PylogStreamWriter
from pyspark_pylog.table_reader import PylogTableReader
from pyspark_pylog.table_schema import table_schema
from pyspark_pylog.write_options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

_NO_OVERWRITE = (
    'format("pylog") appends to topics and replaces nothing: write .mode("append"), or INSERT '
    "INTO; to begin a topic anew, delete it before with pylog.delete_topic(directory, topic), or "
    "write to a new one"
)
_NO_COMPLETE = (
    'format("pylog") appends to topics and replaces nothing: write .outputMode("append"); to '
    "append the whole result of each trigger, use foreachBatch"
)

_LOGGER = logging.getLogger(__name__)

_WARNED_OF_STREAMS: set[tuple[str, ...]] = set()
"""What this process has warned of when it made writers for micro-batches."""


class PylogDataSource(DataSource):
    """Kafka log directories as a Spark data source.

    Parameters
    ----------
    options
        As given to ``spark.read``; checked as soon as Spark asks for a schema or a reader.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options.items())
        self._has_warned = False

    @classmethod
    def name(cls) -> str:
        """Return the name for ``spark.read.format``."""
        return "pylog"

    def schema(self) -> StructType:
        """Return the columns that the options ask for, after a look at the directory.

        Raises
        ------
        ValueError
            An option is unknown or its value makes no sense.
        LogStorageError
            The path holds no Kafka log, or not the topics asked for.
        """
        options = self._options()
        # At load(), where the user still sees which call was wrong, and not at the first action.
        with advice_added():
            directory = pylog.open_directory(*options.paths, include_stray=options.include_stray)
            directory.select(
                topics=options.subscribe, assign=options.assign, pattern=options.subscribe_pattern
            )
        if options.table != RECORDS:
            return table_schema(options.table, options.columns)
        whole = read_schema(options)
        return COUNT_SCHEMA if options.counts_records else whole

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader for a schema: ours, or a part of it that the user gave."""
        options = self._options()
        if options.table != RECORDS:
            return PylogTableReader(options, schema)
        if options.counts_records:
            return RecordCountReader(options)
        return PylogBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader that says that streams cannot be read yet."""
        return MissingStreamReader()

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """Return the writer of one job, or raise `ValueError` for rows that cannot be written."""
        if overwrite:
            raise ValueError(_NO_OVERWRITE)
        options = WriteOptions.parse(self._given)
        self._warn(options.without_effect)
        return PylogBatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802 - Spark's
        """Return the writer of one micro-batch's tasks, or of its commit."""
        if overwrite:
            raise ValueError(_NO_COMPLETE)
        options = WriteOptions.parse(self._given, is_stream=True)
        if options.without_effect not in _WARNED_OF_STREAMS:  # not in each micro-batch
            _WARNED_OF_STREAMS.add(options.without_effect)
            self._warn(options.without_effect)
        return PylogStreamWriter(options, schema)

    def _options(self) -> ReadOptions:
        options = ReadOptions.parse(self._given)
        self._warn(options.without_effect)
        return options

    def _warn(self, without_effect: tuple[str, ...]) -> None:
        # Once a load(): Spark pickles this instance after it has asked for the schema.
        if without_effect and not self._has_warned:
            names = ", ".join(without_effect)
            _LOGGER.warning("pylog: options without effect here: %s", names)
            self._has_warned = True
