"""What `pylog.write_topic` and others are told about the schema by which values are encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.internal_topics.schema_registry import COMPATIBILITY_LEVELS, SCHEMAS_TOPIC

if TYPE_CHECKING:
    import os

FRAMINGS = ("prefix", "header")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSchema:
    """The schema that keys or values are encoded by, and how they refer to it.

    Attributes
    ----------
    schema
        A file, ``.avsc``, ``.json`` or ``.proto``: it is registered in the log directory that is
        written, unless its subject has it already. None for a version that is registered.
    subject
        By default ``<topic>-value``, or ``<topic>-key``.
    version
        Of the subject, without ``schema``; "latest" is the last one that is not deleted.
    registry
        A directory with the topic of another registry, or the URL of one that runs, which then has
        to have the schema: nothing is registered there. None for the directory that is written.
    registry_topic
        That topic, ``kafkastore.topic`` of the registry.
    compatibility
        How a new schema has to agree with the versions before: NONE, BACKWARD, FORWARD, FULL, or
        one of these and ``_TRANSITIVE``. None for what the registry's topic says, else BACKWARD, as
        in a registry.
    message
        Of Protobuf, the full name of the message; None for the first of the file.
    framing
        "prefix": values begin with a zero byte and the id. "header": the header
        ``__value_schema_id`` (``__key_schema_id``) has the schema's GUID, and values no prefix.

    Examples
    --------
    >>> order = pylog.jobs.WriterSchema(schema="order.avsc", compatibility="FULL")
    >>> pylog.write_topic("logs", "orders", rows, value_schema=order)  # doctest: +SKIP
    """

    schema: str | os.PathLike[str] | None = None
    subject: str | None = None
    version: int | str = "latest"
    registry: str | os.PathLike[str] | None = None
    registry_topic: str = SCHEMAS_TOPIC
    compatibility: str | None = None
    message: str | None = None
    framing: str = "prefix"

    def __post_init__(self) -> None:
        if self.framing not in FRAMINGS:
            known = " or ".join(map(repr, FRAMINGS))
            raise ValueError(f"framing is {self.framing!r}, expected {known}")
        if self.compatibility not in (None, *COMPATIBILITY_LEVELS):
            known = ", ".join(COMPATIBILITY_LEVELS)
            raise ValueError(f"compatibility is {self.compatibility!r}, expected one of {known}")
        if isinstance(self.version, str) and self.version != "latest":
            raise ValueError(f"version is {self.version!r}, expected a number or 'latest'")
        if self.schema is not None and self.version != "latest":
            raise ValueError("give a file with a schema, or a version that is registered, not both")

    @classmethod
    def of(cls, given: str | os.PathLike[str] | WriterSchema | None) -> WriterSchema | None:
        """Return what an argument says: a file, or "latest" for what is registered."""
        if given is None or isinstance(given, WriterSchema):
            return given
        return cls() if given == "latest" else cls(schema=given)
