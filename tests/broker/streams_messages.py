"""What a member of a streams group sends (KIP-1071); `pylog.serve` does not answer it."""

from __future__ import annotations

from pylog.server.protocol import parse_apis

STREAMS_APIS = parse_apis(
    {"StreamsGroupHeartbeat": 88},
    """
    common TaskIds
      subtopologyId string
      partitions []int32
    common TaskOffset
      subtopologyId string
      partition int32
      offset int64
    common KeyValue
      key string
      value string
    common Endpoint
      host string
      port uint16
    common TopicPartition
      topic string
      partitions []int32
    common TopicInfo
      name string
      partitions int32
      replicationFactor int16
      topicConfigs []KeyValue
    StreamsGroupHeartbeatRequest 0 flexible=0
      groupId string
      memberId string
      memberEpoch int32
      endpointInformationEpoch int32
      instanceId string?
      rackId string?
      rebalanceTimeoutMs int32 default=-1
      topology {Topology}?
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
      activeTasks []TaskIds?
      standbyTasks []TaskIds?
      warmupTasks []TaskIds?
      processId string?
      userEndpoint Endpoint?
      clientTags []KeyValue?
      taskOffsets []TaskOffset?
      taskEndOffsets []TaskOffset?
      shutdownApplication bool
    StreamsGroupHeartbeatResponse 0 flexible=0
      throttleTimeMs int32
      errorCode int16
      errorMessage string?
      memberId string
      memberEpoch int32
      heartbeatIntervalMs int32
      acceptableRecoveryLag int32
      taskOffsetIntervalMs int32
      status []{Status}?
        statusCode int8
        statusDetail string
      activeTasks []TaskIds?
      standbyTasks []TaskIds?
      warmupTasks []TaskIds?
      endpointInformationEpoch int32
      partitionsByUserEndpoint []{EndpointToPartitions}?
        userEndpoint Endpoint
        activePartitions []TopicPartition
        standbyPartitions []TopicPartition
    """,
)
