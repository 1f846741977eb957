"""Requests of every API that changes nothing: usual ones, and those that hardly a client sends.

Others would change what the broker holds, or have tests of their own with members in groups.
"""

from __future__ import annotations

import uuid
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from pylog.server.messages import APIS
from tests.broker.served_cluster import GROUP, OTHER_GROUP, TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Request = dict[str, Any]
    Asked = tuple[str, int, Request]

NOT_ASKED = frozenset(
    {
        *("Produce", "InitProducerId", "CreateTopics", "DeleteTopics", "DeleteRecords"),
        *("CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs"),
    }
)
"""What changes a cluster."""

_ODD_NAMES = ("", "a b", ".", "x" * 250, "no-such-topic")
_ZERO, _UNKNOWN = uuid.UUID(int=0), uuid.UUID(int=7)
_LARGEST = 2**31 - 1
_SIZES = (-1, 0, 1, 5_000, _LARGEST)
_STRANGERS = (
    *((GROUP, "stranger", 3), (GROUP, "", -1)),
    *(("none", "stranger", 1), ("", "stranger", 1)),
)
"""Members that are in no group."""


def all_requests(topic_ids: dict[str, uuid.UUID]) -> Iterator[Asked]:
    """Yield requests with their APIs and versions."""
    for version in _versions("Fetch"):
        yield from _fetches(partial(_fetch, version, topic_ids))
    for version in _versions("ListOffsets"):
        yield from _list_offsets(partial(_listed, version))
    yield from _epochs()
    yield from _metadata(topic_ids)
    yield from _topic_partitions()
    yield from _clusters()
    yield from _configs()
    yield from _coordinators()
    ids = {**topic_ids, "none": _UNKNOWN}
    for version in _versions("OffsetFetch"):
        yield from _committed(version, ids)
    yield from _described_groups()
    for stranger in _STRANGERS:
        yield from _classic_requests(*stranger)
        yield from _later_requests(*stranger, topic_ids["plain"])
    yield from _deletions()
    yield from _others()


def _versions(api: str) -> range:
    return APIS[api].versions


def _fetch(
    version: int,
    topic_ids: dict[str, uuid.UUID],
    *places: tuple[str, int, int],
    of_partition: Request | None = None,
    **fields: Any,  # noqa: ANN401 - of the request
) -> Asked:
    topics = [
        {
            "topic": name,
            "topicId": topic_ids.get(name, _UNKNOWN),
            "partitions": [
                {
                    "partition": partition,
                    "fetchOffset": offset,
                    "partitionMaxBytes": 100_000,
                    **(of_partition or {}),
                }
            ],
        }
        for name, partition, offset in places
    ]
    replica_id = fields.pop("replica_id", -1)
    asker = (
        {"replicaId": replica_id} if version < 15 else {"replicaState": {"replicaId": replica_id}}
    )
    return "Fetch", version, {"maxWaitMs": 0, "minBytes": 1, "topics": topics, **asker, **fields}


def _fetches(fetch: Callable[..., Asked]) -> Iterator[Asked]:
    for offset, isolation in product((0, 7, 38, 71, 90, 91, -1, -2, 2**63 - 1), (0, 1)):
        yield fetch(*((name, 0, offset) for name in TOPICS), isolationLevel=isolation)
    usual = ("changes", 0, 0), ("plain", 0, 5), ("plain", 1, 0)
    yield fetch()
    yield fetch(*usual, *usual, ("plain", 0, 30))
    yield fetch(("plain", -1, 0), ("plain", 2, 0), ("plain", _LARGEST, 0))
    yield fetch(*((name, 0, 0) for name in _ODD_NAMES), *usual)
    for size, most, isolation in product(_SIZES, _SIZES, (0, 1)):
        sizes = {"partitionMaxBytes": size}
        yield fetch(*usual, of_partition=sizes, maxBytes=most, isolationLevel=isolation)
    for isolation in (-1, 2, 100):
        yield fetch(*usual, isolationLevel=isolation)
    for current, fetched in product((-2, -1, 0, 1, 9), (-2, -1, 0, 5)):
        epochs = {"currentLeaderEpoch": current, "lastFetchedEpoch": fetched}
        yield fetch(("plain", 0, 3), of_partition=epochs)
    for replica_id in (-2, 0, 1, 9):
        yield fetch(("plain", 0, 3), replica_id=replica_id)
    for session, epoch in product((0, 1, -1), (-2, -1, 0, 1, 9)):
        yield fetch(("plain", 0, 3), sessionId=session, sessionEpoch=epoch)


