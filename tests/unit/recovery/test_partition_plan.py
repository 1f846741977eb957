"""What becomes of a partition when brokers are lost: a table of ISR, ELR and disks."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.recovery.metadata_batches import partition_record
from pylog.recovery.partition_plan import Fate, LostBrokers, PlannedPartition, plan_partitions
from tests.support.metadata_log import TOPIC_ID, feature_record, topic_record

DIRECTORY = uuid.UUID(int=7)
TOPIC = uuid.UUID(bytes=TOPIC_ID)


def planned(
    *,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
    known: tuple[int, ...] = (),
    leader: int = 2,
    lost: frozenset[int] = frozenset({2, 3}),
    elects: bool = False,
    reassigns: bool = False,
    ends: dict[int, int] | None = None,
    level: int = 25,
    without: frozenset[int] = frozenset(),
) -> tuple[PlannedPartition, dict[str, Any] | None]:
    """Plan one partition; return what becomes of it, and the fields of its record."""
    fields = {
        "partitionId": 0,
        "topicId": TOPIC,
        "replicas": list(replicas),
        "isr": list(isr),
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": leader,
        "leaderEpoch": 4,
        "partitionEpoch": 0,
    }
    if level >= 17:
        fields["directories"] = [DIRECTORY for _ in replicas]
    if level >= 23:
        fields |= {"eligibleLeaderReplicas": list(elr), "lastKnownElr": list(known)}
    image = MetadataImage()
    for value in (feature_record(level), topic_record("t"), partition_record(level, fields)):
        image.apply(value)
    what = LostBrokers(lost, 1, DIRECTORY, elects, reassigns)
    [found], records = plan_partitions(
        image, what, lambda _: ends or {}, lambda node, *_: node in without
    )
    assert found[:2] == ("t", 0)
    if not records:
        return found, None
    [record] = map(read_metadata_record, records)
    assert record.message.name == "PartitionChangeRecord"
    assert (record.fields["topicId"], record.fields["partitionId"]) == (TOPIC, 0)
    return found, record.fields


@pytest.mark.parametrize(
    ("how", "fate", "leader", "isr"),
    [
        ({"lost": frozenset({9}), "isr": (1, 2)}, Fate.UNTOUCHED, 2, None),
        ({"isr": (1, 2, 3)}, Fate.IN_SYNC, 1, [1]),
        ({"isr": (1, 2, 3), "lost": frozenset({3})}, Fate.IN_SYNC, 2, [1, 2]),  # it stays
        ({"isr": (3, 1), "lost": frozenset({2})}, Fate.IN_SYNC, 1, [1, 3]),  # as replicas are
        ({"isr": (2,), "elr": (1,)}, Fate.ELIGIBLE, 1, [1]),
        ({"isr": (1,), "elr": (3,), "lost": frozenset({2})}, Fate.IN_SYNC, 1, [1]),
        ({"isr": (2,)}, Fate.NEEDS_ELECTION, None, None),
        ({"isr": (2,), "elects": True}, Fate.UNCLEAN, 1, [1]),
        ({"isr": (2,), "replicas": (2, 3)}, Fate.LOST, None, None),
        # Who has no log of it leads only where nobody else has all.
        ({"isr": (1, 2), "lost": frozenset({9}), "without": {2}}, Fate.IN_SYNC, 1, [1]),
        ({"isr": (1, 2, 3), "lost": frozenset({3}), "without": {2}}, Fate.IN_SYNC, 1, [1]),
        ({"isr": (2,), "elr": (3,), "lost": frozenset(), "without": {2}}, Fate.ELIGIBLE, 3, [3]),
        ({"isr": (2,), "lost": frozenset(), "without": {2}}, Fate.UNTOUCHED, 2, None),
        ({"isr": (1, 2), "lost": frozenset({3}), "without": {1, 2}}, Fate.IN_SYNC, 2, [1, 2]),
        ({"isr": (2,), "replicas": (2, 3), "reassigns": True}, Fate.REASSIGNED, 1, [1]),
    ],
)
def test_each_partition_has_a_fate(
    how: dict[str, Any], fate: Fate, leader: int | None, isr: list[int] | None
) -> None:
    found, change = planned(**how)
    assert (found.fate, found.leader) == (fate, leader)
    assert (None if change is None else change["isr"]) == isr
    if change is not None:
        assert change["leader"] == leader


@pytest.mark.parametrize(
    ("ends", "known", "leader", "missing"),
    [
        ({}, (), 1, None),
        ({1: 5, 3: 9}, (), 3, 0),
        ({1: 9, 3: 9}, (), 1, 0),  # of equals the first replica
        ({1: 5, 3: 9}, (1,), 1, 4),  # who was in sync last goes first
        ({1: 5, 2: 12, 3: 9}, (), 3, 3),  # on the disk of a broker that is lost
        ({3: 9}, (), 3, None),
        ({2: 12}, (), 1, None),
    ],
)
def test_an_unclean_election_takes_the_longest_log(
    ends: dict[int, int], known: tuple[int, ...], leader: int, missing: int | None
) -> None:
    how: dict[str, Any] = {"isr": (2,), "lost": frozenset({2}), "known": known, "ends": ends}
    elected, change = planned(elects=True, **how)
    assert (elected.leader, elected.missing) == (leader, missing)
    assert change is not None
    assert change["leaderRecoveryState"] == 1
    waiting, change = planned(**how)
    assert (waiting.leader, waiting.missing, change) == (None, missing, None)


@pytest.mark.parametrize(("level", "has_directory"), [(16, False), (17, True), (25, True)])
def test_a_partition_that_moves_is_empty_on_the_node(level: int, *, has_directory: bool) -> None:
    found, change = planned(replicas=(2, 3), reassigns=True, ends={2: 8, 3: 5}, level=level)
    assert (found.fate, found.missing) == (Fate.REASSIGNED, 8)
    assert change is not None
    assert (change["replicas"], change["leader"], change["leaderRecoveryState"]) == ([1], 1, 1)
    assert change.get("directories") == ([DIRECTORY] if has_directory else None)
