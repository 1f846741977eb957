from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pylog.clock import ManualClock
from pylog.scheduler import BackgroundScheduler, ManualScheduler, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Far more than any wait needs, so that a busy machine fails no test.
PATIENCE_SECONDS = 60.0
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def manual(clock: ManualClock) -> ManualScheduler:
    return ManualScheduler(clock)


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


def runs_at(clock: ManualClock, manual: ManualScheduler, sleep_ms: int) -> None:
    clock.sleep(sleep_ms)
    manual.tick()


# ---- by hand


def test_single_task_runs_once_when_its_time_has_come(
    clock: ManualClock, manual: ManualScheduler
) -> None:
    soon, later = Calls(), Calls()
    manual.schedule_once("soon", soon, 1)
    manual.schedule_once("later", later, 100)
    manual.tick()
    assert (soon.count, later.count) == (0, 0)
    runs_at(clock, manual, 1)
    assert (soon.count, later.count) == (1, 0)
    runs_at(clock, manual, 98)
    assert (soon.count, later.count) == (1, 0)
    runs_at(clock, manual, 1)
    runs_at(clock, manual, 100_000)
    assert (soon.count, later.count) == (1, 1)
    assert manual.pending_tasks == 0


def test_task_without_delay_waits_for_the_next_tick(manual: ManualScheduler) -> None:
    calls = Calls()
    manual.schedule_once("now", calls)
    assert (calls.count, manual.pending_tasks) == (0, 1)
    manual.tick()
    assert (calls.count, manual.pending_tasks) == (1, 0)


def test_periodic_task_runs_as_often_as_its_period_has_passed(
    clock: ManualClock, manual: ManualScheduler
) -> None:
    often, seldom = Calls(), Calls()
    manual.schedule("often", often, delay_ms=1, period_ms=1)
    manual.schedule("seldom", seldom, delay_ms=100, period_ms=100)
    runs_at(clock, manual, 1)
    assert (often.count, seldom.count) == (1, 0)
    runs_at(clock, manual, 100)
    assert (often.count, seldom.count) == (101, 1)
    assert manual.pending_tasks == 2


def test_tasks_run_in_the_order_of_their_times_then_of_scheduling(
    clock: ManualClock, manual: ManualScheduler
) -> None:
    ran: list[str] = []

    def record_run(name: str) -> Callable[[], None]:
        return lambda: ran.append(name)

    for name, delay_ms in (("c", 30), ("a", 10), ("d", 30), ("b", 20)):
        manual.schedule_once(name, record_run(name), delay_ms)
    manual.schedule("p", record_run("p"), delay_ms=15, period_ms=10)
    runs_at(clock, manual, 35)
    assert ran == ["a", "p", "b", "p", "c", "d", "p"]


def test_task_may_schedule_another_one_for_the_same_tick(
    clock: ManualClock, manual: ManualScheduler
) -> None:
    inner, late = Calls(), Calls()

    def outer() -> None:
        manual.schedule_once("inner", inner)
        manual.schedule_once("late", late, 1)

    manual.schedule_once("outer", outer, 5)
    runs_at(clock, manual, 5)
    assert (inner.count, late.count) == (1, 0)
    runs_at(clock, manual, 1)
    assert (inner.count, late.count) == (1, 1)


def test_cancelled_tasks_do_not_run(clock: ManualClock, manual: ManualScheduler) -> None:
    once, again = Calls(), Calls()
    single = manual.schedule_once("once", once, 10)
    periodic = manual.schedule("again", again, delay_ms=1, period_ms=1)
    runs_at(clock, manual, 3)
    single.cancel()
    periodic.cancel()
    assert manual.pending_tasks == 0
    assert single.is_cancelled
    runs_at(clock, manual, 100)
    assert (once.count, again.count) == (0, 3)


def test_periodic_task_may_cancel_itself(clock: ManualClock, manual: ManualScheduler) -> None:
    calls = Calls()

    def task() -> None:
        calls()
        periodic.cancel()

    periodic = manual.schedule("once only", task, delay_ms=1, period_ms=1)
    runs_at(clock, manual, 50)
    assert calls.count == 1


def test_error_of_a_task_run_by_hand_is_the_callers(
    clock: ManualClock, manual: ManualScheduler
) -> None:
    calls = Calls()

    def fail() -> None:
        raise OSError("disk gone")

    manual.schedule("failing", fail, delay_ms=1, period_ms=1000)
    manual.schedule_once("next", calls, 2)
    clock.sleep(10)
    with pytest.raises(OSError, match="disk gone"):
        manual.tick()
    assert calls.count == 0
    manual.tick()
    assert calls.count == 1
    assert manual.pending_tasks == 1


def test_shutting_down_by_hand_drops_what_waits(clock: ManualClock) -> None:
    calls = Calls()
    with ManualScheduler(clock) as manual:
        first = manual.schedule_once("first", calls)
    assert first.is_cancelled
    assert manual.schedule_once("too late", calls).is_cancelled
    manual.tick()
    manual.shutdown()
    assert (calls.count, manual.pending_tasks) == (0, 0)
    manual.startup()
    manual.schedule_once("again", calls)
    manual.tick()
    assert calls.count == 1


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


# ---- in the background


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

    with caplog.at_level(logging.ERROR, "pylog.scheduler"):
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
    with caplog.at_level(logging.INFO, "pylog.scheduler"):
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
