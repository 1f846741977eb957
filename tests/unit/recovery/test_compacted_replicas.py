"""Of which offsets a replica says what is there, and arithmetic of spans."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.comparison.replica_log import ReplicaLog
from pylog.model import TopicPartition
from pylog.reading.discovery import PartitionDirectory
from pylog.recovery.compacted_replicas import Coverage, intersect, joined, subtract
from tests.unit.recovery.test_merge_gaps import stretch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def two_files(tmp_path: Path) -> ReplicaLog:
    """Give a replica with files from offset 0 and from 50, of 1,000 and 2,000 bytes."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for base, size in ((0, 1000), (50, 2000)):
        (directory / f"{base:020d}.log").write_bytes(bytes(size))
    place = PartitionDirectory(TopicPartition("orders", 0), str(directory), "", is_named=True)
    return ReplicaLog(place)


def test_what_is_between_batches_that_follow_in_a_file_is_said(two_files: ReplicaLog) -> None:
    one, other = stretch(0, 3, 0), stretch(3, 10, 0)
    other.start_offset = 7  # its bytes follow
    found = Coverage(0, two_files, [one, other])
    assert (found.spans, found.damaged, found.between_files) == ([(0, 10)], [], [])


def test_what_is_missing_in_a_file_is_damaged(two_files: ReplicaLog) -> None:
    found = Coverage(0, two_files, [stretch(0, 3, 0), stretch(5, 10, 0)])
    assert (found.spans, found.damaged) == ([(0, 3), (5, 10)], [(3, 5)])
    assert found.has(np.array([0, 2, 3, 4, 5, 9, 10])).tolist() == [1, 1, 0, 0, 1, 1, 0]


def test_between_two_files_it_is_not_said_which(two_files: ReplicaLog) -> None:
    second = stretch(60, 80, 0, file=1)
    second.places[0] = second.places[0]._replace(position=0)
    found = Coverage(0, two_files, [stretch(0, 10, 0), second])
    assert (found.spans, found.between_files) == ([(0, 10), (50, 80)], [(10, 50)])
    cut = Coverage(0, two_files, [stretch(0, 9, 0), second])
    assert (cut.damaged, cut.between_files) == ([(9, 50)], [])


def test_nothing_is_said_of_nothing(two_files: ReplicaLog) -> None:
    assert not Coverage(0, two_files, []).has(np.array([0, 1])).any()


def test_spans_are_sets_of_offsets() -> None:
    choice = random.Random(9)
    for _ in range(300):
        one, other = (
            joined(
                (start, start + choice.randrange(1, 9))
                for start in (choice.randrange(40) for _ in range(choice.randrange(6)))
            )
            for _ in range(2)
        )
        mine, yours = ({at for span in each for at in range(*span)} for each in (one, other))
        for found, wanted in (
            (subtract(one, other), mine - yours),
            (intersect(one, other), mine & yours),
            (joined([*one, *other]), mine | yours),
        ):
            assert [at for span in found for at in range(*span)] == sorted(wanted)
