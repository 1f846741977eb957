"""The messages of all APIs that the server has, in the notation of `internal_topics.schema`.

Only valid versions are here: those of Kafka 4.4. Those of 4.3 are the same but for DeleteGroups,
which ends at 2 there.

Source: the JSON files of message schemas (Kafka 4.4); KIP-62, KIP-345, KIP-394, KIP-709, KIP-848.
"""

from __future__ import annotations

from pylog.server.protocol import parse_apis

_KEYS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "DescribeGroups": 15,
    "ListGroups": 16,
    "SaslHandshake": 17,
    "ApiVersions": 18,
    "CreateTopics": 19,
    "DeleteTopics": 20,
    "DeleteRecords": 21,
    "InitProducerId": 22,
    "OffsetForLeaderEpoch": 23,
    "DescribeAcls": 29,
    "DescribeConfigs": 32,
    "AlterConfigs": 33,
    "DescribeLogDirs": 35,
    "SaslAuthenticate": 36,
    "CreatePartitions": 37,
    "DeleteGroups": 42,
    "IncrementalAlterConfigs": 44,
    "OffsetDelete": 47,
    "DescribeClientQuotas": 48,
    "DescribeCluster": 60,
    "ConsumerGroupHeartbeat": 68,
    "ConsumerGroupDescribe": 69,
    "ListConfigResources": 74,
    "DescribeTopicPartitions": 75,
}

