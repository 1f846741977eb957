"""Requests about groups, and their responses: all versions that Kafka 4.4 has.

Those of 4.3 are the same but for DeleteGroups, which ends at 2 there. The notation is that of
`pylog.internal_topics.schema`.

Source: the JSON files of message schemas (Kafka 4.4); KIP-62, KIP-345, KIP-394, KIP-709, KIP-848.
"""

from __future__ import annotations

from pylog.server.protocol import parse_apis

GROUP_API_KEYS = {
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "DescribeGroups": 15,
    "ListGroups": 16,
    "DeleteGroups": 42,
    "OffsetDelete": 47,
    "ConsumerGroupHeartbeat": 68,
    "ConsumerGroupDescribe": 69,
}

GROUP_APIS = parse_apis(
    GROUP_API_KEYS,
    """
    FindCoordinatorRequest 0-6 flexible=3
      key string 0-3
      keyType int8 1+
      coordinatorKeys []string 4+
    FindCoordinatorResponse 0-6 flexible=3
      throttleTimeMs int32 1+
      errorCode int16 0-3
      errorMessage string? 1-3
      nodeId int32 0-3
      host string 0-3
      port int32 0-3
      coordinators []{Coordinator} 4+
        key string
        nodeId int32
        host string
        port int32
        errorCode int16
        errorMessage string?

    JoinGroupRequest 0-9 flexible=6
      groupId string
      sessionTimeoutMs int32
      rebalanceTimeoutMs int32 1+ default=-1
      memberId string
      groupInstanceId string? 5+
      protocolType string
      protocols []{JoinGroupRequestProtocol}
        name string
        metadata bytes
      reason string? 8+
    JoinGroupResponse 0-9 flexible=6
      throttleTimeMs int32 2+
      errorCode int16
      generationId int32 default=-1
      protocolType string? 7+
      protocolName string? null=7+ default=empty
      leader string
      skipAssignment bool 9+
      memberId string
      members []{JoinGroupResponseMember}
        memberId string
        groupInstanceId string? 5+
        metadata bytes

    SyncGroupRequest 0-5 flexible=4
      groupId string
      generationId int32
      memberId string
      groupInstanceId string? 3+
      protocolType string? 5+
      protocolName string? 5+
      assignments []{SyncGroupRequestAssignment}
        memberId string
        assignment bytes
    SyncGroupResponse 0-5 flexible=4
      throttleTimeMs int32 1+
      errorCode int16
      protocolType string? 5+
      protocolName string? 5+
      assignment bytes

    HeartbeatRequest 0-4 flexible=4
      groupId string
      generationId int32
      memberId string
      groupInstanceId string? 3+
    HeartbeatResponse 0-4 flexible=4
      throttleTimeMs int32 1+
      errorCode int16

    LeaveGroupRequest 0-5 flexible=4
      groupId string
      memberId string 0-2
      members []{MemberIdentity} 3+
        memberId string
        groupInstanceId string?
        reason string? 5+
    LeaveGroupResponse 0-5 flexible=4
      throttleTimeMs int32 1+
      errorCode int16
      members []{MemberResponse} 3+
        memberId string
        groupInstanceId string?
        errorCode int16

    OffsetCommitRequest 2-10 flexible=8
      groupId string
      generationIdOrMemberEpoch int32 default=-1
      memberId string
      groupInstanceId string? 7+
      retentionTimeMs int64 2-4 default=-1
      topics []{OffsetCommitRequestTopic}
        name string 2-9
        topicId uuid 10+
        partitions []{OffsetCommitRequestPartition}
          partitionIndex int32
          committedOffset int64
          committedLeaderEpoch int32 6+ default=-1
          committedMetadata string?
    OffsetCommitResponse 2-10 flexible=8
      throttleTimeMs int32 3+
      topics []{OffsetCommitResponseTopic}
        name string 2-9
        topicId uuid 10+
        partitions []{OffsetCommitResponsePartition}
          partitionIndex int32
          errorCode int16

    OffsetFetchRequest 1-10 flexible=6
      groupId string 1-7
      topics []{OffsetFetchRequestTopic}? 1-7 null=2-7
        name string
        partitionIndexes []int32
      groups []{OffsetFetchRequestGroup} 8+
        groupId string
        memberId string? 9+
        memberEpoch int32 9+ default=-1
        topics []{OffsetFetchRequestTopics}?
          name string 8-9
          topicId uuid 10+
          partitionIndexes []int32
      requireStable bool 7+
    OffsetFetchResponse 1-10 flexible=6
      throttleTimeMs int32 3+
      topics []{OffsetFetchResponseTopic} 1-7
        name string
        partitions []{OffsetFetchResponsePartition}
          partitionIndex int32
          committedOffset int64
          committedLeaderEpoch int32 5-7 default=-1
          metadata string?
          errorCode int16
      errorCode int16 2-7
      groups []{OffsetFetchResponseGroup} 8+
        groupId string
        topics []{OffsetFetchResponseTopics}
          name string 8-9
          topicId uuid 10+
          partitions []{OffsetFetchResponsePartitions}
            partitionIndex int32
            committedOffset int64
            committedLeaderEpoch int32 default=-1
            metadata string?
            errorCode int16
        errorCode int16

    OffsetDeleteRequest 0
      groupId string
      topics []{OffsetDeleteRequestTopic}
        name string
        partitions []{OffsetDeleteRequestPartition}
          partitionIndex int32
    OffsetDeleteResponse 0
      errorCode int16
      throttleTimeMs int32
      topics []{OffsetDeleteResponseTopic}
        name string
        partitions []{OffsetDeleteResponsePartition}
          partitionIndex int32
          errorCode int16

    ListGroupsRequest 0-5 flexible=3
      statesFilter []string 4+
      typesFilter []string 5+
    ListGroupsResponse 0-5 flexible=3
      throttleTimeMs int32 1+
      errorCode int16
      groups []{ListedGroup}
        groupId string
        protocolType string
        groupState string 4+
        groupType string 5+

    DescribeGroupsRequest 0-6 flexible=5
      groups []string
      includeAuthorizedOperations bool 3+
    DescribeGroupsResponse 0-6 flexible=5
      throttleTimeMs int32 1+
      groups []{DescribedGroup}
        errorCode int16
        errorMessage string? 6+
        groupId string
        groupState string
        protocolType string
        protocolData string
        members []{DescribedGroupMember}
          memberId string
          groupInstanceId string? 4+
          clientId string
          clientHost string
          memberMetadata bytes
          memberAssignment bytes
        authorizedOperations int32 3+ default=-2147483648

    DeleteGroupsRequest 0-3 flexible=2
      groupsNames []string
    DeleteGroupsResponse 0-3 flexible=2
      throttleTimeMs int32
      results []{DeletableGroupResult}
        groupId string
        errorCode int16
        errorMessage string? 3+

    struct TopicPartitions
      topicId uuid
      partitions []int32
    ConsumerGroupHeartbeatRequest 0-1 flexible=0
      groupId string
      memberId string
      memberEpoch int32
      instanceId string?
      rackId string?
      rebalanceTimeoutMs int32 default=-1
      subscribedTopicNames []string?
      subscribedTopicRegex string? 1+
      serverAssignor string?
      topicPartitions []TopicPartitions?
    ConsumerGroupHeartbeatResponse 0-1 flexible=0
      throttleTimeMs int32
      errorCode int16
      errorMessage string?
      memberId string?
      memberEpoch int32
      heartbeatIntervalMs int32
      assignment {Assignment}?
        topicPartitions []TopicPartitions

    struct DescribedTopicPartitions
      topicId uuid
      topicName string
      partitions []int32
    struct DescribedAssignment
      topicPartitions []DescribedTopicPartitions
    ConsumerGroupDescribeRequest 0-1 flexible=0
      groupIds []string
      includeAuthorizedOperations bool
    ConsumerGroupDescribeResponse 0-1 flexible=0
      throttleTimeMs int32
      groups []{ConsumerDescribedGroup}
        errorCode int16
        errorMessage string?
        groupId string
        groupState string
        groupEpoch int32
        assignmentEpoch int32
        assignorName string
        members []{Member}
          memberId string
          instanceId string?
          rackId string?
          memberEpoch int32
          clientId string
          clientHost string
          subscribedTopicNames []string
          subscribedTopicRegex string?
          assignment DescribedAssignment
          targetAssignment DescribedAssignment
          memberType int8 1+ default=-1
        authorizedOperations int32 default=-2147483648
    """,
)
