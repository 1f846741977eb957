"""Work on several threads: its order, its errors, its progress, and its end."""

from __future__ import annotations

import threading
import time

import pytest

from pylog.scheduling.worker_threads import SharedProgress, WorkStoppedError


def test_results_come_in_the_order_of_the_tasks() -> None:
    def work(task: int) -> int:
        time.sleep(0.002 * (5 - task))
        return task * task

    assert SharedProgress(0, None).side_by_side(work, range(5), 3) == [0, 1, 4, 9, 16]
    assert SharedProgress(0, None).side_by_side(work, [], 3) == []


def test_progress_is_told_to_the_thread_of_the_caller_and_ends_with_all() -> None:
    reports: list[tuple[int, int, threading.Thread]] = []
    shared = SharedProgress(
        40, lambda done, total: reports.append((done, total, threading.current_thread()))
    )
    shared.side_by_side(lambda _: shared.advance(10), range(4), 2)
    assert reports[-1] == (40, 40, threading.current_thread())


def test_an_error_of_a_thread_is_that_of_the_caller() -> None:
    def work(task: int) -> None:
        if task == 2:
            msg = "two"
            raise KeyError(msg)

    with pytest.raises(KeyError, match="two"):
        SharedProgress(0, None).side_by_side(work, range(4), 2)


def test_after_an_interruption_threads_end_when_they_next_advance() -> None:
    ended = threading.Event()

    def report(done: int, total: int) -> None:
        raise KeyboardInterrupt

    shared = SharedProgress(0, report)

    def work(_: int) -> None:
        try:
            while True:
                time.sleep(0.005)
                shared.advance(1)
        except WorkStoppedError:
            ended.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        shared.side_by_side(work, [1], 1)
    assert ended.wait(10)
