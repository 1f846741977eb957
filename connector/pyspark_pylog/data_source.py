"""The entry points that Spark calls: name, schema, reader.

Spark makes an instance at ``load()``, in a process of its own on the driver's machine, pickles it
and unpickles it wherever it plans. Only what is light is imported at the head of this module; the
reader brings Arrow and Numba with it and is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from pylog.scan.log_directory import open_directory
from pyspark_pylog.options import ReadOptions
from pyspark_pylog.spark_schema import read_schema

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


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
        options = ReadOptions.parse(self._given)
        # At load(), where the user still sees which call was wrong, and not at the first action.
        directory = open_directory(*options.paths)
        directory.select(
            topics=options.subscribe, assign=options.assign, pattern=options.subscribe_pattern
        )
        return read_schema(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader for a schema: ours, or a part of it that the user gave."""
        options = ReadOptions.parse(self._given)
        batch_reader = importlib.import_module("pyspark_pylog.batch_reader")
        reader: DataSourceReader = batch_reader.PylogBatchReader(options, schema)
        return reader
