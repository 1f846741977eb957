"""A sample of a log: runs of consecutive batches, at random places, chosen while it is walked over.

Every byte of a log has about the same chance to be in a run. What is random depends on the name of
the partition alone, so that two looks at the same log give the same answer.
"""

from __future__ import annotations

import heapq
import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.model import TopicPartition
    from pylog.record.window import Window

RUN_BYTES = 1 << 18
"""What a run has at the most, as it is stored; one batch may be larger."""
_MOST_RUNS = 256  # of a partition


class BatchRun(NamedTuple):
    """Whole batches ``[position, end_position)`` of a segment, given by its place in the log."""

    segment: int
    position: int
    end_position: int

    @property
    def size_bytes(self) -> int:
        """What it takes of the file."""
        return self.end_position - self.position


class RunChoice:
    """Chooses runs among the windows of one partition. One thread.

    The windows with the largest ``u ** (1 / bytes)`` are kept, ``u`` random in (0, 1): each comes
    in by its length (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._random = random.Random(str(topic_partition))  # noqa: S311 - a sample, no secret
        self._kept: list[tuple[float, BatchRun]] = []

    def offer(self, segment: int, window: Window) -> None:
        """Have a window in the choice."""
        key = self._random.random() ** (1 / max(1, window.size_bytes))
        if len(self._kept) < _MOST_RUNS:
            heapq.heappush(self._kept, (key, self._run_in(segment, window)))
        elif key > self._kept[0][0]:
            heapq.heapreplace(self._kept, (key, self._run_in(segment, window)))

    def runs(self) -> list[tuple[float, BatchRun]]:
        """Return the runs with their keys, those that are to be taken first in front."""
        return sorted(self._kept, reverse=True)

    def _run_in(self, segment: int, window: Window) -> BatchRun:
        headers = window.headers
        ends = headers.positions + headers.sizes_bytes
        last_start = max(0, window.size_bytes - RUN_BYTES)
        wanted = self._random.randrange(last_start + 1)
        first = int(np.searchsorted(headers.positions, wanted, side="right")) - 1
        start = int(headers.positions[first])
        last = int(np.searchsorted(ends, start + RUN_BYTES, side="right")) - 1
        at = window.file_position
        return BatchRun(segment, at + start, at + int(ends[max(first, last)]))


def shared_budget(sizes_bytes: Sequence[int], budget_bytes: int, least_bytes: int) -> list[int]:
    """Return how much of each of some logs to sample: by their sizes, no less than ``least_bytes``.

    The largest ones come first; when nothing is left of the budget, the rest gets nothing.
    """
    shares = [0] * len(sizes_bytes)
    total, left = sum(sizes_bytes), budget_bytes
    for place in sorted(range(len(shares)), key=lambda each: -sizes_bytes[each]):
        wanted = max(least_bytes, budget_bytes * sizes_bytes[place] // max(1, total))
        shares[place] = min(wanted, sizes_bytes[place], left)
        left -= shares[place]
    return shares
