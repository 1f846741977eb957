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

from pyspark_pylog.batch_reader import COUNT_SCHEMA, PylogBatchReader, RecordCountReader
from pyspark_pylog.catalog_table import (
    ensure_no_secrets,
    is_created,
    options_of_statement,
    options_to_read,
    with_options,
)
from pyspark_pylog.errors import advice_added
from pyspark_pylog.options import RECORDS, LoadOptions, WriteOptions
from pyspark_pylog.schemas import read_schema, table_schema, typed_latest
from pyspark_pylog.spark_workarounds.stand_ins import RefusedStreamReader
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker
from pyspark_pylog.stream_reader import PylogStreamReader
from pyspark_pylog.table_reader import PylogTableReader
from pyspark_pylog.writers import PylogBatchWriter, PylogStreamWriter

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
    """Kafka log directories as a Spark data source."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        given = dict(options.items())
        self._is_created = is_created(given)
        self._given = options_of_statement(given) if self._is_created else given
        self._warned_of: set[str] = set()

    @classmethod
    def name(cls) -> str:
        """Return the name for ``spark.read.format``."""
        return "pylog"

    def schema(self) -> StructType:
        """Return the columns that the options ask for, after a look at the directory."""
        prepare_worker()
        options = self._options_of_load()
        if self._is_created:
            ensure_no_secrets(self._given)
        # At load(), where the user still sees which call was wrong, and not at the first action.
        with advice_added():
            options.directory().select(**options.choice)
        if options.table != RECORDS:
            whole = table_schema(options.table, options.columns, typed_latest(options))
        else:
            whole = read_schema(options)
        if self._is_created:
            return with_options(whole, self._given)
        return COUNT_SCHEMA if options.counts_records else whole

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader for a schema: ours, or a part of it that the user gave."""
        options = LoadOptions.parse(options_to_read(self._given, schema))
        self._warn_of(options.without_effect)
        if options.table != RECORDS:
            return PylogTableReader(options, schema)
        if options.counts_records:
            return RecordCountReader(options)
        return PylogBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the stream reader, or one that says why there is none."""
        try:
            options = LoadOptions.parse(options_to_read(self._given, schema), is_stream=True)
            reader = PylogStreamReader(options, schema)
        except ValueError as error:
            return RefusedStreamReader(str(error))
        self._warn_of(options.without_effect)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """Return the writer of one job, or raise `ValueError` for rows that cannot be written."""
        if overwrite:
            raise ValueError(_NO_OVERWRITE)
        options = WriteOptions.parse(self._given)
        self._warn_of(options.without_effect)
        return PylogBatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802 - Spark's
        """Return the writer of one micro-batch's tasks, or of its commit."""
        if overwrite:
            raise ValueError(_NO_COMPLETE)
        options = WriteOptions.parse(self._given, is_stream=True)
        if options.without_effect not in _WARNED_OF_STREAMS:  # not in each micro-batch
            _WARNED_OF_STREAMS.add(options.without_effect)
            self._warn_of(options.without_effect)
        return PylogStreamWriter(options, schema)

    def _options_of_load(self) -> LoadOptions:
        """Return the options of a batch or, where only that makes sense, of a stream.

        At ``load()`` Spark does not say which it is; both readers look at the options again.
        """
        try:
            of_stream = LoadOptions.parse(self._given, is_stream=True)
        except ValueError:
            options = LoadOptions.parse(self._given)
            self._warn_of(options.without_effect)
            return options
        self._warn_of(of_stream.without_effect)
        try:
            return LoadOptions.parse(self._given)
        except ValueError:
            return of_stream

    def _warn_of(self, without_effect: tuple[str, ...]) -> None:
        """Warn of options once a ``load()``: Spark pickles this after asking for the schema."""
        names = [name for name in without_effect if name not in self._warned_of]
        if names:
            _LOGGER.warning("pylog: options without effect here: %s", ", ".join(names))
            self._warned_of.update(names)
