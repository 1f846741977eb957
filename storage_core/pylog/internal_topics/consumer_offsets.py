"""``__consumer_offsets``: committed offsets, and what groups of all kinds consist of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pylog.errors import InvalidRecordError
from pylog.internal_topics.coordinator_record import (
    CoordinatorDecoder,
    CoordinatorRecords,
    CoordinatorRecordType,
)
from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import FIRST_KAFKA_VERSION, LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from pylog.internal_topics.coordinator_record import CoordinatorRecord
    from pylog.internal_topics.schema import Message


# What ``__consumer_offsets`` holds of classic and of consumer groups.
#
# Consumer groups, whose assignments the broker makes, came with KIP-848 (Kafka 3.7).


CLASSIC_GROUP_MESSAGES = parse_messages("""
    common MemberMetadata
      memberId string
      groupInstanceId string? 3+
      clientId string
      clientHost string
      rebalanceTimeout int32 1+
      sessionTimeout int32
      subscription bytes
      assignment bytes
    OffsetCommitKey 0
      group string
      topic string
      partition int32
    OffsetCommitValue 0-4 flexible=4
      offset int64
      leaderEpoch int32 3+
      metadata string
      commitTimestamp int64
      expireTimestamp int64 1
      topicId uuid 4+ tag=0 since=4.1
    LegacyOffsetCommitKey 0
      group string
      topic string
      partition int32
    LegacyOffsetCommitValue 0
      offset int64
      metadata string
      commitTimestamp int64
    GroupMetadataKey 0
      group string
    GroupMetadataValue 0-4 flexible=4
      protocolType string
      generation int32
      protocol string?
      leader string?
      currentStateTimestamp int64 2+
      members []MemberMetadata
""")

# What a member of protocol type "consumer" gives and gets, opaque to the broker.
CONSUMER_PROTOCOL_MESSAGES = parse_messages("""
    ConsumerProtocolSubscription 0-3
      topics []string
      userData bytes?
      ownedPartitions []{TopicPartition} 1+
        topic string
        partitions []int32
      generationId int32 2+
      rackId string? 3+
    ConsumerProtocolAssignment 0-3
      assignedPartitions []{TopicPartition}
        topic string
        partitions []int32
      userData bytes?
""")

CONSUMER_GROUP_MESSAGES = parse_messages("""
    common TopicPartitions
      topicId uuid
      partitions []int32
      assignmentEpochs []int32? tag=0 default=empty since=4.3
    ConsumerGroupMetadataKey 0
      groupId string
    ConsumerGroupMetadataValue 0 flexible=0
      epoch int32
      metadataHash int64 tag=0 since=4.1
    ConsumerGroupPartitionMetadataKey 0
      groupId string
    ConsumerGroupPartitionMetadataValue 0 flexible=0
      topics []{TopicMetadata}
        topicId uuid
        topicName string
        numPartitions int32
        partitionMetadata []{PartitionMetadata}
          partition int32
          racks []string
    ConsumerGroupMemberMetadataKey 0
      groupId string
      memberId string
    ConsumerGroupMemberMetadataValue 0 flexible=0
      instanceId string?
      rackId string?
      clientId string
      clientHost string
      subscribedTopicNames []string
      subscribedTopicRegex string?
      rebalanceTimeoutMs int32
      serverAssignor string?
      classicMemberMetadata {ClassicMemberMetadata}? tag=0 default=empty
        sessionTimeoutMs int32
        supportedProtocols []{ClassicProtocol}
          name string
          metadata bytes
    ConsumerGroupTargetAssignmentMetadataKey 0
      groupId string
    ConsumerGroupTargetAssignmentMetadataValue 0 flexible=0
      assignmentEpoch int32
      assignmentTimestamp int64 tag=0 since=4.3
    ConsumerGroupTargetAssignmentMemberKey 0
      groupId string
      memberId string
    ConsumerGroupTargetAssignmentMemberValue 0 flexible=0
      topicPartitions []{TopicPartition}
        topicId uuid
        partitions []int32
    ConsumerGroupCurrentMemberAssignmentKey 0
      groupId string
      memberId string
    ConsumerGroupCurrentMemberAssignmentValue 0 flexible=0
      memberEpoch int32
      previousMemberEpoch int32
      state int8
      assignedPartitions []TopicPartitions
      partitionsPendingRevocation []TopicPartitions
    ConsumerGroupRegularExpressionKey 0
      groupId string
      regularExpression string
    ConsumerGroupRegularExpressionValue 0 flexible=0
      topics []string
      version int64
      timestamp int64
