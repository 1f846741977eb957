"""A task's range: its neighbours, its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.reading.planned import tasks

if TYPE_CHECKING:
    from pathlib import Path


def test_a_task_knows_its_neighbours_and_its_bytes(directory: Path) -> None:
    (task,) = tasks(directory, start=3, end=25)
    assert [each.next_base_offset for each in task.slices] == [10, 20, None]
    assert [each.runs_to_segment_end for each in task.slices] == [True, True, False]
    assert [each.size_bytes for each in task.slices] == [312, 322, 161]
    assert task.size_bytes == 795
    assert task.slices[0].path == str(directory / "00000000000000000000.log")
    assert (task.start_offset, task.end_offset) == (3, 25)
