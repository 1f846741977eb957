"""Threads that a read may use: how many, and a pool of them that starts none before it has work.

An argument says how many, or an environment variable. No thread is started by an import.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType


class _Sized(Protocol):
    """A record batch, say, or some text."""

    @property
    def nbytes(self) -> int: ...


_Result = TypeVar("_Result")
_Part = TypeVar("_Part")
_Item = TypeVar("_Item", bound=_Sized)

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

    One thread gives work. A child that is forked meanwhile has the object but not its threads: what
    was given to them is then made by whoever asks for it.
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
        """Let the threads end after what they are doing; what has not begun is not done."""
        if self._pool is not None and self.are_here:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None

    @property
    def are_here(self) -> bool:
        """Whether this is the process that started the threads."""
        return os.getpid() == self._process_id

    def submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        """Have ``work`` done by a thread; only where `are_here`."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, "pylog-read")
        return self._pool.submit(work)

    def each_ahead(
        self,
        parts: Iterable[_Part],
        make: Callable[[_Part], Iterator[_Item]],
        most_bytes: int,
    ) -> Iterator[tuple[_Part, Iterable[_Item]]]:
        """Yield each part with its items; threads make those of the next parts meanwhile.

        Errors of a part are raised by its iterator, after the items before them. At any time one
        more part is in flight than there are threads.
        """
        waiting: deque[tuple[_Part, _Ahead[_Item]]] = deque()
        try:
            for part in parts:
                waiting.append((part, _Ahead(self, partial(make, part), most_bytes)))
                if len(waiting) > self.count:
                    yield waiting[0]
                    waiting.popleft()[1].close()
            while waiting:
                yield waiting[0]
                waiting.popleft()[1].close()
        finally:
            for _, each in waiting:
                each.stop()
            for _, each in waiting:
                each.close()


class _Ahead(Generic[_Item]):
    """The items of one part, made by one thread at a time, a step ahead of whoever iterates."""

    def __init__(
        self, workers: WorkerThreads, make: Callable[[], Iterator[_Item]], most_bytes: int
    ) -> None:
        self._workers = workers
        self._make = make
        self._most_bytes = most_bytes
        self._coming: Iterator[_Item] | None = None
        self._is_stopped = False
        self._step = workers.submit(self._make_some)

    def _make_some(self) -> tuple[list[_Item], bool, BaseException | None]:
        """Return the next items, whether there may be more, and what stopped them."""
        items: list[_Item] = []
        size = 0
        try:
            self._coming = self._coming or self._make()
            for item in self._coming:
                items.append(item)
                size += item.nbytes
                if size >= self._most_bytes or self._is_stopped:
                    return items, True, None
        except BaseException as error:  # noqa: BLE001 - for whoever iterates
            return items, False, error
        return items, False, None

    def __iter__(self) -> Iterator[_Item]:
        given, goes_on = 0, True
        while goes_on:
            if not self._workers.are_here:
                yield from islice(self._make(), given, None)
                return
            items, goes_on, error = self._step.result()
            if goes_on:
                self._step = self._workers.submit(self._make_some)
            items.reverse()
            while items:
                given += 1
                yield items.pop()
            if error is not None:
                raise error

    def stop(self) -> None:
        """Have the thread stop after the item that it is making."""
        self._is_stopped = True
        if self._workers.are_here:
            self._step.cancel()

    def close(self) -> None:
        """Close what the items are made of, files for example, once the thread has stopped."""
        self.stop()
        if self._workers.are_here and not self._step.cancelled():
            wait((self._step,))
        self._coming = None


_Task = TypeVar("_Task")

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
