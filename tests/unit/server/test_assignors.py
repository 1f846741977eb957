"""Assignors: whatever members want, each partition goes to one of them, evenly, and stays there."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.server.assignors import ASSIGNORS, MemberSubscription, assign_range, assign_uniform
from tests.unit.server.group_fakes import id_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.server.assignors import Assignment

Wanted = list[tuple[set[uuid.UUID], str | None]]
Counts = dict[uuid.UUID, int]
TOPICS = [id_of(each) for each in ("a", "b", "c", "d")]

counts = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})
members = st.lists(
    st.tuples(st.sets(st.sampled_from(TOPICS)), st.sampled_from([None, None, "x", "y"])), max_size=6
)


def _subscriptions(
    wanted: Wanted, before: Mapping[str, Assignment] | None = None
) -> dict[str, MemberSubscription]:
    return {
        f"m{number}": MemberSubscription(
            frozenset(topics),
            (before or {}).get(f"m{number}", {}),
            instance and f"{instance}{number}",
        )
        for number, (topics, instance) in enumerate(wanted)
    }


def _places(assignments: Mapping[str, Assignment]) -> list[tuple[uuid.UUID, int]]:
    return [
        (topic, partition)
        for each in assignments.values()
        for topic, partitions in each.items()
        for partition in partitions
    ]


@pytest.mark.parametrize("name", ASSIGNORS)
@given(wanted=members, earlier=members, topics=counts, topics_before=counts)
def test_each_wanted_partition_goes_to_one_member_that_wants_it(
    name: str, wanted: Wanted, earlier: Wanted, topics: Counts, topics_before: Counts
) -> None:
    assign = ASSIGNORS[name]
    before = assign(_subscriptions(earlier), topics_before)
    after = assign(_subscriptions(wanted, before), topics)
    assert after.keys() == _subscriptions(wanted).keys()
    places = _places(after)
    assert len(places) == len(set(places))
    subscribed = set[uuid.UUID]().union(*(topics_of for topics_of, _ in wanted))
    assert set(places) == {(each, number) for each in subscribed for number in range(topics[each])}
    for member, subscription in _subscriptions(wanted).items():
        assert after[member].keys() <= subscription.topic_ids


@given(wanted=members, topics=counts)
def test_uniform_gives_nobody_two_more_than_another_that_could_take_one(
    wanted: Wanted, topics: Counts
) -> None:
    subscriptions = _subscriptions(wanted)
    after = assign_uniform(subscriptions, topics)
    sizes = {member: len(_places({member: each})) for member, each in after.items()}
    for member, assignment in after.items():
        for topic in assignment:
            others = [each for each, it in subscriptions.items() if topic in it.topic_ids]
            assert sizes[member] <= min(sizes[each] for each in others) + 1


@given(
    count=st.integers(1, 6),
    gone=st.integers(0, 2),
    topics=counts,
)
def test_uniform_moves_no_more_partitions_than_balance_needs(
    count: int, gone: int, topics: Counts
) -> None:
    everything: Wanted = [(set(TOPICS), None)] * count
    before = assign_uniform(_subscriptions(everything), topics)
    staying = {member: each for member, each in before.items() if int(member[1:]) >= gone}
    subscriptions = {
        member: MemberSubscription(frozenset(TOPICS), each) for member, each in staying.items()
    }
    after = assign_uniform(subscriptions, topics)
    for member, assignment in staying.items():
        assert set(_places({member: assignment})) <= set(_places({member: after[member]}))


def test_range_gives_runs_and_the_same_numbers_of_two_topics_to_one_member() -> None:
    wanted: Wanted = [(set(TOPICS[:2]), None)] * 3
    after = assign_range(_subscriptions(wanted), {TOPICS[0]: 7, TOPICS[1]: 7})
    runs = {member: [sorted(each) for each in it.values()] for member, it in after.items()}
    assert runs == {"m0": [[0, 1, 2]] * 2, "m1": [[3, 4]] * 2, "m2": [[5, 6]] * 2}


def test_range_keeps_the_order_of_static_members_whatever_their_ids_are() -> None:
    def assigned(ids: dict[str, str]) -> dict[str, list[int]]:
        subscriptions = {
            member: MemberSubscription(frozenset(TOPICS[:1]), {}, instance)
            for instance, member in ids.items()
        }
        after = assign_range(subscriptions, {TOPICS[0]: 4})
        return {instance: sorted(after[member][TOPICS[0]]) for instance, member in ids.items()}

    first = assigned({"a": "m1", "b": "m2"})
    assert first == assigned({"a": "m9", "b": "m0"}) == {"a": [0, 1], "b": [2, 3]}
