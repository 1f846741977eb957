"""From offsets to bytes of files: no more of them than may hold the range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.reading.planned import tasks

if TYPE_CHECKING:
    from pathlib import Path


def slices(directory: Path, **options: Any) -> list[tuple[int, int, int]]:  # noqa: ANN401
    """Return base offset, start and end position of each slice of the only task."""
    (task,) = tasks(directory, **options)
    return [(each.base_offset, each.start_position, each.end_position) for each in task.slices]


def test_a_whole_log_is_every_byte_of_it(directory: Path) -> None:
    assert slices(directory) == [(0, 0, 312), (10, 0, 322), (20, 0, 322)]


def test_only_the_segments_that_may_hold_the_range_are_read(directory: Path) -> None:
    assert slices(directory, start=10, end=20) == [(10, 0, 322)]


def test_only_the_batches_that_may_hold_the_range_are_read(directory: Path) -> None:
    assert slices(directory, start=7, end=13) == [(5, 156, 312), (10, 0, 161)]
    assert slices(directory, start=26, end=27) == [(25, 161, 322)]
