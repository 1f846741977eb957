"""`CompactionJob`: what tasks stage and the driver swaps is what `pylog.compact` makes."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, LogLockedError
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.log.log_context import LogContext
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.cleaner.cleaning_jobs import (
    compact_by_tasks,
    contents,
    left_over,
    topics_to_compact,
)
from tests.unit.writing.test_compaction import NOW_MS, digests, make_topic, rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return topics_to_compact(tmp_path)


def test_tasks_and_a_commit_do_what_compact_does(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs, tmp_path / "other")
    expected = pylog.compact(tmp_path / "other", now_ms=NOW_MS)
    summary = compact_by_tasks(pylog.jobs.CompactionJob(logs, now_ms=NOW_MS))
    assert summary == expected
    assert contents(logs) == contents(tmp_path / "other")
    assert summary.totals.records > 100


def test_a_dry_run_counts_and_changes_nothing(logs: Path) -> None:
    before = digests(logs)
    expected = pylog.compact(logs, now_ms=NOW_MS, dry_run=True)
    with pylog.logs.own_log_directory(logs):
        summary = compact_by_tasks(pylog.jobs.CompactionJob(logs, now_ms=NOW_MS, dry_run=True))
    assert summary == expected
    assert {k: v for k, v in digests(logs).items() if "-" in k and ".log" in k} == {
        k: v for k, v in before.items() if "-" in k and ".log" in k
    }


def test_the_directory_is_owned_from_the_plan_to_the_end(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        for task in job.tasks:
            task.run()  # takes no lock
        with pytest.raises(LogLockedError):
            pylog.compact(logs)
    assert pylog.compact(logs).totals.records > 0


def test_a_missing_task_is_an_error(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        staged = [task.run() for task in job.tasks]
        with pytest.raises(ValueError, match="expected"):
            job.commit(staged[1:])


@pytest.mark.parametrize("at", [1, 2, 4, 5, 7, 9, 12, 16, 21, 27, 34])
def test_a_disk_that_fails_in_a_commit_leaves_groups_old_or_new_and_a_rerun_completes(
    memory_path: Path, at: int
) -> None:
    logs = memory_path / "logs"
    make_topic(logs, "foo", 120)
    shutil.copytree(logs, memory_path / "other")
    pylog.compact(memory_path / "other", now_ms=NOW_MS)
    expected, before = rows(memory_path / "other"), rows(logs)
    io = FaultyIO()
    context = LogContext(io=io, failures=LogDirFailureChannel(is_logged=False))
    job = pylog.jobs.CompactionJob(logs, now_ms=NOW_MS, context=context)
    with suppress(KafkaStorageError), job:
        staged = [task.run() for task in job.tasks]
        changes = frozenset({Kind.REPLACE, Kind.REMOVE, Kind.SYNC_DIRECTORY})
        io.faults = [Fault(kinds=changes, at=at, forever=True)]
        job.commit(staged)
    with pylog.logs.own_log_directory(logs):
        assert left_over(logs) == []
    after = rows(logs)
    assert set(expected) <= set(after) <= set(before)
    pylog.compact(logs, now_ms=NOW_MS)
    assert rows(logs) == expected
