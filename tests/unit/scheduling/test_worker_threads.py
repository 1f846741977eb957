"""How many threads a read uses, and who says so."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.scheduling.worker_threads import (
    THREADS_VARIABLE,
    WorkerThreads,
    thread_count,
    usable_processors,
)
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


def test_an_argument_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "5")
    assert (thread_count(3, default=1), thread_count(default=1)) == (3, 5)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this platform")
def test_processors_are_those_that_this_process_may_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6})
    assert usable_processors() == 3


def test_a_scan_uses_one_thread_unless_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]})
    monkeypatch.delenv(THREADS_VARIABLE, raising=False)
    assert pylog.scan(directory)._options.threads == 1
    monkeypatch.setenv(THREADS_VARIABLE, "5")
    assert pylog.scan(directory)._options.threads == 5


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5"])
def test_an_environment_variable_that_is_no_number_is_named(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, text)
    with pytest.raises(ValueError, match=f"PYLOG_NUM_THREADS is '{text}', expected a number of"):
        thread_count(default=1)


def test_less_than_one_thread_is_refused(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]})
    with pytest.raises(ValueError, match="threads is 0, expected 1 or more"):
        pylog.scan(directory, threads=0)


def test_a_pool_starts_no_thread_before_it_has_work() -> None:
    with WorkerThreads(2) as workers:
        assert workers._pool is None
        done = threading.Event()
        workers.submit(done.set)
        assert done.wait(60)
