"""The schemas that values may be written with, by what messages refer to them by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pylog.internal_topics.registry_state import SchemaState
from pylog.internal_topics.schema_registry import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.internal_topics.registry_state import StoredSchema


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema with all that is needed to read by it.

    Attributes
    ----------
    id
        What messages refer to it by, a number or a UUID; None if it was named for messages that
        refer to none.
    type
        ``AVRO``, ``PROTOBUF`` or ``JSON``.
    text
        The schema.
    references
        Name and text of what it uses, those that others use first.
    message
        Of Protobuf, the message that columns are of; None for the first one.
    message_indexes
        Of Protobuf, how values say which message they are; see `pylog.typed.protobuf_indexes`.
    others
        Schemas whose fields columns are to have, too.
    """

    id: int | str | None
    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    message: str | None = None
    message_indexes: str = "spec"
    others: tuple[KnownSchema, ...] = ()

    def __str__(self) -> str:
        return "the schema that was given" if self.id is None else f"schema {self.id}"


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject, as far as choosing among them needs it."""

    subject: str
    version: int
    schema: KnownSchema
    is_deleted: bool = False


@dataclass(slots=True)
class KnownSchemas:
    """Schemas by number and by UUID, and the subjects that they are versions of.

    Attributes
    ----------
    by_id, by_uuid
        Schemas by what messages have.
    versions
        Of every subject, in order.
    """

    by_id: dict[int, KnownSchema] = field(default_factory=dict)
    by_uuid: dict[str, KnownSchema] = field(default_factory=dict)
    versions: dict[str, list[SubjectVersion]] = field(default_factory=dict)

    def subjects_of(self, schema: KnownSchema) -> list[str]:
        """Return the subjects that a schema is a version of."""
        return [
            subject
            for subject, versions in self.versions.items()
            if any(each.schema.id == schema.id for each in versions)
        ]

    def latest(self, subject: str) -> KnownSchema | None:
        """Return the last version of a subject; one that is deleted only if all are."""
        versions = self.versions.get(subject, [])
        active = [each for each in versions if not each.is_deleted] or versions
        return active[-1].schema if active else None

    def version(self, subject: str, version: int) -> KnownSchema | None:
        """Return a version of a subject."""
        found = [each for each in self.versions.get(subject, []) if each.version == version]
        return found[-1].schema if found else None

    def all_versions(self, subject: str) -> KnownSchema | None:
        """Return the latest schema of a subject with those of all other versions."""
        latest = self.latest(subject)
        if latest is None:
            return None
        others = {each.schema: None for each in reversed(self.versions[subject])}
        others.pop(latest)
        return replace(latest, others=tuple(others))

    def add(self, key: int | str, schema: KnownSchema) -> None:
        """Have a schema stand for what messages refer to by ``key``, whatever did before."""
        if isinstance(key, int):
            self.by_id[key] = schema
        else:
            self.by_uuid[key] = schema


def registered_schemas(stored: Iterable[StoredSchema]) -> KnownSchemas:
    """Return the schemas of a registry, deleted ones included.

    An id that was given twice is the schema that the registry takes it for; one that only another
    context than the default one has is that of its context.
    """
    ordered = sorted(stored, key=lambda each: (each.subject, each.version, each.offset))
    by_place = {(each.subject, each.version): each for each in ordered}
    known = KnownSchemas()
    ranks: dict[int, tuple[bool, bool]] = {}
    for each in ordered:
        schema = KnownSchema(
            each.id, each.type, each.schema, tuple(_references(each, by_place, set()).items())
        )
        rank = (each.state is SchemaState.IGNORED, each.context != DEFAULT_CONTEXT)
        if each.id not in ranks or rank < ranks[each.id]:
            ranks[each.id] = rank
            known.by_id[each.id] = schema
        if each.guid is not None:
            known.by_uuid.setdefault(each.guid, schema)
        if each.state is not SchemaState.IGNORED:
            known.versions.setdefault(each.subject, []).append(
                SubjectVersion(each.subject, each.version, schema, each.deleted)
            )
    return known


def _references(
    stored: StoredSchema,
    by_place: Mapping[tuple[str, int], StoredSchema],
    seen: set[tuple[str, int]],
) -> dict[str, str]:
    """Return the texts that a schema uses, by name; those that are not there are left out."""
    found: dict[str, str] = {}
    for each in stored.references:
        place = each.subject, each.version
        used = by_place.get(place)
        if used is None or place in seen:
            continue
        seen.add(place)
        found.update(_references(used, by_place, seen))
        found[each.name] = used.schema
    return found