def _listed(version: int, *places: tuple[str, int, int], epoch: int = -1, **fields: int) -> Asked:
    topics = [
        {
            "name": name,
            "partitions": [
                {"partitionIndex": index, "currentLeaderEpoch": epoch, "timestamp": timestamp}
            ],
        }
        for name, index, timestamp in places
    ]
    return "ListOffsets", version, {"replicaId": -1, "topics": topics, **fields}


def _list_offsets(listed: Callable[..., Asked]) -> Iterator[Asked]:
    times = (*range(-8, 3), -(2**63), 40_001, 10**15, 2**63 - 1)
    for timestamp, isolation in product(times, (0, 1)):
        yield listed(*((name, 0, timestamp) for name in TOPICS), isolationLevel=isolation)
    yield listed(*(("plain", 0, each) for each in (-1, -2)), ("plain", 1, -1))
    yield listed(*((name, each, -1) for name in (*_ODD_NAMES, "plain") for each in (0, 1, -1)))
    for replica, isolation in product((-2, 0, 7), (0, 1)):
        yield listed(("changes", 0, -1), replicaId=replica, isolationLevel=isolation)
    for isolation in (-1, 2):
        yield listed(("changes", 0, -1), isolationLevel=isolation)
    for epoch in (-2, 0, 1):
        yield listed(("plain", 0, -1), epoch=epoch)
    api, version, request = listed()
    yield api, version, {**request, "topics": [{"name": "plain", "partitions": []}]}


def _epochs() -> Iterator[Asked]:
    for version in _versions("OffsetForLeaderEpoch"):
        for current, epoch in product((-2, -1, 0, 1), (-2, -1, 0, 1, 50)):
            asked = {"currentLeaderEpoch": current, "leaderEpoch": epoch}
            partitions = [{"partition": each, **asked} for each in (0, 9)]
            topics = [{"topic": each, "partitions": partitions} for each in ("plain", "", "none")]
            yield "OffsetForLeaderEpoch", version, {"replicaId": -1, "topics": topics}


def _metadata(topic_ids: dict[str, uuid.UUID]) -> Iterator[Asked]:
    plain, changes = topic_ids["plain"], topic_ids["changes"]
    told = {"includeTopicAuthorizedOperations": True}
    of_cluster = {"includeClusterAuthorizedOperations": True}
    requests: list[tuple[range, list[tuple[str | None, uuid.UUID]] | None, Request]] = [
        (range(1, 14), [], {}),
        (range(1, 14), None, {}),
        # Before, brokers make a topic that is asked for.
        (range(4, 14), [(name, _ZERO) for name in (*_ODD_NAMES, "plain", "plain")], {}),
        (range(8, 11), [("plain", _ZERO), ("none", _ZERO)], told | of_cluster),
        (range(11, 14), [("plain", _ZERO), ("none", _ZERO)], told),
        (range(10, 14), [("plain", changes)], {}),
        (range(12, 14), [(None, each) for each in (plain, _UNKNOWN, _ZERO, plain)], {}),
        (range(12, 14), [("plain", _ZERO), (None, changes)], {}),
    ]
    for versions, topics, fields in requests:
        named = None
        if topics is not None:
            named = [{"name": name, "topicId": topic_id} for name, topic_id in topics]
        for version in versions:
            asked = {"topics": named, "allowAutoTopicCreation": False, **fields}
            yield "Metadata", version, asked


