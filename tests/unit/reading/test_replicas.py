from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path


def write(directory: Path, name: str, records: int) -> None:
    write_partition(directory, {0: [batch_v2(plain_records(0, records))]}, name=name)


@pytest.fixture
def brokers(tmp_path: Path) -> list[Path]:
    ends = {"orders-0": (2, 5, 3), "orders-1": (4, 4, 1), "alone-0": (0, 7, 0)}
    directories = [tmp_path / f"broker-{number}" for number in range(3)]
    for name, records in ends.items():
        for directory, count in zip(directories, records, strict=True):
            if count:
                write(directory, name, count)
    return directories


def test_of_each_partition_the_longest_replica_counts(brokers: list[Path]) -> None:
    directory = pylog.open_directory(*brokers)
    found = {
        str(view.topic_partition): (view.log_end_offset, view.directory.path) for view in directory
    }
    assert found == {
        "alone-0": (7, str(brokers[1] / "alone-0")),
        "orders-0": (5, str(brokers[1] / "orders-0")),
        "orders-1": (4, str(brokers[0] / "orders-1")),  # the first of equals
    }
    assert list(found) == sorted(found)
    assert pylog.scan(directory, topics=["orders"]).count() == 9


def test_a_replica_whose_end_cannot_be_told_is_taken_only_alone(brokers: list[Path]) -> None:
    longest = brokers[1] / "orders-0"
    segment_path(longest, 0).unlink()
    for path in longest.iterdir():
        assert path.suffix != ".log"
    (view,) = (
        each for each in pylog.open_directory(*brokers) if str(each.topic_partition) == "orders-0"
    )
    assert view.log_end_offset == 3


def test_one_path_is_opened_as_ever(brokers: list[Path]) -> None:
    assert len(pylog.open_directory(brokers[0])) == 2
    with pytest.raises(LogDirectoryError):
        pylog.open_directory(brokers[0] / "nothing")
    # And a directory that is given twice counts once.
    assert len(pylog.open_directory(brokers[0], brokers[0])) == 2


def test_groups_of_a_replicated_cluster_are_found(brokers: list[Path]) -> None:
    for directory in brokers:
        write(directory, "__consumer_offsets-0", 1)
    assert pylog.groups(*brokers).partitions == (0,)
    assert pylog.transactions(*brokers).totals == {}


def write_node(directory: Path, node: int, cluster: str = "c") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    text = f"version=1\nnode.id={node}\ncluster.id={cluster}\n"
    (directory / "meta.properties").write_text(text, "utf-8")
    return directory


def values(directory: pylog.results.LogDirectory) -> list[tuple[str, int]]:
    table = pylog.scan(directory, columns=["topic", "offset"], topics=sorted(directory.topics))
    rows = table.to_table().to_pylist()
    return [(row["topic"], row["offset"]) for row in rows]


def test_the_replica_with_the_later_epoch_counts_though_it_is_shorter(tmp_path: Path) -> None:
    for node, records, epoch in ((1, 9, 3), (2, 4, 5), (3, 3, 5)):
        directory = write_node(tmp_path / str(node), node)
        write(directory, "orders-0", records)
        lines = ["0", "1", f"{epoch} 0"]
        checkpoint = directory / "orders-0" / "leader-epoch-checkpoint"
        checkpoint.write_text("\n".join(lines) + "\n", "utf-8")
    paths = [tmp_path / each for each in "123"]
    assert pylog.scan(paths).count() == 4
    for replica in (1, "1", paths[0], str(paths[0])):
        assert pylog.scan(pylog.open_directory(*paths, replica=replica)).count() == 9
    with pytest.raises(LogDirectoryError, match=r"'7' is neither the id of a node here nor"):
        pylog.open_directory(*paths, replica=7)


