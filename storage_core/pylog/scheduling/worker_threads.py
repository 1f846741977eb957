"""Threads that a read may use: how many, and a pool of them that starts none before it has work.

An argument says how many, or an environment variable. No thread is started by an import.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
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
    """Threads for one read: the caller's, and others that start with the first piece of work.

    A child that is forked meanwhile has the object but not its threads: what was given to them is
    then made by whoever asks for it.
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

    def submit(self, work: Callable[[], None]) -> None:
        """Have ``work`` done by a thread; only where `are_here`."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max(1, self.count - 1), "pylog-read")
        self._pool.submit(work)

    def each_ahead(
        self,
        parts: Iterable[_Part],
        make: Callable[[_Part], Iterator[_Item]],
        most_bytes: int,
    ) -> Iterator[tuple[_Part, Iterable[_Item]]]:
        """Yield each part with its items; threads make those of the next parts meanwhile.

        One part in ``count`` is left to the caller's thread: its items are made when they are asked
        for, and are still in the processor's cache. Threads that have nothing else to do make it,
        too. Errors of a part are raised by its iterator, after the items before them.
        """
        waiting: deque[tuple[_Part, _Ahead[_Item]]] = deque()
        free: tuple[deque[_Ahead[_Item]], ...] = (deque(), deque())  # the second: the caller's

        coming = enumerate(parts)
        try:
            while True:
                added = 0
                for number, part in islice(coming, 2 * self.count - len(waiting)):
                    ahead = _Ahead(self, partial(make, part))
                    waiting.append((part, ahead))
                    free[number % self.count == 0].append(ahead)
                    added += 1
                for _ in range(added if self.are_here else 0):
                    self.submit(partial(_make_next, free, most_bytes))
                if not waiting:
                    return
                yield waiting[0]
                waiting.popleft()[1].close()
        finally:
            for _, each in waiting:
                each.stop()
            for _, each in waiting:
                each.close()


class _Ahead(Generic[_Item]):
    """The items of one part, begun by a thread, or else by whoever iterates."""

    def __init__(self, workers: WorkerThreads, make: Callable[[], Iterator[_Item]]) -> None:
        self._workers = workers
        self._make = make
        self._coming: Iterator[_Item] | None = None
        self._made: list[_Item] = []
        self._error: BaseException | None = None
        self._is_stopped = False
        self._begun = threading.Lock()  # held for good by whoever begins; nobody waits for it
        self._is_made = threading.Event()

    def begin(self) -> bool:
        """Whether nobody has begun before."""
        return self._begun.acquire(blocking=False)

    def make_some(self, most_bytes: int) -> None:
        """Make the items up to so many bytes; whoever iterates makes those after them."""
        size = 0
        try:
            self._coming = self._make()
            for item in self._coming:
                self._made.append(item)
                size += item.nbytes
                if size >= most_bytes or self._is_stopped:
                    break
        except BaseException as error:  # noqa: BLE001 - for whoever iterates
            self._error = error
        finally:
            self._is_made.set()

    def __iter__(self) -> Iterator[_Item]:
        if self.begin() or not self._workers.are_here:
            self._is_made.set()
            self._coming = self._make()
        else:
            self._is_made.wait()
            self._made.reverse()
            while self._made:
                yield self._made.pop()
            if self._error is not None:
                raise self._error
        if self._coming is not None:
            yield from self._coming

    def stop(self) -> None:
        """Have the thread stop after the item that it is making."""
        self._is_stopped = True

    def close(self) -> None:
        """Close what the items are made of, files for example, once the thread has stopped."""
        self.stop()
        if not self.begin() and self._workers.are_here:
            self._is_made.wait()
        self._coming = None


def _make_next(free: Iterable[deque[_Ahead[_Item]]], most_bytes: int) -> None:
    """Make the first part that nobody has begun."""
    for each in free:
        with suppress(IndexError):  # no more of these
            while True:
                ahead = each.popleft()
                if ahead.begin():
                    ahead.make_some(most_bytes)
                    return


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