""")


SHARE_GROUP_MESSAGES = parse_messages("""
    common TopicPartitions
      topicId uuid
      partitions []int32
    common TopicPartitionsInfo
      topicId uuid
      topicName string
      partitions []int32
    common TopicInfo
      topicId uuid
      topicName string
    ShareGroupPartitionMetadataKey 0
      groupId string
    ShareGroupPartitionMetadataValue 0 flexible=0
      topics []{TopicMetadata}
        topicId uuid
        topicName string
        numPartitions int32
        partitionMetadata []{PartitionMetadata}
          partition int32
          racks []string
    ShareGroupMemberMetadataKey 0
      groupId string
      memberId string
    ShareGroupMemberMetadataValue 0 flexible=0
      rackId string?
      clientId string
      clientHost string
      subscribedTopicNames []string
    ShareGroupMetadataKey 0
      groupId string
    ShareGroupMetadataValue 0 flexible=0
      epoch int32
      metadataHash int64 since=4.1
    ShareGroupTargetAssignmentMetadataKey 0
      groupId string
    ShareGroupTargetAssignmentMetadataValue 0 flexible=0
      assignmentEpoch int32
      assignmentTimestamp int64 tag=0 since=4.3
    ShareGroupTargetAssignmentMemberKey 0
      groupId string
      memberId string
    ShareGroupTargetAssignmentMemberValue 0 flexible=0
      topicPartitions []{TopicPartition}
        topicId uuid
        partitions []int32
    ShareGroupCurrentMemberAssignmentKey 0
      groupId string
      memberId string
    ShareGroupCurrentMemberAssignmentValue 0 flexible=0
      memberEpoch int32
      previousMemberEpoch int32
      state int8
      assignedPartitions []TopicPartitions
    ShareGroupStatePartitionMetadataKey 0
      groupId string
    ShareGroupStatePartitionMetadataValue 0 flexible=0
      initializingTopics []TopicPartitionsInfo since=4.1
      initializedTopics []TopicPartitionsInfo
      deletingTopics []TopicInfo
