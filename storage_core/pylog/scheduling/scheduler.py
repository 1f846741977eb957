"""Runs what is to be done later or again and again: flushing, deleting files, checkpoints.

A `BackgroundScheduler` runs tasks in threads of its own; for tests there is
`pylog.testing.ManualScheduler`, which runs them when its owner says so.

Source: Scheduler, KafkaScheduler (Kafka 4.3). Differs from Kafka: tasks that are scheduled before
`startup` wait for it, where Kafka drops them; a task that was late does not make up for the runs
it missed; threads are started when there is something for them to do.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from pylog.scheduling.clock import monotonic_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


DEFAULT_THREADS = 10
"""Kafka's ``background.threads``."""
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


class TaskQueue:
    """Tasks by the time they are due, those of one time in the order in which they came.

    Not safe between threads: whoever has one locks.
    """

    __slots__ = ("_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, ScheduledTask]] = []
        self._numbers = itertools.count()

    def push(self, due_ms: int, task: ScheduledTask) -> None:
        """Add a task that is due at ``due_ms``, by whatever clock the owner has."""
        heapq.heappush(self._heap, (due_ms, next(self._numbers), task))

    def pop_due(self, now_ms: int) -> tuple[int, ScheduledTask] | None:
        """Remove and return the first task that is due, and since when; None if none is."""
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
        """Cancel every task that waits, and forget it."""
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
        """Have ``task`` run once, ``delay_ms`` from now."""
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
    A thread is started when a task waits and no other thread is free to wait for it; it is kept
    until `shutdown`.

    Invariant, while it runs: if a task waits, a thread waits for it, or all threads are busy.
    """

    def __init__(
        self, threads: int = DEFAULT_THREADS, *, thread_name_prefix: str = "pylog-scheduler"
    ) -> None:
        if threads < 1:
            msg = f"a scheduler with {threads} threads runs nothing, expected 1 or more"
            raise ValueError(msg)
        self._most_threads = threads
        self._thread_name_prefix = thread_name_prefix
        self._threads: list[threading.Thread] = []
        self._idle_threads: set[threading.Thread] = set()
        self._queue = TaskQueue()
        self._changed = threading.Condition()
        self._is_started = False
        self._is_shut_down = False

    @property
    def pending_tasks(self) -> int:
        """How many tasks wait to be run; those that run are not counted."""
        with self._changed:
            return self._queue.pending()

    def startup(self) -> None:
        """Begin to run tasks; ``RuntimeError`` if it was begun already."""
        with self._changed:
            if self._is_started:
                msg = "scheduler has already been started"
                raise RuntimeError(msg)
            self._is_shut_down = False
            self._threads, self._idle_threads = [], set()
            if self._queue.next_due_ms() is not None:
                self._ensure_waiting_thread()
            self._is_started = True

    def shutdown(self) -> None:
        """Drop the tasks that wait, and return when those under way are done."""
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
                self._is_started = False

    def _add(self, task: ScheduledTask, delay_ms: int) -> None:
        with self._changed:
            if self._is_shut_down:
                _LOGGER.info("task %s is dropped: the scheduler is shut down", task.name)
                task.cancel()
                return
            if self._is_started:
                self._ensure_waiting_thread()
            self._queue.push(monotonic_milliseconds() + delay_ms, task)

    def _ensure_waiting_thread(self) -> None:
        """Wake a thread that waits, or start one if there may be more; the lock is held."""
        if self._idle_threads:
            self._changed.notify()
            return
        number = len(self._threads)
        if number == self._most_threads:
            return  # the first that is done looks for what is due
        thread = threading.Thread(
            target=self._work, name=f"{self._thread_name_prefix}-{number}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise  # the system has no thread for us, and nobody else would run the task
            return
        self._threads.append(thread)
        self._idle_threads.add(thread)

    def _work(self) -> None:
        """Run tasks until the scheduler is shut down."""
        while (due := self._wait_for_task()) is not None:
            due_ms, task = due
            try:
                task.run()
            except Exception:  # whatever it is, the other tasks must go on
                _LOGGER.exception("task %s failed", task.name)
            if task.period_ms is not None:
                self._add_again(task, due_ms + task.period_ms)

    def _wait_for_task(self) -> tuple[int, ScheduledTask] | None:
        """Return a task when it is due, None when the scheduler is shut down."""
        thread = threading.current_thread()
        with self._changed:
            while not self._is_shut_down and thread in self._threads:
                self._idle_threads.add(thread)
                now_ms = monotonic_milliseconds()
                due = self._queue.pop_due(now_ms)
                next_due_ms = self._queue.next_due_ms()
                if due is not None:
                    self._idle_threads.discard(thread)
                    if next_due_ms is not None:
                        self._ensure_waiting_thread()  # it must wait for it in our place
                    return due
                self._changed.wait(_seconds_until(next_due_ms, now_ms))
        return None

    def _add_again(self, task: ScheduledTask, due_ms: int) -> None:
        with self._changed:
            # A task that shuts its scheduler down may outlive that, and a start after it.
            if self._is_shut_down or threading.current_thread() not in self._threads:
                task.cancel()
            else:
                self._queue.push(max(due_ms, monotonic_milliseconds()), task)


def _seconds_until(due_ms: int | None, now_ms: int) -> float | None:
    """Return how long to wait, None for ever; bounded, as the system's waits are."""
    if due_ms is None:
        return None
    return min((due_ms - now_ms) / 1000, _LONGEST_WAIT_SECONDS)
