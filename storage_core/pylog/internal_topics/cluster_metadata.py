"""``__cluster_metadata``: topics, partitions, brokers, configurations (KRaft)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError
from pylog.internal_topics.api_message import read_api_message
from pylog.internal_topics.message_json import json_text
from pylog.internal_topics.schema import parse_messages
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion

if TYPE_CHECKING:
    from pylog.internal_topics.api_message import ApiMessage


_MESSAGES = parse_messages("""
    struct Feature
      name string
      minSupportedVersion int16
      maxSupportedVersion int16
    struct Endpoint
      name string
      host string
      port uint16
      securityProtocol int16
    RegisterBrokerRecord 0-4 flexible=0 before=4.3:0-3
      brokerId int32
      isMigratingZkBroker bool 2+
      incarnationId uuid
      brokerEpoch int64
      endPoints []Endpoint
      features []Feature
      rack string?
      fenced bool
      inControlledShutdown bool 1+
      logDirs []uuid 3+ tag=0
      cordonedLogDirs []uuid? 4+ tag=1 since=4.3
    UnregisterBrokerRecord 0 flexible=0
      brokerId int32
      brokerEpoch int64
    TopicRecord 0 flexible=0
      name string
      topicId uuid
    PartitionRecord 0-2 flexible=0
      partitionId int32
      topicId uuid
      replicas []int32
      isr []int32
      removingReplicas []int32
      addingReplicas []int32
      leader int32
      leaderRecoveryState int8 tag=0
      leaderEpoch int32
      partitionEpoch int32
      directories []uuid 1+
      eligibleLeaderReplicas []int32? 2+ tag=1
      lastKnownElr []int32? 2+ tag=2
    ConfigRecord 0 flexible=0
      resourceType int8
      resourceName string
      name string
      value string?
    PartitionChangeRecord 0-2 flexible=0
      partitionId int32
      topicId uuid
      isr []int32? tag=0
      leader int32 tag=1 default=-2
      replicas []int32? tag=2
      removingReplicas []int32? tag=3
      addingReplicas []int32? tag=4
      leaderRecoveryState int8 tag=5 default=-1
      directories []uuid? 1+ tag=8
      eligibleLeaderReplicas []int32? 2+ tag=6
      lastKnownElr []int32? 2+ tag=7
    FenceBrokerRecord 0 flexible=0
      id int32
      epoch int64
    UnfenceBrokerRecord 0 flexible=0
      id int32
      epoch int64
    RemoveTopicRecord 0 flexible=0
      topicId uuid
    DelegationTokenRecord 0 flexible=0
      owner string
      requester string
      renewers []string
      issueTimestamp int64
      maxTimestamp int64
      expirationTimestamp int64
      tokenId string
    UserScramCredentialRecord 0 flexible=0
      name string
      mechanism int8
      salt bytes
      storedKey bytes
      serverKey bytes
      iterations int32
    FeatureLevelRecord 0 flexible=0
      name string
      featureLevel int16
    ClientQuotaRecord 0 flexible=0
      entity []{EntityData}
        entityType string
        entityName string?
      key string
      value float64
      remove bool
    ProducerIdsRecord 0 flexible=0
      brokerId int32
      brokerEpoch int64
      nextProducerId int64
    BrokerRegistrationChangeRecord 0-3 flexible=0 before=4.3:0-2
      brokerId int32
      brokerEpoch int64
      fenced int8 tag=0
      inControlledShutdown int8 1+ tag=1
      logDirs []uuid 2+ tag=2
      cordonedLogDirs []uuid? 3+ tag=3 since=4.3
    AccessControlEntryRecord 0 flexible=0
      id uuid
      resourceType int8
      resourceName string
      patternType int8
      principal string
      host string
      operation int8
      permissionType int8
    RemoveAccessControlEntryRecord 0 flexible=0
      id uuid
    NoOpRecord 0 flexible=0
    ZkMigrationStateRecord 0 flexible=0
      zkMigrationState int8
    RemoveUserScramCredentialRecord 0 flexible=0
      name string
      mechanism int8
    BeginTransactionRecord 0 flexible=0
      name string? tag=0
    EndTransactionRecord 0 flexible=0
    AbortTransactionRecord 0 flexible=0
      reason string? tag=0
    RemoveDelegationTokenRecord 0 flexible=0
      tokenId string
    RegisterControllerRecord 0 flexible=0
      controllerId int32
      incarnationId uuid
      zkMigrationReady bool
      endPoints []Endpoint
      features []Feature
    ClearElrRecord 0 flexible=0
      topicName string
    UnregisterControllerRecord 0 flexible=0
      controllerId int32
""")

_TYPE_IDS = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
    29: "UnregisterControllerRecord",
}

METADATA_MESSAGES = {type_id: _MESSAGES[name] for type_id, name in _TYPE_IDS.items()}

FIRST_VERSION_WITH = {28: KafkaVersion.V4_0, 29: KafkaVersion.V4_4}
"""Types that earlier versions do not know."""


_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def read_metadata_record(value: bytes | None) -> ApiMessage:
    """Return the metadata record in a record's value."""
    return read_api_message(value, METADATA_MESSAGES, LATEST_KAFKA_VERSION)


class ClusterMetadataDecoder:
    """The decoder behind ``--cluster-metadata-decoder``; it prints no keys."""

    def __init__(self, kafka_version: KafkaVersion) -> None:
        self._kafka_version = kafka_version
        self._messages = {
            type_id: message
            for type_id, message in METADATA_MESSAGES.items()
            if FIRST_VERSION_WITH.get(type_id, kafka_version) <= kafka_version
        }

    def decode(
        self, key: bytes | None, value: bytes | None, offset: int
    ) -> tuple[str | None, str | None]:
        """Return the text of a record's value; see `DumpDecoder`."""
        try:
            record = read_api_message(value, self._messages, self._kafka_version)
        except InvalidRecordError as error:
            return None, f"Error at {offset}, skipping. {error.reason}"
        type_name = _WORD_START.sub("_", record.message.name).upper()
        return None, json_text(
            {"type": type_name, "version": record.version, "data": record.fields}
        )