""")


STREAMS_GROUP_MESSAGES = parse_messages("""
    common TaskIds
      subtopologyId string
      partitions []int32
    common CurrentTaskIds
      subtopologyId string
      partitions []int32
      assignmentEpochs []int32? tag=0 default=empty since=4.2
    common KeyValue
      key string
      value string
    common Endpoint
      host string
      port uint16
    common TopicInfo
      name string
      partitions int32
      replicationFactor int16
      topicConfigs []KeyValue
    StreamsGroupMetadataKey 0
      groupId string
    StreamsGroupMetadataValue 0 flexible=0
      epoch int32
      metadataHash int64
      validatedTopologyEpoch int32 tag=0 default=-1
      lastAssignmentConfigs []KeyValue? tag=1 default=empty since=4.2
    StreamsGroupMemberMetadataKey 0
      groupId string
      memberId string
    StreamsGroupMemberMetadataValue 0 flexible=0
      instanceId string?
      rackId string?
      clientId string
      clientHost string
      rebalanceTimeoutMs int32
      topologyEpoch int32
      processId string
      userEndpoint Endpoint?
      clientTags []KeyValue
    StreamsGroupTargetAssignmentMetadataKey 0
      groupId string
    StreamsGroupTargetAssignmentMetadataValue 0 flexible=0
      assignmentEpoch int32
      assignmentTimestamp int64 tag=0 since=4.3
    StreamsGroupTargetAssignmentMemberKey 0
      groupId string
      memberId string
    StreamsGroupTargetAssignmentMemberValue 0 flexible=0
      activeTasks []TaskIds
      standbyTasks []TaskIds
      warmupTasks []TaskIds
    StreamsGroupCurrentMemberAssignmentKey 0
      groupId string
      memberId string
    StreamsGroupCurrentMemberAssignmentValue 0 flexible=0
      memberEpoch int32
      previousMemberEpoch int32
      state int8
      activeTasks []CurrentTaskIds
      standbyTasks []CurrentTaskIds
      warmupTasks []CurrentTaskIds
      activeTasksPendingRevocation []CurrentTaskIds
      standbyTasksPendingRevocation []CurrentTaskIds
      warmupTasksPendingRevocation []CurrentTaskIds
    StreamsGroupTopologyKey 0
      groupId string
    StreamsGroupTopologyValue 0 flexible=0
      epoch int32
      subtopologies []{Subtopology}
        subtopologyId string
        sourceTopics []string
        sourceTopicRegex []string
        stateChangelogTopics []TopicInfo
        repartitionSinkTopics []string
        repartitionSourceTopics []TopicInfo
        copartitionGroups []{CopartitionGroup}
          sourceTopics []int16
          sourceTopicRegex []int16
          repartitionSourceTopics []int16
""")


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
SHARE_GROUP_STATE_PARTITION_METADATA = 15
CONSUMER_GROUP_REGULAR_EXPRESSION = 16
STREAMS_GROUP_METADATA = 17
STREAMS_GROUP_MEMBER_METADATA = 19
STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
STREAMS_GROUP_TOPOLOGY = 23

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
    CONSUMER_GROUP_REGULAR_EXPRESSION: (
        _type("ConsumerGroupRegularExpression", KafkaVersion.V4_0),
    ),
    STREAMS_GROUP_METADATA: (_type("StreamsGroupMetadata", KafkaVersion.V4_1),),
    STREAMS_GROUP_MEMBER_METADATA: (_type("StreamsGroupMemberMetadata", KafkaVersion.V4_1),),
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: (
        _type("StreamsGroupTargetAssignmentMetadata", KafkaVersion.V4_1),
    ),
    21: (_type("StreamsGroupTargetAssignmentMember", KafkaVersion.V4_1),),
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: (
        _type("StreamsGroupCurrentMemberAssignment", KafkaVersion.V4_1),
    ),
    STREAMS_GROUP_TOPOLOGY: (_type("StreamsGroupTopology", KafkaVersion.V4_1),),
}


def group_records(kafka_version: KafkaVersion = LATEST_KAFKA_VERSION) -> CoordinatorRecords:
    """Return what reads the records of ``__consumer_offsets``."""
    return CoordinatorRecords(GROUP_RECORD_TYPES, kafka_version)


def read_subscription(
    data: bytes,
    kafka_version: KafkaVersion = LATEST_KAFKA_VERSION,
    *,
    max_elements: int = sys.maxsize,
) -> dict[str, Any]:
    """Return what a member of protocol type `CONSUMER_PROTOCOL_TYPE` subscribes to."""
    return _read_versioned(_SUBSCRIPTION, Readable(data, max_elements), kafka_version)


def read_assignment(
    data: bytes, kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
) -> dict[str, Any]:
    """Return what a member of protocol type `CONSUMER_PROTOCOL_TYPE` is assigned."""
    return _read_versioned(_ASSIGNMENT, Readable(data), kafka_version)


def _read_versioned(
    message: Message, readable: Readable, kafka_version: KafkaVersion
) -> dict[str, Any]:
    """Return the fields of a message after the number of its version."""
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
