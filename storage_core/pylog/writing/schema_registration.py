"""Schemas for values that are written: found in a registry's topic, or entered there.

What a registry would do is done: a schema that the subject has keeps its version, one that another
subject has keeps its id, and a new one is held against the versions before. Ids are never given
twice, also not that of a schema that a registry has forgotten, for records may still have it.

A schema is entered, and flushed, before the first record that refers to it: after a crash there may
be a schema without records, and never a record without its schema.

Source: KafkaSchemaRegistry.register, IncrementalIdGenerator (Schema Registry 8.5).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.errors import InvalidSchemaError, LogLockedError, NoSchemaError
from pylog.internal_topics.registry_state import RegistryState, SchemaState
from pylog.internal_topics.schema_registry import (
    DEFAULT_CONTEXT,
    Subject,
    schema_key,
    schema_record,
)
from pylog.lazy_modules import LazyModule
from pylog.locations import printable_location, without_overlay
from pylog.log.log_manager import ensure_open
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import open_directory
from pylog.reading.registry_records import is_registry_url, read_registry
from pylog.reading.schema_file import schema_in
from pylog.typed.known_schemas import registered_schemas
from pylog.typed.schema_formats import ensure_compatible, reader_of, registered_text
from pylog.writing.column_encoder import ColumnEncoder
from pylog.writing.owned_directory import own_log_directory
from pylog.writing.record_rows import RecordRow, rows_to_batch
from pylog.writing.topic_writer import TopicWriter
from pylog.writing.topics import create_topic, logs_of_topic
from pylog.writing.writer_schema import WriterSchema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pylog.internal_topics.registry_state import StoredSchema
    from pylog.log.log_manager import LogManager
    from pylog.model import TopicPartition
    from pylog.reading import schema_registry_client
    from pylog.typed.known_schemas import KnownSchema
else:
    schema_registry_client = LazyModule("pylog.reading.schema_registry_client")

_SECONDS_BETWEEN = 0.2
_DEFAULT_LEVEL = "BACKWARD"
_CONFIG = {"cleanup.policy": "compact"}
_KNOWN_TO_REGISTRY = (SchemaState.ACTIVE, SchemaState.SOFT_DELETED)

Record = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class SchemaRegistration:
    """The schemas of a topic's keys and values, and what enters them in the registry's topic.

    Attributes
    ----------
    directory
        The log directory that is written.
    topic
        Whose keys and values they are.
    wanted
        What was asked for, by column.
    encoders
        What encodes columns.
    records
        Those that are to be appended, by the registry's topic.
    """

    directory: str
    topic: str
    wanted: Mapping[str, WriterSchema]
    encoders: Mapping[str, ColumnEncoder]
    records: Mapping[str, tuple[Record, ...]]

    @property
    def topics(self) -> frozenset[str]:
        """The registry's topics that records are appended to."""
        return frozenset(self.records)

    def enter(self, manager: LogManager) -> None:
        """Append what is new to the registry's topic of an owned directory.

        Raises
        ------
        InvalidSchemaError
            Another schema was registered in the meantime.
        """
        if not self.records:
            return
        if plan_registration(self.directory, self.topic, self.wanted).encoders != self.encoders:
            raise InvalidSchemaError(
                f"other schemas were registered in {printable_location(self.directory)} in the "
                "meantime, so that ids have changed: begin again",
            )
        for topic, records in self.records.items():
            _append(manager, topic, records)


def plan_registration(
    directory: str | os.PathLike[str],
    topic: str,
    wanted: Mapping[str, str | os.PathLike[str] | WriterSchema | None],
) -> SchemaRegistration:
    """Return how the columns of a topic are encoded; nothing is changed.

    Parameters
    ----------
    directory
        The log directory that is to be written.
    topic
        The topic.
    wanted
        The schemas for ``key`` and ``value``: see `WriterSchema`.

    Raises
    ------
    InvalidSchemaError
        A schema is wrong, or not compatible with the versions before, or may not be registered.
    NoSchemaError
        It is not registered, and no file has it.
    LogStorageError
        The registry's topic cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("count.avsc").write_text('"long"')
    >>> planned = pylog.jobs.plan_registration("logs", "counts", {"value": "count.avsc"})
    >>> sorted(planned.topics)
    ['_schemas']
    """
    local = without_overlay(os.fspath(directory))
    states: dict[tuple[str, str], RegistryState] = {}
    given = {name: WriterSchema.of(each) for name, each in wanted.items()}
    asked = {name: each for name, each in given.items() if each is not None}
    encoders = {}
    records: dict[str, tuple[Record, ...]] = {}
    for name, each in asked.items():
        where = local if each.registry is None else os.fspath(each.registry)
        place = where, each.registry_topic
        if place not in states:
            is_new = each.registry is None and not _has_topic(*place)
            states[place] = RegistryState() if is_new else _state(*place)
        state = states[place]
        search = _Search(state, each, each.subject or f"{topic}-{name}", where)
        schema, guid, new = search.found()
        encoders[name] = ColumnEncoder(name, schema, guid if each.framing == "header" else None)
        if new:
            records[each.registry_topic] = (*records.get(each.registry_topic, ()), *new)
    return SchemaRegistration(local, topic, asked, encoders, records)


