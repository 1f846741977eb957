"""Rows of a source that an incremental run leaves out, counted: they are said, and never silent.

Rows whose column is null are never read. Rows that come later than the lag allows lie before what
is read; how many there are shows in the number of rows before that place, which the bookmark keeps.
Where updates move rows away from there at the same time, it is the least number.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from pylog_jobs.bookmark import A_DATE, INTEGER, TIMESTAMP, TIMESTAMP_NTZ
from pylog_jobs.error_text import describe
from pylog_jobs.open_transactions import PostgresTransactions, is_jdbc, option_of, query_database
from pylog_jobs.position import literal_of, plain_column, position_of, position_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.ingest_config import Source

_SQL_TYPES = {TIMESTAMP: "TIMESTAMPTZ", TIMESTAMP_NTZ: "TIMESTAMP", A_DATE: "DATE"}
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many rows a run leaves out; None where they are not counted."""

    null: int | None = None  # for good
    late: int | None = None  # for good, since the last run
    future: int = 0  # until a later run

    def to_json(self) -> dict[str, int | None]:
        """Return the keys of a summary."""
        return {"nullRows": self.null, "lateRows": self.late, "futureRows": self.future}


def count_left_out(
    spark: SparkSession,
    source: Source,
    rows: DataFrame,
    column: str,
    kind: str,
    before: int | None,
) -> tuple[int | None, int | None]:
    """Return how many rows have no position, and how many one before ``before``.

    A database counts them itself, so that no row travels; None is what it cannot count.
    """
    if is_jdbc(source):
        return _counted_by_database(spark, source, rows, column, kind, before)
    value = position_of(column, kind)
    is_before = sf.lit(False) if before is None else value < before  # noqa: FBT003 - SQL's
    wanted = sf.expr(column).isNull()
    if before is not None:
        wanted |= sf.expr(column) < literal_of(kind, before)
    [found] = rows.where(wanted).agg(sf.count_if(value.isNull()), sf.count_if(is_before)).collect()
    return int(found[0]), int(found[1])


def _counted_by_database(
    spark: SparkSession,
    source: Source,
    rows: DataFrame,
    column: str,
    kind: str,
    before: int | None,
) -> tuple[int | None, int | None]:
    name = plain_column(column, rows.columns)
    table, query = option_of(source, "dbtable"), option_of(source, "query")
    text = table if table is not None else f"({query}) AS counted_rows"
    if name is None or source.sql is not None or "{" in text:
        return None, None
    url = option_of(source, "url")
    jvm = spark._jvm
    dialects = jvm.org.apache.spark.sql.jdbc.JdbcDialects  # type: ignore[union-attr]
    quoted = dialects.get(url).quoteIdentifier(name)
    counts = [f"COUNT(*) - COUNT({quoted}) AS null_rows"]
    is_postgres = PostgresTransactions.of(spark, source) is not None
    is_counted = before is not None and (kind == INTEGER or is_postgres)
    if before is not None and is_counted:
        shown = position_text(kind, before)
        literal = shown if kind == INTEGER else f"{_SQL_TYPES[kind]} '{shown}'"
        counts.append(f"COUNT(CASE WHEN {quoted} < {literal} THEN 1 END) AS rows_before")
    try:
        found = query_database(spark, source, f"SELECT {', '.join(counts)} FROM {text}")  # noqa: S608
    except (PySparkException, Py4JJavaError) as error:
        _LOGGER.warning("rows that are left out are not counted: %s", describe(error))
        return None, None
    nulls = int(found["null_rows"])
    return nulls, 0 if before is None else int(found["rows_before"]) if is_counted else None
