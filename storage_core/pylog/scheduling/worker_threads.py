"""Threads that a read may use: how many, and a pool of them that starts none before it has work.

An argument says how many, or an environment variable. No thread is started by an import.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

_Result = TypeVar("_Result")

THREADS_VARIABLE = "PYLOG_NUM_THREADS"
"""Environment variable: how many threads a read uses where its caller does not say."""


def thread_count(threads: int | None = None, *, default: int) -> int:
    """Return how many threads to use."""
    if threads is not None:
        if threads < 1:
            msg = f"threads is {threads}, expected 1 or more"
            raise ValueError(msg)
        return threads
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        msg = (
            f"environment variable {THREADS_VARIABLE} is {text!r}, expected a number of threads, "
            "1 or more"
        )
        raise ValueError(msg)
    return int(text)


def usable_processors() -> int:
    """Return how many processors this process may run on."""
    try:
        return len(os.sched_getaffinity(0)) or 1
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


class WorkerThreads:
    """A pool of threads for one read, started with the first piece of work.

    One thread gives work. A child that was forked meanwhile has the object but not its threads: it
    asks `are_here` and does the work itself.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._process_id = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def are_here(self) -> bool:
        """Whether this is the process that the threads are in."""
        return os.getpid() == self._process_id

    def submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        """Have ``work`` done by a thread; only where `are_here`."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, "pylog-read")
        return self._pool.submit(work)

    def close(self) -> None:
        """Let the threads end after what they are doing; what has not begun is not done."""
        if self._pool is not None and self.are_here:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None
