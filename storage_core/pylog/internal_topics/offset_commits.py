"""Records of committed offsets, as bytes.

A key begins with its type, 1; the version of its message is 0. A value begins with its version: all
brokers since 2.1 read 3, brokers since 4.1 write 4, with the topic's id.

Source: GroupCoordinatorRecordHelpers.newOffsetCommitRecord (Kafka 4.4); KIP-320.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.partition_metadata import ZERO_UUID
from pylog.internal_topics.consumer_offsets import CLASSIC_GROUP_MESSAGES, OFFSET_COMMIT
from pylog.internal_topics.message_writer import write_message

if TYPE_CHECKING:
    from pylog.internal_topics.group_state import StoredOffset

_KEY = CLASSIC_GROUP_MESSAGES["OffsetCommitKey"]
_VALUE = CLASSIC_GROUP_MESSAGES["OffsetCommitValue"]
NEWEST_VERSION = _VALUE.versions.stop - 1
READ_BY_ALL_VERSION = 3


def offset_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key of the record of an offset that a group has committed."""
    fields = {"group": group_id, "topic": topic, "partition": partition}
    return OFFSET_COMMIT.to_bytes(2) + write_message(_KEY, fields, 0)


def offset_commit_value(offset: StoredOffset, version: int = NEWEST_VERSION) -> bytes:
    """Return the value of such a record."""
    fields = {
        "offset": offset.offset,
        "leaderEpoch": -1 if offset.leader_epoch is None else offset.leader_epoch,
        "metadata": offset.metadata,
        "commitTimestamp": offset.commit_timestamp,
        "topicId": offset.topic_id or ZERO_UUID,
    }
    return version.to_bytes(2) + write_message(_VALUE, fields, version)
