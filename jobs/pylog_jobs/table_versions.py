"""A Delta or Iceberg table, read from version to version.

Delta's change data feed says which rows were inserted, and how rows are after an update. Iceberg's
incremental scan knows the rows of snapshots that append, and passes over all others: over what
MERGE, UPDATE, DELETE and INSERT OVERWRITE have written. Such a snapshot is therefore refused unless
``on_change`` says what to do with it. Deleted rows are never noticed.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import functions as sf

from pylog_jobs.bookmark import VERSION, Bookmark
from pylog_jobs.ingest_config import DELTA, READ, SKIP
from pylog_jobs.job import UsageError, describe
from pylog_jobs.position import parse_position
from pylog_jobs.read_range import ReadRange
from pylog_jobs.record_frame import (
    MissingInputError,
    how_to_install,
    query_over,
    quoted,
    read_source,
)
from pylog_jobs.source_identity import (
    HOW_TO_START_OVER,
    delta_table_id,
    ensure_same_tables,
    tables_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.ingest_config import Incremental, Source

APPEND, REPLACE = "append", "replace"
"""Operations of Iceberg's snapshots that the incremental scan reads, or that change no row."""
_NO_CHANGE_DATA = re.compile(r"DELTA_MISSING_CHANGE_DATA|change data was not\s+recorded")
_NO_VERSION = re.compile(
    r"DELTA_VERSION_NOT_FOUND|DELTA_VERSIONS_NOT_CONTIGUOUS|Cannot time travel|"
    r"DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG|FileNotFoundException|"
    r"DELTA_FILE_NOT_FOUND_DETAILED"
)
_DELTA_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_ICEBERG_COLUMNS = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
_LOGGER = logging.getLogger(__name__)


class NewVersions(NamedTuple):
    """Rows that versions of a table have added, and how far that is."""

    rows: DataFrame
    read_range: ReadRange
    about: Bookmark


class Snapshot(NamedTuple):
    """A snapshot of an Iceberg table."""

    number: int
    parent: int | None
    operation: str


def next_versions(
    spark: SparkSession,
    source: Source,
    incremental: Incremental,
    last: Bookmark | None,
    after: int | None = None,
) -> NewVersions | None:
    """Return what a table has added since the last run, or ``after`` a version; None if nothing."""
    table = _DeltaTable(spark, source) if _is_delta(source) else _IcebergTable(spark, source)
    current = table.current()
    if current is None:
        if last is not None:
            raise UsageError(f"[incremental]: {_back(table.name, last.end, 'none')}")
        return None
    tables = {table.name: table.identity()}
    ensure_same_tables(last, tables)
    start = None if last is None else last.end
    if start is None and incremental.initial is not None:
        start = parse_position(VERSION, incremental.initial)
    if after is not None:
        table.ensure_goes_on(start, after)
        start = after
    if start == current:
        if last is None or last.end == current:
            return None
        rows = table.rows_of(current).limit(0)  # --after-version names the newest one
    elif start is None:
        rows = table.rows_of(current)
    else:
        rows = table.added_rows(start, current, incremental.on_change)
    if source.sql is not None:
        rows = query_over(spark, rows, source.sql, source.markers)
    found = ReadRange(start, current, None, is_new=True)
    return NewVersions(rows, found, Bookmark(None, VERSION, current, tables=tables))


def _is_delta(source: Source) -> bool:
    return str(source.format).lower() == DELTA


def _only_path(source: Source) -> str:
    if len(source.path) != 1:
        raise UsageError("[incremental]: give one path in [source]: versions are of one table")
    return source.path[0]


def _back(name: str, was: int, now: object) -> str:
    return (
        f"table {name} has been rolled back or replaced: the last run ended with version {was}, "
        f"and the newest version is {now}. What the topic has may differ from the table; "
        f"{HOW_TO_START_OVER}"
    )


