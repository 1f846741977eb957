"""What an adoption copies where, under which names and epochs, and what it tells."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.recovery.metadata_batches import metadata_record
from tests.support.adopted_disks import (
    DIRECTORY_ID,
    NEW_CLUSTER,
    OLD_CLUSTER,
    TOPIC_ID,
    formatted,
    known,
    old,
    properties,
    run,
)
from tests.support.batches import COMMIT, batch_v2, marker, plain_records
from tests.support.log_files import segment_path, tree, write_partition, write_topic_id
from tests.support.metadata_log import config_record, feature_record, topic_record
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot


def test_topics_that_the_cluster_has_are_refused_unless_renamed(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    same_name = run(tmp_path / "name", [topic_record("t", bytes(15) + b"\x09")])
    same_id = run(tmp_path / "id", [topic_record("other")])
    for target, why in ((same_name, "has a topic t"), (same_id, "has the id of topic t")):
        before = tree(target)
        with pytest.raises(LogDirectoryError, match=why):
            pylog.adopt(source, into=target)
        assert tree(target) == before
        summary = pylog.adopt(source, into=target, rename={"t": "u"})
        assert summary.topic_ids["u"] != TOPIC_ID
        metadata = (target / "u-0" / "partition.metadata").read_text()
        assert summary.topic_ids["u"] in metadata
        assert pylog.scan(target, topics=["u"]).count() == 10
    with pytest.raises(ValueError, match="is none of those that are adopted"):
        pylog.adopt(source, into=same_name, rename={"x": "y"})


def test_a_partition_that_no_disk_has_begins_empty_and_is_a_loss(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", partitions=(0, 2)), formatted(tmp_path / "new")
    summary = pylog.adopt(source, into=target)
    assert summary.losses == ["t-1: no disk has it, and it begins empty"]
    assert [each["partitionId"] for each in fields_of(target, "PartitionRecord")] == [0, 1, 2]
    assert pylog.doctor(target).verdict.would_start
    assert pylog.scan(target, topics=["t"]).count() == 20


def test_damage_is_left_out_and_named(tmp_path: Path) -> None:
    source, target = old(tmp_path / "old", epochs=(3, 3, 3)), formatted(tmp_path / "new")
    path = segment_path(source / "t-0", 0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    summary = pylog.adopt(source, into=target)
    assert summary.losses == ["t-0: offsets 10 to 19 are lost"]
    assert pylog.scan(target, topics=["t"]).count() == 20


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_damaged_replica_is_left_out_where_another_one_is_whole(
    tmp_path: Path, damaged: int
) -> None:
    first = old(tmp_path / "1", epochs=(3, 3, 3))
    second = properties(old(tmp_path / "2", epochs=(3, 3, 3)), 2, OLD_CLUSTER, DIRECTORY_ID)
    path = segment_path((first, second)[damaged] / "t-0", 0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    targets = [formatted(tmp_path / str(each), each) for each in (7, 8)]
    planned = pylog.adopt(first, second, into=targets, dry_run=True)
    assert any(each.startswith("the run checks copies of followers") for each in planned.notes)
    summary = pylog.adopt(first, second, into=targets)
    assert summary.losses == []
    assert any("fetches all" in each for each in summary.notes)
    assert not (targets[damaged] / "t-0").exists()
    assert pylog.scan(targets[1 - damaged], topics=["t"]).count() == 30
    [record] = fields_of(targets[0], "PartitionRecord")
    assert (record["leader"], record["isr"]) == (8 - damaged, [8 - damaged])


@pytest.mark.parametrize(("level", "leader"), [(25, 8), (21, -1)])
def test_replicas_follow_where_the_cluster_has_several_nodes(
    tmp_path: Path, level: int, leader: int
) -> None:
    first = old(tmp_path / "1", epochs=(3,))
    second = properties(old(tmp_path / "2", epochs=(3, 4)), 2, OLD_CLUSTER, DIRECTORY_ID)
    one, two = formatted(tmp_path / "7", 7, level), formatted(tmp_path / "8", 8, level)
    summary = pylog.adopt(first, second, into=[one, two])
    [record] = fields_of(one, "PartitionRecord")
    assert (record["replicas"], record["isr"], record["leader"]) == ([8, 7], [8], leader)
    assert summary.partitions[0].directories == [str(two / "t-0"), str(one / "t-0")]
    assert pylog.scan(one, topics=["t"]).count() == 10
    assert pylog.scan(two, topics=["t"]).count() == 20


def test_groups_whose_offsets_are_too_old_are_named(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    source, target = golden_root.case("4.3.0/internal-logdir"), formatted(tmp_path / "new")
    [note] = [
        each for each in pylog.adopt(source, into=target, dry_run=True).notes if "retention" in each
    ]
    assert "grp-" in note
    orders = pylog.adopt(source, into=target, topics=["orders"], dry_run=True)
    assert not any("retention" in each for each in orders.notes)


def test_two_topics_do_not_get_one_name(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    shutil.copytree(source / "t-0", source / "u-0")
    (source / "u-0" / "partition.metadata").unlink()
    with pytest.raises(LogDirectoryError, match="has a topic u"):
        pylog.adopt(source, into=formatted(tmp_path / "new"), rename={"t": "u"})


def test_a_partition_that_begins_empty_is_on_the_first_broker(tmp_path: Path) -> None:
    source = old(tmp_path / "old", partitions=(1,))
    targets = [formatted(tmp_path / str(each), each) for each in (7, 8)]
    empty, _ = pylog.adopt(source, into=targets, dry_run=True).partitions
    assert (empty.replicas, empty.source) == ([7], None)


def test_new_nodes_are_told_that_other_controllers_may_vote(tmp_path: Path) -> None:
    source = old(tmp_path / "old")
    for make, is_told in ((formatted, True), (run, False)):
        notes = pylog.adopt(source, into=make(tmp_path / make.__name__), dry_run=True).notes
        assert any("if other controllers vote" in each for each in notes) is is_told


@pytest.mark.parametrize("name", ["t-0", "t-1"])
def test_a_directory_in_the_way_is_refused_and_nothing_is_begun(tmp_path: Path, name: str) -> None:
    source, target = old(tmp_path / "old", partitions=(0, 1)), run(tmp_path / "new")
    (target / name).mkdir()
    before = tree(target)
    with pytest.raises(LogDirectoryError, match=f"{name}: is in the way"):
        pylog.adopt(source, into=target)
    assert (tree(target), sorted(target.glob(".pylog*"))) == (before, [])


def with_open_transaction(directory: Path) -> Path:
    old(directory, epochs=(3,))
    batches = [
        batch_v2(plain_records(0, 10)),
        batch_v2(
            plain_records(10, 5),
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        ),
        batch_v2(
            plain_records(15, 5),
            producer_id=2,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        ),
        marker(20, COMMIT, producer_id=1, producer_epoch=0),
    ]
    write_partition(directory, {0: batches}, name="t-0")
    return directory


def test_a_transaction_that_no_coordinator_ends_is_told(tmp_path: Path) -> None:
    source = with_open_transaction(tmp_path / "old")
    text = "t-0: a transaction is open since offset 15, and no coordinator will end it"
    found = pylog.adopt(source, into=formatted(tmp_path / "1"), dry_run=True)
    assert sum(each.startswith(text) for each in found.notes) == 1
    # Its coordinator comes along, and knows it by the topic's name.
    write_partition(source, {0: [batch_v2(plain_records(0, 1))]}, name="__transaction_state-0")
    metadata = f"version: 0\ntopic_id: {NEW_CLUSTER}\n"
    (source / "__transaction_state-0" / "partition.metadata").write_text(metadata)
    found = pylog.adopt(source, into=formatted(tmp_path / "2"), dry_run=True)
    assert not any("a transaction is open" in each for each in found.notes)
    found = pylog.adopt(source, into=formatted(tmp_path / "3"), rename={"t": "u"}, dry_run=True)
    assert any(each.startswith("u-0: a transaction is open") for each in found.notes)


def test_what_does_not_come_along_is_told(tmp_path: Path) -> None:
    token = {
        "owner": "User:a",
        "requester": "User:a",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 2,
        "expirationTimestamp": 3,
        "tokenId": "x",
    }
    more = [
        feature_record(1, "group.version"),
        metadata_record("DelegationTokenRecord", 0, token),
        config_record(4, "1", "log.cleaner.threads", "2"),
    ]
    source = known(tmp_path / "old", more=more)
    shutil.copytree(source / "t-0", source / "gone-0")
    write_topic_id(source / "gone-0", NEW_CLUSTER)
    notes = pylog.adopt(source, into=formatted(tmp_path / "new"), dry_run=True).notes
    assert notes[:3] == [
        "gone: the old metadata does not have it, so it was deleted, or is newer than they are",
        "1 delegation token, the configuration of broker 1 of the old cluster does not come along",
        "group.version was 1 in the old cluster and is 0 here: raise it (kafka-features.sh)",
    ]


@pytest.mark.parametrize(("level", "expected"), [(25, "1048576"), (21, "1000")])
def test_segments_are_as_large_as_kafka_4_wants_them(
    tmp_path: Path, level: int, expected: str
) -> None:
    more = [config_record(2, "t", "segment.bytes", "1000")]
    target = formatted(tmp_path / "new", level=level)
    notes = pylog.adopt(known(tmp_path / "old", more=more), into=target).notes
    assert [each["value"] for each in fields_of(target, "ConfigRecord")] == [expected]
    assert any("with which Kafka 4 does not start" in each for each in notes) is (level == 25)
