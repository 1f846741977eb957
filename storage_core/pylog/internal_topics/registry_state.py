"""What a registry knows after it has read ``_schemas``, and what it no longer knows.

Records are taken as Confluent's registry takes them, in the order of the log. Beside that, every
schema stays that a record has: a deleted one still explains what its topics hold.

Source: KafkaStoreMessageHandler, KafkaStoreReaderThread, InMemoryCache (Schema Registry 8.5).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.internal_topics.schema_registry import (
    DEFAULT_CONTEXT,
    RegistryKey,
    SchemaReference,
    SchemaValue,
    Subject,
    config_of,
    deleted_subject,
    mode_of,
    read_key,
    read_object,
    schema_value,
    subject_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class SchemaState(StrEnum):
    """What a registry that starts on the topic makes of a schema.

    Attributes
    ----------
    ACTIVE
        It is the version of its subject.
    SOFT_DELETED
        The version is deleted; the registry still finds the schema by its id.
    HARD_DELETED
        The registry has forgotten it: a tombstone has removed it, or its subject was cleared.
    REPLACED
        A later record has another schema for the same version.
    IGNORED
        The registry rejects it: its id belongs to another schema.
    """

    ACTIVE = "active"
    SOFT_DELETED = "soft-deleted"
    HARD_DELETED = "hard-deleted"
    REPLACED = "replaced"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema that a record of ``_schemas`` has.

    Attributes
    ----------
    id
        What messages refer to it by; unique in its context.
    subject, version
        As registered.
    type
        ``AVRO``, ``PROTOBUF`` or ``JSON``.
    schema
        The text.
    deleted
        Whether the version is soft-deleted or hard-deleted.
    state
        What a registry makes of it.
    context
        That of the subject; ``.`` is the default.
    guid
        What messages of newer clients refer to it by; None where it is not stored and has metadata
        or rules.
    references
        Schemas that it uses.
    partition, offset, timestamp
        Of the last record that has it; in ms, -1 for none.
    """

    id: int
    subject: str
    version: int
    type: str
    schema: str
    deleted: bool
    state: SchemaState
    context: str
    guid: str | None
    references: tuple[SchemaReference, ...]
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class SubjectSettings:
    """How a subject is configured; subject None is the whole registry.

    Attributes
    ----------
    mode
        READWRITE, READONLY, IMPORT and the like; None where nothing says it.
    configs
        Compatibility and other settings that are a word or a switch, by name; ``alias`` is the
        subject that this one stands for.
    """

    subject: str | None
    mode: str | None
    configs: dict[str, str | bool]


@dataclass(frozen=True, slots=True)
class RegistryProblem:
    """What is wrong with a record of ``_schemas``, or worth knowing.

    Attributes
    ----------
    code
        ``unreadable_record``, ``duplicate_id``, ``missing_reference``, ``several_partitions``,
        ``key_mismatch``, ``second_key``, ``key_format`` or ``old_magic``.
    partition, offset
        Of the record; None if the problem is not of one record.
    message
        The problem.
    """

    code: str
    partition: int | None
    offset: int | None
    message: str


class _Place(NamedTuple):
    """The partition, offset and timestamp of a record."""

    partition: int
    offset: int
    timestamp: int


@dataclass(slots=True)
class _Entry:
    """A schema that a record has, and what has become of it so far."""

    subject: str
    version: int
    value: SchemaValue
    place: _Place
    state: SchemaState

    @property
    def is_deleted(self) -> bool:
        return self.state in (SchemaState.SOFT_DELETED, SchemaState.HARD_DELETED)


