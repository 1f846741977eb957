"""Runs what is to be done later or again and again: flushing, deleting files, checkpoints.

A `BackgroundScheduler` runs tasks in threads of its own; a `ManualScheduler` runs them when its
owner says so, at the time of a clock that is set by hand.

Source: Scheduler, KafkaScheduler, MockScheduler (Kafka 4.3). Differs from Kafka: tasks that are
scheduled before `startup` wait for it, where Kafka drops them; a background task that was late
does not make up for the runs it missed; shutting a `ManualScheduler` down runs nothing.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pylog.clock import ManualClock

DEFAULT_THREADS = 10
"""Kafka's ``background.threads``."""

_NANOSECONDS_PER_MILLISECOND = 1_000_000
_LONGEST_WAIT_SECONDS = 3600.0
_LOGGER = logging.getLogger(__name__)


class ScheduledTask:
    """A task that was handed to a scheduler, to cancel it."""

    __slots__ = ("_is_cancelled", "name", "period_ms", "run")

    def __init__(self, name: str, run: Callable[[], object], period_ms: int | None) -> None:
        self.name = name
        self.run = run
        self.period_ms = period_ms
        self._is_cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called, or the scheduler was shut down before the task ran."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Keep the task from being run again; a run under way goes on."""
        self._is_cancelled = True


