"""The configuration of ``ingest``, read from TOML and checked before Spark starts.

Each key of the file is a field of a dataclass below, which names how its value is read.
``docs/jobs.md`` has the table of all keys. Errors name file, table and key:

``ingest.toml: [target] has no key 'topc'; did you mean 'topic'? The keys are: directory, topic, …``
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pylog
from pylog_jobs.job import UsageError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping, Sequence

BATCH, AVAILABLE_NOW, INTERVAL = TRIGGERS = ("batch", "available_now", "interval")
JSON, AVRO = VALUE_FORMATS = ("json", "avro")
RETRY, SKIP, FAIL = ON_MISSING = ("retry", "skip", "fail")
DATE = "{date}"
"""Stands for the day of the schedule, as 2026-11-22."""

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_CREDENTIAL = re.compile("user|password|secret|token|credential|access.?key", re.IGNORECASE)
_DURATION = re.compile(r"[1-9]\d* (?:milliseconds?|seconds?|minutes?|hours?)")
_CODECS = tuple(codec.label for codec in pylog.CompressionType)
_TYPES = {str: "a string", bool: "true or false", int: "a whole number", dict: "a table"}

_T = TypeVar("_T")


class ConfigTable:
    """One table, such as ``[target]``, of the file that ``place`` names.

    A key that is not among ``keys`` is an error, which names the nearest one.
    """

    def __init__(self, values: Mapping[str, object], keys: Sequence[str], place: str) -> None:
        self._values = values
        self._place = place
        for name in values:
            if name not in keys:
                near = difflib.get_close_matches(name.lower(), keys, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                msg = f"{place} has no key {name!r}{hint} The keys are: {', '.join(keys)}"
                raise UsageError(msg)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def error(self, key: str, what: str) -> UsageError:
        """Return the error that ``key`` ``what``."""
        return UsageError(f"{self._place}: {key} {what}")

    def table(self, key: str, keys: Sequence[str]) -> ConfigTable:
        """Return the table ``[key]``; one without keys if it is not there."""
        values = self._values.get(key, {})
        place = f"{self._place}: [{key}]"
        if not isinstance(values, dict):
            raise self._wrong_type(key, values, dict)
        return ConfigTable(values, keys, place)

    def is_table(self, key: str) -> bool:
        """Whether the key is there and has a table for a value."""
        return isinstance(self._values.get(key), dict)

    def text(self, key: str) -> str | None:
        """Return a string, None if the key is not there; an empty one is an error."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong_type(key, value, str)
        if not value.strip():
            raise self.error(key, "is empty; leave it out if there is none")
        return value

    def required_text(self, key: str) -> str:
        """Return a string that must be there."""
        value = self.text(key)
        if value is None:
            raise self.error(key, "is missing")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, or one string, as a tuple; an empty one without the key."""
        value = self._values.get(key, [])
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) and each.strip() for each in listed):
            raise self.error(key, f"is {value!r}, expected a string or a list of strings")
        return tuple(listed)

    def boolean(self, key: str) -> bool | None:
        """Return true or false, None if the key is not there."""
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong_type(key, value, bool)

    def integer(self, key: str, *, at_least: int | None = None) -> int | None:
        """Return a whole number, None if the key is not there."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong_type(key, value, int)
        if at_least is not None and value < at_least:
            raise self.error(key, f"is {value}, expected at least {at_least}")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        """Return one of ``choices``, None if the key is not there."""
        value = self.text(key)
        if value is None or value in choices:
            return value
        near = difflib.get_close_matches(value.lower(), choices, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise self.error(key, f"is {value!r}, expected one of {', '.join(choices)}{hint}")

    def options(self, key: str) -> dict[str, str]:
        """Return a table of names and values as strings, empty if the key is not there.

        A name with dots may be quoted or not: TOML makes tables in tables of ``retention.ms = 1``.
        """
        values = self._values.get(key, {})
        if not isinstance(values, dict):
            raise self._wrong_type(key, values, dict)
        return dict(self._flattened(key, values, ""))

    def only_one(self, keys: Iterable[str]) -> str | None:
        """Return which of the keys is there, None if none is; an error if several are."""
        given = [key for key in keys if key in self]
        if len(given) > 1:
            msg = f"{self._place}: give only one of {' and '.join(given)}"
            raise UsageError(msg)
        return given[0] if given else None

    def checked(self, call: Callable[[], _T], key: str | None = None) -> _T:
        """Return what ``call`` does; a ``ValueError`` of it becomes one of this table, or key."""
        try:
            return call()
        except ValueError as error:
            place = self._place if key is None else f"{self._place}: {key}"
            msg = f"{place}: {error}"
            raise UsageError(msg) from error

    def _flattened(
        self, key: str, values: Mapping[str, object], prefix: str
    ) -> Iterable[tuple[str, str]]:
        for name, value in values.items():
            whole = f"{prefix}{name}"
            if isinstance(value, dict):
                yield from self._flattened(key, value, f"{whole}.")
            elif isinstance(value, bool):
                yield whole, str(value).lower()
            elif isinstance(value, (str, int, float)):
                yield whole, str(value)
            else:
                raise self.error(
                    f"{key}.{whole}", f"is {value!r}, expected a string, number or true or false"
                )

    def _wrong_type(self, key: str, value: object, expected: type) -> UsageError:
        return self.error(key, f"is {value!r}, expected {_TYPES[expected]}")

    def duration(self, key: str) -> str | None:
        """Return a duration as Spark reads it, None if the key is not there."""
        value = self.text(key)
        if value is not None and not _DURATION.fullmatch(value):
            raise self.error(
                key, f'is {value!r}, expected a duration such as "30 seconds" or "5 minutes"'
            )
        return value


def _toml(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path} is not TOML: {error}"
        raise UsageError(msg) from error


def _replaced(value: Any, placeholder: str, text: str) -> Any:  # noqa: ANN401 - any value of TOML
    """Return a value with ``text`` wherever it has the placeholder."""
    if isinstance(value, str):
        return value.replace(placeholder, text)
    if isinstance(value, dict):
        return {name: _replaced(each, placeholder, text) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, placeholder, text) for each in value]
    return value


