"""From rows of a source to the columns that a write takes, by SQL expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    ShortType,
    StringType,
    TimestampType,
)

from pylog_jobs.ingest_config import AVRO
from pylog_jobs.job import UsageError, describe
from pyspark_pylog.schemas import is_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from pylog_jobs.ingest_config import RecordExpressions

_BYTES = "STRING or BINARY"
_TYPES: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "key": ((StringType, BinaryType), _BYTES),
    "value": ((StringType, BinaryType), _BYTES),
    "topic": ((StringType,), "STRING"),
    "partition": ((IntegerType, ShortType, ByteType), "INT"),
    "timestamp": ((TimestampType,), "TIMESTAMP"),
}
_HEADERS_TYPE = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    # To the microsecond, where Spark would cut it off after the millisecond.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Of ``to_json``: rows as they are."""


def to_records(
    rows: DataFrame, expressions: RecordExpressions, carried: Sequence[str] = ()
) -> DataFrame:
    """Return a DataFrame of the parts of the records, those that the configuration gives.

    Columns that are ``carried`` follow them as they are, and are no part of a whole row.
    """
    parts: dict[str, Column] = {}
    for name in ("key", "topic", "partition", "timestamp"):
        text = getattr(expressions, name)
        if text is not None:
            parts[name] = _checked(rows, name, text)
    if expressions.value is not None:
        parts["value"] = _checked(rows, "value", expressions.value)
    else:
        columns = [each for each in rows.columns if each not in carried]
        parts["value"] = _whole_row(rows, columns, expressions)
    if expressions.headers is not None:
        parts["headers"] = _headers(rows, expressions.headers)
    return rows.select(*(column.alias(name) for name, column in parts.items()), *carried)


def _checked(rows: DataFrame, name: str, text: str) -> Column:
    """Return the column of an expression that has a type which this part may have."""
    types, shown = _TYPES[name.partition(".")[0]]
    column, found = _analysed(rows, name, text)
    if not isinstance(found, types):
        raise UsageError(
            f"[record]: {name} has type {found.simpleString().upper()}, expected {shown}; write "
            f"CAST({text} AS {shown.partition(' ')[0]})"
        )
    return column


def _analysed(rows: DataFrame, name: str, text: str) -> tuple[Column, DataType]:
    try:
        column = sf.expr(text)
        return column, rows.select(column.alias(name)).schema[0].dataType
    except PySparkException as error:
        raise UsageError(f"[record]: {name} = {text!r}: {describe(error)}") from error


def _whole_row(rows: DataFrame, columns: Sequence[str], expressions: RecordExpressions) -> Column:
    names = expressions.value_columns or columns
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise UsageError(
            f"[record]: value_columns names {unknown[0]!r}, which is not a column; the columns "
            f"are: {', '.join(columns)}"
        )
    row = sf.struct(*(sf.col(quoted(name)) for name in names))
    if expressions.value_format != AVRO:
        # Every row has every column, as a schema would have it; Spark leaves nulls out.
        return sf.to_json(row, JSON_OPTIONS)
    schema = [] if expressions.avro_schema is None else [sf.lit(expressions.avro_schema)]
    column = sf.call_function("to_avro", row, *schema)
    try:
        rows.select(column.alias("value")).schema  # noqa: B018 - Spark looks at it now
    except PySparkException as error:
        text = describe(error)
        if "AVRO_NOT_LOADED" in text or "UNRESOLVED_ROUTINE" in text:
            text = (
                "Spark has no to_avro without its Avro package; add --packages "
                f"org.apache.spark:spark-avro_2.13:{rows.sparkSession.version} to spark-submit"
            )
        raise UsageError(f"[record]: value_format = {AVRO!r}: {text}") from error
    return column


def _headers(rows: DataFrame, headers: object) -> Column:
    if isinstance(headers, dict):
        each = [
            sf.struct(
                sf.lit(name).alias("key"),
                _header_value(rows, name, text).alias("value"),
            )
            for name, text in headers.items()
        ]
        return sf.array(*each)
    text = str(headers)
    column, found = _analysed(rows, "headers", text)
    if not is_headers(found):
        raise UsageError(
            f"[record]: headers has type {found.simpleString().upper()}, expected {_HEADERS_TYPE}, "
            "or a table with an expression for each header, [record.headers] source = \"'csv'\""
        )
    return column


def _header_value(rows: DataFrame, name: str, text: str) -> Column:
    column, found = _analysed(rows, f"headers.{name}", text)
    if not isinstance(found, (StringType, BinaryType)):
        raise UsageError(
            f"[record]: headers.{name} has type {found.simpleString().upper()}, expected {_BYTES}; "
            f"write CAST({text} AS STRING)"
        )
    return column.cast("binary")


def quoted(name: str) -> str:
    """Return a name as SQL takes any."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
