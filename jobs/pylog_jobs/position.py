"""Positions: where a row of a source is, as one integer, and how Spark and people write it.

========================  ==============================================
``timestamp``             microseconds since 1970-01-01 00:00 UTC
``timestamp_ntz``         the same of a clock without a zone
``date``                  days since 1970-01-01
``integer``               the value itself
``version``               of a Delta or Iceberg table, not of a row
========================  ==============================================

Every expression is in 64 bits and means the same with ``spark.sql.ansi.enabled`` on and off.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
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

from pylog_jobs.bookmark import A_DATE, DAY_US, INTEGER, TIMESTAMP, TIMESTAMP_NTZ, VERSION
from pylog_jobs.error_text import describe
from pylog_jobs.job import UsageError
from pylog_jobs.run_window import instant_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LAST_DAY = 2_932_896  # 9999-12-31
_FIRST_DAY = -719_162  # 0001-01-01
ENDS = {
    INTEGER: (-(2**63), 2**63 - 1),
    A_DATE: (_FIRST_DAY, _LAST_DAY),
    TIMESTAMP: (_FIRST_DAY * DAY_US, _LAST_DAY * DAY_US),
    TIMESTAMP_NTZ: (_FIRST_DAY * DAY_US, _LAST_DAY * DAY_US),
}
"""What {from} and {to} stand for where there is no limit."""


def plain_column(column: str, columns: Sequence[str]) -> str | None:
    """Return the name of the column that ``column`` is; None if it is an expression."""
    name = column.strip().strip("`").lower()
    return next((each for each in columns if each.lower() == name), None)


def kind_of(frame: DataFrame, column: str) -> str:
    """Return the kind of positions that a column has; `UsageError` if it has none."""
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
    if isinstance(found, INTEGERS) or (isinstance(found, DecimalType) and not found.scale):
        return INTEGER
    return None


def position_of(column: str, kind: str) -> Column:
    """Return the position of a row as an expression of type BIGINT; null where the column is."""
    text = f"({column})"
    return sf.expr(
        {
            TIMESTAMP: f"unix_micros({text})",
            # Without the session's time zone, in which some local times exist twice.
            TIMESTAMP_NTZ: (
                f"unix_date(CAST({text} AS DATE)) * {DAY_US}L + hour({text}) * 3600000000L + "
                f"minute({text}) * 60000000L + "
                f"CAST(extract(SECOND FROM {text}) * 1000000 AS BIGINT)"
            ),
            A_DATE: f"CAST(unix_date({text}) AS BIGINT)",
            INTEGER: (
                f"CASE WHEN {text} IS NULL THEN NULL ELSE coalesce(try_cast({text} AS BIGINT), "
                f"raise_error(concat('[incremental]: a value of the column does not fit into 64 "
                f"bits: ', CAST({text} AS STRING)))) END"
            ),
        }[kind]
    )


def literal_of(kind: str, position: int) -> Column:
    """Return a literal of the column's own type, which databases and file formats compare."""
    if kind == TIMESTAMP:
        return sf.expr(f"timestamp_micros({position}L)")
    if kind == INTEGER:
        return sf.lit(position)
    word = {TIMESTAMP_NTZ: "TIMESTAMP_NTZ", A_DATE: "DATE"}[kind]
    return sf.expr(f"{word}'{position_text(kind, position)}'")


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
    position = microseconds_of(instant)
    return position // DAY_US if kind == A_DATE else position


def position_text(kind: str, position: int) -> str:
    """Return what {from} and {to} stand for: an id, a date, or a time, of an instant with a Z."""
    if kind in (INTEGER, VERSION):
        return str(position)
    day_us = position * DAY_US if kind == A_DATE else position
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


def microseconds_of(instant: dt.datetime) -> int:
    """Return an instant, or a local time that is marked as UTC, in microseconds since 1970."""
    return (instant - _EPOCH) // dt.timedelta(microseconds=1)
