"""What ``__consumer_offsets`` holds of classic and of consumer groups.

Consumer groups, whose assignments the broker makes, came with KIP-848 (Kafka 3.7).
"""

from __future__ import annotations

from pylog.internal_topics.schema import parse_messages

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
