"""Tasks on several threads, and how far they all are."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from pylog.scheduling.worker_threads import thread_count, usable_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_MOST_THREADS = 16
_SECONDS_BETWEEN_LOOKS = 0.1


class StoppedError(Exception):
    """The work is not wanted any more: its caller was interrupted."""


class SharedProgress:
    """Bytes that threads have passed over. Any number of threads may add to them."""

    def __init__(self, total_bytes: int, report: Callable[[int, int], None] | None) -> None:
        self._total_bytes = total_bytes
        self._report = report
        self._done_bytes = 0
        self._is_stopped = False
        self._lock = threading.Lock()

    def advance(self, size_bytes: int) -> None:
        """Note that some more bytes are done; `StoppedError` if the caller has gone."""
        if self._is_stopped:
            raise StoppedError
        with self._lock:
            self._done_bytes += size_bytes

    def side_by_side(
        self, work: Callable[[_Task], _Result], tasks: Sequence[_Task], threads: int | None
    ) -> list[_Result]:
        """Return what ``work`` returns of each task, in their order, done by some threads."""
        count = thread_count(threads, default=min(_MOST_THREADS, usable_processors()))
        pool = ThreadPoolExecutor(max(1, min(count, len(tasks))), "pylog-inspect")
        futures = []
        try:
            futures = [pool.submit(work, each) for each in tasks]
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, _SECONDS_BETWEEN_LOOKS, FIRST_EXCEPTION)
                for each in done:
                    each.result()  # or its error, before the others have ended
                self._tell()
            return [each.result() for each in futures]
        finally:
            # Whoever is interrupted does not wait: the threads end when they next advance.
            self._is_stopped = not all(map(Future.done, futures))
            pool.shutdown(wait=False, cancel_futures=True)

    def _tell(self) -> None:
        if self._report is not None:
            self._report(min(self._done_bytes, self._total_bytes), self._total_bytes)
