"""What clients are told of the cluster: one broker that leads everything that is served.

Topic ids are those of the directory. A partition that the directory does not hold, below the
highest one that it does, is listed without a leader: clients count partitions from zero.

The cluster's id is that of the directory behind ``pylog-serve-``, so that nothing takes the server
for the cluster that wrote the directory.

Source: KRaftMetadataCache, KafkaApis.handleTopicMetadataRequest,
DescribeTopicPartitionsRequestHandler, ReplicaManager.describeLogDirs (Kafka 4.4); KIP-113, KIP-827,
KIP-966.
"""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.files.file_names import META_PROPERTIES
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import ZERO_UUID
from pylog.internal_topics.message_writer import EachOf
from pylog.locations import is_remote, join, printable_location
from pylog.model import INTERNAL_TOPICS
from pylog.reading.damage import Attempts
from pylog.server.protocol import Errors, RequestParseError

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, KeysView

    from pylog.server.partition import Partition
    from pylog.server.protocol import Request, RequestContext, Response
    from pylog.server.replica_manager import ReplicaManager, Topic

CLUSTER_ID_PREFIX = "pylog-serve-"
_LEADER_NOT_AVAILABLE = 5
_UNKNOWN_CLUSTER = "unknown"
_FIRST_NODE_ID = 1
_NO_LEADER = -1
_BY_ID_VERSION = 12
_LEGAL_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_MOST_PARTITIONS = 2000  # max.request.partition.size.limit of a broker
_MOST_LOADED = 100
"""Partitions whose ends are looked up for one request: a client is not to wait for thousands."""

_UNKNOWN_EPOCH = _UNKNOWN_BYTES = -1
_BROKERS, _CONTROLLERS = 1, 2
_NOT_ASKED = -(2**31)
_READ, _DESCRIBE, _DESCRIBE_CONFIGS = 3, 8, 10
_TOPIC_OPERATIONS = 1 << _READ | 1 << _DESCRIBE | 1 << _DESCRIBE_CONFIGS
_CLUSTER_OPERATIONS = 1 << _DESCRIBE | 1 << _DESCRIBE_CONFIGS
_MISMATCHED_ENDPOINT_TYPE, _UNSUPPORTED_ENDPOINT_TYPE = 114, 115


class ClusterIdentity(NamedTuple):
    """The cluster id and node id of the directories that are served."""

    cluster_id: str
    node_id: int


def find_identity(log_directories: Iterator[str]) -> ClusterIdentity:
    """Return the ids in the first ``meta.properties`` that has them."""
    for directory in log_directories:
        path = join(directory, META_PROPERTIES)
        found = Attempts().read(lambda path=path: read_meta_properties(path))  # type: ignore[misc]
        if found is not None and found.cluster_id is not None:
            node_id = _FIRST_NODE_ID if found.node_id is None else found.node_id
            return ClusterIdentity(CLUSTER_ID_PREFIX + found.cluster_id, node_id)
    return ClusterIdentity(CLUSTER_ID_PREFIX + _UNKNOWN_CLUSTER, _FIRST_NODE_ID)


