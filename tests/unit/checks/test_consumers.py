"""What becomes of groups once a broker has started."""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.consumers import (
    CommitAtRisk,
    GroupOutlook,
    LogRange,
    MissingPartitions,
    Placement,
    group_outlook,
)
from pylog.errors import UnknownTopicOrPartitionError
from pylog.findings.finding import Severity
from pylog.reading.coordinators import cluster_image
from pylog.reading.group_records import last_group_records, stored_groups
from pylog.reading.log_directory import open_directory
from tests.support import group_records
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.metadata_log import topic_record, write_metadata_log

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.model import TopicPartition

HERE, ELSEWHERE = uuid.UUID(int=2**90 + 1), uuid.UUID(int=2**90 + 2)
HERE_TEXT = "AAAAAAQAAAAAAAAAAAAAAQ"
NOW = 10**12
WEEK = 7 * 24 * 3_600_000


def partition_record(topic_id: bytes, number: int, directory: uuid.UUID) -> bytes:
    """Return a PartitionRecord of version 1: of node 1, in one of its log directories."""
    one = b"\x02" + struct.pack(">i", 1)
    head = b"\x01\x03\x01" + struct.pack(">i", number) + topic_id + one + one + b"\x01\x01"
    return head + struct.pack(">iii", 1, 0, 0) + b"\x02" + directory.bytes + b"\x00"


def node(root: Path, assigned: dict[str, list[uuid.UUID]]) -> Path:
    """Write a node's log directory, whose metadata assigns the partitions of topics."""
    values = []
    for place, (topic, directories) in enumerate(assigned.items()):
        topic_id = bytes([place + 1]) * 16
        values.append(topic_record(topic, topic_id))
        values += [
            partition_record(topic_id, number, each) for number, each in enumerate(directories)
        ]
    write_metadata_log(root, values)
    (root / "meta.properties").write_text(
        f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={HERE_TEXT}\n"
    )
    return root


def outlook_of(root: Path, ranges: dict[TopicPartition, LogRange] | None = None) -> GroupOutlook:
    directory = open_directory(root)
    image = cluster_image(directory, [])
    found = {
        view.partition: last_group_records(view) for view in directory.topics["__consumer_offsets"]
    }
    stored = stored_groups(found, image, None)
    range_of = (ranges or {}).get
    return group_outlook(found, stored, Placement(directory, image), range_of, NOW, WEEK)


def test_positions_outside_their_logs_and_of_partitions_that_are_gone_reset(
    tmp_path: Path,
) -> None:
    root = node(tmp_path, {"orders": [HERE, HERE, ELSEWHERE], "__consumer_offsets": [HERE]})
    places = {
        ("below", "orders", 0): 4,
        ("start", "orders", 0): 5,
        ("end", "orders", 0): 9,
        ("beyond", "orders", 0): 10,
        ("none", "orders", 0): -1,
        ("gone", "orders", 1): 1,
        ("elsewhere", "orders", 2): 1,
        ("more", "orders", 3): 1,
        ("deleted", "former", 0): 1,
    }
    commits = [
        group_records.commit(group, topic, number, offset=offset, at=NOW)
        for (group, topic, number), offset in places.items()
    ]
    group_records.write_commits(root, 0, *commits)
    found = outlook_of(root, {pylog.TopicPartition("orders", 0): LogRange(5, 9)})
    assert [(each.group_id, each.reason) for each in found.resetting.values()] == [
        ("below", "the log starts at 5: offset 4 is gone"),
        ("beyond", "the log ends at 9"),
        ("deleted", "the cluster has no such partition"),
        ("gone", "its log is gone from the disk that the cluster's metadata names"),
        ("more", "the cluster has no such partition"),
    ]
    assert found.expiring == {}


def test_groups_have_the_same_resets_as_the_outlook(tmp_path: Path) -> None:
    root = node(tmp_path, {"orders": [HERE, HERE], "__consumer_offsets": [HERE]})
    write_partition(root, {0: [batch_v2(plain_records(0, 5))]}, name="orders-0")
    commits = [
        group_records.commit("g", "orders", number, offset=offset, at=NOW)
        for number, offset in ((0, 7), (1, 7))
    ]
    group_records.write_commits(root, 0, *commits)
    [group] = pylog.groups(root, now_ms=NOW).groups
    assert [(each.will_reset, each.reset_reason) for each in group.offsets] == [
        (True, "the log ends at 5"),
        (True, "its log is gone from the disk that the cluster's metadata names"),
    ]
    [group] = pylog.groups(root, at_ms=NOW).groups
    assert {(each.will_reset, each.will_expire) for each in group.offsets} == {(None, None)}


def test_offsets_that_are_too_old_expire_unless_a_transaction_replaces_them(
    tmp_path: Path,
) -> None:
    old = [group_records.commit("g", "orders", number, at=NOW - WEEK) for number in (0, 1)]
    young = group_records.commit("g", "orders", 2, at=NOW - WEEK + 1)
    replacing = batch_v2(
        group_records.stored([old[1]], base_offset=3),
        is_transactional=True,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    plain = batch_v2(group_records.stored([*old, young]))
    write_partition(tmp_path, {0: [plain, replacing]}, name="__consumer_offsets-0")
    reason = "a broker deletes it for its age, unless it is committed anew before"
    [expiring] = outlook_of(tmp_path).expiring.values()
    assert expiring == CommitAtRisk("g", "orders", 0, 0, reason, Severity.INFO)
    [group] = pylog.groups(tmp_path, now_ms=NOW).groups
    assert [each.will_expire for each in group.offsets] == [True, False, False]


def test_missing_partitions_are_told_from_those_that_are_gone(tmp_path: Path) -> None:
    root = node(tmp_path, {"__consumer_offsets": [HERE, HERE, ELSEWHERE, HERE]})
    with pytest.raises(
        UnknownTopicOrPartitionError, match="of 4 that the cluster's metadata names"
    ):
        pylog.groups(root)
    group_records.write_commits(root, 1, group_records.commit("e", at=NOW))
    missing = MissingPartitions((0, 2, 3), (0, 3), 4)
    assert pylog.groups(root).missing == missing
    assert outlook_of(root).missing == missing
    assert str(missing) == (
        "3 partitions of 4 of __consumer_offsets are not here (0, 2, 3): groups in them are not "
        "known; gone from these log directories: 0, 3"
    )
    assert pylog.groups(root, groups=["e"]).missing is None


def test_a_partition_with_a_group_of_two_kinds_is_refused(tmp_path: Path) -> None:
    group_records.write_commits(
        tmp_path,
        0,
        group_records.classic("g", "orders", has_member=True),
        group_records.modern(group_records.CONSUMER, "g"),
    )
    [refused] = outlook_of(tmp_path).refused
    assert (refused.partition, refused.offset, refused.group_id) == (0, 1, "g")
    assert pylog.groups(tmp_path).refused == (refused,)