APIS = parse_apis(
    _KEYS,
    """
    ProduceRequest 3-13 flexible=9
      transactionalId string?
      acks int16
      timeoutMs int32
      topicData []{TopicProduceData}
        name string 3-12
        topicId uuid 13+
        partitionData []{PartitionProduceData}
          index int32
          records records?
    ProduceResponse 3-13 flexible=9
      responses []{TopicProduceResponse}
        name string 3-12
        topicId uuid 13+
        partitionResponses []{PartitionProduceResponse}
          index int32
          errorCode int16
          baseOffset int64
          logAppendTimeMs int64 default=-1
          logStartOffset int64 5+ default=-1
          recordErrors []{BatchIndexAndErrorMessage} 8+
            batchIndex int32 8+
            batchIndexErrorMessage string? 8+
          errorMessage string? 8+
          currentLeader {LeaderIdAndEpoch} 10+ tag=0
            leaderId int32 10+ default=-1
            leaderEpoch int32 10+ default=-1
      throttleTimeMs int32
      nodeEndpoints []{NodeEndpoint} 10+ tag=0
        nodeId int32 10+
        host string 10+
        port int32 10+
        rack string? 10+
    FetchRequest 4-18 flexible=12
      clusterId string? 12+ tag=0
      replicaId int32 4-14 default=-1
      replicaState {ReplicaState} 15+ tag=1
        replicaId int32 15+ default=-1
        replicaEpoch int64 15+ default=-1
      maxWaitMs int32
      minBytes int32
      maxBytes int32 default=0x7fffffff
      isolationLevel int8
      sessionId int32 7+
      sessionEpoch int32 7+ default=-1
      topics []{FetchTopic}
        topic string 4-12
        topicId uuid 13+
        partitions []{FetchPartition}
          partition int32
          currentLeaderEpoch int32 9+ default=-1
          fetchOffset int64
          lastFetchedEpoch int32 12+ default=-1
          logStartOffset int64 5+ default=-1
          partitionMaxBytes int32
          replicaDirectoryId uuid 17+ tag=0
          highWatermark int64 18+ tag=1 default=9223372036854775807
      forgottenTopicsData []{ForgottenTopic} 7+
        topic string 7-12
        topicId uuid 13+
        partitions []int32 7+
      rackId string 11+
    FetchResponse 4-18 flexible=12
      throttleTimeMs int32
      errorCode int16 7+
      sessionId int32 7+
      responses []{FetchableTopicResponse}
        topic string 4-12
        topicId uuid 13+
        partitions []{PartitionData}
          partitionIndex int32
          errorCode int16
          highWatermark int64
          lastStableOffset int64 default=-1
          logStartOffset int64 5+ default=-1
          divergingEpoch {EpochEndOffset} 12+ tag=0
            epoch int32 12+ default=-1
            endOffset int64 12+ default=-1
          currentLeader {LeaderIdAndEpoch} 12+ tag=1
            leaderId int32 12+ default=-1
            leaderEpoch int32 12+ default=-1
          snapshotId {SnapshotId} 12+ tag=2
            endOffset int64 default=-1
            epoch int32 default=-1
          abortedTransactions []{AbortedTransaction}?
            producerId int64
            firstOffset int64
          preferredReadReplica int32 11+ default=-1
          records records?
      nodeEndpoints []{NodeEndpoint} 16+ tag=0
        nodeId int32 16+
        host string 16+
        port int32 16+
        rack string? 16+
    ListOffsetsRequest 1-11 flexible=6
      replicaId int32
      isolationLevel int8 2+
      topics []{ListOffsetsTopic}
        name string
        partitions []{ListOffsetsPartition}
          partitionIndex int32
          currentLeaderEpoch int32 4+ default=-1
          timestamp int64
      timeoutMs int32 10+
    ListOffsetsResponse 1-11 flexible=6
      throttleTimeMs int32 2+
      topics []{ListOffsetsTopicResponse}
        name string
        partitions []{ListOffsetsPartitionResponse}
          partitionIndex int32
          errorCode int16
          timestamp int64 default=-1
          offset int64 default=-1
          leaderEpoch int32 4+ default=-1
    MetadataRequest 0-13 flexible=9
      topics []{MetadataRequestTopic}? null=1+
        topicId uuid 10+
        name string? null=10+
      allowAutoTopicCreation bool 4+ default=true
      includeClusterAuthorizedOperations bool 8-10
      includeTopicAuthorizedOperations bool 8+
    MetadataResponse 0-13 flexible=9
      throttleTimeMs int32 3+
      brokers []{MetadataResponseBroker}
        nodeId int32
        host string
        port int32
        rack string? 1+
      clusterId string? 2+
      controllerId int32 1+ default=-1
      topics []{MetadataResponseTopic}
        errorCode int16
        name string? null=12+
        topicId uuid 10+
        isInternal bool 1+
        partitions []{MetadataResponsePartition}
          errorCode int16
          partitionIndex int32
          leaderId int32
          leaderEpoch int32 7+ default=-1
          replicaNodes []int32
          isrNodes []int32
          offlineReplicas []int32 5+
        topicAuthorizedOperations int32 8+ default=-2147483648
      clusterAuthorizedOperations int32 8-10 default=-2147483648
      errorCode int16 13+
    SaslHandshakeRequest 0-1
      mechanism string
    SaslHandshakeResponse 0-1
      errorCode int16
      mechanisms []string
    ApiVersionsRequest 0-5 flexible=3
      clientSoftwareName string 3+
      clientSoftwareVersion string 3+
      clusterId string? 5+
      nodeId int32 5+ default=-1
    ApiVersionsResponse 0-5 flexible=3
      errorCode int16
      apiKeys []{ApiVersion}
        apiKey int16
        minVersion int16
        maxVersion int16
      throttleTimeMs int32 1+
      supportedFeatures []{SupportedFeatureKey} 3+ tag=0
        name string 3+
        minVersion int16 3+
        maxVersion int16 3+
      finalizedFeaturesEpoch int64 3+ tag=1 default=-1
      finalizedFeatures []{FinalizedFeatureKey} 3+ tag=2
        name string 3+
        maxVersionLevel int16 3+
        minVersionLevel int16 3+
      zkMigrationReady bool 3+ tag=3
    CreateTopicsRequest 2-7 flexible=5
      topics []{CreatableTopic}
        name string
        numPartitions int32
        replicationFactor int16
        assignments []{CreatableReplicaAssignment}
          partitionIndex int32
          brokerIds []int32
        configs []{CreatableTopicConfig}
          name string
          value string?
      timeoutMs int32 default=60000
      validateOnly bool
    CreateTopicsResponse 2-7 flexible=5
      throttleTimeMs int32
      topics []{CreatableTopicResult}
        name string
        topicId uuid 7+
        errorCode int16
        errorMessage string?
        topicConfigErrorCode int16 5+ tag=0
        numPartitions int32 5+ default=-1
        replicationFactor int16 5+ default=-1
        configs []{CreatableTopicConfigs}? 5+
          name string 5+
          value string? 5+
          readOnly bool 5+
          configSource int8 5+ default=-1
          isSensitive bool 5+
    DeleteTopicsRequest 1-6 flexible=4
      topics []{DeleteTopicState} 6+
        name string? 6+
        topicId uuid 6+
      topicNames []string 1-5
      timeoutMs int32
    DeleteTopicsResponse 1-6 flexible=4
      throttleTimeMs int32
      responses []{DeletableTopicResult}
        name string? null=6+
        topicId uuid 6+
        errorCode int16
        errorMessage string? 5+
    DeleteRecordsRequest 0-2 flexible=2
      topics []{DeleteRecordsTopic}
        name string
        partitions []{DeleteRecordsPartition}
          partitionIndex int32
          offset int64
      timeoutMs int32
    DeleteRecordsResponse 0-2 flexible=2
      throttleTimeMs int32
      topics []{DeleteRecordsTopicResult}
        name string
        partitions []{DeleteRecordsPartitionResult}
          partitionIndex int32
          lowWatermark int64
          errorCode int16
    InitProducerIdRequest 0-6 flexible=2
      transactionalId string?
      transactionTimeoutMs int32
      producerId int64 3+ default=-1
      producerEpoch int16 3+ default=-1
      enable2Pc bool 6+
      keepPreparedTxn bool 6+
    InitProducerIdResponse 0-6 flexible=2
      throttleTimeMs int32
      errorCode int16
      producerId int64 default=-1
      producerEpoch int16
      ongoingTxnProducerId int64 6+ default=-1
      ongoingTxnProducerEpoch int16 6+ default=-1
    OffsetForLeaderEpochRequest 2-4 flexible=4
      replicaId int32 3+ default=-2
      topics []{OffsetForLeaderTopic}
        topic string
        partitions []{OffsetForLeaderPartition}
          partition int32
          currentLeaderEpoch int32 default=-1
          leaderEpoch int32
    OffsetForLeaderEpochResponse 2-4 flexible=4
      throttleTimeMs int32
      topics []{OffsetForLeaderTopicResult}
        topic string
        partitions []{EpochEndOffset}
          errorCode int16
          partition int32
          leaderEpoch int32 default=-1
          endOffset int64 default=-1
    DescribeAclsRequest 1-3 flexible=2
      resourceTypeFilter int8
      resourceNameFilter string?
      patternTypeFilter int8 default=3
      principalFilter string?
      hostFilter string?
      operation int8
      permissionType int8
    DescribeAclsResponse 1-3 flexible=2
      throttleTimeMs int32
      errorCode int16
      errorMessage string?
      resources []{DescribeAclsResource}
        resourceType int8
        resourceName string
        patternType int8 default=3
        acls []{AclDescription}
          principal string
          host string
          operation int8
          permissionType int8
    DescribeConfigsRequest 1-4 flexible=4
      resources []{DescribeConfigsResource}
        resourceType int8
        resourceName string
        configurationKeys []string?
      includeSynonyms bool
      includeDocumentation bool 3+
    DescribeConfigsResponse 1-4 flexible=4
      throttleTimeMs int32
      results []{DescribeConfigsResult}
        errorCode int16
        errorMessage string?
        resourceType int8
        resourceName string
        configs []{DescribeConfigsResourceResult}
          name string
          value string?
          readOnly bool
          configSource int8 default=-1
          isSensitive bool
          synonyms []{DescribeConfigsSynonym}
            name string
            value string?
            source int8
          configType int8 3+
          documentation string? 3+
    AlterConfigsRequest 0-2 flexible=2
      resources []{AlterConfigsResource}
        resourceType int8
        resourceName string
        configs []{AlterableConfig}
          name string
          value string?
      validateOnly bool
    AlterConfigsResponse 0-2 flexible=2
      throttleTimeMs int32
      responses []{AlterConfigsResourceResponse}
        errorCode int16
        errorMessage string?
        resourceType int8
        resourceName string
    DescribeLogDirsRequest 1-5 flexible=2
      topics []{DescribableLogDirTopic}?
        topic string
        partitions []int32
    DescribeLogDirsResponse 1-5 flexible=2
      throttleTimeMs int32
      errorCode int16 3+
      results []{DescribeLogDirsResult}
        errorCode int16
        logDir string
        topics []{DescribeLogDirsTopic}
          name string
          partitions []{DescribeLogDirsPartition}
            partitionIndex int32
            partitionSize int64
            offsetLag int64
            isFutureKey bool
        totalBytes int64 4+ default=-1
        usableBytes int64 4+ default=-1
        isCordoned bool 5+
    SaslAuthenticateRequest 0-2 flexible=2
      authBytes bytes
    SaslAuthenticateResponse 0-2 flexible=2
      errorCode int16
      errorMessage string?
      authBytes bytes
      sessionLifetimeMs int64 1+
    CreatePartitionsRequest 0-3 flexible=2
      topics []{CreatePartitionsTopic}
        name string
        count int32
        assignments []{CreatePartitionsAssignment}?
          brokerIds []int32
      timeoutMs int32
      validateOnly bool
    CreatePartitionsResponse 0-3 flexible=2
      throttleTimeMs int32
      results []{CreatePartitionsTopicResult}
        name string
        errorCode int16
        errorMessage string?
    IncrementalAlterConfigsRequest 0-1 flexible=1
      resources []{AlterConfigsResource}
        resourceType int8
        resourceName string
        configs []{AlterableConfig}
          name string
          configOperation int8
          value string?
      validateOnly bool
    IncrementalAlterConfigsResponse 0-1 flexible=1
      throttleTimeMs int32
      responses []{AlterConfigsResourceResponse}
        errorCode int16
        errorMessage string?
        resourceType int8
        resourceName string
    DescribeClientQuotasRequest 0-1 flexible=1
      components []{ComponentData}
        entityType string
        matchType int8
        match string?
      strict bool
    DescribeClientQuotasResponse 0-1 flexible=1
      throttleTimeMs int32
      errorCode int16
      errorMessage string?
      entries []{EntryData}?
        entity []{EntityData}
          entityType string
          entityName string?
        values []{ValueData}
          key string
          value float64
    DescribeClusterRequest 0-2 flexible=0
      includeClusterAuthorizedOperations bool
      endpointType int8 1+ default=1
      includeFencedBrokers bool 2+
    DescribeClusterResponse 0-2 flexible=0
      throttleTimeMs int32
      errorCode int16
      errorMessage string?
      endpointType int8 1+ default=1
      clusterId string
      controllerId int32 default=-1
      brokers []{DescribeClusterBroker}
        brokerId int32
        host string
        port int32
        rack string?
        isFenced bool 2+
      clusterAuthorizedOperations int32 default=-2147483648
    ListConfigResourcesRequest 0-1 flexible=0
      resourceTypes []int8 1+
    ListConfigResourcesResponse 0-1 flexible=0
      throttleTimeMs int32
      errorCode int16
      configResources []{ConfigResource}
        resourceName string
        resourceType int8 1+ default=16
    DescribeTopicPartitionsRequest 0 flexible=0
      topics []{TopicRequest}
        name string
      responsePartitionLimit int32 default=2000
      cursor {Cursor}?
        topicName string
        partitionIndex int32
    DescribeTopicPartitionsResponse 0 flexible=0
      throttleTimeMs int32
      topics []{DescribeTopicPartitionsResponseTopic}
        errorCode int16
        name string?
        topicId uuid
        isInternal bool
        partitions []{DescribeTopicPartitionsResponsePartition}
          errorCode int16
          partitionIndex int32
          leaderId int32
          leaderEpoch int32 default=-1
          replicaNodes []int32
          isrNodes []int32
          eligibleLeaderReplicas []int32?
          lastKnownElr []int32?
          offlineReplicas []int32
        topicAuthorizedOperations int32 default=-2147483648
      nextCursor {Cursor}?
        topicName string
        partitionIndex int32
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
"""All APIs by name."""
