"""Tasks that wait for their time; what schedulers keep them in."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
