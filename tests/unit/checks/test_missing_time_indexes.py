"""Time indexes that are missing or empty: what look-ups by time make of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import mark_clean_shutdown, segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = {
    base: [batch_v2(plain_records(base, 5, timestamp=1_000_000 + 1_000 * base))]
    for base in (0, 5, 10)
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    mark_clean_shutdown(tmp_path)
    return write_partition(tmp_path, SEGMENTS)


def changed(directory: Path, base: int, seconds: int) -> None:
    os.utime(segment_path(directory, base), (seconds, seconds))


def affected(directory: Path) -> list[tuple[int | None, int | None]]:
    verdict = pylog.doctor(directory.parent).verdict
    return [(each.from_offset, each.to_offset) for each in verdict.consumers]


@pytest.mark.parametrize("is_missing", [True, False])
@pytest.mark.parametrize(
    ("base", "seconds", "expected"),
    [
        (5, 1, [(5, 10)]),  # as if its last record were older
        (5, 2_000, [(10, None)]),  # as if it were newer, so that no later segment is looked at
        (10, 1, [(10, 15)]),
        (10, 2_000, []),  # no segment is later
    ],
)
def test_the_time_of_the_file_counts_for_a_segment_without_entries(
    directory: Path,
    base: int,
    seconds: int,
    expected: list[tuple[int, int | None]],
    *,
    is_missing: bool,
) -> None:
    path = segment_path(directory, base, ".timeindex")
    if is_missing:
        path.unlink()
    else:
        path.write_bytes(b"")
    changed(directory, base, seconds)
    assert affected(directory) == expected


def test_records_without_timestamps_are_not_looked_for(tmp_path: Path) -> None:
    mark_clean_shutdown(tmp_path)
    timeless = [each._replace(timestamp=-1) for each in plain_records(0, 5)]
    directory = write_partition(tmp_path, {0: [batch_v2(timeless)], 5: SEGMENTS[5]})
    segment_path(directory, 0, ".timeindex").unlink()
    assert affected(directory) == []
