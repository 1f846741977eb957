"""Records of MirrorMaker 2's topics and of Kafka Connect's, as bytes."""

from __future__ import annotations

import json
import struct


def text(value: str) -> bytes:
    """Return a string of Kafka's old protocol types."""
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def checkpoint(
    group: str, topic: str, partition: int, *offsets: int, metadata: str = "", version: int = 0
) -> tuple[bytes, bytes]:
    """Return a record of ``<cluster>.checkpoints.internal``; upstream, downstream offset."""
    key = text(group) + text(topic) + struct.pack(">i", partition)
    return key, struct.pack(">hqq", version, *offsets) + text(metadata)


def offset_sync(topic: str, partition: int, *offsets: int) -> tuple[bytes, bytes]:
    """Return a record of ``mm2-offset-syncs.<cluster>.internal``; upstream, downstream offset."""
    return text(topic) + struct.pack(">i", partition), struct.pack(">qq", *offsets)


def heartbeat(source: str, target: str, timestamp: int, version: int = 0) -> tuple[bytes, bytes]:
    """Return a record of ``heartbeats``."""
    return text(source) + text(target), struct.pack(">hq", version, timestamp)


def connect(key: object, value: object | None) -> tuple[bytes, bytes | None]:
    """Return a record of one of Connect's topics: keys that are no text are JSON, values all."""
    key_text = key if isinstance(key, str) else json.dumps(key, separators=(",", ":"))
    return key_text.encode(), None if value is None else json.dumps(value).encode()
