"""Where a cluster's partitions go: a table of replicas, disks that were given, and nodes."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.recovery.adopted_topics import AdoptedTopic, OldDisks, OldReplica
from pylog.recovery.cluster_plan import ClusterPartition, ClusterPlan
from tests.support.adopted_disks import old
from tests.support.metadata_log import (
    TOPIC,
    TOPIC_ID,
    config_record,
    feature_record,
    partition_record,
    register_broker_record,
    topic_record,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

IDS = {each: uuid.UUID(int=each) for each in range(1, 5)}


@pytest.fixture
def replica(tmp_path: Path) -> OldReplica:
    [topic] = OldDisks([old(tmp_path / "old")], None).topics
    return topic.replicas[0][0]


def planned(
    replica: OldReplica,
    given: Sequence[int],
    nodes: Sequence[int],
    *,
    replicas: tuple[int, ...] = (1, 2, 3),
    leader: int = 2,
    more: Sequence[bytes] = (),
    has_ids: bool = True,
) -> tuple[ClusterPlan, ClusterPartition, dict[str, Any]]:
    """Plan a partition with all replicas in sync; ``given`` has nodes, the best replica first."""
    image = MetadataImage()
    directories = tuple(IDS[each].bytes for each in replicas)
    values = [
        feature_record(25),
        topic_record("t"),
        partition_record(0, leader, replicas, directories, leader_epoch=6),
        *more,
    ]
    for value in values:
        image.apply(value)
    found = [replica._replace(node=node, end_offset=100 - at) for at, node in enumerate(given)]
    topic = AdoptedTopic("t", uuid.UUID(bytes=TOPIC_ID), {0: found}, None)
    ids = {each: IDS[each] if has_ids else None for each in nodes}
    plan = ClusterPlan(image, [topic], {each: each for each in IDS}, ids)
    [partition] = plan.partitions
    change: dict[str, Any] = {}
    for value in plan.values:
        record = read_metadata_record(value)
        if record.message.name == "PartitionChangeRecord":
            change = record.fields
    return plan, partition, change


@pytest.mark.parametrize(
    ("given", "nodes", "copies", "unclean"),
    [
        ([2, 1, 3], [1, 2, 3], {2: 2, 1: 1, 3: 3}, False),
        ([1, 2, 3], [1, 2, 3], {2: 2, 1: 1, 3: 3}, False),  # the leader, though another is best
        ([3, 1], [1, 3], {3: 3, 1: 1}, False),
        ([3, 1], [1], {1: 1}, False),  # one that goes on before one that does not
        ([2, 1], [1], {1: 2}, False),  # what the leader had goes to the node that is left
        ([2], [1, 3], {1: 2, 3: None}, False),
        ([2], [4], {4: 2}, False),  # no replica is on it
        ([], [1], {1: None}, True),
        ([4], [1], {1: None}, True),  # a disk that was no replica's
    ],
)
def test_the_best_replica_in_sync_leads(
    replica: OldReplica,
    given: list[int],
    nodes: list[int],
    copies: dict[int, int | None],
    *,
    unclean: bool,
) -> None:
    _, partition, _ = planned(replica, given, nodes)
    found = {node: None if each is None else each.node for node, each in partition.copies.items()}
    assert (list(found.items()), partition.is_unclean) == (list(copies.items()), unclean)


def test_a_partition_of_which_nothing_changes_keeps_its_record(replica: OldReplica) -> None:
    plan, partition, change = planned(replica, [2, 1, 3], [1, 2, 3])
    assert (plan.values, change, partition.is_changed, partition.leader_epoch) == ([], {}, False, 6)
    _, partition, change = planned(replica, [1, 3], [1, 3])
    assert (change["replicas"], change["isr"], change["leader"]) == ([1, 3], [1], 1)
    assert change["directories"] == [IDS[1], IDS[3]]
    assert (partition.is_changed, partition.leader_epoch) == (True, 7)
    _, _, change = planned(replica, [1, 3], [1, 3], has_ids=False)
    assert "directories" not in change


def test_who_is_gone_and_what_cannot_be_met_any_more_are_taken_back(replica: OldReplica) -> None:
    more = [
        *(register_broker_record(each, (bytes(16),)) for each in (1, 2)),
        config_record(TOPIC, "t", "min.insync.replicas", "2"),
    ]
    plan, _, _ = planned(replica, [1], [1], more=more)
    names = [read_metadata_record(each).message.name for each in plan.values]
    assert names == ["PartitionChangeRecord", "UnregisterBrokerRecord", "ConfigRecord"]
    assert read_metadata_record(plan.values[1]).fields["brokerId"] == 2
    assert any("min.insync.replicas of t is lowered" in each for each in plan.notes())


def test_losses_and_what_is_left_out_are_named(replica: OldReplica) -> None:
    plan, _, _ = planned(replica, [], [1])
    assert list(plan.losses()) == ["t-0: no disk has it, and it begins empty"]
    lagging = replica._replace(node=3)
    image = MetadataImage()
    for value in (feature_record(25), topic_record("t"), partition_record(0, 1, (1,))):
        image.apply(value)
    topics = [
        AdoptedTopic("t", uuid.UUID(bytes=TOPIC_ID), {0: [lagging]}, None),
        AdoptedTopic("gone", None, {0: [lagging]}, None),
    ]
    plan = ClusterPlan(image, topics, {3: 3}, {3: IDS[3]})
    text = (
        f"t-0: only {lagging.view.directory.path} has it, whose node is no replica of it by the "
        "metadata, and it begins empty"
    )
    assert list(plan.losses()) == [text]
    assert list(plan.notes()) == ["gone: not in the metadata (deleted, or stray), and left out"]


@pytest.mark.parametrize(
    ("isr", "elr", "leader", "is_unclean"),
    [((2,), (3,), 3, False), ((2,), (), 1, True), ((1,), (3,), 1, False)],
)
def test_a_replica_that_is_eligible_has_all_records(
    replica: OldReplica,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    leader: int,
    *,
    is_unclean: bool,
) -> None:
    image = MetadataImage()
    for value in (feature_record(25), topic_record("t"), partition_record(0, 2, (1, 2, 3))):
        image.apply(value)
    [topic] = image.topics
    topic.partitions[0] = replace(topic.partitions[0], isr=isr, eligible_leader_replicas=elr)
    replicas = [replica._replace(node=each) for each in (1, 3)]
    given = AdoptedTopic("t", uuid.UUID(bytes=TOPIC_ID), {0: replicas}, None)
    plan = ClusterPlan(image, [given], {1: 1, 3: 3}, {1: IDS[1], 3: IDS[3]})
    [partition] = plan.partitions
    assert (next(iter(partition.copies)), partition.is_unclean) == (leader, is_unclean)
    fields = read_metadata_record(plan.values[0]).fields
    assert fields["leader"] == leader
    assert fields.get("leaderRecoveryState", -1) == (1 if is_unclean else -1)


def test_of_two_directories_of_a_node_the_better_one_is_taken(replica: OldReplica) -> None:
    _, partition, _ = planned(replica, [1, 1], [1], replicas=(1,), leader=1)
    assert partition.first is not None
    assert partition.first.end_offset == 100


def test_transactions_are_told_of_whose_coordinators_know_nothing(replica: OldReplica) -> None:
    plan, _, _ = planned(replica._replace(open_since=7), [1], [1])
    [note] = [each for each in plan.notes() if "transaction" in each]
    assert note.startswith("t-0: a transaction is open since offset 7")
    plan, _, _ = planned(replica, [1], [1])
    assert not any("transaction" in each for each in plan.notes())
