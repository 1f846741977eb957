"""Threads that delete, truncate, make and checkpoint logs at once: nobody waits for ever."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import KafkaStorageError
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.unit.log.owned_log import NOW_MS, one_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


ORDERS, EVENTS = TopicPartition("orders", 0), TopicPartition("events", 0)
PATIENCE_SECONDS = 20.0
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class PausingIO(DurableIO):
    """Calls a function before the next change of one kind, in the thread that makes it."""

    def __init__(self) -> None:
        self.before_truncation: Callable[[], None] | None = None
        self.before_rename: Callable[[str], None] | None = None

    def ftruncate(self, path: str, descriptor: int, size_bytes: int) -> None:
        pause, self.before_truncation = self.before_truncation, None
        if pause is not None:
            pause()
        super().ftruncate(path, descriptor, size_bytes)

    def rename(self, source: str, target: str) -> None:
        if self.before_rename is not None:
            self.before_rename(target)
        super().rename(source, target)


@pytest.fixture
def io() -> PausingIO:
    return PausingIO()


@pytest.fixture
def manager(tmp_path: Path, io: PausingIO) -> Iterator[LogManager]:
    clock = ManualClock(NOW_MS)
    context = LogContext(io=io, clock=clock, scheduler=ManualScheduler(clock))
    manager = LogManager([tmp_path], LogConfig(segment_bytes=210), context=context).startup()
    for each in (ORDERS, EVENTS):
        for _ in range(3):
            manager.get_or_create_log(each).append_as_leader(one_batch(b"value"))
        manager.get_log(each).flush()
    yield manager
    io.before_truncation = io.before_rename = None
    # In a thread, too: where others wait for each other this one would wait with them.
    in_thread(manager.abandon, []).join(PATIENCE_SECONDS)


def in_thread(task: Callable[[], object], failures: list[BaseException]) -> threading.Thread:
    """Run ``task`` in a thread that does not keep a test that failed from ending."""

    def run() -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def join(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    if any(thread.is_alive() for thread in threads):
        pytest.fail("threads wait for each other")


def wait_until_set(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS), "the other thread did not come so far"


def test_a_log_that_is_truncated_can_be_deleted_meanwhile(
    manager: LogManager, io: PausingIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = manager.get_log(ORDERS)
    is_truncating, is_closing = threading.Event(), threading.Event()

    def wait_for_the_deletion() -> None:
        is_truncating.set()
        wait_until_set(is_closing)

    close_handlers = log.close_handlers

    def close_after_saying_so() -> None:
        is_closing.set()
        close_handlers()

    monkeypatch.setattr(log, "close_handlers", close_after_saying_so)
    io.before_truncation = wait_for_the_deletion
    failures: list[BaseException] = []
    truncation = in_thread(lambda: log.truncate_to(1), failures)
    wait_until_set(is_truncating)  # so it holds the log's lock, and has not written checkpoints yet
    deletion = in_thread(lambda: manager.delete_log(ORDERS), failures)
    join(truncation, deletion)
    assert failures == []
    assert log.log_end_offset == 1
    assert list(manager.logs) == [EVENTS]
    assert not (tmp_path / "orders-0").exists()
    with pytest.raises(KafkaStorageError, match="closed"):
        log.truncate_to(0)


def test_a_log_is_not_made_in_the_directory_of_one_that_is_being_deleted(
    manager: LogManager, io: PausingIO, tmp_path: Path
) -> None:
    is_renaming, is_asked = threading.Event(), threading.Event()
    ends: list[int] = []

    def wait_for_the_question(target: str) -> None:
        if target.endswith("-delete"):
            is_renaming.set()
            wait_until_set(is_asked)

    def ask() -> None:
        is_asked.set()
        ends.append(manager.get_or_create_log(ORDERS).log_end_offset)

    io.before_rename = wait_for_the_question
    failures: list[BaseException] = []
    deletion = in_thread(lambda: manager.delete_log(ORDERS), failures)
    wait_until_set(is_renaming)
    join(deletion, in_thread(ask, failures))
    assert (failures, ends) == ([], [0])
    assert (tmp_path / "orders-0" / f"{0:020d}.log").exists()


def test_a_checkpoint_that_is_written_later_does_not_bring_older_offsets(
    manager: LogManager, io: PausingIO, tmp_path: Path
) -> None:
    log = manager.get_log(ORDERS)
    is_writing, is_truncated = threading.Event(), threading.Event()

    def let_the_truncation_overtake(target: str) -> None:
        if target.endswith(RECOVERY_POINTS) and not is_writing.is_set():
            is_writing.set()
            is_truncated.wait(0.5)  # it waits for this thread, and so never comes

    def truncate() -> None:
        log.truncate_to(1)
        is_truncated.set()

    io.before_rename = let_the_truncation_overtake
    failures: list[BaseException] = []
    checkpoint = in_thread(manager.checkpoint_log_recovery_offsets, failures)
    wait_until_set(is_writing)  # with the recovery point as it was before the truncation
    join(checkpoint, in_thread(truncate, failures))
    assert failures == []
    lines = (tmp_path / RECOVERY_POINTS).read_text().splitlines()
    assert sorted(lines[2:]) == ["events 0 3", "orders 0 1"]


def test_a_closed_manager_makes_no_logs(manager: LogManager, tmp_path: Path) -> None:
    manager.shutdown()
    with pytest.raises(KafkaStorageError, match="closed"):
        manager.get_or_create_log(TopicPartition("late", 0))
    with pytest.raises(KafkaStorageError, match="closed"):
        manager.store_topic_config("late", {"cleanup.policy": "compact"})
    assert not (tmp_path / "late-0").exists()