def register_schemas(
    directory: str | os.PathLike[str],
    topic: str,
    wanted: Mapping[str, str | os.PathLike[str] | WriterSchema | None],
    *,
    timeout: float = 60.0,
    recover_as_broker: bool = False,
) -> Mapping[str, ColumnEncoder]:
    """Return what encodes the columns of a topic, once their schemas are registered.

    Parameters
    ----------
    directory, topic, wanted
        As for `plan_registration`, and so are errors.
    timeout
        How many seconds to wait for somebody else to let go of the log directory, which is owned
        only if a schema is new.
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does.

    Raises
    ------
    LogLockedError
        A broker, or another process, has held the directory for that long.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("count.avsc").write_text('"long"')
    >>> encoders = pylog.jobs.register_schemas("logs", "counts", {"value": "count.avsc"})
    >>> encoders["value"].encode(42, is_json=False).hex()
    '000000000154'
    """
    deadline = time.monotonic() + timeout
    while True:
        plan = plan_registration(directory, topic, wanted)
        if not plan.records:
            return plan.encoders
        try:
            with own_log_directory(
                directory,
                recover_as_broker=recover_as_broker,
                before_changes=ensure_open(partial(_is_of, plan.topics)),
            ) as manager:
                plan.enter(manager)
                return plan.encoders
        except LogLockedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_SECONDS_BETWEEN)


def _is_of(topics: Collection[str], partition: TopicPartition) -> bool:
    return partition.topic in topics


def _has_topic(directory: str, topic: str) -> bool:
    """Whether a directory that is to be written has a registry's topic, or any at all."""
    path = Path(directory)
    return path.is_dir() and any(path.glob(f"{topic}-*"))


def _state(directory: str, topic: str) -> RegistryState:
    if is_registry_url(directory):
        return schema_registry_client.read_registry_at(directory)
    views = open_directory(directory).topics.get(topic, [])
    if len(views) > 1:
        raise InvalidSchemaError(
            f"{topic} has {len(views)} partitions: no registry starts on more than one", directory
        )
    state, _ = read_registry(views, ReadMode.FAILFAST)
    return state


