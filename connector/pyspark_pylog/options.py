"""Every option of ``format("pylog")``, one row each: type, default, and where it is allowed.

Names and meanings are those of Spark's ``kafka`` source and sink. An unknown option is an error,
since a typo must not change a result. Options of ``kafka`` that have no meaning here are accepted
with one warning, except those that would change where a record goes, or what it holds.

To add an option, add a row to `LoadOptions` or `WriteOptions`, and a line to ``docs/spark.md``.
"""

from __future__ import annotations

import difflib
import enum
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import pylog
from pylog import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    EARLIEST,
    LATEST,
    PARTITIONER_NAMES,
    TABLE_NAMES,
    CompressionType,
    IsolationLevel,
    ReadMode,
    Timestamp,
    location,
)
from pylog.jobs import COMPATIBILITY_LEVELS, absolute_location
from pyspark_pylog import option_values as values
from pyspark_pylog.option_values import nearest_name_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pylog import OffsetSpecs, RecordFilter
    from pylog.results import LogDirectory

RECORDS = "records"
"""The value of option ``table`` that stands for the records, and not for a metadata table."""
OF_KEYS = "latest"
"""The table of the last record of each key, which may be that of an earlier time."""
RECORD_FILTER, RECORD_COUNTS, FIELD_CONDITION = "recordFilter", "recordCounts", "fieldCondition"
"""What `pyspark_pylog.table` gives a ``load()`` of its own; not for users."""
CLIENT_PREFIX = "kafka."
CLIENT_ISOLATION = "kafka.isolation.level"
PATH_OPTIONS = ("path", "paths")
VALUE_FORMATS = ("auto", "avro", "protobuf", "json")
SCHEMA_FRAMINGS = ("prefix", "header")
MICROSECONDS, MILLISECONDS = "microseconds", "milliseconds"
"""Of option ``timestampUnit``: column ``timestamp`` is a TIMESTAMP, or a BIGINT."""
_WAYS_TO_CHOOSE = ("subscribe", "assign", "subscribePattern")
HOW_TO_CREATE = (
    "In SQL: CREATE TABLE … USING pylog OPTIONS (path '/path/to/kafka-logs'), without a list of "
    "columns, with which Spark keeps no options (option columns chooses some)."
)
_INSERT_INTO_VIEW = (
    "Spark keeps no options of a catalog table for what is inserted: INSERT INTO a view, CREATE "
    "TEMPORARY VIEW … USING pylog OPTIONS (path '/path/to/kafka-logs', topic '…')."
)
_STORAGE_PREFIX, _TOPIC_PREFIX = "storage.", "topic."
"""Before the name of a parameter of a store, and of a property of topics that a write creates."""

_WITHOUT_EFFECT_ON_READS = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_WITHOUT_EFFECT_ON_WRITES = ("includeHeaders",)
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
"""What Spark takes of a stream's writer for itself, and passes on."""
_REFUSED_OF_CLIENT = {
    "kafka.key.serializer": "keys are written as the bytes that the column holds",
    "kafka.value.serializer": "values are written as the bytes that the column holds",
    "kafka.partitioner.class": (
        "classes of the JVM do not run here; option partitioner takes default, round_robin or "
        "integer_key, and a column named partition says where each row goes"
    ),
}


class Of(enum.Flag):
    """Where an option is allowed: a batch or a stream of records, a metadata table, ``latest``."""

    BATCH = enum.auto()
    STREAM = enum.auto()
    TABLE = enum.auto()
    LATEST = enum.auto()
    RECORDS = BATCH | STREAM
    ALL = RECORDS | TABLE


_OF_VALUES = Of.RECORDS | Of.LATEST


class _Row(NamedTuple):
    field: str
    name: str
    kind: Callable[[str], object]
    of: Of
    is_hidden: bool = False


def _option(
    kind: Callable[[str], object],
    default: Any = None,  # noqa: ANN401 - of any kind
    of: Of = Of.RECORDS,
    *,
    name: str = "",
    is_hidden: bool = False,
) -> Any:  # noqa: ANN401 - as of `dataclasses.field`
    """Return a dataclass field that is an option, named like the field in camelCase, or `name`."""
    return field(default=default, metadata={"row": (name, kind, of, is_hidden)})


