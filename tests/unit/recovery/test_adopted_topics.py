"""Which replicas of old disks are the best ones, and which topics they are of."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.recovery.adopted_topics import OldDisks
from tests.support.adopted_disks import (
    DIRECTORY_ID,
    LEVEL,
    OLD_CLUSTER,
    TOPIC_ID,
    formatted,
    old,
    properties,
)
from tests.support.damage import flip
from tests.support.log_files import segment_path
from tests.support.metadata_log import config_record, topic_record, write_metadata_log
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_the_replica_of_the_last_leader_is_taken_though_another_is_longer(tmp_path: Path) -> None:
    longer = old(tmp_path / "1", epochs=(3, 3, 3))
    leader = properties(old(tmp_path / "2", epochs=(3, 4)), 2, OLD_CLUSTER, DIRECTORY_ID)
    target = formatted(tmp_path / "new")
    summary = pylog.adopt(longer, leader, into=target)
    assert summary.partitions[0].source == str(leader / "t-0")
    assert any("goes further, to offset 30" in each for each in summary.notes)
    assert fields_of(target, "PartitionRecord")[0]["leaderEpoch"] == 5


def replicas_of(*disks: Path) -> list[tuple[str, int, int, int]]:
    """Return the replicas of t-0, the best first: node, last and highest epoch, end."""
    [topic] = OldDisks(disks, None).topics
    return [
        (Path(each.view.directory.log_directory).name, *each.position, each.highest_epoch)
        for each in topic.replicas[0]
    ]


def disk(directory: Path, node: int, epochs: Sequence[int], topic_id: str = TOPIC_ID) -> Path:
    old(directory, epochs=epochs)
    (directory / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return properties(directory, node, OLD_CLUSTER, DIRECTORY_ID)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((3, 3), (3,), [("1", 3, 20, 3), ("2", 3, 10, 3)]),
        ((3, 3), (4,), [("2", 4, 10, 4), ("1", 3, 20, 3)]),
        ((3,), (3,), [("1", 3, 10, 3), ("2", 3, 10, 3)]),  # of equals the first that was given
        ((900, 3), (4,), [("2", 4, 10, 4), ("1", 3, 20, 900)]),  # one flipped bit wins nothing
        ((), (0,), [("2", 0, 10, 0), ("1", -1, 0, -1)]),
    ],
)
def test_the_replica_of_the_highest_last_epoch_is_first_and_then_the_longest(
    one: tuple[int, ...],
    other: tuple[int, ...],
    expected: list[tuple[str, int, int, int]],
    tmp_path: Path,
) -> None:
    assert replicas_of(disk(tmp_path / "1", 1, one), disk(tmp_path / "2", 2, other)) == expected


@pytest.mark.parametrize(
    ("checkpoint", "epoch"),
    [("5 10", 5), ("5 20", 5), ("5 21", 3), ("1 0", 3), ("not a line", 3)],
)
def test_an_epoch_of_the_checkpoint_counts_up_to_the_end(
    checkpoint: str, epoch: int, tmp_path: Path
) -> None:
    """A leader writes its epoch before its first record."""
    place = disk(tmp_path / "1", 1, (3, 3))
    (place / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n{checkpoint}\n")
    assert replicas_of(place) == [("1", epoch, 20, max(epoch, 3))]


def test_what_is_damaged_counts_for_nothing(tmp_path: Path) -> None:
    place = disk(tmp_path / "1", 1, (3, 9))
    path = segment_path(place / "t-0", 0)
    flip(path, -1)
    assert replicas_of(place) == [("1", 3, 10, 3)]
    assert OldDisks([place], None).highest_producer_id == 4_000


def test_a_topic_has_one_id_and_all_numbers_up_to_the_highest(tmp_path: Path) -> None:
    one = old(tmp_path / "1", partitions=(0, 3))
    [topic] = OldDisks([one], ["t"]).topics
    assert {number: len(each) for number, each in topic.replicas.items()} == {
        0: 1,
        1: 0,
        2: 0,
        3: 1,
    }
    with pytest.raises(UnknownTopicOrPartitionError):
        OldDisks([one], ["u"])
    other = disk(tmp_path / "2", 2, (3,), "BBECAwQFBgcICQoLDA0ODw")
    with pytest.raises(LogDirectoryError, match="deleted and made again"):
        OldDisks([one, other], None)
    # Of the ids, the one in the old metadata is the topic's.
    write_metadata_log(one, [*LEVEL, topic_record("t")])
    [topic] = OldDisks([one, other], None).topics
    assert topic.topic_id == uuid.UUID(bytes=bytes(range(16)))


def test_disks_of_two_clusters_are_refused(tmp_path: Path) -> None:
    one, other = disk(tmp_path / "1", 1, (3,)), disk(tmp_path / "2", 2, (3,))
    properties(other, 2, "qM6VaBEQIIV4rb6KS_2csw", DIRECTORY_ID)
    with pytest.raises(LogDirectoryError, match="2 clusters"):
        OldDisks([one, other], None)


def test_disks_without_producers_have_no_id_of_one(tmp_path: Path) -> None:
    assert OldDisks([disk(tmp_path / "1", 1, ())], None).highest_producer_id == -1


def test_records_about_access_are_those_that_the_others_lack(tmp_path: Path) -> None:
    one = old(tmp_path / "1")
    kept, known = (config_record(32, name, "a", "1") for name in ("g", "h"))
    assert OldDisks([one], None).access_records([]) == []
    write_metadata_log(one, [*LEVEL, topic_record("t"), kept, known])
    assert OldDisks([one], None).access_records([known]) == [kept]
