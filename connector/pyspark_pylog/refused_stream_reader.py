"""The error of a stream that cannot be read, raised where Spark shows it.

Spark makes a stream reader when a query starts, and stops it in a ``finally``. A source that raises
there ends in an ``UnboundLocalError`` of Spark's own that hides the cause. So there is a reader,
and the first question that Spark has for it is answered by the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition


class RefusedStreamReader(DataSourceStreamReader):
    """Raises ``ValueError`` whatever it is asked.

    Parameters
    ----------
    reason
        What is wrong with the options or the schema, and what to write instead.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def initialOffset(self) -> NoReturn:
        """Raise the error: what Spark 4.2 and later ask first."""
        raise ValueError(self._reason)

    def latestOffset(self, start: object = None, limit: object = None) -> NoReturn:
        """Raise the error: what Spark 4.0 and 4.1 ask first, and a query that continues."""
        raise ValueError(self._reason)

    def partitions(self, start: object, end: object) -> NoReturn:
        """Raise the error."""
        raise ValueError(self._reason)

    def read(self, partition: InputPartition) -> NoReturn:
        """Raise the error."""
        raise ValueError(self._reason)
