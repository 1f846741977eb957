from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.reading.log_directory import open_replicas
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
    directory = open_replicas(*brokers)
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
    (view,) = (each for each in open_replicas(*brokers) if str(each.topic_partition) == "orders-0")
    assert view.log_end_offset == 3


def test_one_path_is_opened_as_ever(brokers: list[Path]) -> None:
    assert len(open_replicas(brokers[0])) == 2
    with pytest.raises(LogDirectoryError):
        open_replicas(brokers[0] / "nothing")
    # And a directory that is given twice counts once.
    assert len(open_replicas(brokers[0], brokers[0])) == 2


def test_groups_of_a_replicated_cluster_are_found(brokers: list[Path]) -> None:
    for directory in brokers:
        write(directory, "__consumer_offsets-0", 1)
    assert pylog.groups(*brokers).partitions == (0,)
    assert pylog.transactions(*brokers).totals == {}
