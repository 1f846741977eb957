"""What becomes of each partition when some brokers do not come back.

=================== ===========================================================================
a replica is left   what it takes
=================== ===========================================================================
in sync             nothing is lost: a record makes it the leader. Without that, a controller
                    since Kafka 4.0 takes the broker out of the ISR at its first start, since
                    it did not stop cleanly, and the partition has no leader
eligible (ELR)      the same: it has all records that were acknowledged (KIP-966)
in neither          an unclean election, after which the records that it lacks are lost
none                the partition is lost; a record can move it, empty, to a broker that is left
=================== ===========================================================================

Source: PartitionChangeBuilder, ReplicationControlManager (Kafka 4.4).
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.model import TopicPartition
from pylog.recovery.metadata_batches import FIRST_LEVEL_WITH_DIRECTORIES, partition_change

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping

    from pylog.internal_topics.metadata_image import (
        MetadataImage,
        PartitionRegistration,
        TopicImage,
    )

_RECOVERING = 1


class Fate(StrEnum):
    """The outcome for a partition whose brokers are lost.

    Attributes
    ----------
    UNTOUCHED
        None of its brokers is lost.
    IN_SYNC, ELIGIBLE
        A broker that is left has all acknowledged records, and becomes the leader.
    UNCLEAN
        A broker that was not in sync becomes the leader: records can be lost.
    NEEDS_ELECTION
        The same, and nothing elects it yet.
    REASSIGNED
        Its records are lost, and it is empty on another broker.
    LOST
        It has no replica left, and no leader.
    """

    UNTOUCHED = "untouched"
    IN_SYNC = "in-sync"
    ELIGIBLE = "eligible"
    UNCLEAN = "unclean"
    NEEDS_ELECTION = "needs-election"
    REASSIGNED = "reassigned"
    LOST = "lost"


_WHOLE = (Fate.UNTOUCHED, Fate.IN_SYNC, Fate.ELIGIBLE)


class PlannedPartition(NamedTuple):
    """A partition, and what becomes of it.

    Attributes
    ----------
    leader
        The broker that leads it then; None if none does.
    missing
        Of an unclean election, or where no replica is left: how many records other disks have that
        the leader has not; None where no other disk was given.
    """

    topic: str
    partition: int
    fate: Fate
    leader: int | None
    missing: int | None = None


class LostBrokers(NamedTuple):
    """Who does not come back, and what is to be done about it."""

    lost: frozenset[int]
    node_id: int
    directory_id: uuid.UUID | None  # where the node puts what is moved to it
    elects_unclean: bool
    reassigns: bool


def plan_partitions(
    image: MetadataImage,
    what: LostBrokers,
    ends: Callable[[TopicPartition], Mapping[int, int]],
    lacks: Callable[[int, TopicImage, int], object] = lambda *_: None,
) -> tuple[list[PlannedPartition], list[bytes]]:
    """Return what becomes of each partition, and the records that make it so.

    ``ends`` returns where a partition's log ends on the disk of each broker that was given, and
    ``lacks`` whether a broker's disk has no log of it. Such a one leads only where no other broker
    has all acknowledged records.
    """
    planned: list[PlannedPartition] = []
    records: list[bytes] = []
    level = image.metadata_version or 0
    for topic, registration in _partitions(image):
        outcome = _Outcome(Fate.UNTOUCHED, registration.leader)
        place = TopicPartition(topic.name, registration.partition)
        if what.lost & set(registration.replicas):
            outcome = _outcome(registration, what, level, partial(ends, place))
        without, other = what, outcome
        while other.leader is not None and lacks(other.leader, topic, registration.partition):
            without = without._replace(lost=without.lost | {other.leader}, reassigns=False)
            other = _outcome(registration, without, level, partial(ends, place))
        outcome = other if other.fate in _WHOLE else outcome
        planned.append(
            PlannedPartition(
                topic.name,
                registration.partition,
                outcome.fate,
                outcome.leader,
                outcome.missing,
            )
        )
        if outcome.change:
            ids = {"topicId": topic.topic_id, "partitionId": registration.partition}
            records.append(partition_change(level, {**ids, **outcome.change}))
    return planned, records


class _Outcome(NamedTuple):
    """What becomes of a partition, and the fields of the record that makes it so."""

    fate: Fate
    leader: int | None = None
    change: dict[str, Any] | None = None
    missing: int | None = None


def _partitions(image: MetadataImage) -> Iterator[tuple[TopicImage, PartitionRegistration]]:
    for topic in image.topics:
        for number in sorted(topic.partitions):
            yield topic, topic.partitions[number]


def _outcome(
    registration: PartitionRegistration,
    what: LostBrokers,
    level: int,
    ends: Callable[[], Mapping[int, int]],
) -> _Outcome:
    survivors = [each for each in registration.replicas if each not in what.lost]
    in_sync = [each for each in survivors if each in registration.isr]
    eligible = [each for each in survivors if each in registration.eligible_leader_replicas]
    if in_sync:
        leader = registration.leader if registration.leader in in_sync else in_sync[0]
        return _Outcome(Fate.IN_SYNC, leader, {"isr": in_sync, "leader": leader})
    if eligible:
        leader = eligible[0]
        return _Outcome(Fate.ELIGIBLE, leader, {"isr": [leader], "leader": leader})
    if survivors:
        known = [each for each in survivors if each in registration.last_known_elr]
        return _unclean(known or survivors, what, ends())
    elsewhere = max(ends().values(), default=None)
    if not what.reassigns:
        return _Outcome(Fate.LOST, missing=elsewhere)
    change = {
        "isr": [what.node_id],
        "leader": what.node_id,
        "replicas": [what.node_id],
        "removingReplicas": [],
        "addingReplicas": [],
        "leaderRecoveryState": _RECOVERING,
    }
    if level >= FIRST_LEVEL_WITH_DIRECTORIES and what.directory_id is not None:
        change["directories"] = [what.directory_id]
    return _Outcome(Fate.REASSIGNED, what.node_id, change, elsewhere)


def _unclean(candidates: list[int], what: LostBrokers, ends: Mapping[int, int]) -> _Outcome:
    """Choose the longest log; a controller takes those of the last known ISR first."""
    ranked = [(ends.get(each, -1), -place) for place, each in enumerate(candidates)]
    leader = candidates[-max(ranked)[1]]
    missing = _missing(ends, leader)
    if not what.elects_unclean:
        return _Outcome(Fate.NEEDS_ELECTION, missing=missing)
    change = {"isr": [leader], "leader": leader, "leaderRecoveryState": _RECOVERING}
    return _Outcome(Fate.UNCLEAN, leader, change, missing)


def _missing(ends: Mapping[int, int], leader: int) -> int | None:
    """Return how many offsets the other disks have beyond the leader's; None if none is given."""
    others = [end for node, end in ends.items() if node != leader]
    if leader not in ends or not others:
        return None
    return max(0, max(others) - ends[leader])
