"""Checkpoints, offset syncs and heartbeats: the topics of MirrorMaker 2's own.

=============  =============================  =================================================
record         key                            value
=============  =============================  =================================================
checkpoint     group, topic (strings),        version (int16: 0), upstream offset, downstream
               partition (int32)              offset (int64), metadata (string)
offset sync    topic (string),                upstream offset, downstream offset (int64); no
               partition (int32)              version
heartbeat      source, target (strings)       version (int16: 0), timestamp (int64)
=============  =============================  =================================================

A string is its length as int16, and UTF-8. A checkpoint has the topic's name in the cluster that
the topic is mirrored to, an offset sync the name in the one that it comes from.

Of records between two syncs it is known that upstream none was left out. Downstream others may
stand between them, so MirrorMaker itself lets a group that is behind a sync go on right after it.

Source: Checkpoint, OffsetSync, Heartbeat, OffsetSyncStore, DefaultReplicationPolicy (Kafka 4.4);
KIP-382, KIP-690.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import InvalidRecordError
from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

OFFSET_SYNCS = re.compile(r"mm2-offset-syncs([-._])(?P<cluster>.+)\1internal")
"""The topic; it names the other cluster. The separator is that of the replication policy."""
CHECKPOINTS = re.compile(r"(?P<cluster>.+)([-._])checkpoints\2internal")
"""The topic; it names the cluster that the groups are of."""
HEARTBEATS = re.compile(r"(?:.+\.)?heartbeats")
"""The topic, and mirrors of it."""

_MESSAGES = parse_messages("""
    CheckpointKey 0
      group string
      topic string
      partition int32
    CheckpointValue 0
      version int16
      upstreamOffset int64
      offset int64
      metadata string
    OffsetSyncKey 0
      topic string
      partition int32
    OffsetSyncValue 0
      upstreamOffset int64
      offset int64
    HeartbeatKey 0
      sourceClusterAlias string
      targetClusterAlias string
    HeartbeatValue 0
      version int16
      timestamp int64
""")


class GroupCheckpoint(NamedTuple):
    """Where a group may go on in the cluster that its topics are mirrored to."""

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str

    def __str__(self) -> str:
        return (
            f"Checkpoint{{consumerGroupId={self.group}, topicPartition={self.topic}-"
            f"{self.partition}, upstreamOffset={self.upstream_offset}, "
            f"downstreamOffset={self.downstream_offset}, metadata={self.metadata}}}"
        )


class OffsetSync(NamedTuple):
    """Where a record of the one cluster is in the other one."""

    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int

    def __str__(self) -> str:
        return (
            f"OffsetSync{{topicPartition={self.topic}-{self.partition}, "
            f"upstreamOffset={self.upstream_offset}, downstreamOffset={self.downstream_offset}}}"
        )


class Heartbeat(NamedTuple):
    """That mirroring worked at a time, in ms."""

    source: str
    target: str
    timestamp: int

    def __str__(self) -> str:
        return (
            f"Heartbeat{{sourceClusterAlias={self.source}, targetClusterAlias={self.target}, "
            f"timestamp={self.timestamp}}}"
        )


def read_checkpoint(
    key: bytes | None, value: bytes | None, path: str | None = None
) -> GroupCheckpoint | None:
    """Return the checkpoint in a record; None for a tombstone.

    Raises
    ------
    InvalidRecordError
        It is no such record.
    """
    fields = _read("Checkpoint", "checkpoint", key, value, path)
    return None if fields is None else GroupCheckpoint(*fields)


def read_offset_sync(
    key: bytes | None, value: bytes | None, path: str | None = None
) -> OffsetSync | None:
    """Return the offset sync in a record; as `read_checkpoint`."""
    fields = _read("OffsetSync", "offset sync", key, value, path)
    return None if fields is None else OffsetSync(*fields)


def read_heartbeat(
    key: bytes | None, value: bytes | None, path: str | None = None
) -> Heartbeat | None:
    """Return the heartbeat in a record; as `read_checkpoint`."""
    fields = _read("Heartbeat", "heartbeat", key, value, path)
    return None if fields is None else Heartbeat(*fields)


def _read(
    message: str, what: str, key: bytes | None, value: bytes | None, path: str | None
) -> list[Any] | None:
    """Return all fields but the version."""
    if value is None:
        return None
    found: dict[str, Any] = {}
    for part, data in (("key", key), ("value", value)):
        readable = Readable(data or b"")
        try:
            schema = _MESSAGES[f"{message}{part.capitalize()}"]
            found |= read_message(schema, readable, 0, LATEST_KAFKA_VERSION)
        except InvalidRecordError as error:
            reason = f"a record is no {what} of MirrorMaker 2: its {part}: {error.reason}"
            raise InvalidRecordError(reason, path) from error
        if readable.remaining:
            rest = f"{readable.remaining} bytes after its last field"
            reason = f"a record is no {what} of MirrorMaker 2: its {part} has {rest}"
            raise InvalidRecordError(reason, path)
    if version := found.pop("version", 0):
        reason = f"a {what} of MirrorMaker 2 has version {version}, expected 0"
        raise InvalidRecordError(reason, path)
    return list(found.values())


class MirrorMakerDecoder:
    """Makes the lines that a formatter of MirrorMaker 2 prints; a tombstone is ``<DELETE>``."""

    def __init__(self, read: Callable[[bytes | None, bytes | None], object]) -> None:
        self._read = read

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the text of a record as its payload; see `DumpDecoder`."""
        found = self._read(key, value)
        return None, "<DELETE>" if found is None else str(found)
