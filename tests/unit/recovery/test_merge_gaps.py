"""What a merged log lacks, and what each replica says of it: a table of side files and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.comparison.batch_join import BatchPlace, BatchStretch
from pylog.comparison.lineage import Doubt, LogLineage, Taken
from pylog.comparison.replica_log import ReplicaLog
from pylog.files.leader_epochs import EpochEntry
from pylog.model import TopicPartition
from pylog.reading.damage import DamagedRange
from pylog.reading.discovery import PartitionDirectory
from pylog.recovery.merge_gaps import find_gaps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def stretch(start: int, end: int, *replicas: int, file: int = 0, epoch: int = 0) -> BatchStretch:
    """Return one of a hundred bytes an offset, at the byte that its first offset gives."""
    places = {each: BatchPlace(file, start * 100) for each in replicas}
    size = (end - start) * 100
    return BatchStretch(start, end, epoch, 1, end - start, size, 5, 9, places)


def lineage(*taken: BatchStretch, root: int | None = 0, **parts: object) -> LogLineage:
    found = [Taken(each, "leader") for each in taken]
    return LogLineage(root=root, taken=found, **parts)  # type: ignore[arg-type]


@pytest.fixture
def replicas(tmp_path: Path) -> list[ReplicaLog]:
    """Give three replicas of which nothing is known."""
    found = []
    for name in "abc":
        path = tmp_path / name / "orders-0"
        path.mkdir(parents=True)
        place = TopicPartition("orders", 0)
        found.append(ReplicaLog(PartitionDirectory(place, str(path), "", is_named=True)))
    return found


def holes(
    replicas: Sequence[ReplicaLog], found: LogLineage, log_start_offset: int = 0
) -> list[tuple[int, int | None]]:
    gaps = find_gaps(replicas, found, log_start_offset)
    return [(each.start_offset, each.end_offset) for each in gaps]


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([], []),
        ([stretch(0, 9, 0)], []),
        ([stretch(3, 9, 0)], [(0, 3)]),
        ([stretch(0, 5, 0), stretch(5, 9, 0)], []),
        ([stretch(0, 5, 0), stretch(7, 9, 1)], [(5, 7)]),
        ([stretch(1, 2, 0), stretch(3, 4, 0), stretch(6, 7, 0)], [(0, 1), (2, 3), (4, 6)]),
    ],
)
def test_what_is_between_the_batches_is_missing(
    taken: list[BatchStretch], expected: list[tuple[int, int]], replicas: list[ReplicaLog]
) -> None:
    assert holes(replicas, lineage(*taken)) == expected


@pytest.mark.parametrize("gap_in_file", [True, False])
def test_what_a_cleaner_took_out_within_a_file_is_not(
    replicas: list[ReplicaLog], *, gap_in_file: bool
) -> None:
    one, other = stretch(0, 5, 0), stretch(7, 9, 0)
    if not gap_in_file:
        other.places[0] = BatchPlace(0, 500)  # right after the first one
    assert holes(replicas, lineage(one, other)) == [(5, 7)]
    replicas[2].cleaned_up_to = 3
    assert holes(replicas, lineage(one, other)) == ([(5, 7)] if gap_in_file else [])


@pytest.mark.parametrize(
    ("epochs", "start", "marks", "expected"),
    [
        ([(0, 0)], 0, None, [(0, 10)]),
        ([(0, 6)], 0, None, [(6, 10)]),  # where the log began
        ([(0, 6)], 8, None, [(8, 10)]),  # records below were deleted
        ([(0, 0)], 0, 9, [(9, 10)]),
        ([(0, 12)], 0, None, []),
        ([], 0, None, [(0, 10)]),
    ],
)
def test_the_log_began_where_checkpoints_say(
    epochs: list[tuple[int, int]],
    start: int,
    marks: int | None,
    expected: list[tuple[int, int]],
    replicas: list[ReplicaLog],
) -> None:
    replicas[0].epochs = [EpochEntry(*each) for each in epochs]
    replicas[1].log_start_offset = marks
    assert holes(replicas, lineage(stretch(10, 20, 0)), start) == expected


@pytest.mark.parametrize(
    ("mark", "epoch", "unproven", "branch", "expected"),
    [
        (None, None, None, None, []),
        (25, None, None, None, [(20, 25)]),
        (20, None, None, None, []),
        (None, 22, None, None, [(20, 22)]),  # the last leader had got so far
        (None, None, (30, 40), None, [(20, 40)]),
        (25, None, None, (20, 30), []),  # the high watermark of another history
    ],
)
def test_the_log_had_reached_what_is_beside_it(
    mark: int | None,
    epoch: int | None,
    unproven: tuple[int, int] | None,
    branch: tuple[int, int] | None,
    expected: list[tuple[int, int]],
    replicas: list[ReplicaLog],
) -> None:
    replicas[1].high_watermark = mark
    replicas[0].epochs = [EpochEntry(0, 0)]
    if epoch is not None:
        replicas[0].epochs.append(EpochEntry(1, epoch))
    found = lineage(
        stretch(0, 20, 0),
        unproven=[] if unproven is None else [stretch(*unproven, 2)],
        branches=[] if branch is None else [stretch(*branch, 1)],
    )
    assert holes(replicas, found) == expected


def causes(replicas: Sequence[ReplicaLog], found: LogLineage) -> list[str]:
    [gap] = find_gaps(replicas, found, 0)
    return [each.found for each in gap.causes]


def test_each_replica_says_what_it_has_there(replicas: list[ReplicaLog]) -> None:
    ends, starts, inside = stretch(0, 10, 0, 2), stretch(20, 30, 1, 2), stretch(30, 31, 1)
    assert causes(replicas, lineage(ends, starts, inside)) == [
        "ends at offset 10",
        "starts at offset 20",
        "nothing: no file has these offsets",
    ]
    replicas[0].unreadable = "a reason"
    replicas[1].damage.add(DamagedRange("b.log", 500, 501, 12, 15, "flipped"))
    other = stretch(10, 20, 2, epoch=4)
    assert causes(replicas, lineage(ends, starts, branches=[other])) == [
        "cannot be read: a reason",
        "damaged: 1 byte at 500 of b.log: flipped",
        "another history: offsets 10 to 19 of epoch 4",
    ]
    assert causes(replicas, lineage(ends, starts, unproven=[stretch(12, 14, 2)]))[2] == (
        "not proven to be of this log: offsets 12 to 13 of epoch 0"
    )
    doubts = [Doubt(stretch(15, 16, 0), 2, "a reason")]
    assert causes(replicas, lineage(ends, starts, doubts=doubts))[2] == (
        "not believed: offset 15 of epoch 0"
    )


@pytest.mark.parametrize(
    ("next_offset", "end_offset", "is_there"),
    [(10, 20, True), (0, 11, True), (19, None, True), (0, 10, False), (20, None, False)],
)
def test_damage_counts_where_it_may_have_had_these_offsets(
    next_offset: int, end_offset: int | None, *, is_there: bool, replicas: list[ReplicaLog]
) -> None:
    replicas[0].damage.add(DamagedRange("a.log", 0, 9, next_offset, end_offset, "flipped"))
    found = causes(replicas, lineage(stretch(0, 10, 0), stretch(20, 30, 0)))
    assert found[0].startswith("damaged: ") is is_there


@pytest.mark.parametrize(
    ("mark", "is_cleaned", "damaged", "expected"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (None, True, True, False),
        (11, False, False, True),
        (11, True, True, True),
        (10, True, False, False),
        (10, False, False, False),
    ],
)
def test_a_cleaner_may_have_taken_out_what_is_missing(
    mark: int | None, replicas: list[ReplicaLog], *, is_cleaned: bool, damaged: bool, expected: bool
) -> None:
    known = stretch(0, 10, 0)
    known.is_cleaned = is_cleaned
    replicas[1].cleaned_up_to = mark
    if damaged:
        replicas[2].damage.add(DamagedRange("c.log", 0, 9, 10, None, "flipped"))
    [gap] = find_gaps(replicas, lineage(known, stretch(20, 30, 0)), 0)
    assert gap.is_cleaned_or_lost is expected
