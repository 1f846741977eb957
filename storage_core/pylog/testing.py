"""Time in your hands: for tests of code that owns logs.

What a log does by the clock, such as rolling by ``segment.ms``, deleting files after
``file.delete.delay.ms``, flushing and expiring producers, is done here when the test says so, in
the test's own thread and without waiting:

>>> clock = ManualClock(1_700_000_000_000)
>>> scheduler = ManualScheduler(clock)
>>> context = pylog.logs.LogContext(clock=clock, scheduler=scheduler)
>>> with pylog.logs.LogManager([directory], context=context) as manager:
...     ...
...     clock.sleep(60_000)
...     scheduler.tick()  # what was due within this minute has been done

Source: MockTime, MockScheduler (Kafka 4.3).
Differs from Kafka: shutting a `ManualScheduler` down runs nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pylog.scheduling.clock import Clock
from pylog.scheduling.scheduler import Scheduler, TaskQueue

if TYPE_CHECKING:
    from pylog.scheduling.scheduler import ScheduledTask

__all__ = ["ManualClock", "ManualScheduler"]


class ManualClock(Clock):
    """A clock that stands still until it is moved. Any number of threads may use it.

    Parameters
    ----------
    now_ms
        Milliseconds since the epoch that it begins at.
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


class ManualScheduler(Scheduler):
    """Runs tasks in the thread that calls `tick`, when the clock says that they are due.

    Parameters
    ----------
    clock
        Whose time counts; it is not advanced by the scheduler.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._queue = TaskQueue()
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
        too, if it is due. An exception of a task is the caller's: the tasks after it are run by
        the next call.
        """
        while True:
            with self._lock:
                due = self._queue.pop_due(self._clock.milliseconds())
                if due is None:
                    return
                due_ms, task = due
                if task.period_ms is not None:
                    self._queue.push(due_ms + task.period_ms, task)
            task.run()

    def _add(self, task: ScheduledTask, delay_ms: int) -> None:
        with self._lock:
            if self._is_shut_down:
                task.cancel()
            else:
                self._queue.push(self._clock.milliseconds() + delay_ms, task)