class _DeltaTable:
    def __init__(self, spark: SparkSession, source: Source) -> None:
        self._spark = spark
        self._source = source
        self.name = _only_path(source)

    def current(self) -> int:
        """Return the newest version."""
        try:
            statement = f"DESCRIBE HISTORY delta.{quoted(self.name)} LIMIT 1"
            [row] = self._spark.sql(statement).collect()
        except ParseException as error:
            raise UsageError(
                "[source]: Spark does not know Delta's statements: set spark.sql.extensions to "
                "io.delta.sql.DeltaSparkSessionExtension, and "
                f"{how_to_install(self._spark, self._source, '')}"
            ) from error
        except PySparkException as error:
            raise MissingInputError(f"[source]: {describe(error)}") from error
        return int(row["version"])

    def identity(self) -> str:
        return delta_table_id(self._spark, self.name)

    def ensure_goes_on(self, start: int | None, after: int) -> None:
        current = self.current()
        if not (0 if start is None else start) <= after <= current:
            raise UsageError(
                f"--after-version {after}: expected a version from {start or 0} on, where the last "
                f"run ended, to {current}, the newest"
            )

    def rows_of(self, version: int) -> DataFrame:
        return _read(self._spark, self._source, {"versionAsOf": str(version)})

    def added_rows(self, start: int, current: int, on_change: str) -> DataFrame:
        """Return rows that are new, and rows as they are after an update."""
        del on_change  # the feed says it all
        if current < start:
            raise UsageError(f"[incremental]: {_back(self.name, start, current)}")
        options = {
            "readChangeFeed": "true",
            "startingVersion": str(start + 1),
            "endingVersion": str(current),
        }
        try:
            rows = _planned(_read(self._spark, self._source, options))
        except (PySparkException, Py4JJavaError) as error:
            raise self._explained(error, start, current) from error
        return rows.where("_change_type IN ('insert', 'update_postimage')").drop(*_DELTA_COLUMNS)

    def _explained(self, error: Exception, start: int, current: int) -> Exception:
        text = f"{describe(error)} {error}"
        if _NO_CHANGE_DATA.search(text):
            version = self._first_without_change_data(start, current, text)
            return UsageError(
                f"[incremental]: version {version} of table {self.name} has no change data, since "
                "delta.enableChangeDataFeed was not set. Its rows cannot be told from older ones. "
                f"--after-version {version} continues after it and leaves its changes out; "
                f"{HOW_TO_START_OVER}"
            )
        if _NO_VERSION.search(text):
            return UsageError(
                f"[incremental]: version {start + 1} of table {self.name} does not exist any more: "
                f"its log or its files have been removed ({describe(error)}). {HOW_TO_START_OVER}"
            )
        return error

    def _first_without_change_data(self, start: int, current: int, text: str) -> int:
        """Return the version that an error names, or else the first one of which reading fails."""
        named = re.search(r"change data was not\s+recorded for version \[?(\d+)", text)
        if named is not None:
            return int(named[1])
        for version in range(start + 1, current + 1):
            options = {
                "readChangeFeed": "true",
                "startingVersion": str(version),
                "endingVersion": str(version),
            }
            try:
                _planned(_read(self._spark, self._source, options))
            except (PySparkException, Py4JJavaError):
                return version
        return start + 1


