"""The ledger of written jobs: what it has, what it keeps, and what is no ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError
from pylog.files.commit_manifest import (
    KEPT_BATCHES,
    KEPT_JOBS,
    KEPT_MS,
    MOST_BOOKMARK_CHARACTERS,
    MOST_JOBS,
    Ledger,
    LedgerEntry,
    read_ledger,
    write_ledger,
)
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import LEDGER
from pylog.files.staged_files import JobKey

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000


def entry(job_id: str, batch_id: int | None = None, time_ms: int = NOW_MS) -> LedgerEntry:
    return LedgerEntry(JobKey(job_id, batch_id), f"{job_id}-{batch_id}", time_ms, 10)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert JobKey("nightly") not in read_ledger(str(tmp_path))
    ledger = Ledger([entry("nightly"), entry("query", 7)])
    write_ledger(DurableIO(), str(tmp_path), ledger)
    again = read_ledger(str(tmp_path))
    assert again.entries == ledger.entries
    assert JobKey("nightly") in again
    assert JobKey("query", 7) in again
    assert JobKey("query", 8) not in again
    assert JobKey("query") not in again
    assert again.has_commit("nightly-None")
    assert not again.has_commit("other")
    assert json.loads((tmp_path / ".pylog-ledger").read_text())["jobs"][1] == {
        "job_id": "query",
        "batch_id": 7,
        "fingerprint": None,
        "commit_id": "query-7",
        "time_ms": NOW_MS,
        "record_count": 10,
    }


def test_a_job_of_another_source_is_not_one_that_has_been_written(tmp_path: Path) -> None:
    of_paris = LedgerEntry(JobKey("nightly"), "a", NOW_MS, 10, "paris")
    write_ledger(DurableIO(), str(tmp_path), Ledger([of_paris, entry("older")]))
    ledger = read_ledger(str(tmp_path))
    assert ledger.has_job(JobKey("nightly"), "paris")
    assert ledger.has_job(JobKey("nightly"), None)  # of whoever says nothing about it
    assert ledger.has_job(JobKey("older"), "paris")
    assert not ledger.has_job(JobKey("new"), "paris")
    with pytest.raises(ValueError, match="'nightly' has been committed before, with 10 records fr"):
        ledger.has_job(JobKey("nightly"), "rome")


def test_a_ledger_without_fingerprints_is_read(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_text(
        '{"version": 1, "jobs": [{"job_id": "a", "batch_id": null, "commit_id": "x",'
        ' "time_ms": 1, "record_count": 1}]}'
    )
    assert read_ledger(str(tmp_path)).entries == (LedgerEntry(JobKey("a"), "x", 1, 1),)


def test_of_a_query_the_newest_batches_are_kept_and_older_ones_count_as_written() -> None:
    ledger = Ledger([entry("nightly")])
    for batch_id in range(KEPT_BATCHES + 50):
        ledger = ledger.with_entry(entry("query", batch_id))
    assert len(ledger.entries) == KEPT_BATCHES + 1
    assert all(JobKey("query", batch_id) in ledger for batch_id in range(KEPT_BATCHES + 50))
    assert JobKey("query", KEPT_BATCHES + 50) not in ledger
    assert JobKey("nightly") in ledger


def test_old_jobs_are_forgotten_once_there_are_many() -> None:
    old = NOW_MS - KEPT_MS - 1
    ledger = Ledger(entry(f"old {each}", time_ms=old) for each in range(KEPT_JOBS + 10))
    ledger = ledger.with_entry(entry("new"))
    assert len(ledger.entries) == KEPT_JOBS
    assert JobKey("old 0") not in ledger
    assert JobKey(f"old {KEPT_JOBS + 9}") in ledger
    assert ledger.entries[-1] == entry("new")


def test_young_jobs_are_kept_up_to_a_number() -> None:
    ledger = Ledger(entry(f"job {each}") for each in range(MOST_JOBS + 5)).with_entry(entry("new"))
    assert len(ledger.entries) == MOST_JOBS


def test_the_newest_bookmark_of_a_job_is_kept_for_good(tmp_path: Path) -> None:
    old = NOW_MS - KEPT_MS - 1
    ledger = Ledger([entry("orders", 0, old)])
    for number in (1, 2):
        marked = replace(entry("orders", number, old), bookmark=f"up to {number}")
        ledger = ledger.with_entry(marked)
    for number in range(MOST_JOBS + 5):
        ledger = Ledger([*ledger.entries, entry(f"job {number}")])
    ledger = ledger.with_entry(entry("new"))
    write_ledger(DurableIO(), str(tmp_path), ledger)
    again = read_ledger(str(tmp_path))
    newest = again.newest("orders")
    assert newest is not None
    assert (newest.key.batch_id, newest.bookmark) == (2, "up to 2")
    assert len(again.entries) == MOST_JOBS + 1
    assert all(JobKey("orders", number) in again for number in range(3))
    assert JobKey("orders", 3) not in again
    assert again.newest("job 7") is None  # it is of a job that writes once


def test_bookmarks_together_have_a_limit() -> None:
    ledger = Ledger(
        replace(entry(f"job {each}", 0), bookmark="x" * (MOST_BOOKMARK_CHARACTERS // 2))
        for each in range(2)
    )
    ledger.ensure_room_for(JobKey("job 1", 1), "y" * (MOST_BOOKMARK_CHARACTERS // 2))
    with pytest.raises(ValueError, match="give jobs a shorter lag"):
        ledger.ensure_room_for(JobKey("job 2", 1), "y")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"version": 2, "jobs": []}',
        '{"version": 1, "jobs": {}}',
        '{"version": 1, "jobs": [{}]}',
        (
            '{"version": 1, "jobs": [{"job_id": "a", "batch_id": 1, "commit_id": "x",'
            ' "time_ms": 1, "record_count": 1, "bookmark": 3}]}'
        ),
        (
            '{"version": 1, "jobs": [{"job_id": 1, "batch_id": null, "commit_id": "x",'
            ' "time_ms": 1, "record_count": 1}]}'
        ),
        (
            '{"version": 1, "jobs": [{"job_id": "a", "batch_id": -1, "commit_id": "x",'
            ' "time_ms": 1, "record_count": 1}]}'
        ),
    ],
)
def test_what_is_no_ledger_is_an_error_that_says_what_is_at_stake(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / LEDGER).write_text(text)
    with pytest.raises(CorruptCheckpointError, match="would be written twice"):
        read_ledger(str(tmp_path))
