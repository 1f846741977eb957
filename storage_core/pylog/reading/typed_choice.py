"""Which schemas a scan decodes keys and values by: those of a registry's topic, and of files.

The columns of a topic have the fields of one schema, the *reader's*: a version of the subject that
was named, of ``<topic>-value`` (``<topic>-key``), or of the only subject whose ids the first
records of the topic have; where they have none, the last ones.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.errors import (
    InvalidSchemaError,
    LogStorageError,
    NoSchemaError,
    UnknownTopicOrPartitionError,
)
from pylog.lazy_modules import LazyModule
from pylog.model import EARLIEST, FromEnd
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.log_directory import opened
from pylog.reading.registry_records import is_registry_url, stored_schemas
from pylog.reading.schema_file import schema_in
from pylog.reading.typed_records import TypedRecords
from pylog.reading.value_format import EACH_TOPIC, SCHEMA_TYPES, ValueFormat
from pylog.reading.view_batches import view_batches
from pylog.typed.decoder import Payloads
from pylog.typed.json_inference import infer_type
from pylog.typed.known_schemas import KnownSchema, KnownSchemas, SubjectVersion, registered_schemas
from pylog.typed.protobuf_format import messages_met
from pylog.typed.schema_formats import reader_of
from pylog.typed.spark_ddl import ddl_of
from pylog.typed.typed_column import TypedColumn
from pylog.typed.wire_formats import framed_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.internal_topics.registry_state import StoredSchema
    from pylog.model import OffsetSpec
    from pylog.reading import schema_registry_client
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.typed.wire_formats import FramedColumn
else:
    schema_registry_client = LazyModule("pylog.reading.schema_registry_client")

_LOOKED_AT = 3
"""How many record batches of each partition say which subjects a topic has."""
_LAST_OFFSETS = 10_000
"""How many say it at the end of each partition, where those at the start refer to no schema."""
_SAMPLED_BYTES = 1 << 24
"""Of the values that say what JSON without a schema is read as."""
_MOST_NAMED = 10
_LOGGER = logging.getLogger(__name__)
_BY_HAND = "the schemas that were given"


def typed_records(
    directory: LogDirectory,
    views: Sequence[LogView],
    mode: ReadMode,
    *,
    value: str | ValueFormat | None,
    key: str | ValueFormat | None,
    is_named: bool,
) -> TypedRecords:
    """Return what decodes the keys and values of some logs; what is None stays bytes.

    ``is_named``: whether the topics were named, so that each of them needs a schema.

    Raises
    ------
    InvalidSchemaError
        A schema is wrong, or it is not clear which one columns are to have.
    NoSchemaError
        There is none.
    UnknownTopicOrPartitionError
        There is no registry's topic, and no schemas were given.
    """
    columns = {}
    bare: dict[str, str] = {}
    for name, given in (("key", key), ("value", value)):
        wanted = ValueFormat.of(given)
        if wanted is not None:
            choice = _Choice(directory, wanted, name, mode, is_named=is_named)
            columns[name] = choice.column(views)
            bare |= choice.bare
    return TypedRecords(columns, bare=bare)


class _Choice:
    """Chooses for one column.

    Attributes
    ----------
    bare
        Topics that have no schema: why, by name.
    """

    def __init__(
        self,
        directory: LogDirectory,
        wanted: ValueFormat,
        name: str,
        mode: ReadMode,
        *,
        is_named: bool,
    ) -> None:
        self._directory, self._wanted, self._name, self._mode = directory, wanted, name, mode
        self._needs_all = wanted.topics is None and is_named
        self.bare: dict[str, str] = {}

    def column(self, views: Sequence[LogView]) -> TypedColumn:
        wanted = self._wanted
        topics = dict.fromkeys(view.topic for view in views)
        if wanted.schema is not None or self._is_to_infer(views):
            unframed = (
                self._inferred(views)
                if wanted.schema is None
                else replace(schema_in(wanted.schema, None), message=wanted.message)
            )
            kind = reader_of(unframed).type
            readers = dict.fromkeys(topics, unframed)
            return TypedColumn(self._name, kind, readers, KnownSchemas(), unframed)
        known = self._known()
        subjects, readers, bare = self._of_topics(topics, views, known)
        is_each = wanted.topics == EACH_TOPIC
        self.bare = {topic: error.reason for topic, error in bare.items()}
        if bare and not is_each and (self._needs_all or not readers):
            raise self._no_schema(bare, known)
        types = {topic: reader_of(schema).type for topic, schema in readers.items()}
        if len(set(types.values())) > 1 and not is_each:
            first, *_ = types
            other = next(each for each in types if types[each] != types[first])
            raise InvalidSchemaError(
                f"the {self._name}s of {first} and of {other} have schemas with other fields: read "
                "one topic at a time"
            )
        if not topics:
            raise InvalidSchemaError(f"there is no topic here whose {self._name}s have a schema")
        has_one = len(set(types.values())) == 1 and not (bare and is_each)
        only = subjects if wanted.subject is None else {}
        return TypedColumn(
            *(self._name, next(iter(types.values())) if has_one else pa.null(), readers, known),
            only_type=SCHEMA_TYPES[wanted.format],
            subjects=only,
            types={} if has_one else types,
            as_bytes=frozenset(bare if is_each else ()),
        )

    def _no_schema(self, bare: Mapping[str, NoSchemaError], known: KnownSchemas) -> NoSchemaError:
        if len(bare) == 1 or self._needs_all:
            return next(iter(bare.values()))
        return NoSchemaError(
            f"no {self._name}s refer to a schema that is known, of all topics here: "
            f"{_listed(bare)}{_named(known.versions)}"
        )

    def _of_topics(
        self, topics: Collection[str], views: Sequence[LogView], known: KnownSchemas
    ) -> tuple[dict[str, str], dict[str, KnownSchema], dict[str, NoSchemaError]]:
        """Return subjects and schemas of the topics that have one, and why others have none."""
        subjects, readers, bare = {}, {}, {}
        for topic in topics:
            of_topic = [view for view in views if view.topic == topic]
            try:
                subject = self._subject(topic, of_topic, known, is_alone=len(topics) == 1)
                schema = self._of_message(self._version(subject, known), topic, of_topic, known)
                if len(topics) > 1:  # what is wanted of others need not be of this one
                    self._ensure_type(topic, schema)
            except NoSchemaError as error:
                bare[topic] = error
            else:
                subjects[topic], readers[topic] = subject, schema
        return subjects, readers, bare

    def _ensure_type(self, topic: str, schema: KnownSchema) -> None:
        expected = SCHEMA_TYPES[self._wanted.format]
        if expected not in (None, schema.type):
            raise NoSchemaError(
                f"the {self._name}s of {topic} have a schema of the type {schema.type}, and "
                f"{expected} was asked for"
            )

    def _is_to_infer(self, views: Sequence[LogView]) -> bool:
        """Return whether values are JSON that refers to no schema, and none is named."""
        wanted = self._wanted
        if wanted.format != "json" or wanted.subject is not None or wanted.schemas:
            return False
        if self._stored is None:
            return True
        known = self._known()
        names = {f"{view.topic}-{self._name}" for view in views}
        return names.isdisjoint(known.versions) and not self._subjects_met(views, known)

    def _inferred(self, views: Sequence[LogView]) -> KnownSchema:
        """Return the schema that the first records have, and say what they do not agree in."""
        texts: list[bytes] = []
        size = 0
        for batch in self._first_batches(views):
            for text in batch.column(self._name):
                content = text.as_py()
                if content is not None and size < _SAMPLED_BYTES:
                    texts.append(content)
                    size += len(content)
        found = infer_type(texts)
        if found.texts == found.unreadable:
            raise InvalidSchemaError(
                f"no type can be inferred: the first {self._name}s are not JSON. Name a schema"
            )
        schema = KnownSchema(None, "JSON", ddl_of(found.field))
        _LOGGER.info("the %ss are read as %s", self._name, schema.text)
        for each in found.conflicts[:_MOST_NAMED]:
            _LOGGER.warning(
                "of the first %d %ss, from which their type is inferred: %s",
                *(found.texts, self._name, each),
            )
        return schema

    def _known(self) -> KnownSchemas:
        wanted = self._wanted
        if self._stored is None and not wanted.schemas:
            raise UnknownTopicOrPartitionError(
                f"no topic {wanted.registry_topic!r} here, where a schema registry keeps the "
                "schemas: name a directory that has it, or give files with schemas"
            )
        known = registered_schemas(self._stored or [])
        for version, (number, path) in enumerate(wanted.schemas.items(), 1):
            schema = schema_in(path, number)
            known.add(number, schema)
            by_hand = SubjectVersion(_BY_HAND, version, schema)
            known.versions.setdefault(_BY_HAND, []).append(by_hand)
        return known

    @cached_property
    def _stored(self) -> list[StoredSchema] | None:
        """What the registry has; None where there is none."""
        registry = self._wanted.registry
        if is_registry_url(registry):
            return schema_registry_client.read_registry_at(str(registry)).schemas()
        views = self._registry_views()
        return stored_schemas(views) if views else None

    def _registry_views(self) -> list[LogView]:
        """Return the partitions of the registry's topic, none if it is not there.

        Without a directory of its own it is that of the values, or of partitions that were given.
        """
        registry, name = self._wanted.registry, self._wanted.registry_topic
        if registry is not None:
            return opened(registry).topics.get(name, [])
        views = self._directory.topics.get(name, [])
        if views:
            return views
        given = (view.directory.path for views in self._directory.topics.values() for view in views)
        parents = {Path(path).parent for path in given if "://" not in path}
        found: list[LogView] = []
        for parent in sorted(parents):
            with suppress(LogStorageError):
                found += opened(parent).topics.get(name, [])
        return found

    def _subject(
        self, topic: str, views: Sequence[LogView], known: KnownSchemas, *, is_alone: bool
    ) -> str:
        wanted = self._wanted.subject
        if wanted is not None:
            if wanted not in known.versions:
                raise InvalidSchemaError(f"no subject {wanted!r} here{_named(known.versions)}")
            if is_alone or self._refers(wanted, views, known):
                return wanted
        own = f"{topic}-{self._name}"
        if own in known.versions:
            return own
        found = self._subjects_met(views, known)
        if len(found) == 1:
            return found.pop()
        if not found:
            raise NoSchemaError(
                f"no subject {own!r} here, and the first and last {self._name}s of {topic} refer "
                f"to no schema that is known{_named(known.versions)}"
            )
        raise InvalidSchemaError(
            f"the {self._name}s of {topic} have schemas of several subjects: "
            f"{', '.join(sorted(found))}. Choose one of them, as subject or with --subject"
        )

    def _of_message(
        self, schema: KnownSchema, topic: str, views: Sequence[LogView], known: KnownSchemas
    ) -> KnownSchema:
        """Return a schema with the message that columns are of, if it has messages."""
        if schema.type != "PROTOBUF":
            return schema
        indexes = self._wanted.message_indexes
        name = self._wanted.message
        if name is None:
            met: set[str] = set()
            for framed in self._first_values(views, known):
                for group in framed.groups:
                    if group.schema.type == schema.type:
                        payloads = Payloads(framed.data, group.starts, group.ends)
                        met |= messages_met(group.schema, group.framing, payloads, indexes)
            if len(met) > 1:
                raise InvalidSchemaError(
                    f"the {self._name}s of {topic} are of several messages: "
                    f"{', '.join(sorted(met))}. Choose one of them, as message or with --message"
                )
            name = next(iter(met), None)
        return replace(schema, message=name, message_indexes=indexes)

    def _refers(self, subject: str, views: Sequence[LogView], known: KnownSchemas) -> bool:
        """Return whether a topic beside others is one that a subject was named for.

        Where each topic has columns of its own, its first records refer to the subject; else to any
        schema, for they may be read as the subject has them.
        """
        is_each = self._wanted.topics == EACH_TOPIC
        return any(
            not is_each or subject in known.subjects_of(group.schema)
            for framed in self._first_values(views, known)
            for group in framed.groups
        )

    def _subjects_met(self, views: Sequence[LogView], known: KnownSchemas) -> set[str]:
        """Return the subjects of the ids that the first records of a topic have."""
        subjects: set[str] = set()
        for framed in self._first_values(views, known):
            for group in framed.groups:
                of_group = known.subjects_of(group.schema)
                # Of several that have the schema, any has the same text.
                if not subjects.intersection(of_group):
                    subjects.update(of_group[:1])
        return subjects

    def _first_values(
        self, views: Sequence[LogView], known: KnownSchemas
    ) -> Iterator[FramedColumn]:
        """Yield what the first records of each partition refer to, or the last if they do not."""
        is_any = False
        for of_ends in (False, True):
            if is_any:
                return
            for batch in self._last_batches(views) if of_ends else self._first_batches(views):
                columns = batch.column(self._name), batch.column("headers")
                framed = framed_values(*columns, self._name, known, says_why=False)
                is_any = is_any or bool(framed.groups)
                yield framed

    def _first_batches(self, views: Sequence[LogView]) -> Iterator[pa.RecordBatch]:
        for view in views:
            yield from islice(self._batches(view, EARLIEST), _LOOKED_AT)

    def _last_batches(self, views: Sequence[LogView]) -> Iterator[pa.RecordBatch]:
        for view in views:
            yield from self._batches(view, FromEnd(_LAST_OFFSETS))

    def _batches(self, view: LogView, start: OffsetSpec) -> Iterator[pa.RecordBatch]:
        columns = self._name, "headers"
        nowhere = DamageReport(is_logged=False)
        return view_batches(view, columns, ReadMode.DROPMALFORMED, nowhere, start=start)

    def _version(self, subject: str, known: KnownSchemas) -> KnownSchema:
        version = self._wanted.version
        if isinstance(version, int):
            found = known.version(subject, version)
            if found is None:
                raise InvalidSchemaError(f"subject {subject} has no version {version}")
            return found
        is_union = version == "union"
        latest = known.all_versions(subject) if is_union else known.latest(subject)
        if latest is None:
            raise InvalidSchemaError(f"subject {subject} has no version")
        return latest


def _named(names: Iterable[str]) -> str:
    """Return which subjects there are, as the end of a sentence."""
    listed = _listed(names)
    return f"; subjects are {listed}" if listed else ""


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _MOST_NAMED
    end = f" and {more} more" if more > 0 else ""
    return f"{', '.join(ordered[:_MOST_NAMED])}{end}"
