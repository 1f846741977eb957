"""Which member of a consumer group reads which partition: what the server decides (KIP-848).

Both assignors give each partition of a subscribed topic to one member that is subscribed to it.

``uniform``
    As many partitions for one as for another, then as few as possible that change hands.
``range``
    Of each topic a run of partitions for each member; members with the same number of partitions
    of two topics get the same ones, so that these can be joined.

Differs from Kafka: where the order of a hash table decides there who gets one more, the member
whose id is lower gets it.

Source: UniformAssignor, RangeAssignor (Kafka 4.4); KIP-848.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping

    Assignment = Mapping[uuid.UUID, frozenset[int]]
    Assignor = Callable[
        [Mapping[str, "MemberSubscription"], Mapping[uuid.UUID, int]], dict[str, Assignment]
    ]


class MemberSubscription(NamedTuple):
    """The topics to which a member subscribes, and its assignment until now."""

    topic_ids: frozenset[uuid.UUID]
    assignment: Assignment
    instance_id: str | None = None


class _Place(NamedTuple):
    topic_id: uuid.UUID
    partition: int


def assign_uniform(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[uuid.UUID, int]
) -> dict[str, Assignment]:
    """Return the partitions of each member; counts are those of all subscribed topics."""
    subscribers = _subscribers(members, partition_counts)
    kept: dict[str, list[_Place]] = {each: [] for each in sorted(members)}
    owned: set[_Place] = set()
    for member_id, places in kept.items():
        for topic_id, partitions in members[member_id].assignment.items():
            if member_id not in subscribers.get(topic_id, ()):
                continue
            for partition in sorted(partitions):
                place = _Place(topic_id, partition)
                if partition < partition_counts[topic_id] and place not in owned:
                    owned.add(place)
                    places.append(place)
    free = [
        place
        for topic_id in sorted(subscribers)
        for place in (_Place(topic_id, each) for each in range(partition_counts[topic_id]))
        if place not in owned
    ]
    if subscribers and all(len(each) == len(members) for each in subscribers.values()):
        _share_among_equals(kept, free)
    else:
        for place in free:
            kept[_least_loaded(kept, subscribers[place.topic_id])].append(place)
        _balance(kept, subscribers)
    return {member_id: _assignment(places) for member_id, places in kept.items()}


def _subscribers(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[uuid.UUID, int]
) -> dict[uuid.UUID, list[str]]:
    """Return who is subscribed to each topic, sorted; topics without subscribers are left out."""
    found: dict[uuid.UUID, list[str]] = {}
    for member_id in sorted(members):
        for topic_id in members[member_id].topic_ids & partition_counts.keys():
            found.setdefault(topic_id, []).append(member_id)
    return found


def _share_among_equals(kept: dict[str, list[_Place]], free: list[_Place]) -> None:
    """Take from those who have too many and give to those who have too few: all want the same."""
    total = sum(map(len, kept.values())) + len(free)
    least, extra = divmod(total, len(kept))
    # Who has most already keeps one more, so that fewer partitions change hands.
    by_size = sorted(kept, key=lambda each: -len(kept[each]))
    quotas = {member_id: least + (place < extra) for place, member_id in enumerate(by_size)}
    for member_id, places in kept.items():
        free += places[quotas[member_id] :]
        del places[quotas[member_id] :]
    remaining = iter(free)
    for member_id, places in kept.items():
        while len(places) < quotas[member_id]:
            places.append(next(remaining))


def _least_loaded(kept: dict[str, list[_Place]], candidates: list[str]) -> str:
    return min(candidates, key=lambda each: len(kept[each]))


def _balance(kept: dict[str, list[_Place]], subscribers: dict[uuid.UUID, list[str]]) -> None:
    """Move partitions to members that have two fewer at least, until there is none.

    It ends, since each move lowers the sum of the squares of the numbers of partitions.
    """
    has_moved = True
    while has_moved:
        has_moved = False
        least = min(map(len, kept.values()), default=0)
        for member_id in sorted(kept, key=lambda each: -len(kept[each])):
            if len(kept[member_id]) < least + 2:
                break  # nobody has two fewer, nor than any who follow
            for place in list(kept[member_id]):
                other = _least_loaded(kept, subscribers[place.topic_id])
                if len(kept[other]) + 1 < len(kept[member_id]):
                    kept[member_id].remove(place)
                    kept[other].append(place)
                    has_moved = True


def assign_range(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[uuid.UUID, int]
) -> dict[str, Assignment]:
    """Return the partitions of each member; counts are those of all subscribed topics."""
    # Static members come first, by their instance id: it stays the same after a restart.
    order = sorted(
        members,
        key=lambda each: (
            members[each].instance_id is None,
            members[each].instance_id or "",
            each,
        ),
    )
    rank = {member_id: place for place, member_id in enumerate(order)}
    assigned: dict[str, list[_Place]] = {each: [] for each in members}
    for topic_id, subscribed in _subscribers(members, partition_counts).items():
        least, extra = divmod(partition_counts[topic_id], len(subscribed))
        first = 0
        for place, member_id in enumerate(sorted(subscribed, key=rank.__getitem__)):
            after = first + least + (place < extra)
            assigned[member_id] += [_Place(topic_id, each) for each in range(first, after)]
            first = after
    return {member_id: _assignment(places) for member_id, places in assigned.items()}


def _assignment(places: list[_Place]) -> Assignment:
    by_topic: dict[uuid.UUID, set[int]] = {}
    for topic_id, partition in places:
        by_topic.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(each) for topic_id, each in by_topic.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
DEFAULT_ASSIGNOR = "uniform"
