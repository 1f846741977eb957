"""What Spark 4.2 and later ask of a stream reader, with stand-ins for earlier versions.

Spark 4.0 and 4.1 ask for the latest offset without saying where the batch starts or how much it may
hold, so nothing can be limited there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


__all__ = [
    "HAS_ADMISSION_CONTROL",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]
