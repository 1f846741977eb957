"""How many threads a read uses, and who says so."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Iterator
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


class Items:
    """Parts of ten items of one byte each; notes which thread made which."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], str] = {}
        self.changed = threading.Condition()

    def of(self, part: int) -> Iterator[memoryview]:
        for number in range(10):
            with self.changed:
                self.made[part, number] = threading.current_thread().name
                self.changed.notify_all()
            yield memoryview(bytes([10 * part + number]))

    def wait_for(self, part: int, number: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: (part, number) in self.made, 60)


def is_worker(name: str) -> bool:
    return name.startswith("pylog-read")


@pytest.mark.parametrize(("most_bytes", "ahead"), [(4, 4), (10, 10), (50, 10)])
def test_a_thread_that_has_nothing_else_to_do_makes_up_to_the_limit(
    most_bytes: int, ahead: int
) -> None:
    items = Items()
    given = []
    with WorkerThreads(2) as workers:
        for part, each in workers.each_ahead(range(4), items.of, most_bytes):
            if part == 0:  # two parts are ahead of it
                items.wait_for(2, ahead - 1)
                assert not any(number >= ahead for at, number in items.made if at)
                assert not any(at == 3 for at, _ in items.made)
            given += [item[0] for item in each]
    assert given == list(range(40))
    assert all(is_worker(items.made[at, number]) for at in (1, 2) for number in range(ahead))
    assert not any(is_worker(items.made[0, number]) for number in range(10))


def test_who_asks_for_a_part_takes_it_over_from_the_thread_that_makes_it() -> None:
    items = Items()
    asked = threading.Event()

    def set_when_asked(ahead: Any) -> None:  # noqa: ANN401 - has no public name
        while not ahead._is_stopped.is_set():
            time.sleep(0.001)
        asked.set()

    def made(part: int) -> Iterator[memoryview]:
        for number, item in enumerate(items.of(part)):
            yield item
            if part == 1 and number == 2:
                assert asked.wait(60)

    given = []
    with WorkerThreads(2) as workers:
        for part, each in workers.each_ahead(range(2), made, 100):
            if part == 1:
                items.wait_for(1, 2)
                threading.Thread(target=set_when_asked, args=(each,)).start()
            given += [item[0] for item in each]
    assert given == list(range(20))
    makers = [is_worker(items.made[1, number]) for number in range(10)]
    assert makers[:3] == [True] * 3
    assert makers[4:] == [False] * 6  # the fourth was being made when the caller asked


def test_an_error_comes_after_the_items_before_it_and_other_parts_are_let_go() -> None:
    items = Items()
    closed = []

    def made(part: int) -> Iterator[memoryview]:
        try:
            yield from items.of(part)
            if part == 1:
                raise ZeroDivisionError
        finally:
            closed.append(part)

    given: list[int] = []

    def take_all() -> None:
        with WorkerThreads(3) as workers:
            for part, each in workers.each_ahead(range(9), made, 5):
                if part == 0:
                    items.wait_for(3, 4)
                given.extend(item[0] for item in each)

    with pytest.raises(ZeroDivisionError):
        take_all()
    assert given == list(range(20))
    assert sorted(closed) == sorted({part for part, _ in items.made})
    assert {1, 2, 3} <= set(closed)


def test_a_read_that_is_collected_as_garbage_in_a_thread_of_it_ends() -> None:
    holder: list[Any] = []
    done = threading.Event()

    def made(_part: int) -> Iterator[memoryview]:
        if is_worker(threading.current_thread().name):
            assert done.wait(60)  # until the read is in the cycle alone
            gc.collect()
            collected.set()
        yield memoryview(b"x")

    collected = threading.Event()

    def read() -> Iterator[memoryview]:
        with WorkerThreads(2) as workers:
            for _, each in workers.each_ahead(range(9), made, 5):
                yield from each

    coming = read()
    holder.extend([coming, holder])  # a cycle
    assert next(coming).tobytes() == b"x"
    gc.disable()
    try:
        del coming, holder
        done.set()
        assert collected.wait(60)
    finally:
        gc.enable()
