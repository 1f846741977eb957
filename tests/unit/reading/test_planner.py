from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.reading.pending_commit import PendingCommit
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.scan_task import ScanTask

# Two batches of five records a segment. Keys of offsets below 10 are one byte shorter: the batches
# of the first segment have 156 bytes, all others 161.
LOG = {base: [batch_v2(plain_records(base + i, 5)) for i in (0, 5)] for base in (0, 10, 20)}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, LOG)


def tasks(directory: Path, **options: Any) -> list[ScanTask]:  # noqa: ANN401 - of pylog.scan
    return pylog.scan(directory, **options).plan()


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


def test_a_task_knows_its_neighbours_and_its_bytes(directory: Path) -> None:
    (task,) = tasks(directory, start=3, end=25)
    assert [each.next_base_offset for each in task.slices] == [10, 20, None]
    assert [each.runs_to_segment_end for each in task.slices] == [True, True, False]
    assert [each.size_bytes for each in task.slices] == [312, 322, 161]
    assert task.size_bytes == 795
    assert task.slices[0].path == str(directory / "00000000000000000000.log")
    assert (task.start_offset, task.end_offset) == (3, 25)


def test_a_partition_with_nothing_to_read_gets_no_task(directory: Path) -> None:
    assert tasks(directory, start="latest") == []
    assert tasks(directory, start=5, end=5) == []


def test_there_is_one_task_a_partition_in_order(tmp_path: Path) -> None:
    for name in ("b-0", "a-1", "a-0"):
        write_partition(tmp_path, LOG, name=name)
    assert [str(task.topic_partition) for task in tasks(tmp_path)] == ["a-0", "a-1", "b-0"]


def test_tasks_can_be_pickled(directory: Path) -> None:
    for task in tasks(directory, isolation="read_committed"):
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - our own


def test_a_plan_is_made_once(directory: Path) -> None:
    scan = pylog.scan(directory)
    assert scan.plan() is scan.plan()


def test_a_plan_ends_where_commits_never_leave_it_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]})
    monkeypatch.setattr(PendingCommit, "has_changed", lambda _: True)
    with pytest.raises(LogDirectoryError, match="commits of jobs come and go faster than a read"):
        pylog.scan(tmp_path).plan()
