"""The configuration of ``ingest``, read from TOML and checked before Spark starts.

Each key of the file is a field of a dataclass below, which names how its value is read.
``docs/jobs.md`` has the table of all keys.
"""

from __future__ import annotations

import hashlib
import json
import re
import zoneinfo
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs.config_file import (
    NAME,
    ConfigFile,
    ConfigTable,
    config_key,
    config_keys,
    placeholders_of,
    read_table,
)
from pylog_jobs.parameter_values import ParameterValues
from pylog_jobs.run_window import BOOKMARK_NAMES, DATE, HOUR, START, WINDOW_NAMES
from pylog_jobs.secret_values import (
    has_reference,
    may_be_secret,
    options_without_credentials,
    without_credentials,
)
from pylog_jobs.sql_text import UNKNOWN, dialect_of_url, literal_value
from pylog_jobs.target import Target, check_target
from pylog_jobs.window_job_id import window_job_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog_jobs.run_window import RunWindow
    from pylog_jobs.sql_text import Dialect

BATCH, AVAILABLE_NOW, INTERVAL = TRIGGERS = ("batch", "available_now", "interval")
JSON, AVRO = VALUE_FORMATS = ("json", "avro")
RETRY, SKIP, FAIL = ON_MISSING = ("retry", "skip", "fail")
READ = "read"
ON_CHANGE = (FAIL, SKIP, READ)
DELTA, ICEBERG = VERSIONED_FORMATS = ("delta", "iceberg")

_DISTANCE = re.compile(r"(\d+) ?(s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)")


def _choice(*known: str) -> Callable[[ConfigTable, str], str | None]:
    return lambda table, key: table.choice(key, known)


def _count(table: ConfigTable, key: str) -> int | None:
    return table.integer(key, at_least=0)


def _headers(table: ConfigTable, key: str) -> str | Mapping[str, str] | None:
    return table.options(key) if table.is_table(key) else table.text(key)


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
    markers: Mapping[str, str] = field(default_factory=dict)  # what those of the query stand for
    has_escapes: bool = False  # values in literals of the file's SQL


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
    """The settings of one run of ``ingest``."""

    source: Source
    record: RecordExpressions
    target: Target
    trigger: Trigger
    incremental: Incremental | None
    checks: Checks
    window: RunWindow
    uses_window: bool  # and would read other rows in another one

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
_SHOWN = (
    "has a secret, and Spark's UI and logs would show it; secrets are for user, password and other "
    "credentials, and url, in options of [source]"
)


def read_ingest_config(file: ConfigFile, window: RunWindow) -> IngestConfig:
    """Return the configuration of one run, every value checked."""
    _check_secrets(file.path, file.raw)
    used = file.placeholders(but=_JOB_ID)
    values = ParameterValues(window, _dialect(file))
    found = file.for_run(values.put)
    _check_secrets(file.path, found.shown)
    whole = ConfigTable(found.values, tuple(TABLES), file.path)
    tables = {name: whole.table(name, keys) for name, keys in TABLES.items()}
    trigger = read_table(Trigger, tables["trigger"])
    _check_trigger(tables["trigger"], trigger)
    target = _target(tables["target"], trigger)
    target = _with_window(tables["target"], file, target, window, used)
    source = _source(tables["source"], trigger)
    source = replace(source, markers=values.markers, has_escapes=values.has_escapes)
    record = read_table(RecordExpressions, tables["record"])
    _check_record(tables["record"], record, target)
    incremental = None
    if "incremental" in whole:
        incremental = _incremental(tables["incremental"], source, target, trigger, used)
    _check_range(tables["incremental"], file, source, incremental)
    checks = read_table(Checks, tables["checks"])
    _check_checks(tables["checks"], checks, trigger)
    if target.job_id is not None:
        plain = ConfigTable(
            file.with_parameters(window.values())["source"], TABLES["source"], file.path
        )
        fingerprint = _fingerprint(read_table(Source, plain), record, target, incremental)
        target = replace(target, fingerprint=fingerprint)
    is_of_windows = incremental is None and not trigger.is_stream
    return IngestConfig(
        source=source,
        record=record,
        target=target,
        trigger=trigger,
        incremental=incremental,
        checks=checks,
        window=window,
        uses_window=is_of_windows and not _names(file, used).isdisjoint(WINDOW_NAMES),
    )


