"""Index files that lie, next to values that hold the images of batches, change nothing.

The oracle is what was written: the tests' own builders know the records, and a walk of the tests'
own finds the batches again.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.images import (
    Segment,
    draw_log,
    records_of,
    walked,
    write_log,
    write_lying_indexes,
)
from tests.support.log_files import segment_path
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.damage import ReadModeName
    from tests.support.batches import Stored

DIRECTORIES = 8
MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")


def draw_directory(path: Path, seed: int) -> tuple[list[Segment], random.Random, str]:
    """Write a partition of which the index files lie."""
    chance = random.Random(seed)
    log = draw_log(chance)
    path.mkdir(parents=True)
    write_log(path, log)
    for each in log:
        starts = [at for _, at in walked(segment_path(path, each.base_offset))]
        assert len(starts) == len(each.batches)
    lies = "; ".join(write_lying_indexes(path, each, chance) for each in log)
    text = f"seed {seed}: {lies}"
    sys.stdout.write(text + "\n")
    return log, chance, text


@pytest.mark.parametrize("block", range(8))
@pytest.mark.thorough(one_in=3)
def test_rows_ranges_times_cuts_and_ends_are_those_of_what_was_written(
    tmp_path: Path, block: int
) -> None:
    for seed in range(block * DIRECTORIES, (block + 1) * DIRECTORIES):
        path = tmp_path / str(seed) / "t-0"
        log, chance, lies = draw_directory(path, seed)
        records = records_of(log)
        first, end = log[0].base_offset, records[-1].offset + 1
        for mode in MODES:
            assert scanned(path, mode=mode) == records, lies
            (view,) = pylog.scan(path, mode=mode).partitions  # type: ignore[arg-type]
            assert (view.log_start_offset, view.log_end_offset) == (first, end), lies
            start, stop = sorted(chance.sample(range(first, end + 1), 2))
            in_range = [each for each in records if start <= each.offset < stop]
            assert scanned(path, mode=mode, start=start, end=stop) == in_range, lies
            check_cuts(path, mode, records, lies, chance)  # type: ignore[arg-type]
            check_times(path, mode, records, lies, chance)


def check_cuts(
    path: Path, mode: ReadModeName, records: list[Stored], lies: str, chance: random.Random
) -> None:
    """Cuts are at batches, and what lies between them adds up to the whole."""
    size = chance.choice((1, 100, 700, 5_000))
    scan = pylog.scan(path, mode=mode, max_partition_bytes=size)
    for task in scan.plan():
        for each in task.slices:
            starts = [at for _, at in walked(segment_path(path, each.segment_base_offset))]
            assert each.start_position in starts, lies
    assert scanned(path, mode=mode, max_partition_bytes=size) == records, lies
    most = chance.randint(1, 6)
    assert scanned(path, mode=mode, max_records_per_partition=most) == records, lies


def check_times(
    path: Path, mode: str, records: list[Stored], lies: str, chance: random.Random
) -> None:
    """Timestamps go up in these logs; where they do not, docs/guarantees.md has the exception."""
    for _ in range(3):
        stamp = chance.choice(records).timestamp + chance.choice((0, 0, -1))
        late = next(each.offset for each in records if each.timestamp >= stamp)
        found = scanned(path, mode=mode, start=pylog.Timestamp(stamp))
        assert found == [each for each in records if each.offset >= late], lies
        found = scanned(path, mode=mode, end=pylog.Timestamp(stamp))
        assert found == [each for each in records if each.offset < late], lies
