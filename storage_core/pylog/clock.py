"""Time as an argument: what a log asks instead of the system, so that tests can set it.

Milliseconds since the epoch (UTC), the unit of Kafka's timestamps.
"""

from __future__ import annotations

import threading
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


class ManualClock(Clock):
    """A clock that stands still until it is told otherwise.

    Parameters
    ----------
    now_ms
        What it shows first.
    """

    __slots__ = ("_lock", "_now_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()

    def milliseconds(self) -> int:
        """Return the milliseconds it was set to."""
        return self._now_ms

    def sleep(self, duration_ms: int) -> None:
        """Advance the clock; returns at once.

        Raises
        ------
        ValueError
            ``duration_ms`` is negative; `set` turns the clock back.
        """
        if duration_ms < 0:
            msg = f"a clock cannot sleep for {duration_ms} ms"
            raise ValueError(msg)
        with self._lock:
            self._now_ms += duration_ms

    def set(self, now_ms: int) -> None:
        """Set the clock, also back."""
        with self._lock:
            self._now_ms = now_ms