def _rows(options: type) -> tuple[_Row, ...]:
    return tuple(
        _Row(each.name, name or re.sub("_(.)", lambda m: m[1].upper(), each.name), kind, of, hidden)
        for each in fields(options)
        if "row" in each.metadata
        for name, kind, of, hidden in [each.metadata["row"]]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Checked options of one ``load()``."""

    paths: tuple[str, ...]
    subscribe: tuple[str, ...] | None = _option(values.names, of=Of.ALL)
    assign: Mapping[str, tuple[int, ...]] | None = _option(values.assignment, of=Of.ALL)
    subscribe_pattern: str | None = _option(values.pattern, of=Of.ALL)
    starting_offsets: OffsetSpecs | None = _option(values.offsets)
    ending_offsets: OffsetSpecs | None = _option(values.offsets, of=Of.BATCH | Of.LATEST)
    starting_timestamp: int | None = _option(values.timestamp)
    ending_timestamp: int | None = _option(values.timestamp, of=Of.BATCH | Of.LATEST)
    starting_offsets_by_timestamp: Mapping[Any, int] | None = _option(values.timestamps)
    ending_offsets_by_timestamp: Mapping[Any, int] | None = _option(
        values.timestamps, of=Of.BATCH | Of.LATEST
    )
    starting_offsets_by_timestamp_strategy: str = _option(values.one_of("error", LATEST), "error")
    fail_on_data_loss: bool = _option(values.boolean, default=True)
    isolation_level: IsolationLevel | None = _option(values.isolation_level)
    client_isolation: IsolationLevel | None = _option(
        values.isolation_level, name=CLIENT_ISOLATION, is_hidden=True
    )
    include_headers: bool = _option(values.boolean, default=False)
    include_batch_metadata: bool = _option(values.boolean, default=False)
    columns: tuple[str, ...] | None = _option(values.names, of=Of.ALL)
    mode: ReadMode = _option(values.one_of(*ReadMode), ReadMode.FAILFAST, Of.ALL)
    table: str = _option(lambda text: text.strip().lower(), RECORDS, Of.ALL)
    max_partition_bytes: int = _option(values.size, 128 << 20)  # as spark.sql.files.…
    pack_partitions: str = _option(values.one_of("auto", "true", "false"), "auto", Of.ALL)
    max_decompressed_bytes: int = _option(values.size, DEFAULT_MAX_DECOMPRESSED_BYTES, Of.ALL)
    min_partitions: int | None = _option(values.count)
    max_records_per_partition: int | None = _option(values.count)
    include_stray: bool = _option(values.boolean, default=False, of=Of.ALL)
    replica: str | None = _option(values.some_text, of=Of.ALL)
    pushdown: str = _option(values.one_of("auto", "on", "off"), "auto")
    timestamp_unit: str = _option(values.one_of(MICROSECONDS, MILLISECONDS), MICROSECONDS)
    timestamp_disorder: int | None = _option(values.duration)
    trust_batch_timestamps: bool = _option(values.boolean, default=False)
    use_indexes: bool = _option(values.boolean, default=True)
    leave_page_cache: bool = _option(values.boolean, default=False)
    value_format: str | None = _option(values.one_of(*VALUE_FORMATS), of=_OF_VALUES)
    key_format: str | None = _option(values.one_of(*VALUE_FORMATS), of=_OF_VALUES)
    schemas: str | None = _option(values.some_text, of=_OF_VALUES)
    registry_topic: str | None = _option(values.some_text, of=_OF_VALUES)
    subject: str | None = _option(values.some_text, of=_OF_VALUES)
    subject_version: int | str | None = _option(values.version, of=_OF_VALUES)
    message: str | None = _option(values.some_text, of=_OF_VALUES)
    check_keys: bool = _option(values.boolean, default=False, of=Of.TABLE)
    max_offsets_per_trigger: int | None = _option(values.count, of=Of.STREAM)
    min_offsets_per_trigger: int | None = _option(values.count, of=Of.STREAM)
    max_trigger_delay: int = _option(values.duration, 15 * 60_000, Of.STREAM)
    max_bytes_per_trigger: int | None = _option(values.size, of=Of.STREAM)
    where: RecordFilter | None = _option(
        values.record_filter, of=Of.ALL, name=RECORD_FILTER, is_hidden=True
    )
    field_condition: str | None = _option(
        values.some_text, of=Of.ALL, name=FIELD_CONDITION, is_hidden=True
    )
    counts_records: bool = _option(
        values.boolean, default=False, of=Of.ALL, name=RECORD_COUNTS, is_hidden=True
    )
    is_stream: bool = False
    without_effect: tuple[str, ...] = ()

    def directory(self) -> LogDirectory:
        """Return the log directory, or several as one, under the paths."""
        return pylog.open_directory(
            *self.paths, include_stray=self.include_stray, replica=self.replica
        )

    @property
    def choice(self) -> dict[str, Any]:
        """Which partitions, as arguments of the library."""
        return {
            "topics": self.subscribe,
            "assign": self.assign,
            "pattern": self.subscribe_pattern,
        }

    @property
    def formats(self) -> dict[str, pylog.jobs.ValueFormat]:
        """How keys and values are decoded, as arguments of the library."""
        given = {"key": self.key_format, "value": self.value_format}
        main = "key" if self.value_format is None else "value"
        more: dict[str, Any] = {}
        if self.registry_topic is not None:
            more["registry_topic"] = self.registry_topic
        own: dict[str, Any] = {"subject": self.subject, "message": self.message}
        if self.subject_version is not None:
            own["version"] = self.subject_version
        return {
            f"{name}_format": pylog.jobs.ValueFormat(
                format=each, registry=self.schemas, **more, **(own if name == main else {})
            )
            for name, each in given.items()
            if each is not None
        }

    @property
    def starting(self) -> OffsetSpecs:
        """Where to start, in the ``kafka`` source's order of precedence."""
        return _position(
            self.starting_timestamp,
            self.starting_offsets_by_timestamp,
            self.starting_offsets,
            LATEST if self.is_stream else EARLIEST,
            self.starting_offsets_by_timestamp_strategy,
        )

    @property
    def ending(self) -> OffsetSpecs:
        """The offsets at which reading ends."""
        return _position(
            self.ending_timestamp,
            self.ending_offsets_by_timestamp,
            self.ending_offsets,
            LATEST,
            LATEST,
        )

    @property
    def isolation(self) -> IsolationLevel:
        """The level, under either of its names."""
        given = (self.isolation_level, self.client_isolation)
        return next((each for each in given if each is not None), IsolationLevel.READ_UNCOMMITTED)

    @property
    def is_limited(self) -> bool:
        """Whether a trigger takes no more, or no less, than options say."""
        limits = (self.max_offsets_per_trigger, self.min_offsets_per_trigger)
        return any((*limits, self.max_bytes_per_trigger))

    @classmethod
    def parse(cls, given: Mapping[str, str], *, is_stream: bool = False) -> LoadOptions:
        """Return what is given to ``spark.read`` or ``readStream``; `ValueError` if senseless."""
        lower = {name.lower(): value for name, value in given.items()}
        without_effect = _check_names_of_read(lower)
        limits = {row.name.lower(): row.name for row in _READ if row.of == Of.STREAM}
        _check_takers(lower, is_stream=is_stream)
        if not is_stream:
            without_effect += [limits[name] for name in lower if name in limits]
            lower = {name: lower[name] for name in lower if name not in limits}
        options = cls(
            paths=parse_paths(lower),
            is_stream=is_stream,
            without_effect=tuple(sorted(without_effect)),
            **_parsed(_READ, lower),
        )
        options._check_combinations()
        return options

    def _check_combinations(self) -> None:
        if self.client_isolation not in (None, self.isolation):
            raise ValueError(f"options isolationLevel and {CLIENT_ISOLATION} contradict each other")
        low, high = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if low and high and low > high:
            raise ValueError(
                f"option minOffsetsPerTrigger ({low}) is more than option "
                f"maxOffsetsPerTrigger ({high})"
            )
        if not self.formats:
            unused = ("schemas", "registry_topic", "subject", "subject_version", "message")
            for row in _READ:
                if row.field in unused and getattr(self, row.field) is not None:
                    raise ValueError(f"option {row.name} is for options valueFormat and keyFormat")
        refused = [(LATEST, "starting", self.starting_offsets)] if not self.is_stream else []
        for word, side, offsets in [*refused, (EARLIEST, "ending", self.ending_offsets)]:
            try:
                values.ensure_without(word, offsets)
            except ValueError as error:
                raise ValueError(f"option {side}Offsets {error} option {side}Timestamp") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Checked options of one write."""

    directory: str
    topic: str | None = _option(values.some_text)
    compression: str = _option(values.one_of(*(each.label for each in CompressionType)), "none")
    level: int | None = _option(values.number)
    # More than a producer's 16 KB, since rows come in bulk: they compress better, and a commit has
    # fewer batches. A quarter of what a topic allows, so that a look-up decodes little in vain.
    batch_size_bytes: int = _option(values.size, 256 << 10)
    partitions: int | None = _option(values.count, name="numPartitions")
    creates_similar_topic: bool = _option(values.boolean, default=False, name="createTopic")
    writes_internal_topics: bool = _option(
        values.boolean, default=False, name="writeInternalTopics"
    )
    partitioner: str = _option(values.one_of(*PARTITIONER_NAMES), PARTITIONER_NAMES[0])
    job_id: str | None = _option(values.some_text)
    job_fingerprint: str | None = _option(values.some_text)
    commit_timeout_ms: int = _option(values.duration, 60_000, name="commitTimeout")
    recover_as_broker: bool = _option(values.boolean, default=False)
    value_schema: str | None = _option(values.some_text)
    key_schema: str | None = _option(values.some_text)
    value_subject: str | None = _option(values.some_text)
    key_subject: str | None = _option(values.some_text)
    schema_framing: str = _option(values.one_of(*SCHEMA_FRAMINGS), SCHEMA_FRAMINGS[0])
    schema_compatibility: str | None = _option(values.one_of(*COMPATIBILITY_LEVELS))
    topic_properties: Mapping[str, str] = field(default_factory=dict)
    without_effect: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, str], *, is_stream: bool = False) -> WriteOptions:
        """Return what is given to ``df.write`` or ``writeStream``; `ValueError` if senseless."""
        lower = {name.lower(): value for name, value in given.items()}
        without_effect = _check_names_of_write(lower, is_stream=is_stream)
        for row in _WRITE:
            if (
                is_stream
                and row.field in ("job_id", "job_fingerprint")
                and row.name.lower() in lower
            ):
                raise ValueError(
                    f"option {row.name} is for batch writes; leave it out: a micro-batch is known "
                    "by its query's id and its number, which the checkpoint keeps"
                )
        properties = {name: value.strip() for name, value in _below(_TOPIC_PREFIX, lower)}
        pylog.LogConfig.from_properties(properties)  # raises for what is not a property of topics
        made = cls(
            directory=_directory(lower, is_stream=is_stream),
            topic_properties=properties,
            without_effect=tuple(without_effect),
            **_parsed(_WRITE, lower),
        )
        made._check_schemas()
        return made

    @property
    def schemas(self) -> dict[str, pylog.jobs.WriterSchema]:
        """What keys and values are encoded by."""
        given = {
            "key": (self.key_schema, self.key_subject),
            "value": (self.value_schema, self.value_subject),
        }
        return {
            name: pylog.jobs.WriterSchema(
                schema=None if schema == LATEST else schema,
                subject=subject,
                compatibility=self.schema_compatibility,
                framing=self.schema_framing,
            )
            for name, (schema, subject) in given.items()
            if schema is not None
        }

    def encoders(self) -> Mapping[str, Any]:
        """Return what encodes keys and values; their schemas are registered, on the driver."""
        if not self.schemas:
            return {}
        return pylog.jobs.register_schemas(
            *(self.directory, str(self.topic), self.schemas),
            timeout=self.commit_timeout_ms / 1000,
            recover_as_broker=self.recover_as_broker,
        )

    def _check_schemas(self) -> None:
        given = {
            "valueSubject": self.value_subject,
            "keySubject": self.key_subject,
            "schemaCompatibility": self.schema_compatibility,
        }
        if self.schemas and self.topic is None:
            raise ValueError("options valueSchema and keySchema need option topic")
        for name, each in given.items():
            if each is not None and not self.schemas:
                raise ValueError(f"option {name} is for options valueSchema and keySchema")

    def job(
        self,
        job_id: str,
        batch_id: int | None = None,
        encoders: Mapping[str, Any] | None = None,
    ) -> pylog.jobs.WriteJob:
        """Return the library's write job, known in the ledger by a name, or a query and a batch."""
        return pylog.jobs.WriteJob(
            self.directory,
            job_id=job_id,
            batch_id=batch_id,
            topic=self.topic,
            partitions=self.partitions,
            partitioner=self.partitioner,
            compression=self.compression,
            level=self.level,
            batch_size_bytes=self.batch_size_bytes,
            config=dict(self.topic_properties),
            fingerprint=self.job_fingerprint,
            creates_similar_topic=self.creates_similar_topic,
            writes_internal_topics=self.writes_internal_topics,
            encoders=encoders or {},
        )


_READ, _WRITE = _rows(LoadOptions), _rows(WriteOptions)
READ_OPTIONS = (*PATH_OPTIONS, *(row.name for row in _READ if not row.is_hidden))
WRITE_OPTIONS = ("path", *(row.name for row in _WRITE))


def _parsed(rows: Iterable[_Row], lower: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for row in rows:
        if row.name.lower() in lower:
            try:
                found[row.field] = row.kind(lower[row.name.lower()])
            except ValueError as error:
                raise ValueError(f"option {row.name} {error}") from error
    return found


def _position(
    timestamp: int | None,
    by_timestamp: Mapping[Any, int] | None,
    offsets: OffsetSpecs | None,
    default: str,
    strategy: str,
) -> OffsetSpecs:
    if timestamp is not None:
        return Timestamp(timestamp, strategy)
    if by_timestamp is not None:
        return {each: Timestamp(at, strategy) for each, at in by_timestamp.items()}
    return default if offsets is None else offsets


def _below(prefix: str, lower: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the options whose names begin so, without that beginning."""
    return [(name[len(prefix) :], of) for name, of in lower.items() if name.startswith(prefix)]


def parse_paths(lower: Mapping[str, str]) -> tuple[str, ...]:
    """Return absolute locations: against the driver's folder, which an executor does not share."""
    listed = [lower["path"]] if "path" in lower else []
    listed += _parsed([_Row("paths", "paths", values.locations, Of.ALL)], lower).get("paths", [])
    if not listed:
        raise ValueError(f'no path: say load("/path/to/kafka-logs"). {HOW_TO_CREATE}')
    parameters = dict(_below(_STORAGE_PREFIX, lower))
    return tuple(location(absolute_location(text), storage_options=parameters) for text in listed)


def _directory(lower: Mapping[str, str], *, is_stream: bool) -> str:
    if "path" not in lower:
        call = "start" if is_stream else "save"
        raise ValueError(f'no path: say {call}("/path/to/kafka-logs"). {_INSERT_INTO_VIEW}')
    directory = absolute_location(lower["path"])
    if "://" in directory:
        raise ValueError(
            f"path {str(directory)!r} is in an object store; a topic is written to a directory "
            "that the driver and all executors have mounted"
        )
    return directory


def _check_names_of_read(lower: Mapping[str, str]) -> list[str]:
    """Return the names that have no effect; `ValueError` for one that is not known."""
    known = {name.lower(): name for name in (*PATH_OPTIONS, *(row.name for row in _READ))}
    ignored = {name.lower(): name for name in _WITHOUT_EFFECT_ON_READS}
    of_writes = {name.lower() for name in WRITE_OPTIONS}
    without_effect = []
    for name in lower:
        if name in known or name.startswith(_STORAGE_PREFIX):
            continue
        # The one client property that changes a result: what is nearly its name is a typo.
        typo = difflib.get_close_matches(name, [CLIENT_ISOLATION], cutoff=0.9)
        if name in ignored or (name.startswith(CLIENT_PREFIX) and not typo):
            without_effect.append(ignored.get(name, name))
        elif name in of_writes or name.startswith(_TOPIC_PREFIX):
            msg = f"option {name!r} is for writes, not for reads; to read a topic, give subscribe"
            raise ValueError(msg)
        else:
            hint = nearest_name_hint(name, known.values())
            msg = f"unknown option {name!r}{hint} The options are: {', '.join(READ_OPTIONS)}"
            raise ValueError(msg)
    return sorted(without_effect)


def _check_names_of_write(lower: Iterable[str], *, is_stream: bool) -> list[str]:
    """Return the names that have no effect; `ValueError` for one that is not of a write."""
    known = {name.lower() for name in WRITE_OPTIONS} | (_OF_SPARK if is_stream else set())
    ignored = {name.lower(): name for name in _WITHOUT_EFFECT_ON_WRITES}
    of_reads = {name.lower(): name for name in READ_OPTIONS}
    listed = f"The options are: {', '.join(WRITE_OPTIONS)}, {_TOPIC_PREFIX}<property>"
    without_effect = []
    for name in lower:
        if name in known or name.startswith(_TOPIC_PREFIX):
            continue
        near = difflib.get_close_matches(name, _REFUSED_OF_CLIENT, n=1, cutoff=0.9)
        if near:
            raise ValueError(f"option {name!r} is not supported: {_REFUSED_OF_CLIENT[near[0]]}")
        if name in ignored or name.startswith(CLIENT_PREFIX):
            without_effect.append(ignored.get(name, name))
        elif name in of_reads or name.startswith(_STORAGE_PREFIX):
            msg = f"option {of_reads.get(name, name)!r} is for reads, not for writes. {listed}"
            raise ValueError(msg)
        else:
            msg = f"unknown option {name!r}{nearest_name_hint(name, WRITE_OPTIONS)} {listed}"
            raise ValueError(msg)
    return sorted(without_effect)


def _check_takers(lower: Mapping[str, str], *, is_stream: bool) -> None:
    """Raise `ValueError` for options that a stream, or the table, does not take."""
    table = lower.get("table", RECORDS).strip().lower()
    if is_stream and table != RECORDS:
        msg = f"option table is {table!r}, which is for spark.read: a stream reads records"
        raise ValueError(msg)
    known = (RECORDS, *TABLE_NAMES)
    if table not in known:
        hint = nearest_name_hint(table, known)
        msg = f"option table: no table {table!r}{hint} The tables are: {', '.join(known)}"
        raise ValueError(msg)
    if "checkkeys" in lower and table != "cleaning":
        raise ValueError(f"option checkKeys is for table 'cleaning', and what is read is {table!r}")
    chosen = [name for name in _WAYS_TO_CHOOSE if name.lower() in lower]
    if len(chosen) > 1:
        raise ValueError(f"give only one of the options {' and '.join(chosen)}")
    # Of records all are taken: those for streams alone are without effect in a batch.
    taker = Of.STREAM if is_stream else Of.RECORDS if table == RECORDS else Of.TABLE
    if table == OF_KEYS:
        taker |= Of.LATEST
    refused = [row.name for row in _READ if row.name.lower() in lower and not taker & row.of]
    if refused and is_stream:
        raise ValueError(
            f"option {refused[0]} is for spark.read: a stream has no end; to stop at what is there "
            "now, start the query with trigger(availableNow=True)"
        )
    if refused:
        about = "the last records of keys" if table == OF_KEYS else "whole logs"
        raise ValueError(
            f"table {table!r} is about {about} and takes no option {', '.join(refused)}; "
            "choose logs by subscribe, assign or subscribePattern, and rows by WHERE"
        )