@dataclass(slots=True)
class RegistryState:
    """Takes records in the order of the log; one thread.

    ``problems`` has at most 1,000 of each code, `problem_counts` counts all.
    """

    problems: list[RegistryProblem] = field(default_factory=list)
    problem_counts: Counter[str] = field(default_factory=Counter)
    contexts: set[str] = field(default_factory=set)
    _entries: dict[tuple[object, ...], _Entry] = field(default_factory=dict)
    # The registry's own state: by subject and version, and by context and id.
    _store: dict[Subject, dict[int, _Entry]] = field(default_factory=dict)
    _ids: dict[tuple[str, int], dict[Subject, int]] = field(default_factory=dict)
    _configs: dict[str | None, dict[str, str | bool]] = field(default_factory=dict)
    _modes: dict[str | None, str | None] = field(default_factory=dict)
    _key_bytes: dict[tuple[str, Subject, int], dict[bytes, int]] = field(default_factory=dict)

    def take(
        self, partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None
    ) -> None:
        """Take a record in."""
        place = _Place(partition, offset, timestamp)
        try:
            read = read_key(key)
            fields = read_object(value)
            self._apply(read, fields, place)
        except InvalidRecordError as error:
            self._note("unreadable_record", place, f"{error.reason}")
            return
        self._look_at_key(read, key or b"", place)

    def schemas(self) -> list[StoredSchema]:
        """Return all schemas, by subject, version and offset."""
        found = [
            StoredSchema(
                id=each.value.id,
                subject=each.subject,
                version=each.version,
                type=each.value.type,
                schema=each.value.schema,
                deleted=each.is_deleted,
                state=each.state,
                context=Subject.of(each.subject).context,
                guid=each.value.guid,
                references=each.value.references,
                partition=each.place.partition,
                offset=each.place.offset,
                timestamp=each.place.timestamp,
            )
            for each in self._entries.values()
        ]
        return sorted(found, key=lambda each: (each.subject, each.version, each.offset))

    def settings(self) -> list[SubjectSettings]:
        """Return how subjects are configured, the whole registry first."""
        subjects = sorted({*self._configs, *self._modes}, key=lambda each: each or "")
        return [
            SubjectSettings(each, self._modes.get(each), self._configs.get(each, {}))
            for each in subjects
        ]

    def look_at_references(self) -> None:
        """Note the references that lead nowhere; after the last record."""
        for entry in self._entries.values():
            if entry.state is SchemaState.IGNORED:
                continue
            for each in entry.value.references:
                if self._stored(_reference(entry.subject, each), each.version) is None:
                    message = (
                        f"{entry.subject} version {entry.version} refers to {each.name!r}, which "
                        f"is {each.subject} version {each.version}: the registry has no such schema"
                    )
                    self._note("missing_reference", entry.place, message)

    def note_partitions(self, topic: str, count: int) -> None:
        """Note that the topic has several partitions."""
        if count > 1:
            message = (
                f"{topic} has {count} partitions: a registry does not start on more than one, and "
                "their order is not known"
            )
            self._note("several_partitions", None, message)

    def _apply(self, key: RegistryKey, fields: Mapping[str, Any] | None, place: _Place) -> None:
        subject = key.subject
        match key.keytype:
            case "SCHEMA" if subject is not None:
                if fields is None:
                    self._forget(Subject.of(subject), key.version)
                else:
                    self._register(subject, key.version, schema_value(fields), place)
            case "DELETE_SUBJECT" if fields is not None:
                self._delete(*deleted_subject(fields))
            case "CLEAR_SUBJECT" if fields is not None:
                self._clear(subject_of(fields))
            case "CONFIG":
                self._configs.pop(subject, None)
                if fields is not None:
                    self._configs[subject] = config_of(fields)
            case "MODE":
                self._modes.pop(subject, None)
                if fields is not None:
                    self._modes[subject] = mode_of(fields)
            case "CONTEXT" if fields is not None:
                self.contexts.add(key.context or DEFAULT_CONTEXT)

    def _register(self, subject: str, version: int, value: SchemaValue, place: _Place) -> None:
        parts = Subject.of(subject)
        if (value.subject or subject, value.version or version) != (subject, version):
            message = (
                f"the key is of {subject} version {version}, the value of "
                f"{value.subject or subject} version {value.version or version}; the key counts"
            )
            self._note("key_mismatch", place, message)
        content = (subject, version, value.id, value.type, value.schema, value.references)
        known = self._entries.get(content)
        other = self._conflicting(parts.context, value)
        if other is not None:
            if known is None:
                self._entries[content] = _Entry(subject, version, value, place, SchemaState.IGNORED)
            message = (
                f"id {value.id} of {subject} version {version} already belongs to "
                f"{other.subject} version {other.version} (offset {other.place.offset}), whose "
                "schema is another one; a registry keeps that"
            )
            self._note("duplicate_id", place, message)
            return
        state = SchemaState.SOFT_DELETED if value.deleted else SchemaState.ACTIVE
        entry = _Entry(subject, version, value, place, state)
        self._entries[content] = entry
        replaced = self._store.setdefault(parts, {}).get(version)
        if replaced is not None and replaced is not known:
            replaced.state = SchemaState.REPLACED
        self._store[parts][version] = entry
        self._ids.setdefault((parts.context, value.id), {})[parts] = version

    def _conflicting(self, context: str, value: SchemaValue) -> _Entry | None:
        """Return a schema that has the id already, and another text."""
        for subject, version in self._ids.get((context, value.id), {}).items():
            found = self._stored(subject, version)
            if found is not None and found.value.schema != value.schema:
                return found
        return None

    def _stored(self, subject: Subject, version: int) -> _Entry | None:
        return self._store.get(subject, {}).get(version)

    def _forget(self, subject: Subject, version: int) -> None:
        entry = self._store.get(subject, {}).pop(version, None)
        if entry is None:
            return
        entry.state = SchemaState.HARD_DELETED
        versions = self._ids.get((subject.context, entry.value.id), {})
        if versions.get(subject) == version:
            del versions[subject]

    def _delete(self, subject: str | None, up_to: int) -> None:
        for version, entry in self._store.get(Subject.of(subject), {}).items():
            if 1 <= version <= up_to and entry.state is SchemaState.ACTIVE:
                entry.state = SchemaState.SOFT_DELETED

    def _clear(self, subject: str | None) -> None:
        """Forget the deleted versions of a subject, of a context, or of all."""
        cleared = Subject.of(subject)
        for each in list(self._store):
            if subject is None or cleared.covers(each):
                for version, entry in list(self._store[each].items()):
                    if entry.state is SchemaState.SOFT_DELETED:
                        self._forget(each, version)

    def _look_at_key(self, key: RegistryKey, data: bytes, place: _Place) -> None:
        """Note what keeps a compaction from seeing that two records are of the same thing."""
        if key.keytype == "NOOP":
            return
        about = key.keytype if key.subject is None else f"{key.keytype} of {key.subject}"
        if key.keytype == "SCHEMA":
            about += f" version {key.version}"
        if key.keytype not in ("CONTEXT", "ASSOC"):
            seen = self._key_bytes.setdefault(
                (key.keytype, Subject.of(key.subject), key.version), {}
            )
            if data not in seen and seen:
                first = next(iter(seen.values()))
                message = (
                    f"the key of {about} is written in other bytes than at offset {first}: a "
                    "compaction keeps both records, and once a tombstone is gone, what it deleted "
                    "comes back"
                )
                self._note("second_key", place, message)
            seen.setdefault(data, place.offset)
        if key.keytype == "SCHEMA" and key.magic == 0:
            self._note("old_magic", place, f"the key of {about} has magic 0, expected 1")
        elif not key.is_canonical:
            message = f"the key of {about} is not written as Confluent's registry writes it"
            self._note("key_format", place, message)

    def _note(self, code: str, place: _Place | None, message: str) -> None:
        self.problem_counts[code] += 1
        if self.problem_counts[code] <= _MOST_PROBLEMS:
            partition = None if place is None else place.partition
            offset = None if place is None else place.offset
            self.problems.append(RegistryProblem(code, partition, offset, message))


_MOST_PROBLEMS = 1000


def _reference(subject: str, reference: SchemaReference) -> Subject:
    """Return which subject a reference means: without a context, one of the same context."""
    parts = Subject.of(reference.subject)
    own = Subject.of(subject).context
    return parts if parts.context != DEFAULT_CONTEXT else Subject(own, reference.subject)