def test_which_replicas_are_read_is_said(
    brokers: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    for number, each in enumerate(brokers):
        write_node(each, number)
    pylog.open_directory(*brokers)
    (message,) = caplog.messages
    assert message.startswith("2 partitions have several replicas here; ")
    assert message.endswith(f": 1 from {brokers[1]} (node 1), 1 from {brokers[0]} (node 0)")


def test_directories_of_two_clusters_are_not_read_together(tmp_path: Path) -> None:
    write(write_node(tmp_path / "a", 1, "one"), "orders-0", 3)
    write(write_node(tmp_path / "b", 1, "two"), "orders-1", 3)
    write(write_node(tmp_path / "c", 1, "three"), "payments-0", 3)
    assert len(pylog.open_directory(tmp_path / "a", tmp_path / "c")) == 2
    expected = (
        f"topic orders is in two clusters: {tmp_path / 'a'} is of cluster one, and "
        f"{tmp_path / 'b'} of cluster two; read one"
    )
    with pytest.raises(LogDirectoryError, match=re.escape(expected)):
        pylog.open_directory(tmp_path / "a", tmp_path / "b")


def test_directories_with_two_topic_ids_are_no_replicas(tmp_path: Path) -> None:
    for node, topic_id in ((1, "YWFhYWFhYWFhYWFhYWFhYQ"), (2, "YmJiYmJiYmJiYmJiYmJiYg")):
        write(write_node(tmp_path / str(node), node), "orders-0", 3)
        text = f"version: 0\ntopic_id: {topic_id}"
        (tmp_path / str(node) / "orders-0" / "partition.metadata").write_text(text, "utf-8")
    with pytest.raises(LogDirectoryError, match="which have two topic ids; read one of them"):
        pylog.open_directory(tmp_path / "1", tmp_path / "2")


STRAY = "orders-0.0123456789abcdef0123456789abcdef-stray"
DELETED = "orders-0.fedcba9876543210fedcba9876543210-delete"


def test_directories_that_are_not_live_are_read_by_their_path_or_under_their_own_names(
    tmp_path: Path,
) -> None:
    write(tmp_path, "orders-0", 1)
    write(tmp_path, STRAY, 2)
    write(tmp_path, DELETED, 3)
    assert pylog.scan(tmp_path).count() == 1
    assert pylog.scan(tmp_path / STRAY).count() == 2
    assert pylog.scan([tmp_path / DELETED]).to_table()["topic"].to_pylist() == ["orders"] * 3
    every = pylog.open_directory(tmp_path, include_stray=True)
    assert values(every) == [
        ("orders", 0),
        *(("orders." + STRAY.partition(".")[2], offset) for offset in range(2)),
        *(("orders." + DELETED.partition(".")[2], offset) for offset in range(3)),
    ]
    # Beside a live one, a path leads to it all the same.
    assert len(pylog.open_directory(tmp_path, tmp_path / STRAY)) == 2


@pytest.mark.parametrize("gone", [(0,), (1,), (0, 1)])
def test_a_partition_on_two_disks_of_a_node_that_moves_it_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: tuple[int, ...]
) -> None:
    disks = [write_node(tmp_path / name, 1) for name in ("a", "b")]
    for disk in disks:
        write(disk, "orders-0", 3)
        write(disk, f"{disk.name}-0", 1)

    def take_away(_seconds: float) -> None:
        for at in gone:
            shutil.move(disks[at] / "orders-0", tmp_path / f"taken-{at}")

    monkeypatch.setattr(time, "sleep", take_away)
    directory = pylog.open_directory(*disks)
    assert len(directory) == 3
    if len(gone) == 2:  # it has come back to where it was
        shutil.move(tmp_path / "taken-0", disks[0] / "orders-0")
    assert pylog.scan(directory, topics=["orders"]).count() == 3


def test_a_partition_that_stays_on_two_disks_of_a_node_is_an_error(tmp_path: Path) -> None:
    disks = [write_node(tmp_path / name, 1) for name in ("a", "b")]
    for disk in disks:
        write(disk, "orders-0", 3)
    with pytest.raises(LogDirectoryError, match=r"lies both in .* which are of one node"):
        pylog.open_directory(*disks)
