"""What an adoption copies where, under which names and epochs, and what it tells."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from tests.support.adopted_disks import (
    DIRECTORY_ID,
    OLD_CLUSTER,
    TOPIC_ID,
    formatted,
    old,
    properties,
    run,
)
from tests.support.log_files import segment_path, tree
from tests.support.metadata_log import (
    topic_record,
)
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