def _topic_partitions() -> Iterator[Asked]:
    lists = ((*TOPICS, "none"), ("plain", "plain"), ("", "a b"), ())
    cursors = (None, ("plain", 1), ("plain", 9), ("plain", -1), ("none", 0), ("", 0))
    for names, limit, cursor in product(lists, (-1, 0, 1, 2000, 5000), cursors):
        request = {
            "topics": [{"name": each} for each in names],
            "responsePartitionLimit": limit,
            "cursor": cursor and {"topicName": cursor[0], "partitionIndex": cursor[1]},
        }
        yield "DescribeTopicPartitions", 0, request


def _clusters() -> Iterator[Asked]:
    for version in _versions("DescribeCluster"):
        for endpoint, told in product((-1, 0, 1, 2, 3) if version else (1,), (False, True)):
            asked = {"endpointType": endpoint, "includeClusterAuthorizedOperations": told}
            yield "DescribeCluster", version, asked
    for version in _versions("DescribeLogDirs"):
        for partitions in ([0, 1, 9], [0, 0], []):
            topics = [{"topic": each, "partitions": partitions} for each in ("plain", "none")]
            yield "DescribeLogDirs", version, {"topics": topics}
        yield "DescribeLogDirs", version, {"topics": []}


def _configs() -> Iterator[Asked]:
    resources = [
        *((2, name) for name in (*_ODD_NAMES, "plain", "changes")),
        *((4, name) for name in ("1", "", "7", "x")),
        *((8, "1"), (16, "metrics"), (32, GROUP), (32, "none")),
        *((each, "x") for each in (0, 1, 3, 64, -1)),
    ]
    for version in _versions("DescribeConfigs"):
        for (kind, name), keys in product(resources, (None, ["segment.bytes", "none"])):
            resource = {"resourceType": kind, "resourceName": name, "configurationKeys": keys}
            told = {"includeSynonyms": True, "includeDocumentation": version >= 3}
            yield "DescribeConfigs", version, {"resources": [resource], **told}
    yield "ListConfigResources", 0, {}
    for kinds in ([], [2], [4], [16], [32], [2, 99]):
        yield "ListConfigResources", 1, {"resourceTypes": kinds}


def _coordinators() -> Iterator[Asked]:
    for version in _versions("FindCoordinator"):
        several = version >= 4
        lists = ([GROUP], [""], [], [GROUP, GROUP, "none"]) if several else ([GROUP], [""])
        for kind, keys in product((0, 1, 2, 3, -1) if version else (0,), lists):
            asked: Request = {"coordinatorKeys": keys} if several else {"key": keys[0]}
            yield "FindCoordinator", version, {"keyType": kind, **asked}


def _committed(version: int, ids: dict[str, uuid.UUID]) -> Iterator[Asked]:
    lists: tuple[list[tuple[str, list[int]]] | None, ...] = (
        *([], [("plain", [0, 1, 9]), ("none", [0])], [("plain", [0, 0])]),
        *((None,) if version >= 2 else ()),
    )
    for group_id, wanted in product((GROUP, "none", ""), lists):
        topics = None
        if wanted is not None:
            topics = [
                {"name": name, "topicId": ids[name], "partitionIndexes": indexes}
                for name, indexes in wanted
            ]
        asked: Request = {"groupId": group_id, "topics": topics}
        yield "OffsetFetch", version, asked if version < 8 else {"groups": [asked]}
    twice = [{"groupId": each, "topics": None} for each in (GROUP, OTHER_GROUP, GROUP)]
    for groups in ([], twice) if version >= 8 else ():
        yield "OffsetFetch", version, {"groups": groups}


