"""Rows of a source, and the columns that a write takes of them, by SQL expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
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

from pylog_jobs.error_text import describe
from pylog_jobs.ingest_config import AVRO
from pylog_jobs.job import JobFailedError, UsageError
from pyspark_pylog.jobs import is_headers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from pylog_jobs.ingest_config import RecordExpressions, Source

_RAW_LITERALS = "spark.sql.parser.escapedStringLiterals"
SOURCE_VIEW = "source"
"""What the source is called in the query of the configuration."""

_MISSING = frozenset({"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "TABLE_OR_VIEW_NOT_FOUND"})
"""Spark's error conditions of an input that is not there; a folder without files has the second."""
_MISSING_LOG = re.compile(r"no such directory|no Kafka log here|UnknownTopicOrPartitionError")
"""The same of format pylog, whose errors reach us as text."""
_FORMATS_OF_FILES = frozenset(
    {"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"}
)

_NOT_INSTALLED = re.compile(
    "DATA_SOURCE_NOT_FOUND|DATA_SOURCE_NOT_ENABLED|PLUGIN_CLASS_NOT_FOUND|No suitable driver"
    "|No FileSystem for scheme|ClassNotFoundException|NoClassDefFoundError"
)
_PACKAGES = {
    "avro": "org.apache.spark:spark-avro_2.13:{spark}",
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:VERSION",
    "postgresql": "org.postgresql:postgresql:VERSION",
    "mysql": "com.mysql:mysql-connector-j:VERSION",
    "mariadb": "org.mariadb.jdbc:mariadb-java-client:VERSION",
    "sqlserver": "com.microsoft.sqlserver:mssql-jdbc:VERSION",
    "oracle": "com.oracle.database.jdbc:ojdbc11:VERSION",
    "sqlite": "org.xerial:sqlite-jdbc:VERSION",
    "s3a": "org.apache.hadoop:hadoop-aws:VERSION",
    "abfs": "org.apache.hadoop:hadoop-azure:VERSION",
}
"""What has a format, a database's driver or a file system, by the word that errors have of it."""

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


class MissingInputError(JobFailedError):
    """The input is not there; it may be when the job runs again."""


def read_source(spark: SparkSession, source: Source, *, is_stream: bool) -> DataFrame:
    """Return the rows of a source; of a query, if there is one, over it.

    `MissingInputError`: a path, a table or a log is not there, or a folder has no files.
    """
    if source.has_escapes and spark.conf.get(_RAW_LITERALS, "false") == "true":
        raise UsageError(
            f"{_RAW_LITERALS} is true, so that Spark takes a value of --param with a quote or a "
            "backslash for another one; set it to false"
        )
    try:
        return _read(spark, source, is_stream=is_stream)
    except (PySparkException, Py4JJavaError) as error:
        text = describe(error)
        if _NOT_INSTALLED.search(text):
            raise UsageError(f"[source]: {text}; {how_to_install(spark, source, text)}") from error
        condition = error.getCondition() if isinstance(error, PySparkException) else None
        if condition in _MISSING or _MISSING_LOG.search(text):
            raise MissingInputError(f"[source]: {text}") from error
        if source.sql is not None:
            raise UsageError(f"[source]: sql: {text}") from error
        raise


def _read(spark: SparkSession, source: Source, *, is_stream: bool) -> DataFrame:
    if source.format is None:
        return _query(spark, str(source.sql), source.markers)
    reader = (spark.readStream if is_stream else spark.read).format(source.format)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    reader = reader.options(**source.options)
    paths = source.path
    if len(paths) > 1 and not is_stream:
        frame = reader.load(list(paths))  # type: ignore[arg-type]  # of a batch reader
    else:
        frame = reader.load(paths[0]) if paths else reader.load()
    is_of_files = paths and source.format.lower() in _FORMATS_OF_FILES
    if is_of_files and not is_stream and not frame.inputFiles():
        raise MissingInputError(f"[source]: there are no files in {', '.join(paths)}")
    if source.sql is None:
        return frame
    return query_over(spark, frame, source.sql, source.markers)


def query_over(
    spark: SparkSession, frame: DataFrame, sql: str, markers: Mapping[str, str]
) -> DataFrame:
    """Return the rows of a query that reads a DataFrame as ``source``."""
    frame.createOrReplaceTempView(SOURCE_VIEW)
    return _query(spark, sql, markers)


def _query(spark: SparkSession, sql: str, markers: Mapping[str, str]) -> DataFrame:
    # Inside of another query only queries are valid: no statement that changes anything, which
    # Spark would run at once, also in a dry run.
    query = f"SELECT * FROM (\n{sql.strip().rstrip(';')}\n)"  # noqa: S608 - the user's own
    return spark.sql(query, args=dict(markers)) if markers else spark.sql(query)


def how_to_install(spark: SparkSession, source: Source, text: str) -> str:
    """Return which package to start the job with, by what an error says."""
    told = " ".join((text, source.format or "", source.options.get("url", ""), *source.path))
    version = spark.version
    package = next(
        (each for word, each in _PACKAGES.items() if word in told.lower()), "GROUP:NAME:VERSION"
    ).format(spark=version, minor=".".join(version.split(".")[:2]))
    return (
        f"start the job by spark-submit --packages {package}, or name the package in "
        "spark.jars.packages of spark-defaults.conf"
    )


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
