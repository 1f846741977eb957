"""How much of some logs readers have looked through so far."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pylog.record.window import Window


class PlannedTask(Protocol):
    """A part of a read."""

    @property
    def size_bytes(self) -> int:
        """How many bytes of ``.log`` files it reads."""


class ScannedBytes:
    """Sums over the windows of some reads. Any number of threads may add to them.

    Attributes
    ----------
    on_change
        Called with `size_bytes` whenever it has grown; None for nothing.
    size_bytes
        Bytes of ``.log`` files.
    batches
        Record batches in them.
    records
        Records that these batches count.
    uncounted_batches
        Compressed message sets of v0 and v1, whose headers do not count their messages.
    """

    def __init__(self) -> None:
        self.size_bytes = self.batches = self.records = self.uncounted_batches = 0
        self.on_change: Callable[[int], None] | None = None
        self._lock = threading.Lock()

    def report_to(
        self, progress: Callable[[int, int], None] | None, plan: Callable[[], Iterable[PlannedTask]]
    ) -> None:
        """Call ``progress``, if there is one, with the bytes looked through and those planned."""
        if progress is not None:
            total_bytes = sum(task.size_bytes for task in plan())
            self.on_change = lambda size_bytes: progress(size_bytes, total_bytes)

    def add(self, window: Window) -> None:
        """Count the batches of a window."""
        counts = window.headers.record_counts
        is_known = counts >= 0
        with self._lock:
            self.size_bytes += window.size_bytes
            self.batches += counts.size
            self.records += int(counts[is_known].sum())
            self.uncounted_batches += counts.size - int(is_known.sum())
            size_bytes = self.size_bytes
        if self.on_change is not None:
            self.on_change(size_bytes)