def _described_groups() -> Iterator[Asked]:
    for version in _versions("ListGroups"):
        states = ([], ["Empty"], ["empty", "Dead"], ["none"]) if version >= 4 else ([],)
        kinds = ([], ["Classic"], ["consumer"], ["none"]) if version >= 5 else ([],)
        for state, kind in product(states, kinds):
            yield "ListGroups", version, {"statesFilter": state, "typesFilter": kind}
    for names in ([GROUP], [GROUP, "none", ""], [], [GROUP, GROUP]):
        for version in _versions("DescribeGroups"):
            told = {"includeAuthorizedOperations": version >= 3}
            yield "DescribeGroups", version, {"groups": names, **told}
        for version in _versions("ConsumerGroupDescribe"):
            told = {"includeAuthorizedOperations": True}
            yield "ConsumerGroupDescribe", version, {"groupIds": names, **told}


def _classic_requests(group_id: str, member_id: str, generation: int) -> Iterator[Asked]:
    member: Request = {"groupId": group_id, "memberId": member_id}
    of_generation = {**member, "generationId": generation}
    for version in _versions("Heartbeat"):
        yield "Heartbeat", version, of_generation
    for version in _versions("SyncGroup"):
        for protocol in ({"protocolType": "consumer", "protocolName": "range"}, {}):
            yield "SyncGroup", version, {**of_generation, **protocol}
    for version in _versions("LeaveGroup"):
        yield "LeaveGroup", version, {**member, "members": [{"memberId": member_id}]}
    joined = {
        **member,
        "sessionTimeoutMs": 6_000,
        "rebalanceTimeoutMs": 6_000,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    for version in _versions("JoinGroup") if member_id else ():
        yield "JoinGroup", version, joined
        for name, value in (("sessionTimeoutMs", 1), ("protocols", []), ("protocolType", "")):
            yield "JoinGroup", version, {**joined, name: value}


def _later_requests(
    group_id: str, member_id: str, epoch: int, topic_id: uuid.UUID
) -> Iterator[Asked]:
    member: Request = {"groupId": group_id, "memberId": member_id}
    partition = {"partitionIndex": 0, "committedOffset": 3, "committedMetadata": ""}
    topic = {"name": "plain", "topicId": topic_id, "partitions": [partition]}
    committed = {**member, "generationIdOrMemberEpoch": epoch, "topics": [topic]}
    for version in _versions("OffsetCommit") if member_id else ():
        yield "OffsetCommit", version, committed
    heartbeat = {**member, "memberEpoch": 5, "topicPartitions": []}
    odd: tuple[Request, ...]
    odd = ({}, {"memberEpoch": -3}, {"instanceId": ""}, {"rackId": ""}, {"memberEpoch": -1})
    for version, change in product(_versions("ConsumerGroupHeartbeat"), odd):
        yield "ConsumerGroupHeartbeat", version, {**heartbeat, **change}


def _deletions() -> Iterator[Asked]:
    for group_id in ("none", ""):
        for version in _versions("DeleteGroups"):
            yield "DeleteGroups", version, {"groupsNames": [group_id]}
        topics = [{"name": "plain", "partitions": [{"partitionIndex": 0}]}]
        yield "OffsetDelete", 0, {"groupId": group_id, "topics": topics}


def _others() -> Iterator[Asked]:
    requests: list[tuple[str, Request]] = [
        ("DescribeAcls", {"resourceTypeFilter": 1, "operation": 1, "permissionType": 1}),
        ("DescribeClientQuotas", {}),
        ("SaslHandshake", {"mechanism": "PLAIN"}),
        ("SaslAuthenticate", {"authBytes": b"\0user\0password"}),
        *(
            ("ApiVersions", {"clientSoftwareName": name, "clientSoftwareVersion": "1"})
            for name in ("pylog-tests", "", "-")
        ),
    ]
    for api, request in requests:
        for version in _versions(api):
            yield api, version, request
