"""``__share_group_state``: which records share groups have acquired (KIP-932, Kafka 4.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.files.partition_metadata import format_uuid
from pylog.internal_topics.coordinator_record import (
    CoordinatorDecoder,
    CoordinatorRecords,
    CoordinatorRecordType,
)
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from pylog.internal_topics.coordinator_record import CoordinatorRecord

_MESSAGES = parse_messages("""
    struct StateBatch
      firstOffset int64
      lastOffset int64
      deliveryState int8
      deliveryCount int16
    ShareSnapshotKey 0
      groupId string
      topicId uuid
      partition int32
    ShareSnapshotValue 0 flexible=0
      snapshotEpoch int32
      stateEpoch int32
      leaderEpoch int32
      startOffset int64
      deliveryCompleteCount int32 tag=0 default=-1 since=4.2
      createTimestamp int64
      writeTimestamp int64
      stateBatches []StateBatch
    ShareUpdateKey 0
      groupId string
      topicId uuid
      partition int32
    ShareUpdateValue 0 flexible=0
      snapshotEpoch int32
      leaderEpoch int32
      startOffset int64
      deliveryCompleteCount int32 tag=0 default=-1 since=4.2
      stateBatches []StateBatch
""")

# Share groups could be tried in 4.0, and what that version wrote no other one reads.
_MESSAGES_OF_4_0 = parse_messages("""
    struct StateBatch
      firstOffset int64
      lastOffset int64
      deliveryState int8
      deliveryCount int16
    ShareSnapshotValue 0 flexible=0
      snapshotEpoch uint16
      stateEpoch int32
      leaderEpoch int32
      startOffset int64
      stateBatches []StateBatch
    ShareUpdateValue 0 flexible=0
      snapshotEpoch uint16
      leaderEpoch int32
      startOffset int64
      stateBatches []StateBatch
""")


def _types(name: str) -> tuple[CoordinatorRecordType, ...]:
    key, value = f"{name}Key", f"{name}Value"
    return (
        CoordinatorRecordType(_MESSAGES[key], _MESSAGES_OF_4_0[value], until=KafkaVersion.V4_0),
        CoordinatorRecordType(_MESSAGES[key], _MESSAGES[value], since=KafkaVersion.V4_1),
    )


SHARE_SNAPSHOT, SHARE_UPDATE = 0, 1
SHARE_STATE_RECORD_TYPES = {
    SHARE_SNAPSHOT: _types("ShareSnapshot"),
    SHARE_UPDATE: _types("ShareUpdate"),
}


def share_state_records(kafka_version: KafkaVersion = LATEST_KAFKA_VERSION) -> CoordinatorRecords:
    """Return what reads the records of ``__share_group_state``."""
    return CoordinatorRecords(SHARE_STATE_RECORD_TYPES, kafka_version)


class SharePartitionKey(NamedTuple):
    """A partition as a share group has it; its text is what coordinators are chosen by."""

    group_id: str
    topic_id: uuid.UUID
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{format_uuid(self.topic_id)}:{self.partition}"

    @classmethod
    def of(cls, record: CoordinatorRecord) -> SharePartitionKey:
        """Return the group and partition that a record is about."""
        return cls(record.key["groupId"], record.key["topicId"], record.key["partition"])


class ShareGroupOffset(NamedTuple):
    """How far a share group has come in a partition, as its records say."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


_UNCHANGED = -1


def share_group_offset(records: Iterable[CoordinatorRecord]) -> ShareGroupOffset:
    """Return what a snapshot and the updates that follow it leave, in the order of their offsets.

    Source: ShareCoordinatorShard.merge, ShareGroupOffset.fromRecord (Kafka 4.4).
    """
    state_epoch = leader_epoch = 0
    start_offset = count = _UNCHANGED
    for record in records:
        value: dict[str, Any] = record.value or {}
        if record.type_id == SHARE_SNAPSHOT:
            state_epoch, leader_epoch = value["stateEpoch"], value["leaderEpoch"]
            start_offset = value["startOffset"]
        else:
            if value["leaderEpoch"] != _UNCHANGED:
                leader_epoch = value["leaderEpoch"]
            if value["startOffset"] != _UNCHANGED:
                start_offset = value["startOffset"]
        # Of the newest record alone, also where that has none.
        count = value.get("deliveryCompleteCount", _UNCHANGED)
    return ShareGroupOffset(state_epoch, leader_epoch, start_offset, count)


def share_group_state_decoder(kafka_version: KafkaVersion) -> CoordinatorDecoder:
    """Return the decoder behind ``--share-group-state-decoder``; ``ValueError`` before 4.0."""
    if kafka_version < KafkaVersion.V4_0:
        msg = f"the dump tool of Kafka {kafka_version} has no decoder of share group state"
        raise ValueError(msg)
    records = share_state_records(kafka_version)
    if kafka_version < KafkaVersion.V4_1:
        # Kafka's tool prints the version of a value as its "type".
        return CoordinatorDecoder(records, "share group state topic decoder", version_name="type")
    return CoordinatorDecoder(records)
