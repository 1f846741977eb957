"""Records of ``__consumer_offsets``, as bytes, in Kafka's own message formats."""

from __future__ import annotations

import struct
from typing import Any

from pylog.internal_topics import consumer_offsets
from pylog.internal_topics.consumer_offsets import GROUP_RECORD_TYPES
from pylog.internal_topics.message_writer import write_message
from tests.support.batches import Stored

COMMIT, CLASSIC, CONSUMER, SHARE, STREAMS = 1, 2, 3, 11, 17
CONSUMER_MEMBER, STREAMS_MEMBER, STREAMS_TOPOLOGY = 5, 19, 23
_ID_NAMES = {COMMIT: "group", CLASSIC: "group"}


def group_record(
    type_id: int,
    group: str,
    value: dict[str, Any] | None,
    *,
    version: int = 0,
    **key: Any,  # noqa: ANN401 - further fields of the key
) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; None for a tombstone."""
    kinds = GROUP_RECORD_TYPES[type_id][-1]
    fields = {_ID_NAMES.get(type_id, "groupId"): group, **key}
    stored_key = struct.pack(">h", type_id) + write_message(kinds.key, fields, 0)
    if value is None:
        return stored_key, None
    return stored_key, struct.pack(">h", version) + write_message(kinds.value, value, version)


def commit(
    group: str,
    topic: str = "orders",
    partition: int = 0,
    *,
    offset: int = 0,
    at: int = 0,
    expires: int | None = None,
) -> tuple[bytes, bytes | None]:
    """Return a committed offset; with ``expires`` in version 1, which has such a time."""
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": at}
    version = 3
    if expires is not None:
        value["expireTimestamp"], version = expires, 1
    return group_record(COMMIT, group, value, version=version, topic=topic, partition=partition)


def classic(
    group: str,
    *topics: str,
    protocol_type: str = "consumer",
    since: int = -1,
    has_member: bool = False,
    session_timeout_ms: int = 1_800_000,
) -> tuple[bytes, bytes | None]:
    """Return a classic group, empty or with a member that is subscribed to topics."""
    subscription = write_message(
        consumer_offsets.CONSUMER_PROTOCOL_MESSAGES["ConsumerProtocolSubscription"],
        {"topics": list(topics), "userData": None},
        0,
    )
    member = {
        "memberId": "m",
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": session_timeout_ms,
        "sessionTimeout": session_timeout_ms,
        "subscription": b"\0\0" + subscription,
        "assignment": b"",
    }
    value = {
        "protocolType": protocol_type,
        "generation": 1,
        "protocol": "range" if has_member else None,
        "leader": "m" if has_member else None,
        "currentStateTimestamp": since,
        "members": [member] if has_member else [],
    }
    return group_record(CLASSIC, group, value, version=3)


def modern(kind: int, group: str) -> tuple[bytes, bytes | None]:
    """Return a consumer, share or streams group without members."""
    return group_record(kind, group, {"epoch": 1, "metadataHash": 0})


def consumer_member(group: str, *topics: str, pattern: str | None = None) -> tuple[bytes, bytes]:
    """Return a member of a consumer group."""
    value = {
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "/h",
        "subscribedTopicNames": list(topics),
        "subscribedTopicRegex": pattern,
        "rebalanceTimeoutMs": 1_800_000,
        "serverAssignor": None,
    }
    key, stored = group_record(CONSUMER_MEMBER, group, value, memberId="m")
    assert stored is not None
    return key, stored


def topology(group: str, *topics: str) -> tuple[bytes, bytes | None]:
    """Return the topology of a streams group that reads topics."""
    subtopology = {
        "subtopologyId": "0",
        "sourceTopics": list(topics),
        "sourceTopicRegex": [],
        "stateChangelogTopics": [],
        "repartitionSinkTopics": [],
        "repartitionSourceTopics": [],
        "copartitionGroups": [],
    }
    return group_record(STREAMS_TOPOLOGY, group, {"epoch": 1, "subtopologies": [subtopology]})


def stored(
    records: list[tuple[bytes, bytes | None]], *, base_offset: int = 0, timestamp: int = 0
) -> list[Stored]:
    """Return records at successive offsets."""
    return [
        Stored(base_offset + place, timestamp, key, value)
        for place, (key, value) in enumerate(records)
    ]
