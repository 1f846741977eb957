from __future__ import annotations

import time

from pylog.scheduling.clock import SystemClock, monotonic_milliseconds


def test_system_clock_is_between_two_looks_at_the_system() -> None:
    before = time.time_ns() // 1_000_000
    now = SystemClock().milliseconds()
    assert before <= now <= time.time_ns() // 1_000_000


def test_the_clock_that_never_jumps_is_the_systems() -> None:
    before = time.monotonic_ns() // 1_000_000
    now = monotonic_milliseconds()
    assert before <= now <= time.monotonic_ns() // 1_000_000
