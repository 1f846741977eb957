"""Rows of a source, and what is said where there are none: not there yet, or nothing to read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pylog_jobs.job import JobFailedError, UsageError, describe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.ingest_config import Source

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


class MissingInputError(JobFailedError):
    """The input is not there; it may be when the job runs again."""


def read_source(spark: SparkSession, source: Source, *, is_stream: bool) -> DataFrame:
    """Return the rows of a source; of a query, if there is one, over it.

    `MissingInputError`: a path, a table or a log is not there, or a folder has no files.
    """
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
        return _query(spark, str(source.sql))
    reader = (spark.readStream if is_stream else spark.read).format(source.format)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    reader = reader.options(**source.options)
    paths = source.path
    if len(paths) > 1 and not is_stream:
        frame = reader.load(list(paths))  # type: ignore[arg-type]  # of a batch reader
    elif len(paths) > 1:
        raise UsageError(f"[source]: path is a list of {len(paths)}, and a stream reads one")
    else:
        frame = reader.load(paths[0]) if paths else reader.load()
    is_of_files = paths and source.format.lower() in _FORMATS_OF_FILES
    if is_of_files and not is_stream and not frame.inputFiles():
        raise MissingInputError(f"[source]: there are no files in {', '.join(paths)}")
    if source.sql is None:
        return frame
    return query_over(spark, frame, source.sql)


def query_over(spark: SparkSession, frame: DataFrame, sql: str) -> DataFrame:
    """Return the rows of a query that reads a DataFrame as ``source``."""
    frame.createOrReplaceTempView(SOURCE_VIEW)
    return _query(spark, sql)


def _query(spark: SparkSession, sql: str) -> DataFrame:
    # Inside of another query only queries are valid: no statement that changes anything, which
    # Spark would run at once, also in a dry run.
    return spark.sql(f"SELECT * FROM (\n{sql.strip().rstrip(';')}\n)")  # noqa: S608 - the user's own


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
