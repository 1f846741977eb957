"""``__consumer_offsets``: committed offsets, and what groups of all kinds consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidRecordError
from pylog.internal_topics.coordinator_decoder import CoordinatorDecoder
from pylog.internal_topics.coordinator_record import CoordinatorRecords, CoordinatorRecordType
from pylog.internal_topics.group_messages import (
    CLASSIC_GROUP_MESSAGES,
    CONSUMER_GROUP_MESSAGES,
    CONSUMER_PROTOCOL_MESSAGES,
)
from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.share_group_messages import SHARE_GROUP_MESSAGES
from pylog.internal_topics.streams_group_messages import STREAMS_GROUP_MESSAGES
from pylog.internal_topics.versions import FIRST_KAFKA_VERSION, LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from pylog.internal_topics.coordinator_record import CoordinatorRecord
    from pylog.internal_topics.schema import Message

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2
CONSUMER_GROUP_METADATA = 3
CONSUMER_GROUP_MEMBER_METADATA = 5
CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
SHARE_GROUP_MEMBER_METADATA = 10
SHARE_GROUP_METADATA = 11
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
STREAMS_GROUP_METADATA = 17
STREAMS_GROUP_MEMBER_METADATA = 19
STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of groups whose members' subscriptions and assignments can be read."""

_MESSAGES = (
    CLASSIC_GROUP_MESSAGES | CONSUMER_GROUP_MESSAGES | SHARE_GROUP_MESSAGES | STREAMS_GROUP_MESSAGES
)
_SUBSCRIPTION = CONSUMER_PROTOCOL_MESSAGES["ConsumerProtocolSubscription"]
_ASSIGNMENT = CONSUMER_PROTOCOL_MESSAGES["ConsumerProtocolAssignment"]


def _type(
    name: str, since: KafkaVersion = FIRST_KAFKA_VERSION, until: KafkaVersion = LATEST_KAFKA_VERSION
) -> CoordinatorRecordType:
    return CoordinatorRecordType(_MESSAGES[f"{name}Key"], _MESSAGES[f"{name}Value"], since, until)


GROUP_RECORD_TYPES = {
    LEGACY_OFFSET_COMMIT: (
        _type("OffsetCommit", until=KafkaVersion.V4_0),
        _type("LegacyOffsetCommit", since=KafkaVersion.V4_1),
    ),
    OFFSET_COMMIT: (_type("OffsetCommit"),),
    GROUP_METADATA: (_type("GroupMetadata"),),
    CONSUMER_GROUP_METADATA: (_type("ConsumerGroupMetadata"),),
    4: (_type("ConsumerGroupPartitionMetadata"),),
    CONSUMER_GROUP_MEMBER_METADATA: (_type("ConsumerGroupMemberMetadata"),),
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: (_type("ConsumerGroupTargetAssignmentMetadata"),),
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: (_type("ConsumerGroupTargetAssignmentMember"),),
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: (_type("ConsumerGroupCurrentMemberAssignment"),),
    9: (_type("ShareGroupPartitionMetadata", KafkaVersion.V4_0, KafkaVersion.V4_0),),
    SHARE_GROUP_MEMBER_METADATA: (_type("ShareGroupMemberMetadata", KafkaVersion.V4_0),),
    SHARE_GROUP_METADATA: (_type("ShareGroupMetadata", KafkaVersion.V4_0),),
    12: (_type("ShareGroupTargetAssignmentMetadata", KafkaVersion.V4_0),),
    13: (_type("ShareGroupTargetAssignmentMember", KafkaVersion.V4_0),),
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: (
        _type("ShareGroupCurrentMemberAssignment", KafkaVersion.V4_0),
    ),
    15: (_type("ShareGroupStatePartitionMetadata", KafkaVersion.V4_0),),
    16: (_type("ConsumerGroupRegularExpression", KafkaVersion.V4_0),),
    STREAMS_GROUP_METADATA: (_type("StreamsGroupMetadata", KafkaVersion.V4_1),),
    STREAMS_GROUP_MEMBER_METADATA: (_type("StreamsGroupMemberMetadata", KafkaVersion.V4_1),),
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: (
        _type("StreamsGroupTargetAssignmentMetadata", KafkaVersion.V4_1),
    ),
    21: (_type("StreamsGroupTargetAssignmentMember", KafkaVersion.V4_1),),
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: (
        _type("StreamsGroupCurrentMemberAssignment", KafkaVersion.V4_1),
    ),
    23: (_type("StreamsGroupTopology", KafkaVersion.V4_1),),
}


def group_records(kafka_version: KafkaVersion = LATEST_KAFKA_VERSION) -> CoordinatorRecords:
    """Return what reads the records of ``__consumer_offsets``."""
    return CoordinatorRecords(GROUP_RECORD_TYPES, kafka_version)


def read_subscription(
    data: bytes, kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
) -> dict[str, Any]:
    """Return what a member of protocol type `CONSUMER_PROTOCOL_TYPE` subscribes to.

    Raises
    ------
    InvalidRecordError
        The bytes are not of that form.
    """
    return _read_versioned(_SUBSCRIPTION, data, kafka_version)


def read_assignment(
    data: bytes, kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
) -> dict[str, Any]:
    """Return what a member of protocol type `CONSUMER_PROTOCOL_TYPE` is assigned.

    Raises
    ------
    InvalidRecordError
        The bytes are not of that form.
    """
    return _read_versioned(_ASSIGNMENT, data, kafka_version)


def _read_versioned(message: Message, data: bytes, kafka_version: KafkaVersion) -> dict[str, Any]:
    """Return the fields of a message after the number of its version."""
    readable = Readable(data)
    return read_message(message, readable, readable.int16(), kafka_version)


def consumer_offsets_decoder(kafka_version: KafkaVersion) -> CoordinatorDecoder:
    """Return the decoder behind ``--offsets-decoder``."""

    def value_fields(record: CoordinatorRecord) -> object:
        """Replace the bytes that members of a group of consumers exchange by their fields."""
        value = record.value
        if (
            value is None
            or record.type_id != GROUP_METADATA
            or value["protocolType"] != CONSUMER_PROTOCOL_TYPE
        ):
            return value
        return {**value, "members": [member_fields(member) for member in value["members"]]}

    def member_fields(member: dict[str, Any]) -> dict[str, Any]:
        fields = dict(member)
        for name, read in (("subscription", read_subscription), ("assignment", read_assignment)):
            try:
                fields[name] = read(member[name], kafka_version)
            except InvalidRecordError:
                continue  # as the tool does: it prints the bytes
        return fields

    before_4_1 = kafka_version < KafkaVersion.V4_1
    return CoordinatorDecoder(
        group_records(kafka_version),
        "offset topic decoder" if before_4_1 else "the specified decoder",
        value_fields=value_fields,
    )
