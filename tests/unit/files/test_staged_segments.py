"""Staged segments: what nobody commits is removed, and what is gone is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from tests.unit.cleaner.cleaning_jobs import left_over, topics_to_compact
from tests.unit.writing.test_compaction import rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return topics_to_compact(tmp_path)


def test_what_is_not_committed_changes_no_log_and_is_removed(logs: Path) -> None:
    before = rows(logs)
    with pylog.jobs.CompactionJob(logs) as job:
        for task in job.tasks:
            task.run()
            task.run()  # another attempt has files of its own
        assert len(left_over(logs)) > 2 * 3 * len(job.tasks)
    assert left_over(logs) == []
    assert rows(logs) == before


def test_the_next_owner_removes_what_a_killed_driver_left(logs: Path) -> None:
    with pylog.jobs.CompactionJob(logs) as job:
        [task, *_] = job.tasks
    task.run()  # of a job that is no more
    assert left_over(logs)
    with pylog.logs.own_log_directory(logs):
        assert left_over(logs) == []


def test_a_staged_file_that_is_gone_or_cut_is_an_error_before_any_change(logs: Path) -> None:
    before = rows(logs)
    for harm in ("unlink", "cut"):
        with pylog.jobs.CompactionJob(logs) as job:
            staged = [task.run() for task in job.tasks]
            victim = sorted(logs.glob(".pylog-cleaned-*.log"))[-1]
            if harm == "unlink":
                victim.unlink()
            else:
                victim.write_bytes(victim.read_bytes()[:-1])
            with pytest.raises(LogDirectoryError, match="Nothing was changed"):
                job.commit(staged)
        assert rows(logs) == before
