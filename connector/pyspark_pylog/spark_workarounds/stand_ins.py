"""What later versions of Spark have, with stand-ins for earlier ones, and a reader that can fail.

Spark 4.0 and 4.1 ask for the latest offset without saying where the batch starts or how much it may
hold, so nothing can be limited there. Spark 4.0 gives Arrow batches to whatever inherits from its
class for batch writers, a stream writer included; any other gets rows, ten times as slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL = True
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        HAS_ADMISSION_CONTROL = True
    except ImportError:
        HAS_ADMISSION_CONTROL = False

        class ReadLimit:
            """Never passed by this Spark."""

        class ReadAllAvailable(ReadLimit):
            """Never passed by this Spark."""

        class ReadMaxRows(ReadLimit):
            """Never passed by this Spark."""

        class SupportsTriggerAvailableNow:
            """Not known to this Spark, which runs such a query as one batch."""


if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:
        from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

        class DataSourceStreamArrowWriter(DataSourceArrowWriter, DataSourceStreamWriter):
            """A stream writer that Spark 4.0 takes for one of Arrow batches."""


__all__ = [
    "HAS_ADMISSION_CONTROL",
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "RefusedStreamReader",
    "SupportsTriggerAvailableNow",
]


class RefusedStreamReader(DataSourceStreamReader):
    """Raises ``ValueError`` whatever it is asked."""

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
