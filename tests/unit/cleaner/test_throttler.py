"""How long a cleaner waits that reads and writes too fast."""

from __future__ import annotations

import pytest

from pylog.cleaner.throttler import Throttler

MILLISECOND_NS = 1_000_000


class Machine:
    """A clock that is moved by waiting and by hand, and a throttler of 1000 bytes a second."""

    def __init__(self, bytes_per_second: float = 1000.0) -> None:
        self.now_ns = 0
        self.waits: list[float] = []
        self.throttler = Throttler(bytes_per_second, self.wait, lambda: self.now_ns)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_ns += round(seconds * 1000) * MILLISECOND_NS

    def work(self, size_bytes: int, milliseconds: int) -> None:
        self.now_ns += milliseconds * MILLISECOND_NS
        self.throttler.throttle(size_bytes)


def test_whoever_is_too_fast_waits_until_the_rate_is_the_one_wished() -> None:
    machine = Machine()
    machine.work(500, 100)
    assert machine.waits == []  # it is looked at every 300 ms
    machine.work(500, 300)
    assert machine.waits == [pytest.approx(0.6)]  # 1000 bytes in 0.4 seconds
    machine.work(100, 400)
    assert len(machine.waits) == 1  # the next period began after the wait
    machine.work(2000, 301)
    assert machine.waits[1:] == [pytest.approx(2 - 0.301)]


def test_whoever_is_slow_enough_never_waits() -> None:
    machine = Machine()
    for _ in range(10):
        machine.work(400, 400)
    assert machine.waits == []


def test_without_a_limit_nobody_waits() -> None:
    machine = Machine(1.7976931348623157e308)
    for _ in range(10):
        machine.work(1 << 40, 301)
    assert machine.waits == []