class _IcebergTable:
    def __init__(self, spark: SparkSession, source: Source) -> None:
        self._spark = spark
        self._source = source
        self.name = _only_path(source)

    def current(self) -> int | None:
        """Return the newest snapshot, None if the table has none."""
        rows = self._metadata("refs").where("name = 'main'").collect()
        return int(rows[0]["snapshot_id"]) if rows else None

    def identity(self) -> str:
        [found] = tables_of(_read(self._spark, self._source, {})).values()
        return found

    def ensure_goes_on(self, start: int | None, after: int) -> None:
        current = self.current()
        lineage_of(self._snapshots(), current, after, self.name)
        if start is not None:
            lineage_of(self._snapshots(), after, start, self.name)

    def rows_of(self, version: int) -> DataFrame:
        return _read(self._spark, self._source, {"snapshot-id": str(version)})

    def added_rows(self, start: int, current: int, on_change: str) -> DataFrame:
        """Return the rows that snapshots append; others as ``on_change`` says."""
        lineage = lineage_of(self._snapshots(), current, start, self.name)
        changes = changes_of(lineage)
        between = {"start-snapshot-id": str(start), "end-snapshot-id": str(current)}
        if changes and on_change == READ:
            return self._changed_rows(between)
        if changes and on_change != SKIP:
            first = changes[0]
            before = first.parent
            raise UsageError(
                f"[incremental]: snapshot {first.number} of table {self.name} has operation "
                f"{first.operation} (MERGE, UPDATE, DELETE or INSERT OVERWRITE), and what it wrote "
                f"is no append. Set on_change = {READ!r} to read rows as they are after it, or "
                f"{SKIP!r} to leave them out; the rows up to snapshot {before} are not written yet"
            )
        for each in changes:
            _LOGGER.warning(
                "snapshot %d of table %s (%s) is left out: on_change = %r",
                *(each.number, self.name, each.operation, SKIP),
            )
        return _read(self._spark, self._source, between)

    def _changed_rows(self, between: Mapping[str, str]) -> DataFrame:
        """Return inserted rows, without those that a rewritten file only carries over."""
        try:
            rows = _planned(self._metadata("changes", between))
        except (PySparkException, Py4JJavaError) as error:
            raise UsageError(
                f"[incremental]: the changes of table {self.name} cannot be read: "
                f"{describe(error)}; {HOW_TO_START_OVER}"
            ) from error
        kind, *rest = _ICEBERG_COLUMNS
        inserted, deleted = (
            rows.where(sf.col(kind) == word).drop(kind) for word in ("INSERT", "DELETE")
        )
        return inserted.exceptAll(deleted).drop(*rest)

    def _metadata(self, table: str, options: Mapping[str, str] | None = None) -> DataFrame:
        separator = "#" if "/" in self.name else "."
        whole = replace(
            self._source,
            path=(f"{self.name}{separator}{table}",),
            sql=None,
            schema=None,
            options={**self._source.options, **(options or {})},
        )
        return read_source(self._spark, whole, is_stream=False)

    def _snapshots(self) -> dict[int, Snapshot]:
        rows = self._metadata("snapshots").select("snapshot_id", "parent_id", "operation").collect()
        return {row[0]: Snapshot(row[0], row[1], row[2]) for row in rows}


def lineage_of(
    snapshots: Mapping[int, Snapshot], current: int | None, start: int, name: str
) -> list[Snapshot]:
    """Return the snapshots after ``start`` up to the current one, the oldest first.

    `UsageError`: the current one does not descend from ``start``, or snapshots between are gone.
    """
    found: list[Snapshot] = []
    at = current
    while at != start:
        if at is None or at not in snapshots:
            if start in snapshots or at is None:
                raise UsageError(f"[incremental]: {_back(name, start, current)}")
            raise UsageError(
                f"[incremental]: snapshot {at} of table {name} has expired, and rows that it or "
                f"later ones added since snapshot {start} cannot be told any more; "
                f"{HOW_TO_START_OVER}"
            )
        found.append(snapshots[at])
        at = snapshots[at].parent
    return found[::-1]


def changes_of(lineage: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the snapshots that change rows otherwise than by appending."""
    return [each for each in lineage if each.operation not in (APPEND, REPLACE)]


def _planned(rows: DataFrame) -> DataFrame:
    """Return rows whose versions and files the table's format has looked for by now."""
    rows._jdf.queryExecution().executedPlan()
    return rows


def _read(spark: SparkSession, source: Source, options: Mapping[str, str]) -> DataFrame:
    whole = replace(source, options={**source.options, **options}, sql=None)
    return read_source(spark, whole, is_stream=False)
