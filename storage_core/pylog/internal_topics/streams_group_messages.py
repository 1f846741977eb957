"""What ``__consumer_offsets`` holds of streams groups (KIP-1071, Kafka 4.1)."""

from __future__ import annotations

from pylog.internal_topics.schema import parse_messages

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
