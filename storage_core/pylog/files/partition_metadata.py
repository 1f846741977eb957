"""``partition.metadata``: the id of the topic that a partition directory belongs to.

Two lines of UTF-8 text, each ``<name>: <value>``; the broker writes no newline at the end::

    version: 0
    topic_id: 7bGSu7gYRDuEkZTQ2w4F_g

The id is a UUID as Kafka writes all of them: its 16 bytes in URL-safe base64, 22 characters,
without padding. Versions above 0 are accepted, since a broker accepts them to allow downgrades;
the UUID of 16 zero bytes is not an id. Written by brokers since 2.8.

As a broker, the values are read from the first two lines, whatever the names are. A value is all
that follows the colon and its blanks: a blank behind it makes it none.

Source: PartitionMetadataFile, PartitionMetadataReadBuffer, Uuid (KIP-516; Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import base64
import re
import uuid
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_text_file, split_lines
from pylog.files.java_numbers import parse_integer, shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from pylog.files.durable_io import DurableIO

PARTITION_METADATA_VERSION = 0
ZERO_UUID = uuid.UUID(int=0)
_RESERVED_UUID_COUNT = 100  # those of the smallest values: Kafka's own topics and directories
_SEPARATOR = re.compile(r":[ \t\n\x0b\f\r]+")
_UUID_TEXT = re.compile(r"([A-Za-z0-9_-]{22})(?:==)?")


class PartitionMetadata(NamedTuple):
    """Content of a ``partition.metadata`` file."""

    version: int
    topic_id: uuid.UUID


def parse_uuid(text: str) -> uuid.UUID:
    """Return the UUID that Kafka writes as ``text``, 22 characters of URL-safe base64.

    Raises
    ------
    ValueError
        ``text`` is not of that form; ``==`` at its end is accepted.

    Examples
    --------
    >>> pylog.parse_uuid("RVsaA6ukRsm1uW_Met5mHQ")
    UUID('455b1a03-aba4-46c9-b5b9-6fcc7ade661d')
    """
    match = _UUID_TEXT.fullmatch(text)
    if match is None:
        msg = f"{shorten(text)} is not a UUID of 22 base64url characters"
        raise ValueError(msg)
    return uuid.UUID(bytes=base64.urlsafe_b64decode(match[1] + "=="))


def format_uuid(value: uuid.UUID) -> str:
    """Return ``value`` as Kafka writes it, 22 characters of URL-safe base64.

    Examples
    --------
    >>> pylog.format_uuid(pylog.parse_uuid("RVsaA6ukRsm1uW_Met5mHQ"))
    'RVsaA6ukRsm1uW_Met5mHQ'
    """
    return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def read_partition_metadata(path: str | os.PathLike[str]) -> PartitionMetadata:
    """Return the content of a ``partition.metadata`` file."""
    text = read_text_file(path)
    found = _known.get(text)
    if found is None:
        found = _parsed(text, path)
        if len(_known) < _MOST_KNOWN:
            _known[text] = found
    return found


_MOST_KNOWN = 10_000
_known: dict[str, PartitionMetadata] = {}
"""By text, which all partitions of a topic have alike."""


def _parsed(text: str, path: str | os.PathLike[str]) -> PartitionMetadata:
    lines = split_lines(text)
    version_text = _value(lines, 0, "version", path)
    id_text = _value(lines, 1, "topic_id", path)
    try:
        version = parse_integer(version_text, 32)
        topic_id = parse_uuid(id_text)
    except ValueError as error:
        reason = f"partition metadata is malformed: {error}"
        raise CorruptCheckpointError(reason, path) from error
    if version < 0:
        reason = f"partition metadata has version {version}, expected 0 or above"
        raise CorruptCheckpointError(reason, path)
    if topic_id == ZERO_UUID:
        reason = f"partition metadata has the zero topic id {id_text}, which no topic has"
        raise CorruptCheckpointError(reason, path)
    return PartitionMetadata(version, topic_id)


def new_topic_id(random_uuid: Callable[[], uuid.UUID] = uuid.uuid4) -> uuid.UUID:
    """Return a random topic id: none that Kafka reserves, and none whose text begins with ``-``."""
    while True:
        topic_id = random_uuid()
        if topic_id.int >= _RESERVED_UUID_COUNT and not format_uuid(topic_id).startswith("-"):
            return topic_id


def write_partition_metadata(
    io: DurableIO, path: str | os.PathLike[str], topic_id: uuid.UUID
) -> None:
    """Replace a ``partition.metadata`` file, and return when it is on the disk.

    A broker writes it before the partition's first record.
    """
    if topic_id == ZERO_UUID:
        msg = "the zero UUID is not a topic id"
        raise ValueError(msg)
    text = f"version: {PARTITION_METADATA_VERSION}\ntopic_id: {format_uuid(topic_id)}"
    io.write_atomically(path, text.encode())


def _value(lines: list[str], index: int, name: str, path: str | os.PathLike[str]) -> str:
    """Return the value in line ``index``, which Kafka calls ``name``."""
    if index >= len(lines):
        reason = (
            f"partition metadata has {len(lines)} lines, expected line {index + 1}: '{name}: …'"
        )
        raise CorruptCheckpointError(reason, path)
    parts = _SEPARATOR.split(lines[index])
    while parts and not parts[-1]:  # as Java's split drops them
        parts.pop()
    if len(parts) != 2:
        reason = (
            f"partition metadata line {index + 1} is {shorten(lines[index])}, expected '{name}: …'"
        )
        raise CorruptCheckpointError(reason, path)
    return parts[1]
