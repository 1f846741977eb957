"""Time as an argument: what a log asks instead of the system, so that tests can set it.

Milliseconds since the epoch (UTC), the unit of Kafka's timestamps.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

_NANOSECONDS_PER_MILLISECOND = 1_000_000


class Clock(ABC):
    """Tells what time it is. Any number of threads may ask."""

    __slots__ = ()

    @abstractmethod
    def milliseconds(self) -> int:
        """Return the milliseconds since the epoch."""


class SystemClock(Clock):
    """The system's wall clock, which may jump, also backwards."""

    __slots__ = ()

    def milliseconds(self) -> int:
        """Return the milliseconds since the epoch, rounded down."""
        return time.time_ns() // _NANOSECONDS_PER_MILLISECOND


class StoppedClock(Clock):
    """A clock that always shows the same time."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def milliseconds(self) -> int:
        """Return the time at which the clock stands."""
        return self._now_ms


def monotonic_milliseconds() -> int:
    """Return the milliseconds since some moment, by the system's clock that never jumps."""
    return time.monotonic_ns() // _NANOSECONDS_PER_MILLISECOND
