"""``__share_group_state``: which records share groups have acquired (KIP-932, Kafka 4.0)."""

from __future__ import annotations

from pylog.internal_topics.coordinator_record import (
    CoordinatorDecoder,
    CoordinatorRecords,
    CoordinatorRecordType,
)
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import KafkaVersion

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


SHARE_STATE_RECORD_TYPES = {0: _types("ShareSnapshot"), 1: _types("ShareUpdate")}


def share_group_state_decoder(kafka_version: KafkaVersion) -> CoordinatorDecoder:
    """Return the decoder behind ``--share-group-state-decoder``; ``ValueError`` before 4.0."""
    if kafka_version < KafkaVersion.V4_0:
        msg = f"the dump tool of Kafka {kafka_version} has no decoder of share group state"
        raise ValueError(msg)
    records = CoordinatorRecords(SHARE_STATE_RECORD_TYPES, kafka_version)
    if kafka_version < KafkaVersion.V4_1:
        # Its tool calls the version of a value its type.
        return CoordinatorDecoder(records, "share group state topic decoder", version_name="type")
    return CoordinatorDecoder(records)
