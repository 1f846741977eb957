"""What members of groups do, right and wrong: the same for any server.

Two topics exist: ``orders`` with 3 partitions and ``payments`` with 2. Each scenario uses groups of
its own. What is sent is for people to read, and any field may be in it.
"""

# ruff: noqa: ANN401, D401, PLR0915

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.group_sides import Side

_RANGE = {"name": "range", "metadata": b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"}
_STICKY = {"name": "sticky", "metadata": b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"}
_OTHER = {"name": "other", "metadata": b"?"}
_NO_MEMBER = "nobody"
_FENCED = (25, 110)
"""Errors after which a member joins again: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH."""


def _join(
    side: Side, client: str, group: str, member: str = "", version: int = 9, **fields: Any
) -> None:
    request = {
        "groupId": group,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 5_000,
        "memberId": member,
        "protocolType": "consumer",
        "protocols": [_RANGE, _STICKY],
        **fields,
    }
    side.send(client, "JoinGroup", version, **request)


def _first_member(side: Side, client: str, group: str, **fields: Any) -> str:
    """Let the first member join, and give itself an assignment; return its id."""
    _join(side, client, group, **fields)
    member = side.receive(client)["memberId"]
    if "groupInstanceId" not in fields:
        _join(side, client, group, member, **fields)
        member = side.receive(client)["memberId"]
    _sync(side, client, group, member, 1, {member: b"all"})
    side.receive(client)
    return str(member)


def _sync(
    side: Side,
    client: str,
    group: str,
    member: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    version: int = 5,
    **fields: Any,
) -> None:
    request = {
        "groupId": group,
        "generationId": generation,
        "memberId": member,
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [
            {"memberId": each, "assignment": data} for each, data in (assignments or {}).items()
        ],
        **fields,
    }
    side.send(client, "SyncGroup", version, **request)


def _heartbeat(
    side: Side, client: str, group: str, member: str, generation: int, **fields: Any
) -> None:
    request = {"groupId": group, "generationId": generation, "memberId": member, **fields}
    side.ask(client, "Heartbeat", 4, **request)


def _describe(side: Side, group: str) -> None:
    for version in range(7):
        side.ask("tool", "DescribeGroups", version, groups=[group, "no-such-group"])


def _commit(
    side: Side,
    client: str,
    group: str,
    member: str,
    generation: int,
    version: int = 9,
    **fields: Any,
) -> None:
    partition = {"partitionIndex": 1, "committedOffset": 7, "committedMetadata": "seven"}
    topic = {"name": "orders", "topicId": side.topic_ids["orders"], "partitions": [partition]}
    request = {
        "groupId": group,
        "memberId": member,
        "generationIdOrMemberEpoch": generation,
        "topics": [topic],
        **fields,
    }
    side.ask(client, "OffsetCommit", version, **request)


def refused_joins(side: Side) -> None:
    """Joins that are wrong in themselves, in all versions."""
    wrong: dict[str, Any]
    for version in range(10):
        for wrong in (
            {"groupId": ""},
            {"sessionTimeoutMs": 5_999},
            {"sessionTimeoutMs": 1_800_001},
            {"protocols": []},
            {"protocolType": ""},
            {"memberId": _NO_MEMBER},
        ):
            _join(side, "a", f"refused-{version}", version=version, **wrong)
            side.receive("a")
    _describe(side, "refused-9")


def one_member(side: Side) -> None:
    """A member joins, with and without an id, syncs, sends heartbeats, is described and leaves."""
    member = _first_member(side, "a", "one")
    _heartbeat(side, "a", "one", member, 1)
    for version in range(5):
        for name, generation in ((member, 1), (member, 0), (member, 2), (_NO_MEMBER, 1)):
            request = {"groupId": "one", "memberId": name, "generationId": generation}
            side.ask("a", "Heartbeat", version, **request)
    _heartbeat(side, "a", "one", member, 1, groupInstanceId="static")
    _heartbeat(side, "a", "none", member, 1)
    _heartbeat(side, "a", "", member, 1)
    _describe(side, "one")
    for version in range(6):
        side.ask("a", "ListGroups", version)
    fields: dict[str, Any]
    for generation, fields in (
        (1, {}),
        (0, {}),
        (1, {"memberId": _NO_MEMBER}),
        (1, {"protocolName": "sticky"}),
        (1, {"protocolType": "connect"}),
        (1, {"protocolType": None}),
        (1, {"protocolName": None}),
        (1, {"groupInstanceId": "static"}),
        (1, {"groupId": "none"}),
        (1, {"groupId": ""}),
    ):
        for version in (5, 3):
            extra = {} if version == 5 else {"groupInstanceId": fields.get("groupInstanceId")}
            asked: dict[str, Any] = {**fields, **extra}
            _sync(side, "a", "one", member, generation, version=version, **asked)
            side.receive("a")
    # The leader again, which begins a rebalance; a follower would be told what it knows.
    _join(side, "a", "one", member)
    side.receive("a")
    _heartbeat(side, "a", "one", member, 2)
    _commit(side, "a", "one", member, 2)
    _join(side, "a", "one", member)
    side.receive("a")
    _describe(side, "one")
    side.ask("a", "LeaveGroup", 2, groupId="one", memberId=_NO_MEMBER)
    leaving = [
        {"memberId": member},
        {"memberId": _NO_MEMBER},
        {"memberId": "", "groupInstanceId": "x"},
    ]
    side.ask("a", "LeaveGroup", 5, groupId="one", members=leaving)
    side.ask("a", "LeaveGroup", 5, groupId="none", members=leaving)
    side.ask("a", "LeaveGroup", 5, groupId="", members=leaving)
    side.ask("a", "LeaveGroup", 1, groupId="none", memberId=member)
    _heartbeat(side, "a", "one", member, 2)
    _sync(side, "a", "one", member, 2)
    side.receive("a")
    _join(side, "a", "one", member)
    side.receive("a")
    _describe(side, "one")


def old_versions(side: Side) -> None:
    """Members without an id of the broker's before they join, of each version that allows it."""
    for version in range(4):
        group = f"old-{version}"
        _join(side, "a", group, version=version)
        member = side.receive("a")["memberId"]
        _sync(side, "a", group, member, 1, {member: b"all"}, version=min(version, 2))
        side.receive("a")
        _commit(side, "a", group, member, 1, version=max(version, 2))
        side.ask("a", "LeaveGroup", min(version, 2), groupId=group, memberId=member)


def two_members(side: Side) -> None:
    """A second member joins, both share; the leader leaves, the other goes on."""
    group = "two"
    first = _first_member(side, "a", group)
    _join(side, "b", group)
    second = side.receive("b")["memberId"]
    _join(side, "b", group, second)
    side.is_waiting("b")
    _heartbeat(side, "a", group, first, 1)
    _commit(side, "a", group, first, 1)
    _sync(side, "a", group, first, 1)
    side.receive("a")
    _describe(side, group)
    _join(side, "a", group, first, protocols=[_STICKY])
    side.receive("a")
    side.receive("b")
    _commit(side, "a", group, first, 2)
    _sync(side, "b", group, second, 2, protocolName="sticky")
    side.is_waiting("b")
    _join(side, "b2", group, second)
    side.receive("b2")
    _sync(side, "a", group, first, 2, {first: b"1", second: b"2"}, protocolName="sticky")
    side.receive("a")
    side.receive("b")
    _describe(side, group)
    _join(side, "b", group, second)
    side.receive("b")
    _join(side, "c", group, protocols=[_OTHER])
    side.receive("c")
    _join(side, "c", group, protocolType="connect")
    side.receive("c")
    side.ask("a", "LeaveGroup", 4, groupId=group, members=[{"memberId": first}])
    _heartbeat(side, "b", group, second, 2)
    _join(side, "b", group, second)
    side.receive("b")
    _sync(side, "b", group, second, 3, {second: b"both"})
    side.receive("b")
    side.ask("tool", "DeleteGroups", 2, groupsNames=[group, "none"])
    side.ask("b", "LeaveGroup", 4, groupId=group, members=[{"memberId": second}])
    _describe(side, group)
    side.ask("tool", "DeleteGroups", 3, groupsNames=[group, "none"])
    _describe(side, group)


def late_member(side: Side) -> None:
    """A member that does not come back to a rebalance is left out of the next generation."""
    group = "late"
    first = _first_member(side, "a", group, rebalanceTimeoutMs=3_000)
    _join(side, "b", group, rebalanceTimeoutMs=3_000)
    second = side.receive("b")["memberId"]
    _join(side, "b", group, second, rebalanceTimeoutMs=3_000)
    side.receive("b")
    _heartbeat(side, "a", group, first, 1)
    # The others go on without it.
    _join(side, "c", group, rebalanceTimeoutMs=20_000)
    third = side.receive("c")["memberId"]
    _join(side, "c", group, third, rebalanceTimeoutMs=20_000)
    side.is_waiting("c")
    _join(side, "b", group, second, rebalanceTimeoutMs=20_000)
    side.receive("b")
    side.receive("c")
    _sync(side, "b", group, second, 3, {second: b"2", third: b"3"})
    side.receive("b")
    _describe(side, group)


def static_members(side: Side) -> None:
    """Static members are restarted, fenced, removed by their instance."""
    group = "static"
    first = _first_member(side, "a", group, groupInstanceId="one")
    _heartbeat(side, "a", group, first, 1, groupInstanceId="one")
    _describe(side, group)
    _join(side, "b", group, groupInstanceId="one")
    second = side.receive("b")["memberId"]
    _join(side, "b", group, groupInstanceId="one", version=8)
    third = side.receive("b")["memberId"]
    _heartbeat(side, "a", group, first, 1, groupInstanceId="one")
    _heartbeat(side, "a", group, first, 1)
    _sync(side, "a", group, second, 1, groupInstanceId="one")
    side.receive("a")
    _commit(side, "a", group, first, 1, groupInstanceId="one")
    _commit(side, "a", group, third, 1, groupInstanceId="two")
    _join(side, "a", group, first, groupInstanceId="one")
    side.receive("a")
    _join(side, "a", group, _NO_MEMBER, groupInstanceId="two")
    side.receive("a")
    _sync(side, "b", group, third, 1, groupInstanceId="one")
    side.receive("b")
    # With another protocol there is a rebalance.
    _join(side, "b", group, groupInstanceId="one", protocols=[_STICKY])
    fourth = side.receive("b")["memberId"]
    _join(side, "c", group, groupInstanceId="one", protocols=[_STICKY])
    fifth = side.receive("c")["memberId"]
    _sync(side, "c", group, fifth, 3, {fifth: b"5"}, protocolName="sticky", groupInstanceId="one")
    side.receive("c")
    _heartbeat(side, "b", group, fourth, 2, groupInstanceId="one")
    leaving = [
        {"memberId": first, "groupInstanceId": "one"},
        {"memberId": "", "groupInstanceId": "one"},
    ]
    side.ask("tool", "LeaveGroup", 5, groupId=group, members=leaving)
    _describe(side, group)


def commits(side: Side) -> None:
    """Offsets are committed by hand, in all versions, fetched, deleted; and what is refused."""
    for version in range(2, 11):
        group = f"by-hand-{version}"
        for generation, member in ((-1, ""), (0, ""), (1, _NO_MEMBER), (-1, _NO_MEMBER)):
            _commit(side, "a", group, member, generation, version=version)
        side.ask("a", "OffsetCommit", version, groupId=group, topics=_odd_topics(side))
    for version in range(1, 11):
        for group in ("by-hand-5", "none", ""):
            _fetch(side, group, version)
    asking: str | None
    for asking, epoch in (("", -1), (None, -1), (_NO_MEMBER, 1), (_NO_MEMBER, -1)):
        group_request = {
            "groupId": "by-hand-5",
            "memberId": asking,
            "memberEpoch": epoch,
            "topics": None,
        }
        side.ask("a", "OffsetFetch", 9, groups=[group_request])
    topics = [
        {"name": name, "partitions": [{"partitionIndex": each} for each in (0, 1, 9)]}
        for name in ("orders", "payments", "no-such-topic")
    ]
    for group in ("by-hand-5", "none", ""):
        side.ask("tool", "OffsetDelete", 0, groupId=group, topics=topics)
        _fetch(side, group, 8)
    side.ask("tool", "DeleteGroups", 3, groupsNames=["by-hand-6", "none", ""])
    _fetch(side, "by-hand-6", 8)


def _odd_topics(side: Side) -> list[dict[str, Any]]:
    partitions = [
        {"partitionIndex": 0, "committedOffset": 3, "committedMetadata": None},
        {"partitionIndex": 1, "committedOffset": -1, "committedMetadata": "x" * 4096},
        {"partitionIndex": 2, "committedOffset": 5, "committedMetadata": "x" * 4097},
        {"partitionIndex": 3, "committedOffset": 5, "committedMetadata": ""},
        {"partitionIndex": -1, "committedOffset": 5, "committedMetadata": ""},
        {
            "partitionIndex": 0,
            "committedOffset": 4,
            "committedLeaderEpoch": 0,
            "committedMetadata": "",
        },
    ]
    ids = {**side.topic_ids, "no-such-topic": uuid.UUID(int=7)}
    return [
        {"name": name, "topicId": ids[name], "partitions": partitions}
        for name in ("payments", "no-such-topic", "orders")
    ]


def _fetch(side: Side, group: str, version: int) -> None:
    names = ("orders", "payments", "no-such-topic")
    ids = {**side.topic_ids, "no-such-topic": uuid.UUID(int=7)}
    topics = [{"name": each, "topicId": ids[each], "partitionIndexes": [0, 1, 9]} for each in names]
    for asked in (topics, [], None):
        if version >= 8:
            side.ask("a", "OffsetFetch", version, groups=[{"groupId": group, "topics": asked}])
        elif asked is not None or version >= 2:
            side.ask("a", "OffsetFetch", version, groupId=group, topics=asked)


def coordinators(side: Side) -> None:
    """Who coordinates a group."""
    for version in range(4):
        side.ask("a", "FindCoordinator", version, key="some-group")
    for version in range(4, 7):
        side.ask("a", "FindCoordinator", version, coordinatorKeys=["some-group", "", "another"])


def _beat(
    side: Side, client: str, group: str, member: str, epoch: int, **fields: Any
) -> dict[str, Any]:
    request = {"groupId": group, "memberId": member, "memberEpoch": epoch, **fields}
    return side.ask(client, "ConsumerGroupHeartbeat", 1, **request)


def _owned(side: Side, *partitions: int) -> list[dict[str, Any]]:
    if not partitions:
        return []
    return [{"topicId": side.topic_ids["orders"], "partitions": list(partitions)}]


def _joining(side: Side, client: str, group: str, member: str, **fields: Any) -> dict[str, Any]:
    request = {
        "rebalanceTimeoutMs": 5_000,
        "subscribedTopicNames": ["orders"],
        "topicPartitions": [],
        **fields,
    }
    return _beat(side, client, group, member, 0, **request)


def refused_heartbeats(side: Side) -> None:
    """Heartbeats of the consumer protocol that are wrong in themselves."""
    group = "refused-848"
    for fields in (
        {"rebalanceTimeoutMs": -1},
        {"topicPartitions": None},
        {"topicPartitions": _owned(side, 0)},
        {"subscribedTopicNames": None},
        {"serverAssignor": "best"},
        {"instanceId": ""},
        {"rackId": ""},
        {"subscribedTopicNames": None, "subscribedTopicRegex": "(orders"},
        {"groupId": ""},
        {"memberId": ""},
    ):
        request = {
            "groupId": group,
            "memberId": "m",
            "rebalanceTimeoutMs": 5_000,
            "subscribedTopicNames": ["orders"],
            "topicPartitions": [],
            **fields,
        }
        side.ask("a", "ConsumerGroupHeartbeat", 1, **request)
    # Members of a group that is not known are told otherwise, on purpose: they join again.
    for epoch in (-1, -2, -3):
        _beat(side, "a", group, "m", epoch)
        _beat(side, "a", group, "", epoch)
        _beat(side, "a", group, "m", epoch, instanceId="i")
    for version in (0, 1):
        side.ask("tool", "ConsumerGroupDescribe", version, groupIds=[group, "none"])


def consumer_members(side: Side) -> None:
    """Two members of the consumer protocol share a topic, partition by partition; one leaves."""
    group = "consumers"
    first = _joining(side, "a", group, "m1")["memberEpoch"]
    _beat(side, "a", group, "m1", first)
    _beat(side, "a", group, "m1", first, topicPartitions=_owned(side, 0, 1, 2))
    _describe_consumers(side, group)
    _commit(side, "a", group, "m1", first)
    for member, epoch, version in (
        ("m1", first - 1, 9),
        ("m1", first + 1, 9),
        (_NO_MEMBER, first, 9),
        ("", -1, 9),
        ("m1", first, 8),
        ("m1", first, 10),
    ):
        _commit(side, "a", group, member, epoch, version=version)
    asking: str | None
    for asking, epoch in (("m1", first), ("m1", 9), (_NO_MEMBER, first), (None, -1), ("", -1)):
        asked = {"groupId": group, "memberId": asking, "memberEpoch": epoch, "topics": None}
        side.ask("a", "OffsetFetch", 9, groups=[asked])
    _beat(side, "a", group, "m1", first + 1)
    _beat(side, "a", group, _NO_MEMBER, first)
    # The second one has to wait for what the first gives up.
    second = _joining(side, "b", group, "m2")["memberEpoch"]
    _describe_consumers(side, group)
    answer = _beat(side, "a", group, "m1", first, topicPartitions=_owned(side, 0, 1, 2))
    left = answer["assignment"]["topicPartitions"][0]["partitions"]
    _beat(side, "b", group, "m2", second)
    _describe_consumers(side, group)
    _beat(side, "a", group, "m1", first, topicPartitions=_owned(side, 0, 1, 2))
    _beat(side, "a", group, "m1", first, topicPartitions=_owned(side, *left))
    # The answer was lost: it comes with its last epoch and fewer partitions, then with too many.
    _beat(side, "a", group, "m1", first, topicPartitions=_owned(side, left[0]))
    _beat(side, "a", group, "m1", first, topicPartitions=_owned(side, 0, 1, 2))
    _beat(side, "b", group, "m2", second)
    _beat(side, "b", group, "m2", second)
    _describe_consumers(side, group)
    side.ask("tool", "DescribeGroups", 6, groups=[group])
    side.ask("tool", "ListGroups", 5, typesFilter=["Consumer"], statesFilter=["stable"])
    side.ask("tool", "DeleteGroups", 2, groupsNames=[group])
    _beat(side, "a", group, "m1", -1)
    _beat(side, "a", group, "m1", second)
    epoch = _beat(side, "b", group, "m2", second)["memberEpoch"]
    _describe_consumers(side, group)
    # It changes what it reads.
    _beat(side, "b", group, "m2", epoch, subscribedTopicNames=["payments"])
    _describe_consumers(side, group)
    epoch = _beat(side, "b", group, "m2", epoch, topicPartitions=[])["memberEpoch"]
    _describe_consumers(side, group)
    _joining(side, "b", group, "m2", subscribedTopicNames=["payments"])
    _joining(side, "b", group, "m2", subscribedTopicNames=[])
    _beat(side, "b", group, "m2", -1)
    _describe_consumers(side, group)
    _fetch(side, group, 8)


def three_topics_by_range(side: Side) -> None:
    """Members ask for another assignor, and for different topics."""
    group = "ranges"
    _joining(side, "a", "nothing", "m1", subscribedTopicNames=[])
    _beat(side, "a", "nothing", "m1", -1)
    _joining(side, "a", "nothing", "m1", subscribedTopicNames=[])
    _describe_consumers(side, "nothing")
    both = {"subscribedTopicNames": ["orders", "payments"], "serverAssignor": "range"}
    epoch = _joining(side, "a", group, "m1", **both)["memberEpoch"]
    _joining(side, "b", group, "m2", subscribedTopicNames=["payments", "no-such-topic"])
    answer = _beat(side, "a", group, "m1", epoch, topicPartitions=[])
    _beat(side, "a", group, "m1", answer["memberEpoch"], topicPartitions=[])
    _describe_consumers(side, group)


def static_consumers(side: Side) -> None:
    """Static members of the consumer protocol leave for a while, and are fenced."""
    group = "static-consumers"
    _joining(side, "a", group, "m1", instanceId="one")
    _joining(side, "b", group, "m2", instanceId="one")
    _beat(side, "a", group, "m1", 2, instanceId="two")
    _beat(side, "a", group, "m9", 2, instanceId="one")
    _beat(side, "a", group, "m1", 2, instanceId="one")
    _beat(side, "a", group, "m1", -2, instanceId="one")
    _describe_consumers(side, group)
    _joining(side, "b", group, "m2", instanceId="one")
    _describe_consumers(side, group)
    _beat(side, "a", group, "m1", 2, instanceId="one")
    _beat(side, "b", group, "m2", -2, instanceId="two")
    _beat(side, "b", group, "m9", -1, instanceId="one")
    _beat(side, "b", group, "m2", -1, instanceId="one")
    _describe_consumers(side, group)


def _describe_consumers(side: Side, group: str) -> None:
    for version in (0, 1):
        side.ask("tool", "ConsumerGroupDescribe", version, groupIds=[group])


def changing_kinds(side: Side) -> None:
    """An empty group takes members of the other protocol, with its offsets."""
    group = "kinds"
    member = _first_member(side, "a", group)
    _commit(side, "a", group, member, 1)
    side.ask("a", "LeaveGroup", 5, groupId=group, members=[{"memberId": member}])
    _joining(side, "b", group, "m1")
    _fetch(side, group, 8)
    _describe_consumers(side, group)
    _heartbeat(side, "a", group, member, 1)
    _sync(side, "a", group, member, 1)
    side.receive("a")
    side.ask("a", "LeaveGroup", 5, groupId=group, members=[{"memberId": member}])
    _beat(side, "b", group, "m1", -1)
    _first_member(side, "a", group)
    _describe(side, group)
    _fetch(side, group, 8)


class RandomMembers:
    """Members of a group of the consumer protocol that do random things; the same for each side.

    Which partitions a member says it owns follows from the answers of its own side, and so do its
    epochs, most of the time. The assignor is the one that leaves no choice to a hash table. Members
    want something: to one that does not, Kafka may give partitions that it never reads.
    """

    def __init__(self, seed: int, steps: int) -> None:
        self._seed = seed
        self._steps = steps

    def __call__(self, side: Side) -> None:
        """Do the steps."""
        chance = random.Random(self._seed)
        group = f"random-{self._seed}"
        epochs: dict[str, int] = {}
        owned: dict[str, dict[uuid.UUID, list[int]]] = {}
        for step in range(self._steps):
            member = chance.choice(["m1", "m2", "m3", "m4"])
            instance = {"m3": "static", "m4": "static"}.get(member)
            fields: dict[str, Any] = {"instanceId": instance}
            epoch = epochs.get(member, 0)
            if epoch <= 0 or chance.random() < 0.1:
                epoch = 0
                names = chance.choice([["orders"], ["payments"], ["orders", "payments"]])
                fields |= {
                    "rebalanceTimeoutMs": 600_000,
                    "subscribedTopicNames": names,
                    "serverAssignor": "range",
                    "topicPartitions": [],
                }
                owned[member] = {}
            else:
                draw = chance.random()
                if draw < 0.1:
                    epoch = chance.choice([-1, -2])
                elif draw < 0.2:
                    epoch = max(1, epoch + chance.choice([-1, 1]))
                elif draw < 0.3:
                    fields["subscribedTopicNames"] = chance.choice([["orders"], ["payments"]])
                if chance.random() < 0.7:
                    fields["topicPartitions"] = [
                        {"topicId": each, "partitions": partitions}
                        for each, partitions in owned.get(member, {}).items()
                    ]
            answer = _beat(side, member, group, member, epoch, **fields)
            if answer["errorCode"]:
                epochs[member] = 0 if answer["errorCode"] in _FENCED else epochs.get(member, 0)
            else:
                epochs[member] = answer["memberEpoch"]
                if answer["assignment"] is not None:
                    owned[member] = {
                        each["topicId"]: each["partitions"]
                        for each in answer["assignment"]["topicPartitions"]
                    }
            if step % 5 == 0:
                _describe_consumers(side, group)


class RandomClassicMembers:
    """Two members of a group of the classic protocol that do random things.

    No more than two, and their protocols are always in the same order: so nothing is left to the
    order of a hash table, neither who leads next nor which of two protocols wins. Nobody is late.
    """

    def __init__(self, seed: int, steps: int) -> None:
        self._seed = seed
        self._steps = steps
        self._group = f"random-classic-{seed}"

    def __call__(self, side: Side) -> None:
        """Do the steps."""
        chance = random.Random(self._seed)
        members = {"a": "", "b": ""}
        generations = {"a": 0, "b": 0}
        waiting: set[str] = set()
        for _ in range(self._steps):
            client = chance.choice(["a", "b"])
            draw, behind = chance.random(), chance.random() < 0.1
            choice = chance.choice([[_RANGE], [_STICKY], [_RANGE, _STICKY], [_RANGE, _STICKY]])
            if client in waiting:
                continue
            member, generation = members[client], generations[client] - behind
            fields: dict[str, Any] = {"groupInstanceId": "static"} if client == "b" else {}
            if draw < 0.45 or not member:
                timeouts = {"sessionTimeoutMs": 60_000, "rebalanceTimeoutMs": 60_000}
                joining: dict[str, Any] = {**timeouts, **fields, "protocols": choice}
                _join(side, client, self._group, "" if draw < 0.05 else member, **joining)
            elif draw < 0.75:
                given = {each: name.encode() for name, each in members.items() if each}
                asked = {"protocolType": None, "protocolName": None, **fields}
                _sync(side, client, self._group, member, generation, given, version=4, **asked)
            elif draw < 0.85:
                _heartbeat(side, client, self._group, member, generation, **fields)
                continue
            elif draw < 0.95:
                _commit(side, client, self._group, member, generation, **fields)
                continue
            else:
                leaving = [{"memberId": member, **fields}]
                side.ask(client, "LeaveGroup", 5, groupId=self._group, members=leaving)
                continue
            waiting.add(client)
            for each in sorted(waiting):
                if side.is_waiting(each):
                    continue
                waiting.discard(each)
                self._learn(each, side.receive(each), members, generations)
            side.ask("tool", "DescribeGroups", 5, groups=[self._group])

    def _learn(
        self,
        client: str,
        answer: dict[str, Any],
        members: dict[str, str],
        generations: dict[str, int],
    ) -> None:
        if "memberId" in answer:
            members[client] = answer["memberId"]
            generations[client] = answer["generationId"]
        if answer["errorCode"] in _FENCED:
            members[client] = ""


SCENARIOS: list[Callable[[Side], None]] = [
    refused_joins,
    one_member,
    old_versions,
    two_members,
    late_member,
    static_members,
    commits,
    coordinators,
    refused_heartbeats,
    consumer_members,
    three_topics_by_range,
    static_consumers,
    changing_kinds,
]
