"""What a figure of two ways to read is, which take turns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import psutil


@dataclass(slots=True)
class PairFigure:
    """Seconds of one way to read and of what it is held against, taken in turns.

    Attributes
    ----------
    seconds, peer_seconds
        Wall times by round.
    worker_seconds, peer_worker_seconds
        Processor time of Spark's Python workers by round, without those that have ended.
    """

    name: str
    peer: str
    seconds: list[float] = field(default_factory=list)
    peer_seconds: list[float] = field(default_factory=list)
    worker_seconds: list[float] = field(default_factory=list)
    peer_worker_seconds: list[float] = field(default_factory=list)

    @property
    def times(self) -> float:
        """How many times as long as the peer it takes: the median of the rounds."""
        rounds = zip(self.seconds, self.peer_seconds, strict=True)
        return median(ours / peer for ours, peer in rounds)

    def measure_round(self, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
        """Add a round; the two begin in turns."""
        sides = [
            (ours, self.seconds, self.worker_seconds),
            (theirs, self.peer_seconds, self.peer_worker_seconds),
        ]
        if len(self.seconds) % 2:
            sides.reverse()
        for work, seconds, worker_seconds in sides:
            before, start = _workers_cpu_seconds(), perf_counter()
            work()
            seconds.append(perf_counter() - start)
            after = _workers_cpu_seconds()
            worker_seconds.append(sum(after[each] - before.get(each, 0.0) for each in after))


def _workers_cpu_seconds() -> dict[int, float]:
    """Return the processor time of each Python process below this one, by its id."""
    used = {}
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name().startswith("python"):
                times = process.cpu_times()
                used[process.pid] = times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return used
