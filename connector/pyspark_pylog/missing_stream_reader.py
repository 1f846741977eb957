"""A clear error for ``spark.readStream.format("pylog")``, since streams cannot be read yet.

Spark asks for a stream reader when a query starts, and stops it in a ``finally``. A source that
raises there, or has no such method, ends in an ``UnboundLocalError`` of Spark's own that hides the
cause. So there is a reader, and the first question that Spark has for it is answered by the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

_NO_STREAMS = (
    'format("pylog") does not read streams yet; use spark.read in place of spark.readStream. To '
    "read only what is new since the last read, set option startingOffsets to the highest offset "
    'of each partition that it gave, plus 1, as in {"orders":{"0":43}}'
)


class MissingStreamReader(DataSourceStreamReader):
    """Raises `NotImplementedError` whatever it is asked."""

    def initialOffset(self) -> NoReturn:
        """Raise the error: what Spark 4.2 and later ask first."""
        raise NotImplementedError(_NO_STREAMS)

    def latestOffset(self, start: object = None, limit: object = None) -> NoReturn:
        """Raise the error: what Spark 4.1 asks first, and a query that continues."""
        raise NotImplementedError(_NO_STREAMS)

    def partitions(self, start: object, end: object) -> NoReturn:
        """Raise the error."""
        raise NotImplementedError(_NO_STREAMS)

    def read(self, partition: InputPartition) -> NoReturn:
        """Raise the error."""
        raise NotImplementedError(_NO_STREAMS)
