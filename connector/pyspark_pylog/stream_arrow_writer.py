"""The base class of a stream writer that takes Arrow batches, with a stand-in for Spark 4.0.

Spark 4.0 has a class for batch writers of that kind alone, and gives Arrow batches to whatever
inherits from it, a stream writer included; any other gets rows, ten times as slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:
        from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

        class DataSourceStreamArrowWriter(DataSourceArrowWriter, DataSourceStreamWriter):
            """A stream writer that Spark 4.0 takes for one of Arrow batches."""


__all__ = ["DataSourceStreamArrowWriter"]
