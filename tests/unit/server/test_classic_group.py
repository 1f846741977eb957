"""Groups of the classic protocol: Kafka's rules, whatever members do and whenever.

That each answer is a broker's, field by field, is shown in `tests.broker.test_served_groups`.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pylog.server.classic_group import ClassicGroup
from pylog.server.group_config import GroupCoordinatorConfig, GroupError
from pylog.server.protocol import Errors
from tests.unit.server.group_fakes import ManualTimer, context, request

DELAY_MS = 100
SESSION_MS = 10_000
REBALANCE_MS = 5_000
NEW_MEMBER_MS = 300_000
PROTOCOLS = ["range", "sticky", "other"]
CONFIG = GroupCoordinatorConfig(group_initial_rebalance_delay_ms=DELAY_MS, group_max_size=4)

Answer = dict[str, Any]


class Waiting:
    """A request: it is answered once, now or later."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def __call__(self, answer: Answer) -> None:
        self.answers.append(answer)
        assert len(self.answers) == 1, "answered twice"

    @property
    def answer(self) -> Answer:
        """The one answer."""
        (answer,) = self.answers
        return answer


class Group:
    """A group, and requests to it with little to say."""

    def __init__(self, config: GroupCoordinatorConfig = CONFIG) -> None:
        self.timer = ManualTimer()
        self.metadata = b""  # that of a protocol is its name
        self.group = ClassicGroup("group", config, self.timer)

    def join(
        self,
        member: str = "",
        *,
        protocols: list[str] | None = None,
        version: int = 9,
        instance: str | None = None,
        session_ms: int = SESSION_MS,
    ) -> Waiting:
        """Send JoinGroup."""
        waiting = Waiting()
        names = ["range"] if protocols is None else protocols
        fields = request(
            "JoinGroup",
            groupId="group",
            memberId=member,
            groupInstanceId=instance,
            sessionTimeoutMs=session_ms,
            rebalanceTimeoutMs=REBALANCE_MS,
            protocolType="consumer",
            protocols=[
                {"name": each, "metadata": self.metadata or each.encode()} for each in names
            ],
        )
        self.group.join(fields, context("JoinGroup", version), waiting)
        return waiting

    def joined(self, **arguments: Any) -> tuple[str, Waiting]:  # noqa: ANN401 - those of `join`
        """Join with the id that is given, as clients do; return it and the request that waits."""
        member = self.join(**arguments).answer["memberId"]
        return member, self.join(member, **arguments)

    def sync(self, member: str, generation: int, assignments: dict[str, bytes]) -> Waiting:
        """Send SyncGroup."""
        waiting = Waiting()
        given = [{"memberId": each, "assignment": data} for each, data in assignments.items()]
        fields = request(
            "SyncGroup",
            groupId="group",
            memberId=member,
            generationId=generation,
            assignments=given,
        )
        self.group.sync(fields, waiting)
        return waiting

    def heartbeat(self, member: str, generation: int, instance: str | None = None) -> Errors:
        """Send Heartbeat."""
        fields = request(
            "Heartbeat", memberId=member, generationId=generation, groupInstanceId=instance
        )
        try:
            return self.group.heartbeat(fields)
        except GroupError as refusal:
            return refusal.error

    def stable(self, *, members: int = 1) -> list[str]:
        """Let members join and share; return their ids, the leader first."""
        ids, waiting = [], []
        for _ in range(members):
            member, joining = self.joined()
            ids.append(member)
            waiting.append(joining)
        self.timer.advance(DELAY_MS * (members + 1))
        leader = waiting[0].answer["leader"]
        ids.sort(key=lambda each: each != leader)
        generation = self.group.generation_id
        for member in reversed(ids):
            assignments = {each: each.encode() for each in ids} if member == leader else {}
            self.sync(member, generation, assignments)
        assert self.group.state_name == "Stable"
        return ids