class MetadataCache:
    """Answers what clients ask of topics and brokers."""

    def __init__(self, replicas: ReplicaManager, identity: ClusterIdentity) -> None:
        self._replicas = replicas
        self.identity = identity
        replicas.node_id = identity.node_id

    def _broker(self, context: RequestContext, name: str = "nodeId") -> Response:
        return {name: self.identity.node_id, "host": context.host, "port": context.port}

    def node(self, context: RequestContext) -> Response:
        """Return the one broker: the coordinator of all groups, too."""
        return self._broker(context)

    def topic_names(self) -> KeysView[str]:
        """Return the names of all topics that clients may read."""
        return self._replicas.topics.keys()

    def topic_id(self, name: str) -> uuid.UUID | None:
        """Return a topic's id; None if there is no such topic."""
        topic = self._replicas.topics.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """Return a topic's name; None if there is no such topic."""
        topic = self._replicas.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        """Return the number after a topic's highest partition; 0 if there is no such topic."""
        topic = self._replicas.topics.get(name)
        return 0 if topic is None else topic.partition_count

    async def handle_metadata(self, request: Request, context: RequestContext) -> Response:
        """Answer Metadata."""
        # Offsets and epochs of a partition are found once.
        return await self._replicas.in_thread(lambda: self._metadata(request, context))

    def _metadata(self, request: Request, context: RequestContext) -> Response:
        asked = request["topics"]
        operations = (
            _TOPIC_OPERATIONS if request["includeTopicAuthorizedOperations"] else _NOT_ASKED
        )
        ids = [each["topicId"] for each in asked or () if each["topicId"] != ZERO_UUID]
        if context.version < _BY_ID_VERSION:
            if any(each["name"] is None for each in asked or ()):
                reason = f"topics are asked for by id in Metadata of version {context.version}"
                raise RequestParseError(reason)
            if ids:
                return _invalid(asked)
        if asked is None or (context.version == 0 and not asked):
            all_topics = list(self._replicas.topics.values())
            self._load_some(all_topics)
            topics: EachOf = EachOf(partial(self._topic, operations=operations), all_topics)
        else:
            # Each once, and none by its name if one has an id, as a broker does.
            keys: dict[str | uuid.UUID, None] = dict.fromkeys(
                ids or (each["name"] for each in asked if each["name"] is not None)
            )
            found = map(self._find, keys)
            self._load_some(each for each in found if each is not None)
            for name in INTERNAL_TOPICS & keys.keys():
                self._replicas.is_unserved(name)  # which may look at the directory
            topics = EachOf(partial(self._asked_topic, operations=operations), list(keys))
        cluster = request["includeClusterAuthorizedOperations"]
        return {
            "brokers": [self._broker(context)],
            "clusterId": self.identity.cluster_id,
            "controllerId": self.identity.node_id,
            "topics": topics,
            "clusterAuthorizedOperations": _CLUSTER_OPERATIONS if cluster else _NOT_ASKED,
        }

    def _load_some(self, topics: Iterable[Topic]) -> None:
        """Load the leader epochs of so many partitions now; later requests load the rest."""
        partitions = (each for topic in topics for each in topic.partitions.values())
        for each in islice((each for each in partitions if not each.is_loaded), _MOST_LOADED):
            each.load()

    def _find(self, key: str | uuid.UUID) -> Topic | None:
        if isinstance(key, str):
            return self._replicas.topics.get(key)
        return self._replicas.topics_by_id.get(key)

    def _asked_topic(self, key: str | uuid.UUID, *, operations: int) -> Response:
        topic = self._find(key)
        if topic is not None:
            return self._topic(topic, operations=operations)
        if isinstance(key, str):
            found = {"errorCode": self._error_for(key), "name": key}
        else:
            found = {"errorCode": Errors.UNKNOWN_TOPIC_ID, "name": None, "topicId": key}
        return {**found, "partitions": [], "topicAuthorizedOperations": operations}

    def _error_for(self, name: str) -> Errors:
        """Return why a topic is not told about; may look at the directory."""
        if self._replicas.is_unserved(name):
            # Clients would ask again and again for one that is unknown.
            return Errors.TOPIC_AUTHORIZATION_FAILED
        return error_for_unknown(name)

    def _topic(self, topic: Topic, *, operations: int = _TOPIC_OPERATIONS) -> Response:
        return {
            "errorCode": Errors.NONE,
            "name": topic.name,
            "topicId": topic.topic_id,
            "isInternal": topic.is_internal,
            "partitions": EachOf(partial(self._partition, topic), _indexes(topic)),
            "topicAuthorizedOperations": operations,
        }

    def _partition(self, topic: Topic, index: int) -> Response:
        partition, node = topic.partitions.get(index), self.identity.node_id
        described = {
            "errorCode": Errors.NONE,
            "partitionIndex": index,
            "leaderId": node,
            "replicaNodes": [node],
            "isrNodes": [node],
            "offlineReplicas": [],
            # The admin client of Kafka 3.9 does not expect null here.
            "eligibleLeaderReplicas": [],
            "lastKnownElr": [],
        }
        if partition is None:
            nobody = {"errorCode": _LEADER_NOT_AVAILABLE, "leaderId": _NO_LEADER, "isrNodes": []}
            return {**described, **nobody, "offlineReplicas": [node]}
        # An epoch that is told later may be higher, and none is below -1.
        epoch = partition.leader_epoch if partition.is_loaded else _UNKNOWN_EPOCH
        return {**described, "leaderEpoch": epoch}

    async def handle_describe_topic_partitions(
        self, request: Request, context: RequestContext
    ) -> Response:
        """Answer DescribeTopicPartitions, page by page."""
        return await self._replicas.in_thread(lambda: self._describe_topic_partitions(request))

    def _describe_topic_partitions(self, request: Request) -> Response:
        cursor = request["cursor"]
        asked = {each["name"] for each in request["topics"]}
        if cursor is not None and (
            cursor["partitionIndex"] < 0 or (asked and cursor["topicName"] not in asked)
        ):
            return {"topics": EachOf(_refused, [each["name"] for each in request["topics"]])}
        names = sorted(asked or self._replicas.topics)
        first = 0
        if cursor is not None:
            names = [name for name in names if name >= cursor["topicName"]]
            first = cursor["partitionIndex"] if names[:1] == [cursor["topicName"]] else 0
        rest = min(max(request["responsePartitionLimit"], 1), _MOST_PARTITIONS)
        found = map(self._replicas.topics.get, names)
        self._load_some(each for each in found if each is not None)
        topics: list[Response] = []
        for name in names:
            if rest == 0:
                return {"topics": topics, "nextCursor": {"topicName": name, "partitionIndex": 0}}
            topic = self._replicas.topics.get(name)
            if topic is None:
                topics.append(self._asked_topic(name, operations=_TOPIC_OPERATIONS))
                continue
            indexes = [index for index in _indexes(topic) if index >= first]
            first = 0
            shown = indexes[:rest]
            rest -= len(shown)
            topics.append(
                {
                    **self._topic(topic),
                    "partitions": [self._partition(topic, index) for index in shown],
                }
            )
            if len(shown) < len(indexes):
                following = {"topicName": name, "partitionIndex": indexes[len(shown)]}
                return {"topics": topics, "nextCursor": following}
        return {"topics": topics}

    def handle_describe_cluster(self, request: Request, context: RequestContext) -> Response:
        """Answer DescribeCluster."""
        endpoint_type = request["endpointType"]
        if endpoint_type != _BROKERS:
            is_known = endpoint_type == _CONTROLLERS
            return {
                "errorCode": _MISMATCHED_ENDPOINT_TYPE if is_known else _UNSUPPORTED_ENDPOINT_TYPE,
                "errorMessage": "this server has the endpoint type of brokers",
                "clusterId": "",
                "brokers": [],
            }
        cluster = request["includeClusterAuthorizedOperations"]
        return {
            "clusterId": self.identity.cluster_id,
            "controllerId": self.identity.node_id,
            "brokers": [self._broker(context, "brokerId")],
            "clusterAuthorizedOperations": _CLUSTER_OPERATIONS if cluster else _NOT_ASKED,
        }

    async def handle_describe_log_dirs(self, request: Request, context: RequestContext) -> Response:
        """Answer DescribeLogDirs: log directories, and the sizes of the partitions in them."""
        return await self._replicas.in_thread(lambda: self._describe_log_dirs(request["topics"]))

    def _describe_log_dirs(self, asked: list[Request] | None) -> Response:
        wanted = None
        if asked is not None:
            wanted = {(each["topic"], index) for each in asked for index in each["partitions"]}
        found: dict[str, dict[str, list[Response]]] = {}
        for name, topic in self._replicas.topics.items():
            for index, partition in topic.partitions.items():
                topics = found.setdefault(partition.directory.log_directory, {})
                if wanted is None or (name, index) in wanted:
                    topics.setdefault(name, []).append(_stored(index, partition))
        return {
            "results": [
                {
                    "errorCode": Errors.NONE,
                    "logDir": printable_location(directory),
                    "topics": [
                        {"name": name, "partitions": partitions}
                        for name, partitions in topics.items()
                    ],
                    **_space(directory),
                }
                for directory, topics in found.items()
            ]
        }


