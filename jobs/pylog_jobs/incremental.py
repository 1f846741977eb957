"""A source that is read a piece at a time: from its bookmark to what is newest, late rows included.

How a bookmark moves, and why no row is written twice, stands in `pylog_jobs.bookmark`. Here its
positions are found and compared by Spark.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

import pylog
from pylog_jobs.bookmark import (
    A_DATE,
    INTEGER,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VERSION,
    Bookmark,
    BookmarkError,
    ReadRange,
    plan_range,
    start_after,
)
from pylog_jobs.config_file import placeholders_of, replace_placeholders
from pylog_jobs.error_text import describe
from pylog_jobs.ingest_config import DELTA, Microseconds
from pylog_jobs.job import UsageError, say_in_ui
from pylog_jobs.record_frame import (
    JSON_OPTIONS,
    MissingInputError,
    how_to_install,
    query_over,
    quoted,
    read_source,
)
from pylog_jobs.record_write import DIGEST, DIGEST_BYTES, POSITION
from pylog_jobs.run_window import BOOKMARK_NAMES, FROM, TO, instant_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pylog_jobs.ingest_config import Incremental, IngestConfig, Source

WHOLE_ROW = "*"
"""First in an identity of all columns, of which equal rows are numbered."""
_HOW_TO_FORGET = (
    'once no row comes late any more, run with lag = "0s", which forgets them as soon as there is '
    "a newer row, or give --full"
)
_JDBC = "jdbc"
_PREFER_NTZ = "preferTimestampNTZ"
_MOST_CLOCK_CHANGE_US = 3 * 3_600_000_000
_MOST_AHEAD_OF_UTC_US = 14 * 3_600_000_000
_DAY_US = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_AGO = re.compile(r"(\d+) ?(s|m|h|d|w)(?:econds?|inutes?|ours?|ays?|eeks?)?")
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_LAST_DAY = 2_932_896  # 9999-12-31
_ENDS = {
    INTEGER: (-(2**63), 2**63 - 1),
    A_DATE: (-719_162, _LAST_DAY),
    TIMESTAMP: (-719_162 * _DAY_US, _LAST_DAY * _DAY_US),
    TIMESTAMP_NTZ: (-719_162 * _DAY_US, _LAST_DAY * _DAY_US),
}
"""What {from} and {to} stand for where there is no limit."""

_LOGGER = logging.getLogger(__name__)


class Piece(NamedTuple):
    """What one run reads."""

    rows: DataFrame  # with `POSITION` and `DIGEST` if rows are remembered
    carried: tuple[str, ...]  # which of these it has
    read_range: ReadRange
    about: Bookmark  # with the rows that the last one remembers

    @property
    def shown(self) -> dict[str, str | None]:
        """The range as summaries have it."""
        return shown_range(self.about.kind, self.read_range)


@dataclass(frozen=True, slots=True)
class LastRun:
    """What the ledger knows of the job."""

    number: int = -1
    bookmark: Bookmark | None = None


def last_run(config: IngestConfig, *, is_full: bool) -> LastRun:
    """Return the newest run of the job; one that starts over has a number and no bookmark."""
    newest = config.target.write_job().newest_run()
    if newest is None:
        return LastRun()
    if is_full:
        return LastRun(newest.batch_id)
    if newest.fingerprint != config.target.fingerprint or newest.bookmark is None:
        raise UsageError(
            f"[incremental]: job {config.target.job_id!r} has read up to its bookmark from another "
            "source, query or column, or to another topic; give another job_id, or --full"
        )
    try:
        return LastRun(newest.batch_id, Bookmark.from_text(newest.bookmark))
    except BookmarkError as error:
        msg = f"[incremental]: job {config.target.job_id!r}: {error}; --full starts over"
        raise UsageError(msg) from error


def next_piece(spark: SparkSession, config: IngestConfig, last: Bookmark | None) -> Piece | None:
    """Return what is to be read now; None if there is nothing new."""
    incremental = config.incremental
    if incremental is None:
        return None
    if incremental.is_by_version:
        return _next_versions(spark, config.source, incremental, last)
    return _NextRows(spark, config.source, incremental, last).piece()


def shown_range(kind: str, read_range: ReadRange) -> dict[str, str | None]:
    """Return where a range starts and ends (exclusive; of versions the last one)."""
    start = None if read_range.start is None else position_text(kind, read_range.start)
    return {"from": start, "to": position_text(kind, read_range.end)}


class _NextRows:
    def __init__(
        self,
        spark: SparkSession,
        source: Source,
        incremental: Incremental,
        last: Bookmark | None,
    ) -> None:
        self._spark = spark
        self._source = _without_session_zone(source)
        self._incremental = incremental
        self._last = last
        self._frame: DataFrame | None = None
        # What {from} and {to} mean depends on the type, so the type is asked of an unlimited read.
        whole = self._read(None, None) if last is None else self._read(last.kind, None)
        self._kind = _kind_of(whole, str(incremental.column))
        if last is not None and last.kind != self._kind:
            raise UsageError(
                f"[incremental]: {incremental.column} has type {self._kind}, and the bookmark is "
                f"of type {last.kind}; give another job_id, or --full"
            )

    def _read(self, kind: str | None, limits: tuple[int | None, int | None] | None) -> DataFrame:
        texts = [self._source.sql or "", *self._source.options.values()]
        if not {*BOOKMARK_NAMES} & {name for text in texts for name in placeholders_of(text)}:
            # One read for all: of files, one listing.
            if self._frame is None:
                self._frame = read_source(self._spark, self._source, is_stream=False)
            return self._frame
        if kind is None:
            return self._read_of_any_kind()
        start, end = limits or (None, None)
        first, last = _ENDS[kind]
        values = {
            FROM: position_text(kind, first if start is None else start),
            TO: position_text(kind, last if end is None else end),
        }
        return read_source(self._spark, with_range(self._source, values), is_stream=False)

    def _read_of_any_kind(self) -> DataFrame:
        """Return an unlimited read while the kind is unknown: by the first kind that fits."""
        *kinds, last = (TIMESTAMP, INTEGER, A_DATE)
        for kind in kinds:
            try:
                frame = self._read(kind, None)
                if _kind_of(frame, str(self._incremental.column)).startswith(kind):
                    return frame
            except MissingInputError:
                raise
            except (PySparkException, Py4JJavaError, UsageError) as error:
                _LOGGER.debug("{from} is no %s: %s", kind, describe(error))
        return self._read(last, None)

    def piece(self) -> Piece | None:
        incremental, last = self._incremental, self._last
        lag = self._lag()
        initial = self._position("initial", incremental.initial)
        upper = self._upper()
        start = initial if last is None else start_after(last, lag)
        newest, reached = self._newest(start, upper)
        planned = plan_range(last, initial=initial, lag=lag, upper=upper, newest=reached)
        if newest is not None and upper is not None and newest >= upper:
            _LOGGER.info(
                "rows up to %s wait: a run ends at %s",
                *(position_text(self._kind, newest), position_text(self._kind, upper)),
            )
        if planned is None:
            return None
        rows = self._within(
            self._read(self._kind, (planned.start, planned.end)), planned.start, planned.end
        )
        identity = self._identity(rows) if lag else ()
        types = self._types(rows, identity)
        about = Bookmark(
            incremental.column, self._kind, planned.end, identity=identity, types=types
        )
        if last is not None:
            about = replace(about, positions=last.positions, digests=last.digests)
        if not lag:
            return Piece(rows, (), planned, about)
        rows = _with_digest(rows.withColumn(POSITION, self._value()), identity)
        if last is not None and planned.start is not None and planned.start < last.end:
            rows = self._without_remembered(rows, last)
        return Piece(rows, (POSITION, DIGEST), planned, about)

    def _value(self) -> Column:
        """Return the position of a row, as an integer."""
        text = f"({self._incremental.column})"
        return sf.expr(
            {
                TIMESTAMP: f"unix_micros({text})",
                # Without the session's time zone, in which some local times are there twice.
                TIMESTAMP_NTZ: (
                    f"unix_date(CAST({text} AS DATE)) * {_DAY_US} + hour({text}) * 3600000000 + "
                    f"minute({text}) * 60000000 + "
                    f"CAST(extract(SECOND FROM {text}) * 1000000 AS BIGINT)"
                ),
                A_DATE: f"CAST(unix_date({text}) AS BIGINT)",
                INTEGER: f"CAST({text} AS BIGINT)",
            }[self._kind]
        )

    def _within(self, rows: DataFrame, start: int | None, end: int | None) -> DataFrame:
        column, value = sf.expr(str(self._incremental.column)), self._value()
        margin = self._margin
        if start is not None:
            rows = rows.where(column >= self._literal(start - margin))
        if end is not None:
            rows = rows.where(column < self._literal(end + margin))
        if not margin:
            return rows
        # Not of a type that is passed on.
        if start is not None:
            rows = rows.where(value >= start)
        return rows if end is None else rows.where(value < end)

    @property
    def _margin(self) -> int:
        """How much more is asked for at both ends.

        A database gets an instant as the text of this machine's local time, and takes that of an
        hour which clocks show twice for one of both.
        """
        is_by_clock = self._kind == TIMESTAMP and str(self._source.format).lower() == _JDBC
        return _MOST_CLOCK_CHANGE_US if is_by_clock else 0

    def _literal(self, position: int) -> Column:
        """Return a literal of the column's own type, which databases and file formats compare."""
        if self._kind == TIMESTAMP:
            return sf.expr(f"timestamp_micros({position}L)")
        if self._kind == INTEGER:
            return sf.lit(position)
        word = {TIMESTAMP_NTZ: "TIMESTAMP_NTZ", A_DATE: "DATE"}[self._kind]
        return sf.expr(f"{word}'{position_text(self._kind, position)}'")

    def _newest(self, start: int | None, upper: int | None) -> tuple[int | None, int | None]:
        """Return the largest position, and the largest one that this run reads.

        The bookmark moves no farther than that: what comes before `upper` later is still new.
        """
        rows = self._within(self._read(self._kind, (start, None)), start, None)
        value = self._value()
        say_in_ui(self._spark, f"newest {self._incremental.column}")
        is_read = sf.lit(True) if upper is None else value < upper  # noqa: FBT003 - SQL's
        [found] = rows.agg(sf.max(value), sf.max(sf.when(is_read, value))).collect()
        newest, reached = (None if each is None else int(each) for each in found)
        return newest, reached

    def _identity(self, rows: DataFrame) -> tuple[str, ...]:
        """Return the columns by which rows within the lag are recognised."""
        key, last = self._incremental.key, self._last
        wanted = key or (WHOLE_ROW, *(each for each in rows.columns if each != POSITION))
        if last is None or not last.identity or last.identity == wanted:
            return wanted
        # Columns that are new are left out, so that older rows are still recognised.
        if (
            not key
            and last.identity[0] == WHOLE_ROW
            and set(last.identity[1:]) <= set(rows.columns)
        ):
            return last.identity
        was = ", ".join(each for each in last.identity if each != WHOLE_ROW)
        raise UsageError(
            "[incremental]: rows within the lag are known by their columns "
            f"{was}, and now by others; {_HOW_TO_FORGET}"
        )

    def _types(self, rows: DataFrame, identity: tuple[str, ...]) -> tuple[str, ...]:
        """Return the types that digests are of: of another one, the same value is another text."""
        last = self._last
        if not identity:
            return ()
        try:
            schema = rows.select(*_identifying(identity)).schema
        except PySparkException as error:
            raise UsageError(f"[incremental]: key: {describe(error)}") from error
        found = tuple(
            INTEGER if isinstance(each.dataType, _INTEGERS) else each.dataType.simpleString()
            for each in schema
        )
        if last is None or not last.positions.size or last.types in ((), found):
            return found
        names = [each for each in identity if each != WHOLE_ROW]
        changed = next(
            f"{name} had type {was} and has type {now}"
            for name, was, now in zip(names, last.types, found, strict=True)
            if was != now
        )
        raise UsageError(
            f"[incremental]: {changed}, so that rows within the lag would be taken for new ones; "
            f"{_HOW_TO_FORGET}"
        )

    def _without_remembered(self, rows: DataFrame, last: Bookmark) -> DataFrame:
        size = len(last.positions)
        if not size:
            return rows
        whole = pa.Array.from_buffers(
            pa.binary(DIGEST_BYTES), size, [None, pa.py_buffer(last.digests)]
        )
        table = pa.table({DIGEST: whole.cast(pa.binary())})
        remembered = sf.broadcast(self._spark.createDataFrame(table))
        return rows.join(remembered, DIGEST, "left_anti")

    def _lag(self) -> int:
        lag = self._incremental.lag or 0
        if lag and isinstance(lag, Microseconds) is (self._kind == INTEGER):
            expected = (
                "a number of ids" if self._kind == INTEGER else 'a duration such as "2 hours"'
            )
            raise UsageError(
                f"[incremental]: {self._incremental.column} has type {self._kind}, so that lag is "
                f"expected to be {expected}"
            )
        if self._kind == A_DATE:
            return -(-lag // _DAY_US)  # of a part of a day the whole one
        return lag

    def _upper(self) -> int | None:
        text = self._incremental.upper
        if text is None:
            # A time in the future would make a bookmark that later rows never reach. Without a zone
            # it is one if no clock on earth shows it yet.
            latest = _now_us() + _MOST_AHEAD_OF_UTC_US
            return {
                TIMESTAMP: _now_us(),
                TIMESTAMP_NTZ: latest,
                A_DATE: latest // _DAY_US + 1,
            }.get(self._kind)
        ago = _AGO.fullmatch(text)
        if ago is None or self._kind == INTEGER:
            return self._position("upper", text)
        now = _now_us() - pylog.jobs.parse_duration(ago[1] + ago[2]) * 1_000
        return now // _DAY_US if self._kind == A_DATE else now

    def _position(self, key: str, text: str | None) -> int | None:
        if text is None:
            return None
        try:
            return parse_position(self._kind, text)
        except ValueError as error:
            raise UsageError(f"[incremental]: {key} is {text!r}, expected {error}") from error


def _without_session_zone(source: Source) -> Source:
    """Return a source whose times without a zone stay so.

    Spark would read a database's times as of this machine's zone. {from} and {to} would then name
    instants, in UTC, which the database compares with times of no zone: rows would be missed.
    """
    names = {name.lower() for name in source.options}
    if str(source.format).lower() != _JDBC or _PREFER_NTZ.lower() in names:
        return source
    return replace(source, options={**source.options, _PREFER_NTZ: "true"})


def with_range(source: Source, values: dict[str, str]) -> Source:
    """Return a source with values for {from} and {to}."""
    return replace(
        source,
        sql=None if source.sql is None else replace_placeholders(source.sql, values),
        options={name: replace_placeholders(text, values) for name, text in source.options.items()},
    )


def _kind_of(frame: DataFrame, column: str) -> str:
    try:
        found = frame.select(sf.expr(column)).schema[0].dataType
    except PySparkException as error:
        raise UsageError(f"[incremental]: column = {column!r}: {describe(error)}") from error
    kind = _kind_of_type(found)
    if kind is None:
        raise UsageError(
            f"[incremental]: {column} has type {found.simpleString().upper()}, expected TIMESTAMP, "
            "TIMESTAMP_NTZ, DATE or an integer; cast it in [source] sql"
        )
    return kind


def _kind_of_type(found: DataType) -> str | None:
    if isinstance(found, TimestampType):
        return TIMESTAMP
    if isinstance(found, TimestampNTZType):
        return TIMESTAMP_NTZ
    if isinstance(found, DateType):
        return A_DATE
    # A decimal, as Spark has SQLite's and Oracle's integers, fails if it does not fit into 64 bits.
    if isinstance(found, _INTEGERS) or (isinstance(found, DecimalType) and not found.scale):
        return INTEGER
    return None


def parse_position(kind: str, text: str) -> int:
    """Return the position that a text of the configuration names; `ValueError` says what may be."""
    if kind in (INTEGER, VERSION):
        try:
            return int(text)
        except ValueError:
            raise ValueError("a whole number") from None
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("an ISO date or time, such as 2026-11-22T03:00Z") from None
    if kind == TIMESTAMP and instant.tzinfo is None and len(text) > len("2026-11-22"):
        raise ValueError("a zone with the time, such as 2026-11-22T03:00Z")
    if kind != TIMESTAMP and instant.tzinfo is not None:
        raise ValueError("no zone, as the column has none")
    instant = instant if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)
    position = (instant - _EPOCH) // dt.timedelta(microseconds=1)
    return position // _DAY_US if kind == A_DATE else position