class _TaskQueue:
    """Tasks by the time they are due, those of one time in the order they came.

    Not safe between threads: whoever has one locks.
    """

    __slots__ = ("_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, ScheduledTask]] = []
        self._numbers = itertools.count()

    def push(self, due_ms: int, task: ScheduledTask) -> None:
        heapq.heappush(self._heap, (due_ms, next(self._numbers), task))

    def pop_due(self, now_ms: int) -> tuple[int, ScheduledTask] | None:
        """Return the first task that is due, and since when; None if none is."""
        next_due_ms = self.next_due_ms()
        if next_due_ms is None or next_due_ms > now_ms:
            return None
        due_ms, _, task = heapq.heappop(self._heap)
        return due_ms, task

    def next_due_ms(self) -> int | None:
        """Return when the first task is due, None if there is none."""
        while self._heap and self._heap[0][2].is_cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pending(self) -> int:
        """Return how many tasks wait."""
        return sum(not task.is_cancelled for _, _, task in self._heap)

    def cancel_all(self) -> None:
        for _, _, task in self._heap:
            task.cancel()
        self._heap.clear()


class Scheduler(ABC):
    """Runs tasks later. Any number of threads may schedule, also tasks themselves.

    As a context manager it is started and shut down.
    """

    @abstractmethod
    def startup(self) -> None:
        """Begin to run tasks; ``RuntimeError`` if it was begun already."""

    @abstractmethod
    def shutdown(self) -> None:
        """Drop the tasks that wait, and return when those under way are done.

        Tasks that are scheduled later are dropped, too. A second call does nothing.
        """

    @property
    @abstractmethod
    def pending_tasks(self) -> int:
        """How many tasks wait to be run."""

    @abstractmethod
    def _add(self, task: ScheduledTask, delay_ms: int) -> None:
        """Queue a task, or cancel it after `shutdown`."""

    def schedule_once(
        self, name: str, task: Callable[[], object], delay_ms: int = 0
    ) -> ScheduledTask:
        """Have ``task`` run once, ``delay_ms`` from now.

        Parameters
        ----------
        name
            Names the task in the system's log.
        task
            What is called; what it returns is ignored.
        delay_ms
            0 or more.
        """
        return self._schedule(ScheduledTask(name, task, None), delay_ms)

    def schedule(
        self, name: str, task: Callable[[], object], delay_ms: int, period_ms: int
    ) -> ScheduledTask:
        """Have ``task`` run ``delay_ms`` from now and then every ``period_ms``, which is above 0.

        It never runs twice at a time.
        """
        if period_ms <= 0:
            msg = f"period of task {name} is {period_ms} ms, expected 1 or more"
            raise ValueError(msg)
        return self._schedule(ScheduledTask(name, task, period_ms), delay_ms)

    def _schedule(self, task: ScheduledTask, delay_ms: int) -> ScheduledTask:
        if delay_ms < 0:
            msg = f"delay of task {task.name} is {delay_ms} ms, expected 0 or more"
            raise ValueError(msg)
        self._add(task, delay_ms)
        return task

    def __enter__(self) -> Self:
        self.startup()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()


class BackgroundScheduler(Scheduler):
    """Runs tasks in daemon threads, by a clock that never jumps.

    An exception of a task goes to the system's log; a periodic task runs again all the same.

    Parameters
    ----------
    threads
        How many tasks may run at a time.
    thread_name_prefix
        Names the threads.
    """

    def __init__(
        self, threads: int = DEFAULT_THREADS, *, thread_name_prefix: str = "pylog-scheduler"
    ) -> None:
        if threads < 1:
            msg = f"a scheduler with {threads} threads runs nothing, expected 1 or more"
            raise ValueError(msg)
        self._thread_count = threads
        self._thread_name_prefix = thread_name_prefix
        self._threads: list[threading.Thread] = []
        self._queue = _TaskQueue()
        self._changed = threading.Condition()
        self._is_shut_down = False

    @property
    def pending_tasks(self) -> int:
        """How many tasks wait to be run; those that run are not counted."""
        with self._changed:
            return self._queue.pending()

    def startup(self) -> None:
        """Start the threads; ``RuntimeError`` if they run already."""
        with self._changed:
            if self._threads:
                msg = "scheduler has already been started"
                raise RuntimeError(msg)
            self._is_shut_down = False
            self._threads = [
                threading.Thread(
                    target=self._work, name=f"{self._thread_name_prefix}-{number}", daemon=True
                )
                for number in range(self._thread_count)
            ]
            for thread in self._threads:
                thread.start()

    def shutdown(self) -> None:
        """Drop the tasks that wait, and return when those under way are done.

        A task that calls this does not wait for itself.
        """
        with self._changed:
            self._is_shut_down = True
            self._queue.cancel_all()
            self._changed.notify_all()
            threads = self._threads
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()
        with self._changed:
            if self._threads is threads:
                self._threads = []

    def _add(self, task: ScheduledTask, delay_ms: int) -> None:
        with self._changed:
            if self._is_shut_down:
                _LOGGER.info("task %s is dropped: the scheduler is shut down", task.name)
                task.cancel()
                return
            self._queue.push(_monotonic_ms() + delay_ms, task)
            self._changed.notify()

    def _work(self) -> None:
        """Run tasks until the scheduler is shut down."""
        while (found := self._wait_for_task()) is not None:
            due_ms, task = found
            try:
                task.run()
            except Exception:  # whatever it is, the other tasks must go on
                _LOGGER.exception("task %s failed", task.name)
            if task.period_ms is not None:
                self._add_again(task, due_ms + task.period_ms)

    def _wait_for_task(self) -> tuple[int, ScheduledTask] | None:
        """Return a task when it is due, None when the scheduler is shut down."""
        with self._changed:
            while not self._is_shut_down:
                now_ms = _monotonic_ms()
                found = self._queue.pop_due(now_ms)
                next_due_ms = self._queue.next_due_ms()
                if found is not None:
                    if next_due_ms is not None:
                        self._changed.notify()  # another thread must wait for it in our place
                    return found
                self._changed.wait(_seconds_until(next_due_ms, now_ms))
        return None

    def _add_again(self, task: ScheduledTask, due_ms: int) -> None:
        with self._changed:
            if self._is_shut_down:
                task.cancel()
            else:
                self._queue.push(max(due_ms, _monotonic_ms()), task)
                self._changed.notify()


class ManualScheduler(Scheduler):
    """Runs tasks in the thread that calls `tick`, when the clock says that they are due.

    Parameters
    ----------
    clock
        Whose time counts; it is not advanced by the scheduler.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._queue = _TaskQueue()
        self._lock = threading.Lock()
        self._is_shut_down = False

    @property
    def pending_tasks(self) -> int:
        """How many tasks wait to be run."""
        with self._lock:
            return self._queue.pending()

    def startup(self) -> None:
        """Take tasks, again after `shutdown`."""
        self._is_shut_down = False

    def shutdown(self) -> None:
        """Drop all tasks."""
        with self._lock:
            self._is_shut_down = True
            self._queue.cancel_all()

    def tick(self) -> None:
        """Run every task that is due, in the order of time.

        A periodic task runs as often as its period has passed; a task that a task schedules runs,
        too, if it is due. An exception of a task is the caller's: the tasks behind it are run by
        the next call.
        """
        while True:
            with self._lock:
                found = self._queue.pop_due(self._clock.milliseconds())
                if found is None:
                    return
                due_ms, task = found
                if task.period_ms is not None:
                    self._queue.push(due_ms + task.period_ms, task)
            task.run()

    def _add(self, task: ScheduledTask, delay_ms: int) -> None:
        with self._lock:
            if self._is_shut_down:
                task.cancel()
            else:
                self._queue.push(self._clock.milliseconds() + delay_ms, task)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // _NANOSECONDS_PER_MILLISECOND


def _seconds_until(due_ms: int | None, now_ms: int) -> float | None:
    """Return how long to wait, None for ever; bounded, as the system's waits are."""
    if due_ms is None:
        return None
    return min((due_ms - now_ms) / 1000, _LONGEST_WAIT_SECONDS)
