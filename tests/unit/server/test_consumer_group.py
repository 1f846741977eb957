"""Groups of the consumer protocol: no partition for two, and in the end each for one.

That each answer is a broker's, field by field, is shown in `tests.broker.test_served_groups`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pylog.server.consumer_group import ConsumerProtocolGroup
from pylog.server.group_config import GroupCoordinatorConfig, GroupError
from pylog.server.protocol import Errors
from pylog.server.topic_regexes import matching_topics
from tests.unit.server.group_fakes import ManualTimer, Topics, context, request

if TYPE_CHECKING:
    import uuid

SESSION_MS = 45_000
REBALANCE_MS = 5_000
BEAT_MS = 1_000
CONFIG = GroupCoordinatorConfig(consumer_session_timeout_ms=SESSION_MS, group_max_size=5)
ROUNDS = 8


class Member:
    """A client: it owns what it was given until it has given it up and said so."""

    def __init__(self, name: str, instance: str | None = None) -> None:
        self.name = name
        self.instance = instance
        self.epoch = 0
        self.owned: set[tuple[uuid.UUID, int]] = set()
        self.assigned: set[tuple[uuid.UUID, int]] = set()

    def owned_topics(self) -> list[dict[str, Any]]:
        """Return what it owns as a heartbeat says it."""
        topics: dict[uuid.UUID, list[int]] = {}
        for topic_id, partition in self.owned:
            topics.setdefault(topic_id, []).append(partition)
        return [{"topicId": each, "partitions": it} for each, it in topics.items()]


class Group:
    """A group with time and topics of a test's own."""

    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self.timer = ManualTimer()
        self.topics = Topics({"orders": 3, "payments": 2} if counts is None else counts)
        self.group = ConsumerProtocolGroup("group", CONFIG, self.timer, self.topics)

    def beat(self, member: Member, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of any type
        """Send a heartbeat, and do as the answer says."""
        name = "ConsumerGroupHeartbeat"
        beat = {
            "memberId": member.name,
            "memberEpoch": member.epoch,
            "instanceId": member.instance,
            "topicPartitions": member.owned_topics(),
            **fields,
        }
        asked = request(name, **beat)
        regex = self.group.unresolved_regex(asked)
        matching = matching_topics(regex, self.topics.topic_names()) if regex else None
        answer = self.group.heartbeat(asked, context(name), matching)
        member.epoch = answer["memberEpoch"]
        if answer.get("assignment") is not None:
            member.assigned = {
                (each["topicId"], partition)
                for each in answer["assignment"]["topicPartitions"]
                for partition in each["partitions"]
            }
            member.owned |= member.assigned
        return answer

    def join(self, member: Member, *topics: str, regex: str | None = None) -> dict[str, Any]:
        """Join, or join again."""
        member.epoch = 0
        member.owned.clear()
        return self.beat(
            member,
            rebalanceTimeoutMs=REBALANCE_MS,
            subscribedTopicNames=None if regex else list(topics),
            subscribedTopicRegex=regex,
        )

    def settle(self, *members: Member) -> None:
        """Let all members send heartbeats until everybody has what it is to have."""
        for _ in range(ROUNDS):
            for member in members:
                member.owned &= member.assigned
                self.beat(member)
            self.timer.advance(BEAT_MS)

    def sizes(self, *members: Member) -> list[int]:
        """Return how many partitions each member has."""
        return sorted(len(each.owned) for each in members)


def test_members_share_all_partitions_evenly_and_those_of_one_that_leaves() -> None:
    group = Group()
    one, two, three = (Member(each) for each in ("one", "two", "three"))
    group.join(one, "orders", "payments")
    assert len(one.owned) == 5
    group.join(two, "orders", "payments")
    group.join(three, "orders", "payments")
    assert not two.owned | three.owned  # the first has not given anything up yet
    group.settle(one, two, three)
    assert group.sizes(one, two, three) == [1, 2, 2]
    leaving = request("ConsumerGroupHeartbeat", memberId="one", memberEpoch=-1)
    group.group.leave(leaving)
    group.settle(two, three)
    assert group.sizes(two, three) == [2, 3]
    assert group.group.state_name == "Stable"


def test_a_member_without_heartbeats_is_removed_after_its_session_timeout() -> None:
    group = Group()
    one, two = Member("one"), Member("two")
    group.join(one, "orders")
    group.timer.advance(1)
    group.join(two, "orders")
    group.timer.advance(SESSION_MS - 1)
    group.settle(two)
    assert group.sizes(two) == [3]
    with pytest.raises(GroupError) as refused:
        group.beat(one)
    assert refused.value.error is Errors.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_its_partitions_is_removed_after_its_timeout() -> None:
    group = Group()
    one, two = Member("one"), Member("two")
    group.join(one, "orders")
    group.join(two, "orders")
    group.beat(one)  # is told what to give up, and keeps it
    for _ in range(4):
        group.timer.advance(BEAT_MS)
        group.beat(one)
    assert len(one.owned) == 3
    group.timer.advance(BEAT_MS)
    with pytest.raises(GroupError) as refused:
        group.beat(one)
    assert refused.value.error is Errors.UNKNOWN_MEMBER_ID
    group.settle(two)
    assert group.sizes(two) == [3]


def test_a_static_member_that_is_back_has_what_it_had_and_others_do_not_notice() -> None:
    group = Group()
    one, two = Member("one", "static"), Member("two")
    group.join(one, "orders")
    group.join(two, "orders")
    group.settle(one, two)
    had, epoch = set(one.owned), group.group.epoch
    leaving = request("ConsumerGroupHeartbeat", memberId="one", memberEpoch=-2, instanceId="static")
    group.group.leave(leaving)
    group.settle(two)
    back = Member("back", "static")
    group.join(back, "orders")
    assert back.owned == had
    assert group.group.epoch == epoch


def test_new_topics_and_partitions_are_assigned_once_they_are_there() -> None:
    group = Group({"orders": 1})
    one = Member("one")
    group.join(one, "orders", "invoices")
    group.settle(one)
    assert len(one.owned) == 1
    group.topics.counts |= {"orders": 2, "invoices": 3}
    group.settle(one)
    assert len(one.owned) == 5


def test_a_regular_expression_stands_for_topics_whose_whole_names_match() -> None:
    group = Group({"orders": 1, "orders-eu": 2, "payments": 4, "reorders": 8})
    one = Member("one")
    group.join(one, regex="orders.*")
    group.settle(one)
    assert len(one.owned) == 3
    group.topics.counts["orders-us"] = 16
    for _ in range(CONFIG.consumer_regex_refresh_interval_ms // BEAT_MS):
        group.settle(one)
    assert len(one.owned) == 19


@pytest.mark.parametrize("regex", ["(", "a**", "a(?=b)", "\\1", "(a){9999}"])
def test_what_is_no_regular_expression_is_refused(regex: str) -> None:
    group = Group()
    with pytest.raises(GroupError) as refused:
        group.join(Member("one"), regex=regex)
    assert refused.value.error is Errors.INVALID_REGULAR_EXPRESSION
    assert group.group.is_empty
    assert group.timer.keys == []


def test_expressions_that_other_engines_need_years_for_are_matched_at_once() -> None:
    group = Group({"a" * 249: 1})
    one = Member("one")
    group.join(one, regex="(a*)*b")
    assert not one.owned
    group.join(one, regex="(a|aa)+")
    assert len(one.owned) == 1


def test_a_group_has_so_many_members_and_no_more() -> None:
    group = Group()
    for number in range(CONFIG.group_max_size):
        group.join(Member(str(number)), "orders")
    with pytest.raises(GroupError) as refused:
        group.join(Member("more"), "orders")
    assert refused.value.error is Errors.GROUP_MAX_SIZE_REACHED


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Members come, go, stay away, change what they read; topics grow."""

    names = st.sampled_from(["m1", "m2", "m3", "m4"])

    def __init__(self) -> None:
        super().__init__()
        self.group = Group({"orders": 3, "payments": 2, "empty": 0})
        self.members: dict[str, Member] = {}

    @rule(
        name=names,
        topics=st.lists(st.sampled_from(["orders", "payments", "none"]), unique=True),
        assignor=st.sampled_from([None, "range", "uniform"]),
    )
    def join(self, name: str, topics: list[str], assignor: str | None) -> None:
        member = self.members.setdefault(name, Member(name))
        member.epoch = 0
        member.owned.clear()
        self.group.beat(
            member,
            rebalanceTimeoutMs=REBALANCE_MS,
            subscribedTopicNames=topics,
            serverAssignor=assignor,
        )

    @rule(name=names, gives_up=st.booleans(), tells=st.booleans())
    def beat(self, name: str, gives_up: bool, tells: bool) -> None:  # noqa: FBT001 - drawn
        member = self.members.get(name)
        if member is None:
            return
        if gives_up:
            member.owned &= member.assigned
        self._try(member, **({} if tells else {"topicPartitions": None}))

    @rule(name=names, topics=st.lists(st.sampled_from(["orders", "payments"]), unique=True))
    def change(self, name: str, topics: list[str]) -> None:
        if name in self.members:
            self._try(self.members[name], subscribedTopicNames=topics)

    def _try(self, member: Member, **fields: Any) -> None:  # noqa: ANN401 - of any type
        try:
            self.group.beat(member, **fields)
        except GroupError:
            # Its time was up: it gives up everything, and may join again.
            del self.members[member.name]
            assert member.name not in self.group.group.members

    @rule(name=names)
    def leave(self, name: str) -> None:
        if name in self.group.group.members:
            leaving = request("ConsumerGroupHeartbeat", memberId=name, memberEpoch=-1)
            self.group.group.leave(leaving)
            self.members.pop(name, None)

    @rule(topic=st.sampled_from(["orders", "payments", "empty"]))
    def grow(self, topic: str) -> None:
        self.group.topics.counts[topic] += 1

    @rule(delay_ms=st.sampled_from([1, BEAT_MS, REBALANCE_MS, SESSION_MS]))
    def wait(self, delay_ms: int) -> None:
        self.group.timer.advance(delay_ms)
        # Who is removed has lost its session, too, and owns nothing from then on.
        self.members = {
            name: each for name, each in self.members.items() if name in self.group.group.members
        }

    @invariant()
    def no_partition_belongs_to_two(self) -> None:
        owned = [place for each in self.members.values() for place in each.owned]
        assert len(owned) == len(set(owned))

    @rule()
    def in_the_end_each_partition_belongs_to_one(self) -> None:
        group = self.group.group
        self.members = {name: each for name, each in self.members.items() if name in group.members}
        self.group.settle(*self.members.values())
        wanted = {
            (self.group.topics.topic_id(topic), partition)
            for member in group.members.values()
            for topic in member.subscribed_topic_names
            for partition in range(self.group.topics.partition_count(topic))
        }
        owned = {place for each in self.members.values() for place in each.owned}
        assert owned == wanted
        assert group.state_name == ("Stable" if self.members else "Empty")

    def teardown(self) -> None:
        self.group.timer.advance(2 * SESSION_MS)
        assert self.group.group.is_empty
        assert self.group.timer.keys == []


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(stateful_step_count=40)