def position_text(kind: str, position: int) -> str:
    """Return what {from} and {to} stand for: an id, a date, or a time, of an instant with a Z."""
    if kind in (INTEGER, VERSION):
        return str(position)
    day_us = position * _DAY_US if kind == A_DATE else position
    try:
        instant = _EPOCH + dt.timedelta(microseconds=day_us)
    except OverflowError:
        raise UsageError(f"[incremental]: {position} is outside of the years 1 to 9999") from None
    if kind == A_DATE:
        return instant.date().isoformat()
    if kind == TIMESTAMP:
        return instant_text(instant)
    return instant.replace(tzinfo=None).isoformat(
        " ", "microseconds" if instant.microsecond else "seconds"
    )


def _now_us() -> int:
    return (dt.datetime.now(dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)


def _identifying(identity: tuple[str, ...]) -> list[Column]:
    if identity[0] == WHOLE_ROW:
        return [sf.col(quoted(each)) for each in identity[1:]]
    return [sf.expr(each).alias(f"key{place}") for place, each in enumerate(identity)]


def _with_digest(rows: DataFrame, identity: tuple[str, ...]) -> DataFrame:
    """Return rows with 16 bytes of a hash of what identifies each of them."""
    is_whole = identity[0] == WHOLE_ROW
    parts = _identifying(identity)
    # Whatever the session's time zone is.
    told = sf.to_json(sf.struct(sf.col(POSITION), *parts), {**JSON_OPTIONS, "timeZone": "UTC"})
    if is_whole:
        # Equal rows are told apart by their number, so that as many are written as there are.
        rows = rows.withColumn(DIGEST, sf.sha2(told, 256))
        number = sf.row_number().over(Window.partitionBy(DIGEST).orderBy(POSITION))
        told = sf.concat(sf.col(DIGEST), sf.lit(" "), number.cast("string"))
    digest = sf.unhex(sf.substring(sf.sha2(told, 256), 1, 2 * DIGEST_BYTES))
    try:
        return rows.withColumn(DIGEST, digest)
    except PySparkException as error:
        raise UsageError(f"[incremental]: key: {describe(error)}") from error


def _next_versions(
    spark: SparkSession, source: Source, incremental: Incremental, last: Bookmark | None
) -> Piece | None:
    """Return what versions of a Delta or Iceberg table have added since the last one."""
    is_delta = str(source.format).lower() == DELTA
    current = (_newest_of_delta if is_delta else _newest_of_iceberg)(spark, source)
    if current is None or (last is not None and last.end == current):
        return None
    start = last.end if last is not None else None
    if start is None and incremental.initial is not None:
        start = parse_position(VERSION, incremental.initial)
    if is_delta:
        more = (
            {"versionAsOf": str(current)}
            if start is None
            else {
                "readChangeFeed": "true",
                "startingVersion": str(start + 1),
                "endingVersion": str(current),
            }
        )
    elif start is None:
        more = {"snapshot-id": str(current)}
    else:
        more = {"start-snapshot-id": str(start), "end-snapshot-id": str(current)}
    whole = replace(source, options={**source.options, **more}, sql=None)
    rows = read_source(spark, whole, is_stream=False)
    if is_delta and start is not None:
        # What was inserted, or is new after an update.
        rows = rows.where("_change_type IN ('insert', 'update_postimage')")
        rows = rows.drop("_change_type", "_commit_version", "_commit_timestamp")
    if source.sql is not None:
        rows = query_over(spark, rows, source.sql)
    found = ReadRange(start, current, None, is_new=True)
    return Piece(rows, (), found, Bookmark(None, VERSION, current))


def _only_path(source: Source) -> str:
    if len(source.path) != 1:
        raise UsageError("[incremental]: give one path in [source]: versions are of one table")
    return source.path[0]


def _newest_of_delta(spark: SparkSession, source: Source) -> int | None:
    name = quoted(_only_path(source))
    try:
        [row] = spark.sql(f"DESCRIBE HISTORY delta.{name} LIMIT 1").collect()
    except ParseException as error:
        raise UsageError(
            "[source]: Spark does not know Delta's statements: set spark.sql.extensions to "
            f"io.delta.sql.DeltaSparkSessionExtension, and {how_to_install(spark, source, '')}"
        ) from error
    except PySparkException as error:
        raise MissingInputError(f"[source]: {describe(error)}") from error
    return int(row["version"])


def _newest_of_iceberg(spark: SparkSession, source: Source) -> int | None:
    table = _only_path(source)
    separator = "#" if "/" in table else "."
    whole = replace(source, path=(f"{table}{separator}refs",), sql=None)
    rows = read_source(spark, whole, is_stream=False).where("name = 'main'").collect()
    return int(rows[0]["snapshot_id"]) if rows else None
