"""How fast the cleaner may read and write, over all its threads.

Source: Throttler (Kafka 4.3).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


CHECK_INTERVAL_NS = 300_000_000
_NANOSECONDS_PER_SECOND = 1_000_000_000


class Throttler:
    """Makes threads wait that read and write more than is wished, together.

    The rate is looked at every 300 ms, over the time since it was looked at last. Whoever is too
    fast then waits, and all that come meanwhile wait for them.
    """

    def __init__(
        self,
        bytes_per_second: float,
        wait: Callable[[float], object] = time.sleep,
        nanoseconds: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._wait = wait
        self._nanoseconds = nanoseconds
        self._lock = threading.Lock()
        self._period_start_ns = nanoseconds()
        self._observed_bytes = 0

    def throttle(self, size_bytes: int) -> None:
        """Note that ``size_bytes`` are read or written, and wait if that is too fast."""
        with self._lock:
            self._observed_bytes += size_bytes
            elapsed_ns = self._nanoseconds() - self._period_start_ns
            if elapsed_ns <= CHECK_INTERVAL_NS or self._observed_bytes == 0:
                return
            wanted_ns = self._observed_bytes / self._bytes_per_second * _NANOSECONDS_PER_SECOND
            if wanted_ns > elapsed_ns:
                self._wait((wanted_ns - elapsed_ns) / _NANOSECONDS_PER_SECOND)
            self._period_start_ns = self._nanoseconds()
            self._observed_bytes = 0