class _Search:
    """Finds a schema in a registry's topic, or says what enters it."""

    def __init__(
        self, state: RegistryState, wanted: WriterSchema, subject: str, directory: str
    ) -> None:
        self._state, self._wanted, self._subject = state, wanted, subject
        self._directory = directory
        self._stored = state.schemas()
        self._known = registered_schemas(self._stored)
        self._settings = {each.subject: each for each in state.settings()}

    def found(self) -> tuple[KnownSchema, str | None, list[Record]]:
        """Return the schema, its GUID, and the records that enter it."""
        if self._wanted.schema is None:
            return *self._registered(), []
        given = schema_in(self._wanted.schema, None)
        text = registered_text(replace(given, message=self._wanted.message))
        same = [each for each in self._stored if self._is(each, given.type, text)]
        own = [each for each in same if each.subject == self._subject]
        active = [each for each in own if each.state is SchemaState.ACTIVE]
        if active:
            return self._of(active[-1]), active[-1].guid, []
        if self._wanted.registry is not None:
            raise NoSchemaError(
                f"subject {self._subject} in {printable_location(self._directory)} does not have "
                "the schema of the file: register it there, or leave registry out",
            )
        self._ensure_writable()
        new = replace(given, text=text)
        try:
            ensure_compatible(self._level(), new, self._versions())
        except InvalidSchemaError as error:
            msg = (
                f"subject {self._subject}: {error.reason}. Compatibility NONE registers it "
                "nevertheless"
            )
            raise InvalidSchemaError(msg) from None
        return self._entered(new, same, own)

    def _is(self, stored: StoredSchema, kind: str, text: str) -> bool:
        is_known = stored.state in _KNOWN_TO_REGISTRY and stored.context == DEFAULT_CONTEXT
        return is_known and (stored.type, stored.schema, stored.references) == (kind, text, ())

    def _of(self, stored: StoredSchema) -> KnownSchema:
        found = self._known.version(stored.subject, stored.version)
        assert found is not None  # noqa: S101 - of what is stored
        return replace(found, message=self._wanted.message)

    def _registered(self) -> tuple[KnownSchema, str | None]:
        """Return a version that is registered."""
        version = self._wanted.version
        own = [each for each in self._stored if each.subject == self._subject]
        usable = [each for each in own if each.state is SchemaState.ACTIVE]
        if isinstance(version, int):
            usable = [each for each in own if each.version == version]
        if not usable:
            what = "version" if isinstance(version, str) else f"version {version}"
            where = printable_location(self._directory)
            raise NoSchemaError(
                f"subject {self._subject} has no {what} in topic {self._wanted.registry_topic} of "
                f"{where}: give a file with the schema, which is then registered",
            )
        return self._of(usable[-1]), usable[-1].guid

    def _ensure_writable(self) -> None:
        if Subject.of(self._subject).context != DEFAULT_CONTEXT:
            raise InvalidSchemaError(
                f"subject {self._subject} is of a context of its own: schemas are registered in "
                "the default one",
            )
        both = [self._settings[each] for each in (self._subject, None) if each in self._settings]
        modes = [each for each in both if each.mode is not None]
        if modes and modes[0].mode != "READWRITE":
            whose = "the registry" if modes[0].subject is None else f"subject {self._subject}"
            raise InvalidSchemaError(
                f"{whose} is in mode {modes[0].mode}: no schema may be registered"
            )
        for each in both:
            if alias := each.configs.get("alias"):
                raise InvalidSchemaError(
                    f"subject {self._subject} stands for {alias}: name that one"
                )

    def _level(self) -> str:
        if self._wanted.compatibility is not None:
            return self._wanted.compatibility
        for subject in (self._subject, None):
            settings = self._settings.get(subject)
            level = None if settings is None else settings.configs.get("compatibilityLevel")
            if level is not None:
                return str(level)
        return _DEFAULT_LEVEL

    def _versions(self) -> list[KnownSchema]:
        """Return the versions that a new one has to agree with, from the oldest on."""
        versions = self._known.versions.get(self._subject, [])
        return [each.schema for each in versions if not each.is_deleted]

    def _entered(
        self, schema: KnownSchema, same: list[StoredSchema], own: list[StoredSchema]
    ) -> tuple[KnownSchema, str | None, list[Record]]:
        """Return what a registry would write: the version, instead of deleted ones of its id."""
        most = max((each.id for each in self._stored), default=0)
        schema_id = same[0].id if same else most + 1
        versions = [each.version for each in self._stored if each.subject == self._subject]
        version = max(versions, default=0) + 1
        used = {(of.subject, of.version) for each in self._stored for of in each.references}
        records: list[Record] = [
            (schema_key(each.subject, each.version), None)
            for each in own
            if (each.subject, each.version) not in used
        ]
        records.append(schema_record(self._subject, version, schema_id, schema.type, schema.text))
        for key, value in records:
            self._state.take(0, -1, -1, key, value)
        (stored,) = (
            each
            for each in self._state.schemas()
            if (each.subject, each.version) == (self._subject, version)
        )
        made = replace(schema, id=schema_id, message=self._wanted.message)
        reader_of(made)  # whose message has to be there
        return made, stored.guid, records


def _append(manager: LogManager, topic: str, records: Iterable[Record]) -> None:
    if not logs_of_topic(manager, topic):
        create_topic(manager, topic, 1, properties=_CONFIG)
    logs = logs_of_topic(manager, topic)
    writer = TopicWriter(topic, logs, manager.config_of(topic))
    now_ms = manager.context.clock.milliseconds()
    for key, value in records:  # each in a batch of its own, as a registry writes them
        writer.append(rows_to_batch([RecordRow(key, value)]), timestamp_ms=now_ms)
    for log in logs.values():
        log.flush()
