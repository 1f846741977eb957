"""Records, logs and snapshots of ``__cluster_metadata``, as bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.support.batches import Built

METADATA = "__cluster_metadata-0"
TOPIC_ID = bytes(range(16))
TOPIC_ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"
TOPIC, BROKER = 2, 4
BEGIN, END, ABORT = b"\x01\x17\x00\x00", b"\x01\x18\x00\x00", b"\x01\x19\x00\x00"

_LEADER_CHANGE, _SNAPSHOT_HEADER, _SNAPSHOT_FOOTER, _VOTERS = 2, 3, 4, 6


def _text(text: str) -> bytes:
    """Return a compact string: its length and one, as a varint of one byte."""
    return bytes([len(text) + 1]) + text.encode()


def topic_record(name: str, topic_id: bytes = TOPIC_ID) -> bytes:
    """Return the value of a TopicRecord."""
    return b"\x01\x02\x00" + _text(name) + topic_id + b"\x00"


def partition_record(
    number: int,
    leader: int,
    replicas: tuple[int, ...],
    directories: tuple[bytes, ...] = (),
    *,
    leader_epoch: int = 0,
) -> bytes:
    """Return the value of a PartitionRecord of the topic `TOPIC_ID`, since 3.7 with directories."""
    ids = bytes([len(replicas) + 1]) + b"".join(struct.pack(">i", each) for each in replicas)
    version = b"\x01" if directories else b"\x00"
    head = b"\x01\x03" + version + struct.pack(">i", number) + TOPIC_ID
    places = bytes([len(directories) + 1]) + b"".join(directories) if directories else b""
    state = struct.pack(">iii", leader, leader_epoch, 0)
    return head + ids + ids + b"\x01\x01" + state + places + b"\x00"


def register_broker_record(broker: int, directories: tuple[bytes, ...]) -> bytes:
    """Return the value of a RegisterBrokerRecord."""
    places = bytes([len(directories) + 1]) + b"".join(directories)
    return (
        b"\x01\x00\x03"
        + struct.pack(">i", broker)
        + b"\x00"  # it does not migrate
        + bytes(16)
        + struct.pack(">q", 1)
        + b"\x01\x01\x00"  # no endpoints, no features, no rack
        + b"\x01\x00"  # fenced, not in shutdown
        + b"\x01\x00"  # one tagged field: log directories
        + bytes([len(places)])
        + places
    )


def remove_topic_record(topic_id: bytes = TOPIC_ID) -> bytes:
    """Return the value of a RemoveTopicRecord."""
    return b"\x01\x09\x00" + topic_id + b"\x00"


def feature_record(level: int, name: str = "metadata.version") -> bytes:
    """Return the value of a FeatureLevelRecord."""
    return b"\x01\x0c\x00" + _text(name) + struct.pack(">h", level) + b"\x00"


def config_record(resource_type: int, resource: str, name: str, value: str | None) -> bytes:
    """Return the value of a ConfigRecord; without a value it takes a property away."""
    stored = b"\x00" if value is None else _text(value)
    return (
        b"\x01\x04\x00" + struct.pack(">b", resource_type) + _text(resource) + _text(name) + stored
    ) + b"\x00"


def _voters(ids: Iterable[int]) -> bytes:
    ids = list(ids)
    return bytes([len(ids) + 1]) + b"".join(struct.pack(">i", each) + b"\x00" for each in ids)


def leader_change(offset: int, voters: Iterable[int]) -> Built:
    """Return the control batch that begins an epoch and names the voters."""
    value = struct.pack(">hi", 0, 1) + _voters(voters) + b"\x01\x00"
    return _control(offset, _LEADER_CHANGE, value)


def voters_batch(offset: int, voters: Iterable[int], directory_id: bytes = bytes(16)) -> Built:
    """Return the control batch of KIP-853 that names the voters."""
    ids = list(voters)
    entries = b"".join(
        struct.pack(">i", each) + directory_id + b"\x01" + struct.pack(">hhb", 0, 1, 0) + b"\x00"
        for each in ids
    )
    value = struct.pack(">h", 0) + bytes([len(ids) + 1]) + entries + b"\x00"
    return _control(offset, _VOTERS, value)


def _control(offset: int, control_type: int, value: bytes) -> Built:
    key = struct.pack(">hh", 0, control_type)
    return batch_v2([Stored(offset, 1, key, value)], control_type=control_type)


def data_batch(offset: int, values: Sequence[bytes]) -> Built:
    """Return a batch of metadata records."""
    return batch_v2([Stored(offset + at, 1, None, value) for at, value in enumerate(values)])


def write_metadata_log(
    log_directory: Path, values: Sequence[bytes], *, voters: Iterable[int] = (1,), base: int = 0
) -> Path:
    """Write a log that begins with a change of leader, and one batch; return its directory."""
    batches = [leader_change(base, voters)]
    if values:
        batches.append(data_batch(base + 1, values))
    return write_partition(log_directory, {base: batches}, name=METADATA)


def write_snapshot(
    directory: Path, end_offset: int, values: Sequence[bytes], *, has_footer: bool = True
) -> Path:
    """Write a snapshot that stands for all records below an offset."""
    batches = [_control(0, _SNAPSHOT_HEADER, struct.pack(">hq", 0, 1) + b"\x00")]
    if values:
        batches.append(data_batch(1, values))
    if has_footer:
        batches.append(_control(1 + len(values), _SNAPSHOT_FOOTER, struct.pack(">h", 0) + b"\x00"))
    path = directory / f"{end_offset:020d}-0000000000.checkpoint"
    path.write_bytes(b"".join(each.data for each in batches))
    return path