def _key(read: Callable[[ConfigTable, str], object], default: object = None) -> Any:  # noqa: ANN401 - as of `dataclasses.field`
    """Return a dataclass field that is a key of the file."""
    metadata = {"read": read}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def _keys(table: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(table) if "read" in each.metadata)


def _choice(*known: str) -> Callable[[ConfigTable, str], str | None]:
    return lambda table, key: table.choice(key, known)


def _positive(table: ConfigTable, key: str) -> int | None:
    return table.integer(key, at_least=1)


def _headers(table: ConfigTable, key: str) -> str | Mapping[str, str] | None:
    return table.options(key) if table.is_table(key) else table.text(key)


def _location(table: ConfigTable, key: str) -> str:
    text = table.required_text(key)
    return table.checked(lambda: str(pylog.jobs.absolute_location(text)), key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows come from: a Spark source, or a query, or a query over the source."""

    format: str | None = _key(ConfigTable.text)
    path: tuple[str, ...] = _key(ConfigTable.texts, ())
    schema: str | None = _key(ConfigTable.text)
    options: Mapping[str, str] = _key(ConfigTable.options, {})
    sql: str | None = _key(ConfigTable.text)  # reads the source as ``source``
    on_missing: str = _key(lambda table, key: table.choice(key, ON_MISSING) or RETRY, RETRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordExpressions:
    """How a row becomes a record: SQL expressions, by the part of the record.

    The value is an expression, or with ``value_format`` the row, or ``value_columns`` of it.
    """

    key: str | None = _key(ConfigTable.text)
    value: str | None = _key(ConfigTable.text)
    value_format: str | None = _key(_choice(*VALUE_FORMATS))
    value_columns: tuple[str, ...] = _key(ConfigTable.texts, ())
    avro_schema: str | None = _key(ConfigTable.text)  # None: it follows from the columns
    headers: str | Mapping[str, str] | None = _key(_headers)  # of all, or one by each name
    timestamp: str | None = _key(ConfigTable.text)
    topic: str | None = _key(ConfigTable.text)
    partition: str | None = _key(ConfigTable.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The log directory, and how it is written."""

    directory: str = _key(_location)
    topic: str | None = _key(ConfigTable.text)
    partitions: int | None = _key(_positive)
    create_topic: bool | None = _key(ConfigTable.boolean)
    partitioner: str | None = _key(ConfigTable.text)
    compression: str | None = _key(_choice(*_CODECS))
    level: int | None = _key(ConfigTable.integer)
    batch_size_bytes: int | None = _key(_positive)
    commit_timeout: str | None = _key(ConfigTable.duration)
    recover_as_broker: bool | None = _key(ConfigTable.boolean)
    properties: Mapping[str, str] = _key(ConfigTable.options, {})
    job_id: str | None = _key(ConfigTable.text)
    fingerprint: str | None = None  # of a batch with a job id

    def write_options(self) -> dict[str, str]:
        """Return the options of ``format("pylog")``."""
        named = {
            "topic": self.topic,
            "numPartitions": self.partitions,
            "createTopic": self.create_topic,
            "partitioner": self.partitioner,
            "compression": self.compression,
            "level": self.level,
            "batchSizeBytes": self.batch_size_bytes,
            "commitTimeout": self.commit_timeout,
            "recoverAsBroker": self.recover_as_broker,
            "jobId": self.job_id,
            "jobFingerprint": self.fingerprint,
        }
        options = {name: str(value) for name, value in named.items() if value is not None}
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

    kind: str = _key(lambda table, key: table.choice(key, TRIGGERS) or BATCH, BATCH)
    interval: str | None = _key(ConfigTable.duration)  # None: micro-batches follow at once
    checkpoint: str | None = _key(ConfigTable.text)

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


TABLES = {
    "source": _keys(Source),
    "record": _keys(RecordExpressions),
    "target": _keys(Target),
    "trigger": _keys(Trigger),
}


def read_ingest_config(path: str, date: dt.date) -> IngestConfig:
    """Return the configuration in a file, every value checked; ``date`` is for ``{date}``."""
    values = _toml(path)
    whole = ConfigTable(_replaced(values, DATE, date.isoformat()), tuple(TABLES), path)
    tables = {name: whole.table(name, keys) for name, keys in TABLES.items()}
    trigger = _read(Trigger, tables["trigger"])
    _check_trigger(tables["trigger"], trigger)
    target = _target(tables["target"], trigger)
    _check_days(tables["target"], values, target)
    source = _source(tables["source"], trigger)
    record = _read(RecordExpressions, tables["record"])
    _check_record(tables["record"], record, target)
    if target.job_id is not None:
        target = replace(target, fingerprint=_fingerprint(source, record, target))
    return IngestConfig(source=source, record=record, target=target, trigger=trigger)


def _read(kind: type[_T], table: ConfigTable) -> _T:
    of_kind: Any = kind
    return kind(
        **{
            each.name: each.metadata["read"](table, each.name)
            for each in fields(of_kind)
            if each.name in _keys(of_kind)
        }
    )


def _fingerprint(source: Source, record: RecordExpressions, target: Target) -> str:
    """Return a hash of where rows come from, and where they go; a password may change meanwhile."""
    options = {
        name: value for name, value in source.options.items() if not _CREDENTIAL.search(name)
    }
    of_source = [source.format, source.path, source.schema, sorted(options.items()), source.sql]
    told = json.dumps([of_source, target.topic, record.topic])
    return hashlib.sha256(told.encode()).hexdigest()


def _source(table: ConfigTable, trigger: Trigger) -> Source:
    source = _read(Source, table)
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
    target = _read(Target, table)
    if target.job_id is not None:
        if trigger.is_stream:
            raise table.error(
                "job_id", 'is for kind = "batch"; a stream is known by its checkpoint'
            )
        unknown = _PLACEHOLDER.search(target.job_id)
        if unknown:
            raise table.error("job_id", f"has {unknown[0]!r}; the one placeholder is {DATE}")
    table.checked(lambda: pylog.LogConfig.from_properties(target.properties), "properties")
    table.checked(target.write_job)  # which checks the rest
    return target


def _check_days(table: ConfigTable, values: Mapping[str, Any], target: Target) -> None:
    """Raise if all days have one job id, and something else depends on the day."""
    job_id = target.job_id
    if (
        job_id is None
        or DATE in values["target"]["job_id"]
        or DATE not in json.dumps(values, default=str)
    ):
        return
    raise table.error(
        "job_id",
        f"is {job_id!r} on every day, and {DATE} stands elsewhere in the file: the second day "
        f"would be taken for the first one again; write {f'{job_id}-{DATE}'!r}",
    )


def _check_trigger(table: ConfigTable, trigger: Trigger) -> None:
    if trigger.interval is not None and trigger.kind != INTERVAL:
        raise table.error("interval", f'belongs to kind = "{INTERVAL}"')
    if trigger.is_stream and trigger.checkpoint is None:
        raise table.error("checkpoint", "is missing: a stream keeps there how far it is")
    if not trigger.is_stream and trigger.checkpoint is not None:
        raise table.error("checkpoint", 'belongs to a stream, and kind is "batch"')
