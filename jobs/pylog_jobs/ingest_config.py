"""The configuration of ``ingest``, read from TOML and checked before Spark starts.

``docs/jobs.md`` has the table of all keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs.config_table import ConfigTable

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

SOURCE_KEYS = ("format", "path", "schema", "options", "sql")
RECORD_KEYS = (
    "key",
    "value",
    "value_format",
    "value_columns",
    "avro_schema",
    "headers",
    "timestamp",
    "topic",
    "partition",
)
TARGET_KEYS = (
    "directory",
    "topic",
    "partitions",
    "partitioner",
    "compression",
    "level",
    "batch_size_bytes",
    "commit_timeout",
    "properties",
    "job_id",
)
TRIGGER_KEYS = ("kind", "interval", "checkpoint")
TABLES = {
    "source": SOURCE_KEYS,
    "record": RECORD_KEYS,
    "target": TARGET_KEYS,
    "trigger": TRIGGER_KEYS,
}

BATCH, AVAILABLE_NOW, INTERVAL = TRIGGERS = ("batch", "available_now", "interval")
JSON, AVRO = VALUE_FORMATS = ("json", "avro")
DATE = "{date}"
"""Stands for the day of the schedule, as 2026-11-22."""

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_DURATION = re.compile(r"[1-9]\d* (?:milliseconds?|seconds?|minutes?|hours?)")
_CODECS = tuple(codec.label for codec in pylog.CompressionType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows come from.

    Attributes
    ----------
    format, paths, schema, options
        Of a Spark source; format is None where only SQL is given, which then reads tables.
    sql
        A query; it reads the source as ``source``.
    """

    format: str | None = None
    paths: tuple[str, ...] = ()
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    sql: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordExpressions:
    """How a row becomes a record: SQL expressions, by the part of the record.

    Attributes
    ----------
    value
        An expression; None where ``value_format`` is given.
    value_format
        "json" or "avro": the value is the row, or ``value_columns`` of it.
    avro_schema
        The schema to write Avro with; None for the one that follows from the columns.
    headers
        An expression of all headers; or one for each header, by its name.
    """

    value: str | None = None
    value_format: str | None = None
    value_columns: tuple[str, ...] = ()
    avro_schema: str | None = None
    key: str | None = None
    headers: str | Mapping[str, str] | None = None
    timestamp: str | None = None
    topic: str | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The log directory, and how it is written. Attributes are the keys of ``[target]``."""

    directory: str
    topic: str | None = None
    partitions: int | None = None
    partitioner: str | None = None
    compression: str | None = None
    level: int | None = None
    batch_size_bytes: int | None = None
    commit_timeout: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    job_id: str | None = None

    def write_options(self) -> dict[str, str]:
        """Return the options of ``format("pylog")``."""
        named = {
            "topic": self.topic,
            "numPartitions": self.partitions,
            "partitioner": self.partitioner,
            "compression": self.compression,
            "level": self.level,
            "batchSizeBytes": self.batch_size_bytes,
            "commitTimeout": self.commit_timeout,
            "jobId": self.job_id,
        }
        options = {name: str(value) for name, value in named.items() if value is not None}
        return options | {f"topic.{name}": value for name, value in self.properties.items()}

    def write_job(self) -> pylog.WriteJob:
        """Return the library's write job of this target.

        Raises
        ------
        ValueError
            A value makes no sense; the text says which.
        """
        optional: dict[str, Any] = {
            "partitions": self.partitions,
            "partitioner": self.partitioner,
            "compression": self.compression,
            "level": self.level,
            "batch_size_bytes": self.batch_size_bytes,
        }
        return pylog.WriteJob(
            self.directory,
            job_id=self.job_id or "unnamed",
            topic=self.topic,
            config=dict(self.properties),
            **{name: value for name, value in optional.items() if value is not None},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When rows are read: once, or as a stream.

    Attributes
    ----------
    kind
        "batch", "available_now" or "interval".
    interval
        Between two micro-batches; None: one after the other.
    checkpoint
        Where a stream keeps how far it is.
    """

    kind: str = BATCH
    interval: str | None = None
    checkpoint: str | None = None

    @property
    def is_stream(self) -> bool:
        """Whether the source is read as a stream."""
        return self.kind != BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig:
    """What one call of ``ingest`` does."""

    source: Source
    record: RecordExpressions
    target: Target
    trigger: Trigger