def error_for_unknown(name: str) -> Errors:
    """Return why there is no topic of a name."""
    if _LEGAL_NAME.fullmatch(name):
        return Errors.UNKNOWN_TOPIC_OR_PARTITION
    return Errors.INVALID_TOPIC_EXCEPTION


def _refused(name: str) -> Response:
    return {
        "errorCode": Errors.INVALID_REQUEST,
        "name": name,
        "partitions": [],
        "topicAuthorizedOperations": _NOT_ASKED,
    }


def _invalid(asked: list[Request]) -> Response:
    """Return the answer to a request with topic ids in a version that is not to have them."""
    return {
        "brokers": [],
        "controllerId": _NO_LEADER,
        "clusterId": None,
        "topics": [{**_refused(each["name"]), "topicId": each["topicId"]} for each in asked],
    }


def _stored(index: int, partition: Partition) -> Response:
    try:
        size = partition.view.size_bytes
    except LogStorageError:
        size = 0
    return {"partitionIndex": index, "partitionSize": size, "offsetLag": 0, "isFutureKey": False}


def _space(directory: str) -> dict[str, int]:
    if is_remote(directory):
        return {"totalBytes": _UNKNOWN_BYTES, "usableBytes": _UNKNOWN_BYTES}
    try:
        status = os.statvfs(directory)
    except OSError:
        return {"totalBytes": _UNKNOWN_BYTES, "usableBytes": _UNKNOWN_BYTES}
    return {
        "totalBytes": status.f_frsize * status.f_blocks,
        "usableBytes": status.f_frsize * status.f_bavail,
    }


def _indexes(topic: Topic) -> range:
    return range(topic.partition_count)