def test_the_first_rebalance_waits_for_others_and_again_after_each() -> None:
    group = Group()
    _, first = group.joined()
    group.timer.advance(DELAY_MS - 1)
    _, second = group.joined()
    group.timer.advance(1)
    assert not first.answers  # one more came while it waited
    group.timer.advance(DELAY_MS)
    assert first.answer["generationId"] == second.answer["generationId"] == 1


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout() -> None:
    group = Group(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=2_000))
    _, first = group.joined()
    for _ in range(3):
        group.timer.advance(1_600)
        group.joined()
    assert not first.answers
    group.timer.advance(200)
    assert first.answer["generationId"] == 1


def test_a_member_without_heartbeats_is_removed_after_its_session_timeout() -> None:
    group = Group()
    leader, other = group.stable(members=2)
    group.timer.advance(SESSION_MS - 1)
    assert group.heartbeat(leader, 1) is Errors.NONE
    group.timer.advance(1)
    assert group.heartbeat(other, 1) is Errors.UNKNOWN_MEMBER_ID
    assert group.heartbeat(leader, 1) is Errors.REBALANCE_IN_PROGRESS
    waiting = group.join(leader)
    assert waiting.answer["generationId"] == 2
    assert [each["memberId"] for each in waiting.answer["members"]] == [leader]


def test_a_member_that_waits_needs_no_heartbeats() -> None:
    group = Group()
    leader, _ = group.stable(members=2)
    waiting = group.join(leader)
    group.timer.advance(REBALANCE_MS - 1)
    assert not waiting.answers
    group.timer.advance(1)
    assert waiting.answer["generationId"] == 2


def test_an_id_that_is_not_used_is_forgotten_after_the_session_timeout() -> None:
    group = Group()
    member = group.join().answer["memberId"]
    was_unused = group.group.is_unused
    group.timer.advance(SESSION_MS)
    assert (was_unused, group.group.is_unused) == (False, True)
    assert group.join(member).answer["errorCode"] == Errors.UNKNOWN_MEMBER_ID


def test_the_protocol_that_most_members_prefer_is_chosen_of_those_that_all_have() -> None:
    group = Group()
    waiting = [
        group.joined(protocols=each)[1]
        for each in (["other", "range", "sticky"], ["sticky", "range"], ["sticky", "range"])
    ]
    group.timer.advance(DELAY_MS * 4)
    assert {each.answer["protocolName"] for each in waiting} == {"sticky"}


def test_a_group_has_so_many_members_and_no_more() -> None:
    group = Group()
    members = group.stable(members=CONFIG.group_max_size)
    assert group.join().answer["errorCode"] == Errors.GROUP_MAX_SIZE_REACHED
    assert group.heartbeat(members[0], 1) is Errors.NONE


def test_no_more_ids_are_given_out_than_a_group_may_have_members() -> None:
    group = Group()
    for _ in range(CONFIG.group_max_size):
        assert group.join().answer["errorCode"] == Errors.MEMBER_ID_REQUIRED
    assert group.join().answer["errorCode"] == Errors.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(("most", "topics"), [(4, {"a", "b", "c", "d"}), (3, None)])