def _dialect(file: ConfigFile) -> Dialect:
    """Return the SQL of the database that the source is."""
    options = _options(file.path, file.raw.get("source"))
    url = next((value for name, value in options.items() if name.lower() == "url"), "")
    try:
        return dialect_of_url(file.secrets.resolve(url))
    except ValueError:
        return UNKNOWN  # what is wrong with the secret is said when all values are read


def _options(path: str, source: object) -> dict[str, str]:
    options = source.get("options", {}) if isinstance(source, dict) else {}
    return ConfigTable({"options": options}, ("options",), f"{path}: [source]").options("options")


def _names(file: ConfigFile, used: set[str]) -> set[str]:
    """Return all placeholders, those of the job id included."""
    given = file.raw.get("target", {}).get("job_id", "")
    return {*used, *(placeholders_of(given) if isinstance(given, str) else [])}


def _check_secrets(path: str, tables: Mapping[str, Any]) -> None:
    """Raise if a secret is anywhere but in an option that Spark does not show."""
    for table, values in tables.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            place = ConfigTable({}, (), f"{path}: [{table}]")
            if not has_reference(value):
                continue
            if (table, key) != ("source", "options"):
                raise place.error(key, _SHOWN)
            for name, text in _options(path, values).items():
                if has_reference(text) and not may_be_secret(name):
                    raise place.error(f"options.{name}", _SHOWN)


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
    if trigger.is_stream and len(source.path) > 1:
        raise table.error("path", f"is a list of {len(source.path)}, and a stream reads one")
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
    if record.topic is not None and (name := literal_value(record.topic)) is not None:
        table.checked(replace(target, topic=name).write_job, "topic")
    if record.avro_schema is not None:
        table.checked(lambda: json.loads(str(record.avro_schema)), "avro_schema is not JSON")


def _target(table: ConfigTable, trigger: Trigger) -> Target:
    target = read_table(Target, table)
    if target.job_id is not None and trigger.is_stream:
        raise table.error("job_id", 'is for kind = "batch"; a stream is known by its checkpoint')
    check_target(table, target, is_stream=trigger.is_stream)
    return target


def _with_window(
    table: ConfigTable, file: ConfigFile, target: Target, window: RunWindow, used: set[str]
) -> Target:
    """Return the target whose job id is that of the window alone.

    What the file depends on, and the id does not name, is added to the id: no window is ever taken
    for another one.
    """
    values = window.values()
    named = _names(file, set())
    if window.is_day and HOUR in used:
        raise table.error("{hour}", "needs an hour; give --start and --end")
    for name in window.parameters:
        if name not in used and name not in named:
            raise table.error(f"--param {name}", f"has no {{{name}}} in the file to stand for")
    if target.job_id is None:
        return target
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
    found = window_job_id(file.raw["target"]["job_id"], target.job_id, values, more)
    return replace(target, job_id=found.text, ambiguous_job_id=found.ambiguous)


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


def _check_range(
    table: ConfigTable, file: ConfigFile, source: Source, incremental: Incremental | None
) -> None:
    """Raise unless {from} and {to} are where the range of an incremental run is put in."""
    given = file.raw["source"]
    raw = [str(given.get("sql", "")), *_options(file.path, given).values()]
    in_file = [name for text in raw for name in placeholders_of(text) if name in BOOKMARK_NAMES]
    if incremental is None:
        if in_file:
            msg = f"is missing, and {{{min(in_file)}}} stands in [source]"
            raise table.error("column", msg)
        return
    texts = [source.sql or "", *source.options.values()]
    there = [name for text in texts for name in NAME.findall(text) if name in BOOKMARK_NAMES]
    if len(there) > len(in_file):
        raise table.refusal(
            f"has its range put in for {{{there[0]}}}, which stands in a value, or as "
            f"{{{{{there[0]}}}}}, in [source]; that text itself cannot be there"
        )


def _check_checks(table: ConfigTable, checks: Checks, trigger: Trigger) -> None:
    if checks != Checks() and trigger.is_stream:
        raise table.refusal('is for kind = "batch"')
    least, most = checks.min_rows, checks.max_rows
    if least is not None and most is not None and least > most:
        raise table.error("min_rows", f"is {least}, and max_rows {most}: no run can have both")


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
