"""What `pylog.scan` is told about keys or values that have a schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.internal_topics.schema_registry import SCHEMAS_TOPIC

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

SCHEMA_TYPES = {"auto": None, "avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
"""The formats, and the only type of schemas that each reads."""

EACH_TOPIC, TYPED_TOPICS = "each", "typed"
TOPIC_CHOICES = (None, EACH_TOPIC, TYPED_TOPICS)

MESSAGE_INDEXES = ("spec", "maps", "no-maps", "ref", "plain", "reverse", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFormat:
    """How keys or values are decoded: where their schemas are, and which fields columns have.

    Attributes
    ----------
    format
        "auto": as the schema says that a value refers to. "avro", "json", "protobuf": schemas of
        other types are passed over. "json" needs no schema: where values refer to none, and none is
        named, their type is inferred from the first records, and warnings say what they do not
        agree in, which is kept as JSON text.
    registry
        A directory, or several, with the topic of the schema registry, or the URL of one that runs,
        ``http://user:password@host:8081``; None for the directory that is scanned.
    registry_topic
        That topic, ``kafkastore.topic`` of the registry.
    schemas
        Files of schemas by id, a number or a UUID: before those of a registry that has the same
        id. They are ``.avsc``, ``.proto``, ``.json`` (JSON Schema), or ``.ddl``, which has the type
        of JSON values in Spark's words.
    schema
        The file of the schema of values without a prefix and without headers.
    subject
        Whose schema the columns have, and by whose ids values may be written beside others. By
        default ``<topic>-value``, or ``<topic>-key``; without such a subject, the only one whose
        ids the first records have.
    version
        A version of the subject; "latest" is the last one that is not deleted. "union" has the
        fields of all versions: those that a record's own version does not have are null.
    message
        Of Protobuf, the full name of the message that columns are of. By default the only one that
        the first records are of; of values without a prefix, the first of the file.
    message_indexes
        Of Protobuf, how the values say which message they are. "spec": as Confluent's serializers
        write it; "maps" and "no-maps" say whether they count the entries of maps as messages, where
        that makes two; "ref" is Apicurio's name. Clients that did it wrongly: "plain", without
        zigzag; "reverse", the innermost message first; "none", not at all.
    topics
        What happens where several topics are read. "each": each has columns of its own, and one
        that has no schema keeps its bytes; record batches of two topics may then differ in schema,
        so take them one at a time, as `pylog cat` does. "typed": topics without a schema are left
        out, and a warning names them. None: they are left out unless topics were named, and an
        error if they were. Except with "each", all topics need the same fields.

    Examples
    --------
    >>> order = pylog.jobs.ValueFormat(schemas={7: "order.avsc"})
    >>> pylog.scan("kafka", topics="orders", value_format=order)  # doctest: +SKIP
    """

    format: str = "auto"
    registry: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None
    registry_topic: str = SCHEMAS_TOPIC
    schemas: Mapping[int | str, str | os.PathLike[str]] = field(default_factory=dict)
    schema: str | os.PathLike[str] | None = None
    subject: str | None = None
    version: int | str = "latest"
    message: str | None = None
    message_indexes: str = "spec"
    topics: str | None = None

    def __post_init__(self) -> None:
        if self.format not in SCHEMA_TYPES:
            known = ", ".join(map(repr, SCHEMA_TYPES))
            raise ValueError(f"the format of values is {self.format!r}, expected one of {known}")
        if isinstance(self.version, str) and self.version not in ("latest", "union"):
            msg = f"version is {self.version!r}, expected a number, 'latest' or 'union'"
            raise ValueError(msg)
        if self.topics not in TOPIC_CHOICES:
            known = ", ".join(map(repr, TOPIC_CHOICES))
            raise ValueError(f"topics is {self.topics!r}, expected one of {known}")
        if self.message_indexes not in MESSAGE_INDEXES:
            known = ", ".join(map(repr, MESSAGE_INDEXES))
            given = self.message_indexes
            raise ValueError(f"message_indexes is {given!r}, expected one of {known}")

    @classmethod
    def of(cls, given: str | ValueFormat | None) -> ValueFormat | None:
        """Return what an argument says; `ValueError` if there is no such format."""
        return cls(format=given) if isinstance(given, str) else given
