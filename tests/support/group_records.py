"""Records of ``__consumer_offsets``, as bytes, in Kafka's message formats."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

COMMIT, CLASSIC, CONSUMER, SHARE, STREAMS = 1, 2, 3, 11, 17
CONSUMER_ASSIGNMENT, SHARE_ASSIGNMENT, STREAMS_ASSIGNMENT = 6, 12, 20
_CONSUMER_MEMBER, _PATTERN, _STREAMS_MEMBER, _TOPOLOGY = 5, 16, 19, 23

Record = tuple[bytes, bytes | None]


def _string(text: str | None) -> bytes:
    """Return a string as messages that are not flexible have it."""
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _compact(text: str | None) -> bytes:
    """Return a string of a flexible message: its length and one, in one byte; 0 for null."""
    if text is None:
        return b"\0"
    data = text.encode()
    return bytes([len(data) + 1]) + data


def _compact_strings(texts: tuple[str, ...]) -> bytes:
    return bytes([len(texts) + 1]) + b"".join(map(_compact, texts))


def _key(type_id: int, *parts: str) -> bytes:
    return struct.pack(">h", type_id) + b"".join(map(_string, parts))


def tombstone(type_id: int, group: str) -> Record:
    """Return what removes the record of a type that a group has once."""
    return _key(type_id, group), None


def commit(
    group: str,
    topic: str = "orders",
    partition: int = 0,
    *,
    offset: int = 0,
    at: int = 0,
    expires: int | None = None,
) -> Record:
    """Return a committed offset; with ``expires`` in version 1, which has such a time."""
    key = _key(COMMIT, group, topic) + struct.pack(">i", partition)
    if expires is None:
        return key, struct.pack(">hqi", 3, offset, -1) + _string("") + struct.pack(">q", at)
    return key, struct.pack(">hq", 1, offset) + _string("") + struct.pack(">qq", at, expires)


def classic(
    group: str,
    *topics: str,
    protocol_type: str = "consumer",
    since: int = -1,
    has_member: bool = False,
) -> Record:
    """Return a classic group, empty or with a member that is subscribed to topics."""
    timeout_ms = 1_800_000
    subscription = struct.pack(">hi", 0, len(topics)) + b"".join(map(_string, topics))
    subscription += struct.pack(">i", -1)
    member = _string("m") + _string(None) + _string("c") + _string("/h")
    member += struct.pack(">ii", timeout_ms, timeout_ms) + _bytes(subscription) + _bytes(b"")
    value = struct.pack(">h", 3) + _string(protocol_type) + struct.pack(">i", 1)
    value += _string("range" if has_member else None) + _string("m" if has_member else None)
    value += struct.pack(">qi", since, has_member) + member * has_member
    return _key(CLASSIC, group), value


def modern(kind: int, group: str) -> Record:
    """Return a consumer, share or streams group without members."""
    epoch = struct.pack(">hi", 0, 1)
    # A hash of the metadata follows; of a consumer group, only where it is not 0.
    return _key(kind, group), epoch + (b"" if kind == CONSUMER else bytes(8)) + b"\0"


def consumer_member(group: str, *topics: str, pattern: str | None = None) -> Record:
    """Return a member of a consumer group."""
    value = struct.pack(">h", 0) + _compact(None) * 2 + _compact("c") + _compact("/h")
    value += _compact_strings(topics) + _compact(pattern) + struct.pack(">i", 1_800_000)
    return _key(_CONSUMER_MEMBER, group, "m"), value + _compact(None) + b"\0"


def matching(group: str, pattern: str, *topics: str) -> Record:
    """Return the topics that a regular expression of a consumer group stands for."""
    value = struct.pack(">h", 0) + _compact_strings(topics) + struct.pack(">qq", 1, 0) + b"\0"
    return _key(_PATTERN, group, pattern), value


def streams_member(group: str) -> Record:
    """Return a member of a streams group."""
    value = struct.pack(">h", 0) + _compact(None) * 2 + _compact("c") + _compact("/h")
    value += struct.pack(">ii", 1_800_000, 1) + _compact("p") + b"\xff" + b"\x01" + b"\0"
    return _key(_STREAMS_MEMBER, group, "m"), value


def topology(group: str, *topics: str) -> Record:
    """Return the topology of a streams group that reads topics."""
    subtopology = _compact("0") + _compact_strings(topics) + b"\x01" * 5 + b"\0"
    value = struct.pack(">hi", 0, 1) + b"\x02" + subtopology + b"\0"
    return _key(_TOPOLOGY, group), value


def write_commits(root: Path, number: int, *records: Record) -> None:
    """Write a partition of ``__consumer_offsets`` of these records."""
    batch = batch_v2(stored(list(records)))
    write_partition(root, {0: [batch]}, name=f"__consumer_offsets-{number}")


def stored(records: list[Record], *, base_offset: int = 0, timestamp: int = 0) -> list[Stored]:
    """Return records at successive offsets."""
    return [
        Stored(base_offset + place, timestamp, key, value)
        for place, (key, value) in enumerate(records)
    ]
