"""The configuration of ``ingest``, read from TOML and checked before Spark starts.

Each key of the file is a field of a dataclass below, which names how its value is read.
``docs/jobs.md`` has the table of all keys.
"""

from __future__ import annotations

import hashlib
import json
import re
import zoneinfo
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs.config_file import (
    ConfigFile,
    ConfigTable,
    config_key,
    config_keys,
    placeholders_of,
    read_table,
)
from pylog_jobs.run_window import BOOKMARK_NAMES, DATE, HOUR, START, WINDOW_NAMES, RunWindow
from pylog_jobs.secret_values import (
    has_reference,
    options_without_credentials,
    without_credentials,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BATCH, AVAILABLE_NOW, INTERVAL = TRIGGERS = ("batch", "available_now", "interval")
JSON, AVRO = VALUE_FORMATS = ("json", "avro")
RETRY, SKIP, FAIL = ON_MISSING = ("retry", "skip", "fail")
READ = "read"
ON_CHANGE = (FAIL, SKIP, READ)
DELTA, ICEBERG = VERSIONED_FORMATS = ("delta", "iceberg")

_DISTANCE = re.compile(r"(\d+) ?(s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)")
_CODECS = tuple(codec.label for codec in pylog.CompressionType)


def _choice(*known: str) -> Callable[[ConfigTable, str], str | None]:
    return lambda table, key: table.choice(key, known)


def _positive(table: ConfigTable, key: str) -> int | None:
    return table.integer(key, at_least=1)


def _count(table: ConfigTable, key: str) -> int | None:
    return table.integer(key, at_least=0)


def _headers(table: ConfigTable, key: str) -> str | Mapping[str, str] | None:
    return table.options(key) if table.is_table(key) else table.text(key)


def _location(table: ConfigTable, key: str) -> str:
    text = table.required_text(key)
    return table.checked(lambda: str(pylog.jobs.absolute_location(text)), key)


def _zone(table: ConfigTable, key: str) -> str | None:
    text = table.text(key)
    if text is not None and text not in zoneinfo.available_timezones():
        raise table.error(key, f'is {text!r}, expected a time zone such as "Europe/Berlin"')
    return text


class Microseconds(int):
    """A distance in time, and not in ids."""


def _distance(table: ConfigTable, key: str) -> int | None:
    """Return a distance in ids, or in microseconds where a unit of time is given."""
    text = table.number_or_text(key)
    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    match = _DISTANCE.fullmatch(text)
    if match is None:
        raise table.error(
            key, f'is {text!r}, expected a duration such as "2 hours", or a number of ids'
        )
    return Microseconds(pylog.jobs.parse_duration(match[1] + match[2][0]) * 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows come from: a Spark source, or a query, or a query over the source."""

    format: str | None = config_key(ConfigTable.text)
    path: tuple[str, ...] = config_key(ConfigTable.texts, ())
    schema: str | None = config_key(ConfigTable.text)
    options: Mapping[str, str] = config_key(ConfigTable.options, {})
    sql: str | None = config_key(ConfigTable.text)  # reads the source as ``source``
    on_missing: str = config_key(lambda table, key: table.choice(key, ON_MISSING) or RETRY, RETRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordExpressions:
    """How a row becomes a record: SQL expressions, by the part of the record.

    The value is an expression, or with ``value_format`` the row, or ``value_columns`` of it.
    """

    key: str | None = config_key(ConfigTable.text)
    value: str | None = config_key(ConfigTable.text)
    value_format: str | None = config_key(_choice(*VALUE_FORMATS))
    value_columns: tuple[str, ...] = config_key(ConfigTable.texts, ())
    avro_schema: str | None = config_key(ConfigTable.text)  # None: it follows from the columns
    headers: str | Mapping[str, str] | None = config_key(_headers)  # of all, or one by each name
    timestamp: str | None = config_key(ConfigTable.text)
    topic: str | None = config_key(ConfigTable.text)
    partition: str | None = config_key(ConfigTable.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The log directory, and how it is written."""

    directory: str = config_key(_location)
    topic: str | None = config_key(ConfigTable.text)
    partitions: int | None = config_key(_positive)
    create_topic: bool | None = config_key(ConfigTable.boolean)
    partitioner: str | None = config_key(ConfigTable.text)
    compression: str | None = config_key(_choice(*_CODECS))
    level: int | None = config_key(ConfigTable.integer)
    batch_size_bytes: int | None = config_key(_positive)
    commit_timeout: str | None = config_key(ConfigTable.duration)
    recover_as_broker: bool | None = config_key(ConfigTable.boolean)
    properties: Mapping[str, str] = config_key(ConfigTable.options, {})
    job_id: str | None = config_key(ConfigTable.text)
    fingerprint: str | None = None  # of a batch with a job id

    def write_options(self) -> dict[str, str]:
        """Return the options of ``format("pylog")``."""
        other_names = {"partitions": "numPartitions", "fingerprint": "jobFingerprint"}
        options = {
            other_names.get(each.name, pylog.jobs.json_name(each.name)): str(value)
            for each in fields(self)
            if each.name not in ("directory", "properties")
            and (value := getattr(self, each.name)) is not None
        }
        return options | {f"topic.{name}": value for name, value in self.properties.items()}

    def write_job(self) -> pylog.jobs.WriteJob:
        """Return the library's write job of this target; `ValueError` if a value is impossible."""
        optional: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("partitions", "partitioner", "compression", "level", "batch_size_bytes")
        }
        return pylog.jobs.WriteJob(
            self.directory,
            job_id=self.job_id or "unnamed",
            topic=self.topic,
            config=dict(self.properties),
            fingerprint=self.fingerprint,
            **{name: value for name, value in optional.items() if value is not None},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When rows are read: once, or as a stream."""

    kind: str = config_key(lambda table, key: table.choice(key, TRIGGERS) or BATCH, BATCH)
    interval: str | None = config_key(ConfigTable.duration)  # None: micro-batches follow at once
    checkpoint: str | None = config_key(ConfigTable.text)

    @property
    def is_stream(self) -> bool:
        """Whether the source is read as a stream."""
        return self.kind != BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Incremental:
    """How far a source has been read, and how far a run reads it.

    Positions are those of a column, or, without one, the versions of a Delta or Iceberg table.
    """

    column: str | None = config_key(ConfigTable.text)
    initial: str | None = config_key(ConfigTable.number_or_text)  # None: from the first row
    lag: int | None = config_key(_distance)  # of `Microseconds`, or ids; None: as the source needs
    upper: str | None = config_key(ConfigTable.number_or_text)
    key: tuple[str, ...] = config_key(ConfigTable.texts, ())  # None: the whole row
    zone: str | None = config_key(_zone)  # of a column that has none
    count_left_out: bool | None = config_key(ConfigTable.boolean)
    on_change: str = config_key(lambda table, key: table.choice(key, ON_CHANGE) or FAIL, FAIL)

    @property
    def counts_left_out(self) -> bool:
        """Whether rows that are never read are counted, for which all of the column is read."""
        return self.count_left_out is not False

    @property
    def is_by_version(self) -> bool:
        """Whether positions are versions of a table."""
        return self.column is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What the rows of a run have to be like; otherwise none of them is published."""

    min_rows: int | None = config_key(_count)
    max_rows: int | None = config_key(_count)
    not_null: tuple[str, ...] = config_key(ConfigTable.texts, ())
    unique: tuple[str, ...] = config_key(ConfigTable.texts, ())
    conditions: tuple[str, ...] = config_key(ConfigTable.texts, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig:
    """What one run of ``ingest`` does."""

    source: Source
    record: RecordExpressions
    target: Target
    trigger: Trigger
    incremental: Incremental | None
    checks: Checks
    window: RunWindow

    @property
    def shown_source(self) -> str:
        """Where rows come from, as summaries name it."""
        return self.source.format or "sql"


_KINDS: dict[str, type] = {
    "source": Source,
    "record": RecordExpressions,
    "target": Target,
    "trigger": Trigger,
    "incremental": Incremental,
    "checks": Checks,
}
TABLES = {name: config_keys(kind) for name, kind in _KINDS.items()}
_JOB_ID = ("target", "job_id")
_TUNING = frozenset(
    (
        *("fetchsize", "numpartitions", "partitioncolumn", "lowerbound", "upperbound"),
        *("sessioninitstatement", "querytimeout", "driver", "isolationlevel", "mergeschema"),
        *("pushdownpredicate", "pushdownaggregate", "pushdownlimit", "pushdownoffset"),
    )
)
"""Options of sources that say how rows are read, in lower case."""
_SHOWN_OPTIONS = frozenset({"dbtable", "query", "path", "paths", "preparequery"})
"""Options of a source that Spark shows in its plans."""


def read_ingest_config(file: ConfigFile, window: RunWindow) -> IngestConfig:
    """Return the configuration of one run, every value checked."""
    _check_secrets(file.path, file.raw)
    parameters = window.values()
    used = file.placeholders(but=_JOB_ID)
    found = file.for_run(parameters)
    _check_secrets(file.path, found.shown)  # a parameter may make a reference of what was none
    whole = ConfigTable(found.values, tuple(TABLES), file.path)
    tables = {name: whole.table(name, keys) for name, keys in TABLES.items()}
    trigger = read_table(Trigger, tables["trigger"])
    _check_trigger(tables["trigger"], trigger)
    target = _target(tables["target"], trigger)
    target = _with_window(tables["target"], file, target, window, used)
    source = _source(tables["source"], trigger)
    record = read_table(RecordExpressions, tables["record"])
    _check_record(tables["record"], record, target)
    incremental = None
    if "incremental" in whole:
        incremental = _incremental(tables["incremental"], source, target, trigger, used)
    else:
        _check_no_range(tables["incremental"], source)
    checks = read_table(Checks, tables["checks"])
    if checks != Checks() and trigger.is_stream:
        raise tables["checks"].refusal('is for kind = "batch"')
    if target.job_id is not None:
        shown = ConfigTable(found.shown["source"], TABLES["source"], file.path)
        fingerprint = _fingerprint(read_table(Source, shown), record, target, incremental)
        target = replace(target, fingerprint=fingerprint)
    return IngestConfig(
        source=source,
        record=record,
        target=target,
        trigger=trigger,
        incremental=incremental,
        checks=checks,
        window=window,
    )


def _check_secrets(path: str, tables: Mapping[str, Any]) -> None:
    """Raise if a secret is anywhere but in an option that Spark does not show."""
    for table, values in tables.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            place = ConfigTable({}, (), f"{path}: [{table}]")
            if not has_reference(value):
                continue
            if (table, key) != ("source", "options") or not isinstance(value, dict):
                raise place.error(
                    key,
                    "has a secret, and Spark's UI and logs would show it; give it in an option of "
                    "[source]",
                )
            for name, text in value.items():
                if name.lower() in _SHOWN_OPTIONS and has_reference(text):
                    raise place.error(
                        f"options.{name}", "has a secret, and Spark's UI and logs would show it"
                    )


def _fingerprint(
    source: Source,
    record: RecordExpressions,
    target: Target,
    incremental: Incremental | None,
) -> str:
    """Return a hash of where rows come from, and where they go; a password may change meanwhile."""
    options = options_without_credentials(source.options)
    paths = [without_credentials(each) for each in source.path]
    of_source: list[object] = [
        source.format,
        paths,
        source.schema,
        sorted(options.items()),
        source.sql,
    ]
    told: list[object] = [of_source, target.topic, record.topic]
    if incremental is not None:
        # It runs for years: how its source is read may change, and what is read may not.
        of_source[3] = sorted(
            (name, value) for name, value in options.items() if name.lower() not in _TUNING
        )
        told.append([incremental.column])
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _source(table: ConfigTable, trigger: Trigger) -> Source:
    source = read_table(Source, table)
    if source.format is None:
        if source.sql is None:
            raise table.error("format", "is missing; give a format, a query (sql), or both")
        for key in ("path", "schema", "options"):
            if key in table:
                raise table.error(key, "belongs to a format, and there is none")
        if trigger.is_stream:
            raise table.error(
                "format", "is missing: a query alone reads tables as they are, not as a stream"
            )
    return source


def _check_record(table: ConfigTable, record: RecordExpressions, target: Target) -> None:
    if table.only_one(("value", "value_format")) is None:
        raise table.error(
            "value", 'is missing; give an expression, or the whole row by value_format = "json"'
        )
    if "value_columns" in table and record.value_format is None:
        raise table.error("value_columns", "belongs to value_format, and there is none")
    if "avro_schema" in table and record.value_format != AVRO:
        raise table.error("avro_schema", 'belongs to value_format = "avro"')
    if record.topic is None and target.topic is None:
        raise table.error("topic", "is missing, and so is topic of [target]; give one of them")
    if record.topic is not None and target.topic is not None:
        raise table.error("topic", "is given, and topic of [target], too; give one of them")


def _target(table: ConfigTable, trigger: Trigger) -> Target:
    target = read_table(Target, table)
    if target.job_id is not None and trigger.is_stream:
        raise table.error("job_id", 'is for kind = "batch"; a stream is known by its checkpoint')
    table.checked(lambda: pylog.LogConfig.from_properties(target.properties), "properties")
    table.checked(target.write_job)  # which checks the rest
    return target


def _with_window(
    table: ConfigTable, file: ConfigFile, target: Target, window: RunWindow, used: set[str]
) -> Target:
    """Return the target whose job id is that of the window alone.

    What the file depends on, and the id does not name, is added to the id: no window is ever taken
    for another one.
    """
    values = window.values()
    given = file.raw.get("target", {}).get("job_id", "")
    named = placeholders_of(given) if isinstance(given, str) else []
    if window.is_day and HOUR in {*used, *named}:
        raise table.error(
            "job_id" if HOUR in named else "{hour}", "needs an hour; give --start and --end"
        )
    for name in window.parameters:
        if name not in used and name not in named:
            raise table.error(f"--param {name}", f"has no {{{name}}} in the file to stand for")
    if target.job_id is None:
        return target
    known = ", ".join(f"{{{each}}}" for each in WINDOW_NAMES)
    for name in named:
        if name not in values:
            raise table.error(
                "job_id",
                f"has '{{{name}}}'; the placeholders are {known} and the names of --param",
            )
    needed = sorted(used & values.keys())
    if needed and not named:
        proposal = f"{target.job_id}-{{{needed[0]}}}"
        raise table.error(
            "job_id",
            f"is {target.job_id!r} in every run, and {{{needed[0]}}} stands elsewhere in the file: "
            f"the second run would be taken for the first one again; write {proposal!r}",
        )
    implied = {DATE, HOUR} if START in named else set()
    more = [name for name in needed if name not in {*named, *implied}]
    job_id = target.job_id + "".join(f" {name}={values[name]}" for name in more)
    return replace(target, job_id=job_id)


def _incremental(
    table: ConfigTable, source: Source, target: Target, trigger: Trigger, used: set[str]
) -> Incremental:
    """Return how a source is read a piece at a time."""
    found = read_table(Incremental, table)
    if trigger.is_stream:
        raise table.refusal('is for kind = "batch"; a stream has its checkpoint')
    if target.job_id is None:
        raise table.error("job_id", "of [target] is missing: the bookmark is kept under it")
    of_windows = (used | {*placeholders_of(target.job_id)}) & {*WINDOW_NAMES}
    if of_windows:
        raise table.refusal(
            f"reads on from its bookmark, and {{{min(of_windows)}}} stands in the file; use "
            "{from} and {to}, or leave [incremental] out and give each window its job_id"
        )
    _check_positions(table, found, source)
    return found


def _check_no_range(table: ConfigTable, source: Source) -> None:
    texts = [source.sql or "", *source.options.values()]
    in_source = {name for text in texts for name in placeholders_of(text)} & {*BOOKMARK_NAMES}
    if in_source:
        raise table.error("column", f"is missing, and {{{min(in_source)}}} stands in [source]")


def _check_positions(table: ConfigTable, found: Incremental, source: Source) -> None:
    if found.is_by_version:
        if (source.format or "").lower() not in VERSIONED_FORMATS:
            raise table.error(
                "column", "is missing; only delta and iceberg tables have versions to go by"
            )
        for key in ("lag", "upper", "key", "zone", "count_left_out"):
            if key in table:
                raise table.error(key, "belongs to a column, and there is none")
        if "on_change" in table and (source.format or "").lower() == DELTA:
            raise table.error("on_change", "is for Iceberg; Delta's change data has every change")
    elif "on_change" in table:
        raise table.error("on_change", "is for versions of an Iceberg table, without a column")


def _check_trigger(table: ConfigTable, trigger: Trigger) -> None:
    if trigger.interval is not None and trigger.kind != INTERVAL:
        raise table.error("interval", f'belongs to kind = "{INTERVAL}"')
    if trigger.is_stream and trigger.checkpoint is None:
        raise table.error("checkpoint", "is missing: a stream keeps there how far it is")
    if not trigger.is_stream and trigger.checkpoint is not None:
        raise table.error("checkpoint", 'belongs to a stream, and kind is "batch"')
