from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pylog.scheduling.scheduler import BackgroundScheduler, Scheduler
from pylog.testing import ManualClock, ManualScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Far more than any wait needs, so that a busy machine fails no test.
PATIENCE_SECONDS = 60.0
HOUR_MS = 3_600_000


@pytest.fixture
def background() -> Iterator[BackgroundScheduler]:
    with BackgroundScheduler(threads=2) as scheduler:
        yield scheduler


class Calls:
    """A task that counts its runs and can be waited for."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, PATIENCE_SECONDS)


@pytest.mark.parametrize("make", [lambda: ManualScheduler(ManualClock()), BackgroundScheduler])
def test_impossible_times_are_bad_arguments(make: Callable[[], Scheduler]) -> None:
    scheduler = make()
    with pytest.raises(ValueError, match="delay of task x is -1 ms, expected 0 or more"):
        scheduler.schedule_once("x", Calls(), -1)
    with pytest.raises(ValueError, match="delay of task x is -5 ms"):
        scheduler.schedule("x", Calls(), -5, 10)
    with pytest.raises(ValueError, match="period of task x is 0 ms, expected 1 or more"):
        scheduler.schedule("x", Calls(), 0, 0)
    assert scheduler.pending_tasks == 0


def test_single_task_runs_in_the_background(background: BackgroundScheduler) -> None:
    calls = Calls()
    background.schedule_once("task", calls)
    calls.wait_for(1)
    assert background.pending_tasks == 0


def test_delayed_task_does_not_run_early(background: BackgroundScheduler) -> None:
    calls = Calls()
    before = time.monotonic()
    background.schedule_once("task", calls, 50)
    calls.wait_for(1)
    assert time.monotonic() - before >= 0.049
    never = Calls()
    background.schedule_once("never", never, HOUR_MS)
    background.schedule_once("task", calls, 1)
    calls.wait_for(2)
    assert (never.count, background.pending_tasks) == (0, 1)


def test_times_longer_than_the_system_can_wait_are_waited_for() -> None:
    calls, never = Calls(), Calls()
    with BackgroundScheduler(threads=1) as scheduler:
        scheduler.schedule("for ever", never, 2**63 - 1, 2**63 - 1)
        time.sleep(0.01)  # the thread waits
        scheduler.schedule_once("task", calls)
        calls.wait_for(1)
        assert (never.count, scheduler.pending_tasks) == (0, 1)


def test_sooner_task_overtakes_those_that_wait(background: BackgroundScheduler) -> None:
    release, calls = threading.Event(), Calls()
    background.schedule_once("far", Calls(), HOUR_MS)
    background.schedule_once("long", lambda: release.wait(PATIENCE_SECONDS), 5)
    background.schedule_once("short", calls, 20)
    calls.wait_for(1)
    release.set()


def test_periodic_task_runs_until_it_is_cancelled(background: BackgroundScheduler) -> None:
    calls, other = Calls(), Calls()
    task = background.schedule("task", calls, 0, 1)
    calls.wait_for(5)
    task.cancel()
    assert background.pending_tasks == 0
    background.schedule_once("other", other, 20)
    other.wait_for(1)
    count = calls.count
    background.schedule_once("other", other, 20)
    other.wait_for(2)
    assert calls.count == count


def test_periodic_task_never_runs_twice_at_a_time(background: BackgroundScheduler) -> None:
    running = threading.Lock()
    overlaps: list[int] = []
    calls = Calls()

    def task() -> None:
        if not running.acquire(blocking=False):
            overlaps.append(calls.count)
            return
        time.sleep(0.005)
        running.release()
        calls()

    background.schedule("task", task, 0, 1)
    calls.wait_for(5)
    assert overlaps == []


def test_late_task_does_not_make_up_for_missed_runs(background: BackgroundScheduler) -> None:
    starts: list[float] = []
    calls = Calls()

    def task() -> None:
        if not starts:
            time.sleep(0.2)  # ten periods
        starts.append(time.monotonic())
        calls()

    background.schedule("task", task, 0, 20)
    calls.wait_for(3)
    assert starts[2] - starts[0] >= 0.018


def test_error_of_a_background_task_is_logged_and_the_others_go_on(
    background: BackgroundScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    calls = Calls()

    def fail() -> None:
        calls()
        raise OSError("disk gone")

    with caplog.at_level(logging.ERROR, "pylog.scheduling.scheduler"):
        background.schedule("failing", fail, 0, 1)
        calls.wait_for(3)
    assert "task failing failed" in caplog.text
    assert "OSError: disk gone" in caplog.text
    other = Calls()
    background.schedule_once("other", other)
    other.wait_for(1)


def test_tasks_scheduled_before_the_start_wait_for_it() -> None:
    calls = Calls()
    scheduler = BackgroundScheduler(threads=1)
    scheduler.schedule_once("early", calls)
    assert scheduler.pending_tasks == 1
    with scheduler:
        calls.wait_for(1)


def test_shutdown_waits_for_what_runs_and_drops_what_waits() -> None:
    started, release, waiting = threading.Event(), threading.Event(), Calls()
    ended: list[str] = []

    def long() -> None:
        started.set()
        release.wait(PATIENCE_SECONDS)
        time.sleep(0.02)
        ended.append("long")

    scheduler = BackgroundScheduler(threads=1)
    scheduler.startup()
    scheduler.schedule("long", long, 0, 1)
    waits = scheduler.schedule_once("waiting", waiting, 1)
    assert started.wait(PATIENCE_SECONDS)
    threading.Timer(0.02, release.set).start()
    scheduler.shutdown()
    assert ended == ["long"]
    assert (waiting.count, waits.is_cancelled, scheduler.pending_tasks) == (0, True, 0)
    scheduler.shutdown()


def test_tasks_scheduled_after_the_end_are_dropped_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = BackgroundScheduler(threads=1)
    with scheduler:
        pass
    with caplog.at_level(logging.INFO, "pylog.scheduling.scheduler"):
        assert scheduler.schedule_once("too late", Calls()).is_cancelled
    assert "task too late is dropped: the scheduler is shut down" in caplog.text
    assert scheduler.pending_tasks == 0


def test_scheduler_can_be_started_again_but_not_twice() -> None:
    scheduler, calls = BackgroundScheduler(threads=1), Calls()
    for count in (1, 2):
        with scheduler:
            with pytest.raises(RuntimeError, match="already been started"):
                scheduler.startup()
            scheduler.schedule_once("task", calls)
            calls.wait_for(count)


def test_task_may_shut_its_scheduler_down() -> None:
    scheduler, done = BackgroundScheduler(threads=2), Calls()

    def last() -> None:
        scheduler.shutdown()
        done()

    scheduler.startup()
    scheduler.schedule_once("last", last)
    done.wait_for(1)
    assert scheduler.schedule_once("too late", done).is_cancelled


def test_threads_are_named_and_do_not_keep_the_program_alive() -> None:
    seen: list[threading.Thread] = []
    calls = Calls()

    def task() -> None:
        seen.append(threading.current_thread())
        calls()

    with BackgroundScheduler(threads=1, thread_name_prefix="flusher") as scheduler:
        scheduler.schedule_once("task", task)
        calls.wait_for(1)
    assert (seen[0].name, seen[0].daemon, seen[0].is_alive()) == ("flusher-0", True, False)


def test_scheduler_without_threads_is_refused() -> None:
    with pytest.raises(ValueError, match="with 0 threads runs nothing"):
        BackgroundScheduler(threads=0)


def threads_named(prefix: str) -> list[str]:
    return sorted(
        thread.name for thread in threading.enumerate() if thread.name.startswith(f"{prefix}-")
    )


def test_threads_are_started_when_there_is_something_for_them_to_do() -> None:
    scheduler = BackgroundScheduler(threads=3, thread_name_prefix="lazy")
    scheduler.schedule_once("early", Calls(), HOUR_MS)
    assert threads_named("lazy") == []
    with scheduler:
        assert threads_named("lazy") == ["lazy-0"]
        scheduler.schedule_once("far", Calls(), HOUR_MS)
        assert threads_named("lazy") == ["lazy-0"]
    assert threads_named("lazy") == []
    with BackgroundScheduler(threads=3, thread_name_prefix="lazy"):
        assert threads_named("lazy") == []


def test_a_thread_is_started_for_what_waits_while_the_others_are_busy_up_to_the_limit() -> None:
    release, started, last = threading.Event(), Calls(), Calls()

    def busy() -> None:
        started()
        release.wait(PATIENCE_SECONDS)

    with BackgroundScheduler(threads=2, thread_name_prefix="busy") as scheduler:
        scheduler.schedule_once("one", busy)
        started.wait_for(1)
        assert threads_named("busy") == ["busy-0"]
        scheduler.schedule_once("two", busy)
        started.wait_for(2)
        scheduler.schedule_once("three", busy)
        scheduler.schedule_once("last", last)
        assert threads_named("busy") == ["busy-0", "busy-1"]
        assert scheduler.pending_tasks == 2
        release.set()
        started.wait_for(3)
        last.wait_for(1)
        assert threads_named("busy") == ["busy-0", "busy-1"]


def test_a_thread_that_is_free_runs_the_next_task() -> None:
    seen: list[str] = []
    calls = Calls()

    def task() -> None:
        seen.append(threading.current_thread().name)
        calls()

    with BackgroundScheduler(threads=4, thread_name_prefix="free") as scheduler:
        for count in range(1, 6):
            scheduler.schedule_once("task", task)
            calls.wait_for(count)
            wait_until_idle(scheduler)
    assert seen == ["free-0"] * 5


def wait_until_idle(scheduler: BackgroundScheduler) -> None:
    """Return once the one thread of ``scheduler`` waits again: what it ran has told us before."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not scheduler._idle_threads:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_many_tasks_at_once_are_all_run() -> None:
    calls = Calls()
    with BackgroundScheduler(threads=3) as scheduler:
        for number in range(300):
            scheduler.schedule_once("task", calls, number % 3)
        calls.wait_for(300)
        assert scheduler.pending_tasks == 0


