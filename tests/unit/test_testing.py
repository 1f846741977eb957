"""The clock and the scheduler that tests of log owners move by hand."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.testing import ManualClock, ManualScheduler

if TYPE_CHECKING:
    from collections.abc import Callable


class Calls:
    """A task that counts its runs."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_manual_clock_begins_at_the_epoch_unless_given_a_time() -> None:
    assert ManualClock().milliseconds() == 0
    assert ManualClock(1_700_000_000_000).milliseconds() == 1_700_000_000_000


def test_manual_clock_stands_still_until_it_sleeps() -> None:
    clock = ManualClock(100)
    assert [clock.milliseconds(), clock.milliseconds()] == [100, 100]
    clock.sleep(25)
    clock.sleep(0)
    assert clock.milliseconds() == 125


def test_manual_clock_can_be_set_back() -> None:
    clock = ManualClock(100)
    clock.set(-7)
    assert clock.milliseconds() == -7


def test_manual_clock_does_not_sleep_backwards() -> None:
    clock = ManualClock(100)
    with pytest.raises(ValueError, match="cannot sleep for -1 ms"):
        clock.sleep(-1)
    assert clock.milliseconds() == 100


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def manual(clock: ManualClock) -> ManualScheduler:
    return ManualScheduler(clock)


def runs_at(clock: ManualClock, manual: ManualScheduler, sleep_ms: int) -> None:
    clock.sleep(sleep_ms)
    manual.tick()


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

    def noting(name: str) -> Callable[[], None]:
        return lambda: ran.append(name)

    for name, delay_ms in (("c", 30), ("a", 10), ("d", 30), ("b", 20)):
        manual.schedule_once(name, noting(name), delay_ms)
    manual.schedule("p", noting("p"), delay_ms=15, period_ms=10)
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


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, pylog.testing; print({'numpy', 'numba', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "set()\n"