def test_of_more_topics_than_one_may_name_it_is_not_known_which_are_read(
    most: int, topics: set[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.server.classic_group.MOST_ELEMENTS", most)
    group = Group()
    for names in ("ab", "cd"):
        named = b"".join(struct.pack(">h", 1) + each.encode() for each in names)
        group.metadata = struct.pack(">hi", 0, len(names)) + named + struct.pack(">i", -1)
        group.joined()
    group.timer.advance(DELAY_MS * 3)
    assert group.group.subscribed_topics() == topics


def test_a_static_member_that_is_back_goes_on_without_a_rebalance() -> None:
    group = Group()
    first = group.join(instance="one")
    group.timer.advance(DELAY_MS)
    member = first.answer["memberId"]
    group.sync(member, 1, {member: b"all"})
    group.timer.advance(SESSION_MS // 2)
    again = group.join(instance="one").answer
    assert (again["generationId"], again["skipAssignment"]) == (1, True)
    assert group.sync(again["memberId"], 1, {}).answer["assignment"] == b"all"
    assert group.heartbeat(member, 1, "one") is Errors.FENCED_INSTANCE_ID


def test_a_static_leader_that_is_away_leads_no_longer_and_keeps_its_place() -> None:
    group = Group()
    leader = group.join(instance="one")
    _, other = group.joined()
    group.timer.advance(DELAY_MS * 3)
    away, member = leader.answer["memberId"], other.answer["memberId"]
    assert other.answer["leader"] == away
    group.sync(away, 1, {away: b"a", member: b"b"})
    group.sync(member, 1, {})
    group.group.leave([{"memberId": group.joined()[0], "groupInstanceId": None}])
    waiting = group.join(member)
    group.timer.advance(REBALANCE_MS)
    assert waiting.answer["leader"] == member
    assert {each["memberId"] for each in waiting.answer["members"]} == {away, member}


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    group = Group()
    leader, second, third = group.stable(members=3)
    group.join(leader)
    joining = group.join(second)
    assert not joining.answers  # the third is not back yet
    group.group.leave([{"memberId": second, "groupInstanceId": None}])
    assert joining.answer["errorCode"] == Errors.UNKNOWN_MEMBER_ID
    group.join(third)
    syncing = group.sync(third, group.group.generation_id, {})
    assert not syncing.answers  # the leader has not given its assignment yet
    group.group.leave([{"memberId": third, "groupInstanceId": None}])
    assert syncing.answer["errorCode"] == Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("state", ["joining", "joined", "synced", "pending"])
def test_a_closed_group_answers_whoever_waits_and_leaves_no_timer(state: str) -> None:
    group = Group()
    waiting = []
    if state == "pending":
        group.join()
    elif state == "joining":
        waiting.append(group.joined()[1])
    else:
        leader, other = group.stable(members=2)
        waiting += [group.join(leader)]
        if state == "synced":
            waiting += [group.join(other)]
            waiting += [group.sync(other, 2, {})]
    group.group.close()
    assert all(each.answers for each in waiting)
    assert group.timer.keys == []


class ClassicGroupMachine(RuleBasedStateMachine):
    """Members do what they like, at any time, also what they must not."""

    def __init__(self) -> None:
        super().__init__()
        self.group = Group()
        self.joins: list[Waiting] = []
        self.syncs: list[tuple[str, int, Waiting]] = []
        self.known: list[str] = ["nobody"]
        self.generation = 0

    def _pick(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from(self.known)))

    @rule(
        protocols=st.lists(st.sampled_from(PROTOCOLS), unique=True),
        version=st.sampled_from([3, 4, 9]),
        instance=st.sampled_from([None, None, "one", "two"]),
    )
    def join_as_new(self, protocols: list[str], version: int, instance: str | None) -> None:
        self.joins.append(self.group.join(protocols=protocols, version=version, instance=instance))

    @rule(data=st.data(), protocols=st.lists(st.sampled_from(PROTOCOLS), min_size=1, unique=True))
    def join_again(self, data: st.DataObject, protocols: list[str]) -> None:
        self.joins.append(self.group.join(self._pick(data), protocols=protocols))

    @rule(data=st.data(), instance=st.sampled_from(["one", "two"]))
    def join_as_static(self, data: st.DataObject, instance: str) -> None:
        self.joins.append(self.group.join(self._pick(data), instance=instance))

    @rule(data=st.data(), behind=st.sampled_from([0, 0, 0, 1]))
    def sync(self, data: st.DataObject, behind: int) -> None:
        member = self._pick(data)
        generation = self.group.group.generation_id - behind
        assignments = {each: f"{generation}-{each}".encode() for each in self.known}
        waiting = self.group.sync(member, generation, assignments)
        self.syncs.append((member, generation, waiting))

    @rule(data=st.data(), behind=st.sampled_from([0, 0, 1]))
    def heartbeat(self, data: st.DataObject, behind: int) -> None:
        member = self._pick(data)
        answer = self.group.heartbeat(member, self.group.group.generation_id - behind)
        if member not in self.group.group.members:
            assert answer is Errors.UNKNOWN_MEMBER_ID
        elif behind:
            assert answer is Errors.ILLEGAL_GENERATION
        elif self.group.group.state_name == "PreparingRebalance":
            assert answer is Errors.REBALANCE_IN_PROGRESS
        else:
            assert answer is Errors.NONE

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        member = self._pick(data)
        was_there = member in self.group.group.members
        (answer,) = self.group.group.leave([{"memberId": member, "groupInstanceId": None}])
        assert member not in self.group.group.members
        if was_there:
            assert answer["errorCode"] == Errors.NONE

    @rule(delay_ms=st.sampled_from([1, DELAY_MS, 1_000, REBALANCE_MS, SESSION_MS]))
    def wait(self, delay_ms: int) -> None:
        self.group.timer.advance(delay_ms)

    @invariant()
    def generations_follow_each_other(self) -> None:
        generation = self.group.group.generation_id
        assert generation >= self.generation
        self.generation = generation

    @invariant()
    def answers_of_a_generation_agree(self) -> None:
        still_waiting = []
        by_generation: dict[int, set[tuple[str, str]]] = {}
        for waiting in self.joins:
            if not waiting.answers:
                still_waiting.append(waiting)
                continue
            answer = waiting.answer
            if answer["memberId"] and answer["memberId"] not in self.known:
                self.known.append(answer["memberId"])
            if answer["errorCode"] != Errors.NONE:
                continue
            generation = answer["generationId"]
            by_generation.setdefault(generation, set()).add(
                (answer["leader"], answer["protocolName"])
            )
            if answer["members"]:
                ids = [each["memberId"] for each in answer["members"]]
                assert answer["memberId"] == answer["leader"]
                assert answer["leader"] in ids
                assert len(set(ids)) == len(ids) <= CONFIG.group_max_size
                assert {each["metadata"] for each in answer["members"]} == {
                    answer["protocolName"].encode()
                }
        self.joins = still_waiting
        assert all(len(each) == 1 for each in by_generation.values())

    @invariant()
    def assignments_are_those_of_the_leader(self) -> None:
        still_waiting = []
        for member, generation, waiting in self.syncs:
            if not waiting.answers:
                still_waiting.append((member, generation, waiting))
            elif waiting.answer["errorCode"] == Errors.NONE:
                assert waiting.answer["assignment"] == f"{generation}-{member}".encode()
        self.syncs = still_waiting

    @invariant()
    def nothing_is_kept_of_members_that_are_gone(self) -> None:
        group = self.group.group
        kept = [
            key for key in self.group.timer.keys if isinstance(key, tuple) and key[0] == "heartbeat"
        ]
        assert {key[2] for key in kept} >= group.members.keys()
        assert len(group.members) + len(kept) <= 3 * CONFIG.group_max_size
        if group.is_unused:
            assert self.group.timer.keys == []

    @precondition(lambda self: self.joins or self.syncs)
    @rule()
    def whoever_waits_is_answered_in_the_end(self) -> None:
        # A static member that is away holds up the group until its session ends.
        self.group.timer.advance(NEW_MEMBER_MS + SESSION_MS + 2 * REBALANCE_MS)
        assert all(waiting.answers for waiting in self.joins)
        assert all(waiting.answers for *_, waiting in self.syncs)
        self.answers_of_a_generation_agree()

    def teardown(self) -> None:
        self.whoever_waits_is_answered_in_the_end()
        self.group.timer.advance(2 * (NEW_MEMBER_MS + SESSION_MS + 2 * REBALANCE_MS))
        assert self.group.group.is_unused, "somebody stays without a heartbeat"
        assert self.group.timer.keys == []


TestClassicGroupMachine = ClassicGroupMachine.TestCase
TestClassicGroupMachine.settings = settings(stateful_step_count=40)