def test_a_system_without_a_thread_to_give_is_an_error_only_for_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, started, second = threading.Event(), Calls(), Calls()

    def busy() -> None:
        started()
        release.wait(PATIENCE_SECONDS)

    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    start = threading.Thread.start
    with BackgroundScheduler(threads=2) as scheduler:
        monkeypatch.setattr(threading.Thread, "start", none_left)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            scheduler.schedule_once("refused", Calls())
        assert scheduler.pending_tasks == 0
        monkeypatch.setattr(threading.Thread, "start", start)
        scheduler.schedule_once("busy", busy)
        started.wait_for(1)
        monkeypatch.setattr(threading.Thread, "start", none_left)
        scheduler.schedule_once("second", second)
        monkeypatch.setattr(threading.Thread, "start", start)
        release.set()
        second.wait_for(1)


def test_a_periodic_task_that_starts_its_scheduler_anew_is_not_run_again() -> None:
    scheduler, done, other = BackgroundScheduler(threads=1), Calls(), Calls()

    def last() -> None:
        scheduler.shutdown()
        scheduler.startup()
        done()

    scheduler.startup()
    scheduler.schedule("last", last, 0, 1)
    done.wait_for(1)
    scheduler.schedule_once("other", other, 20)
    other.wait_for(1)
    assert (done.count, scheduler.pending_tasks) == (1, 0)
    scheduler.shutdown()
