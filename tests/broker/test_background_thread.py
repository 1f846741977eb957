"""Threads beside a test: their errors, and their end."""

from __future__ import annotations

import time

import pytest

from tests.broker.background_thread import BackgroundThread


class Counting(BackgroundThread):
    """Counts until it is to end, or until a number that is too high for it."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.count = 0
        self._most = most

    def work(self) -> None:
        while not self.has_to_end.wait(0.001):
            self.count += 1
            if self.count == self._most:
                raise OverflowError(self.count)
        self.count = -1


def wait_for_the_error_of(counting: Counting) -> None:
    while not counting.count:
        time.sleep(0.001)


def test_it_works_while_the_block_runs_and_has_ended_when_it_is_left() -> None:
    with Counting() as counting:
        counting.check()
    assert counting.count == -1


def test_an_error_of_the_thread_is_raised_when_the_block_is_left() -> None:
    counting = Counting(most=1)
    with pytest.raises(OverflowError), counting:
        wait_for_the_error_of(counting)
    assert counting.count == 1


def test_an_error_of_the_block_comes_before_one_of_the_thread() -> None:
    def run() -> None:
        with Counting(most=1) as counting:
            wait_for_the_error_of(counting)
            raise LookupError

    with pytest.raises(LookupError):
        run()
