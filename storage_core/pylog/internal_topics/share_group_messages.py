"""What ``__consumer_offsets`` holds of share groups (KIP-932)."""

from __future__ import annotations

from pylog.internal_topics.schema import parse_messages

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