def read_ingest_config(path: str, date: dt.date) -> IngestConfig:
    """Return the configuration in a file, every value checked.

    Parameters
    ----------
    path
        Of the TOML file.
    date
        What the placeholder stands for.

    Raises
    ------
    UsageError
        A key is unknown or missing, or a value makes no sense.
    OSError
        The file cannot be read.
    """
    whole = ConfigTable.read(path, tuple(TABLES))
    tables = {name: whole.table(name, keys) for name, keys in TABLES.items()}
    trigger = _trigger(tables["trigger"])
    target = _target(tables["target"], date, trigger)
    return IngestConfig(
        source=_source(tables["source"], date, trigger),
        record=_record(tables["record"], target),
        target=target,
        trigger=trigger,
    )


def _source(table: ConfigTable, date: dt.date, trigger: Trigger) -> Source:
    day = date.isoformat()
    name, sql = table.text("format"), table.text("sql")
    if name is None:
        if sql is None:
            raise table.error("format", "is missing; give a format, a query (sql), or both")
        for key in ("path", "schema", "options"):
            if key in table:
                raise table.error(key, "belongs to a format, and there is none")
        if trigger.is_stream:
            raise table.error(
                "format", "is missing: a query alone reads tables as they are, not as a stream"
            )
    return Source(
        format=name,
        paths=tuple(each.replace(DATE, day) for each in table.texts("path")),
        schema=table.text("schema"),
        options={key: value.replace(DATE, day) for key, value in table.options("options").items()},
        sql=None if sql is None else sql.replace(DATE, day),
    )


def _record(table: ConfigTable, target: Target) -> RecordExpressions:
    if table.only_one(("value", "value_format")) is None:
        raise table.error(
            "value", 'is missing; give an expression, or the whole row by value_format = "json"'
        )
    value_format = table.choice("value_format", VALUE_FORMATS)
    if "value_columns" in table and value_format is None:
        raise table.error("value_columns", "belongs to value_format, and there is none")
    if "avro_schema" in table and value_format != AVRO:
        raise table.error("avro_schema", 'belongs to value_format = "avro"')
    topic = table.text("topic")
    if topic is None and target.topic is None:
        raise table.error("topic", "is missing, and so is topic of [target]; give one of them")
    if topic is not None and target.topic is not None:
        raise table.error("topic", "is given, and topic of [target], too; give one of them")
    return RecordExpressions(
        value=table.text("value"),
        value_format=value_format,
        value_columns=table.texts("value_columns"),
        avro_schema=table.text("avro_schema"),
        key=table.text("key"),
        headers=_headers(table),
        timestamp=table.text("timestamp"),
        topic=topic,
        partition=table.text("partition"),
    )


def _headers(table: ConfigTable) -> str | Mapping[str, str] | None:
    return table.options("headers") if table.is_table("headers") else table.text("headers")


def _target(table: ConfigTable, date: dt.date, trigger: Trigger) -> Target:
    job_id = table.text("job_id")
    if job_id is not None:
        if trigger.is_stream:
            raise table.error(
                "job_id", 'is for kind = "batch"; a stream is known by its checkpoint'
            )
        job_id = job_id.replace(DATE, date.isoformat())
        unknown = _PLACEHOLDER.search(job_id)
        if unknown:
            raise table.error("job_id", f"has {unknown[0]!r}; the one placeholder is {DATE}")
    directory = table.required_text("directory")
    target = Target(
        directory=table.checked(lambda: str(pylog.absolute_location(directory)), "directory"),
        topic=table.text("topic"),
        partitions=table.integer("partitions", at_least=1),
        partitioner=table.text("partitioner"),
        compression=table.choice("compression", _CODECS),
        level=table.integer("level"),
        batch_size_bytes=table.integer("batch_size_bytes", at_least=1),
        commit_timeout=_duration(table, "commit_timeout"),
        properties=table.options("properties"),
        job_id=job_id,
    )
    table.checked(lambda: pylog.LogConfig.from_properties(target.properties), "properties")
    table.checked(target.write_job)  # which checks the rest
    return target


def _trigger(table: ConfigTable) -> Trigger:
    trigger = Trigger(
        kind=table.choice("kind", TRIGGERS) or BATCH,
        interval=_duration(table, "interval"),
        checkpoint=table.text("checkpoint"),
    )
    if trigger.interval is not None and trigger.kind != INTERVAL:
        raise table.error("interval", f'belongs to kind = "{INTERVAL}"')
    if trigger.is_stream and trigger.checkpoint is None:
        raise table.error("checkpoint", "is missing: a stream keeps there how far it is")
    if not trigger.is_stream and trigger.checkpoint is not None:
        raise table.error("checkpoint", 'belongs to a stream, and kind is "batch"')
    return trigger


def _duration(table: ConfigTable, key: str) -> str | None:
    value = table.text(key)
    if value is not None and not _DURATION.fullmatch(value):
        raise table.error(
            key, f'is {value!r}, expected a duration such as "30 seconds" or "5 minutes"'
        )
    return value
