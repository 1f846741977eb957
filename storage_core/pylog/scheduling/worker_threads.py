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

        The caller takes a part over from its thread by asking for the items: it gets what is made,
        and makes the rest, which is still in the processor's cache then. That divides the work by
        itself. A thread leaves the last ``count``-th of ``most_bytes`` of each part to the caller,
        and makes it, too, when there is nothing else to do. Errors of a part are raised by its
        iterator, after the items before them.
        """
        waiting: deque[tuple[_Part, _Ahead[_Item]]] = deque()
        to_do: deque[tuple[_Ahead[_Item], int]] = deque()
        first_bytes = most_bytes - most_bytes // self.count

        def work() -> None:
            with suppress(IndexError):  # nothing is left
                while True:
                    ahead, size = to_do.popleft()
                    if ahead.make_up_to(size) and size < most_bytes:
                        to_do.append((ahead, most_bytes))

        coming = iter(parts)
        try:
            while True:
                for part in islice(coming, self.count + 1 - len(waiting)):
                    ahead = _Ahead(self, partial(make, part))
                    if waiting and self.are_here:  # the first is asked for at once
                        to_do.append((ahead, first_bytes))
                        self.submit(work)
                    waiting.append((part, ahead))
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
    """The items of one part, made by one thread after the other."""

    def __init__(self, workers: WorkerThreads, make: Callable[[], Iterator[_Item]]) -> None:
        self._workers = workers
        self._make = make
        self._coming: Iterator[_Item] | None = None
        self._made: list[_Item] = []
        self._made_bytes = 0
        self._error: BaseException | None = None
        self._is_stopped = threading.Event()  # for threads
        self._is_kept = False  # by the caller, for good
        # Held while items are made. Garbage may be collected, and this closed, in the thread that
        # holds it.
        self._lock = threading.RLock()

    def make_up_to(self, size_bytes: int) -> bool:
        """Make items until there are so many bytes; whether that ended it.

        Nothing is made that somebody else makes, or has asked for.
        """
        if self._is_stopped.is_set() or not self._lock.acquire(blocking=False):
            return False
        try:
            if self._coming is None:
                self._coming = self._make()
            while not self._is_stopped.is_set() and self._made_bytes < size_bytes:
                item = next(self._coming)
                self._made.append(item)
                self._made_bytes += item.nbytes
        except StopIteration:
            return False
        except BaseException as error:  # noqa: BLE001 - for the caller
            self._error = error
            return False
        finally:
            self._lock.release()
        return not self._is_stopped.is_set()

    def __iter__(self) -> Iterator[_Item]:
        if not self._keep():
            yield from self._make()
            return
        self._made.reverse()
        while self._made:
            yield self._made.pop()
        if self._error is not None:
            raise self._error
        if self._coming is None:
            self._coming = self._make()
        yield from self._coming

    def stop(self) -> None:
        """Have the thread stop after the item that it is making."""
        self._is_stopped.set()

    def close(self) -> None:
        """Close what the items are made of, files for example, once the thread has stopped."""
        self._keep()
        self._coming = None
        self._made.clear()

    def _keep(self) -> bool:
        """Take the part from the threads for good; False in a forked child, which has none."""
        self.stop()
        if not self._is_kept and self._workers.are_here:
            self._is_kept = self._lock.acquire()
        return self._is_kept


_Task = TypeVar("_Task")

_MOST_THREADS = 16
_SECONDS_BETWEEN_LOOKS = 0.1


class WorkStoppedError(Exception):
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
        """Note that some more bytes are done; `WorkStoppedError` if the caller has gone."""
        if self._is_stopped:
            raise WorkStoppedError
        with self._lock:
            self._done_bytes += size_bytes

    def side_by_side(
        self, work: Callable[[_Task], _Result], tasks: Sequence[_Task], threads: int | None
    ) -> list[_Result]:
        """Return what ``work`` returns of each task, in their order, done by some threads."""
        count = thread_count(threads, default=min(_MOST_THREADS, usable_processors()))
        pool = ThreadPoolExecutor(max(1, min(count, len(tasks))), "pylog-inspect")
        left, results = deque(enumerate(tasks)), dict[int, _Result]()

        def work_on() -> None:
            while not self._is_stopped:
                try:
                    place, task = left.popleft()
                except IndexError:
                    return
                results[place] = work(task)

        futures = []
        try:
            # One for each thread: with one for each task, of ten thousand, waiting takes longest.
            futures = [pool.submit(work_on) for _ in range(min(count, len(tasks)))]
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, _SECONDS_BETWEEN_LOOKS, FIRST_EXCEPTION)
                for each in done:
                    each.result()  # or its error, before the others have ended
                self._tell()
            return [results[place] for place in range(len(tasks))]
        finally:
            # Whoever is interrupted does not wait: the threads end when they next advance.
            self._is_stopped = not all(map(Future.done, futures))
            pool.shutdown(wait=False, cancel_futures=True)

    def _tell(self) -> None:
        if self._report is not None:
            self._report(min(self._done_bytes, self._total_bytes), self._total_bytes)
