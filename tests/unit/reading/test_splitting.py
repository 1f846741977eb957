"""``min_partitions``: at least so many tasks, or one for each batch, and the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path


def offsets_by_task(path: Path, **options: object) -> list[list[int]]:
    """Return the offsets that each task of a plan gives, in order."""
    scan = pylog.scan(path, columns=["offset"], **options)  # type: ignore[arg-type]
    return [
        [row["offset"] for batch in task.read(scan.schema) for row in batch.to_pylist()]
        for task in scan.plan()
    ]


@pytest.mark.parametrize("use_indexes", [True, False])
@pytest.mark.parametrize(
    ("wanted", "tasks"), [(1, 1), (2, 2), (7, 7), (13, 13), (39, 39), (40, 40), (41, 40), (999, 40)]
)
def test_there_are_as_many_tasks_as_are_wanted_or_one_for_each_batch(
    tmp_path: Path, *, use_indexes: bool, wanted: int, tasks: int
) -> None:
    segments = {
        base: [batch_v2(plain_records(at, 3)) for at in range(base, base + 60, 3)]
        for base in (0, 60)
    }
    write_partition(tmp_path, segments)
    read = offsets_by_task(tmp_path, min_partitions=wanted, use_indexes=use_indexes)
    assert len(read) == tasks
    assert all(read)
    assert [offset for of_task in read for offset in of_task] == [*range(120)]


def test_segments_of_one_batch_each_are_cut_between_them(tmp_path: Path) -> None:
    write_partition(tmp_path, {base: [batch_v2(plain_records(base, 5))] for base in (0, 5, 10)})
    assert offsets_by_task(tmp_path, min_partitions=3) == [
        [*range(5)],
        [*range(5, 10)],
        [*range(10, 15)],
    ]


@pytest.mark.parametrize("large", [0, 4, 9])
def test_batches_around_a_large_one_are_tasks_of_their_own(tmp_path: Path, large: int) -> None:
    sizes = [50_000 if offset == large else 10 for offset in range(10)]
    batches = [batch_v2([Stored(at, 0, None, b"v" * size)]) for at, size in enumerate(sizes)]
    write_partition(tmp_path, {0: batches})
    assert offsets_by_task(tmp_path, min_partitions=10) == [[offset] for offset in range(10)]


def test_tasks_are_wanted_of_all_partitions_together_and_stay_in_order(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(at, 1)) for at in range(20)]
    write_partition(tmp_path, {0: batches}, name="orders-0")
    write_partition(tmp_path, {0: batches[:1]}, name="orders-1")
    write_partition(tmp_path, {0: batches[:4]}, name="orders-2")
    scan = pylog.scan(tmp_path, min_partitions=25)
    places = [(str(task.topic_partition), task.start_offset) for task in scan.plan()]
    assert places == [
        *(("orders-0", offset) for offset in range(20)),
        ("orders-1", 0),
        *(("orders-2", offset) for offset in range(4)),
    ]


def test_a_range_of_offsets_is_cut_inside_it(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(at, 4)) for at in range(0, 40, 4)]})
    read = offsets_by_task(tmp_path, start=6, end=18, min_partitions=10)
    assert read == [[6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17]]


def test_damage_is_not_cut_away(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(at, 1)) for at in range(10)]
    path = segment_path(write_partition(tmp_path, {0: batches}), 0)
    flip(path, sum(len(batch.data) for batch in batches[:5]) - 1)
    whole = pylog.scan(tmp_path, columns=["offset"], mode="DROPMALFORMED")
    expected = [offset for offset in range(10) if offset != 4]
    assert whole.to_table().column("offset").to_pylist() == expected
    cut = pylog.scan(tmp_path, columns=["offset"], mode="DROPMALFORMED", min_partitions=10)
    assert cut.to_table().column("offset").to_pylist() == expected
    assert cut.damage.ranges == whole.damage.ranges


def test_the_cut_is_at_the_middle_of_the_bytes(tmp_path: Path) -> None:
    segments = {
        base: [batch_v2(plain_records(at, 1)) for at in range(base, base + 10)]
        for base in (0, 10, 20, 30)
    }
    write_partition(tmp_path, segments)
    for wanted, each in ((2, 20), (4, 10), (8, 5)):
        read = offsets_by_task(tmp_path, min_partitions=wanted)
        assert [offset for of_task in read for offset in of_task] == [*range(40)]
        assert all(abs(len(of_task) - each) <= 2 for of_task in read)
