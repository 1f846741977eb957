"""What identifies the tables that a source reads, so that one that was made again is noticed.

==================  ==========================================================
Delta               the id of the table
Iceberg             its UUID
Spark's catalogs    when the table was created
PostgreSQL          the object id of a ``dbtable`` (`pylog_jobs.open_transactions`)
==================  ==========================================================

A folder of files and other databases have nothing of the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from pylog_jobs.job import UsageError
from pylog_jobs.record_frame import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.bookmark import Bookmark

HOW_TO_START_OVER = (
    "--full reads everything again and replaces what the topic has; or give another job_id, whose "
    "first run reads all rows, or those from `initial` on, and keeps what the topic has"
)


def tables_of(frame: DataFrame) -> dict[str, str]:
    """Return what identifies each table that a DataFrame reads, by its name."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return dict(_identities(leaves.apply(number) for number in range(leaves.size())))


def _identities(leaves: Iterator[JavaObject]) -> Iterator[tuple[str, str]]:
    for leaf in leaves:
        kind = leaf.getClass().getSimpleName()
        if kind == "LogicalRelation" and leaf.catalogTable().isDefined():
            yield _of_catalog(leaf.catalogTable().get())
        elif kind == "HiveTableRelation":
            yield _of_catalog(leaf.tableMeta())
        elif kind == "DataSourceV2Relation":
            table = leaf.table()
            try:
                yield str(table.name()), str(table.table().uuid())
            except Py4JError:  # not Iceberg's
                continue


def _of_catalog(table: JavaObject) -> tuple[str, str]:
    return table.identifier().unquotedString(), str(table.createTime())


def delta_table_id(spark: SparkSession, path: str) -> str:
    """Return the id of a Delta table, which another table at the same path does not have."""
    [row] = spark.sql(f"DESCRIBE DETAIL delta.{quoted(path)}").collect()
    return str(row["id"])


def ensure_same_tables(last: Bookmark | None, found: Mapping[str, str]) -> None:
    """Raise `UsageError` if a table is not the one that the bookmark is of."""
    for name, was in ({} if last is None else last.tables).items():
        if name in found and found[name] != was:
            raise UsageError(
                f"[incremental]: table {name} has been made again since the last run (it was {was} "
                f"and is {found[name]}), so the bookmark says nothing about its rows; "
                f"{HOW_TO_START_OVER}"
            )
