from __future__ import annotations

import time

import pytest

from pylog.clock import ManualClock, SystemClock


def test_system_clock_is_between_two_looks_at_the_system() -> None:
    before = time.time_ns() // 1_000_000
    now = SystemClock().milliseconds()
    assert before <= now <= time.time_ns() // 1_000_000


def test_manual_clock_begins_at_the_epoch_by_default() -> None:
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
