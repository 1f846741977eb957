"""How fast something of ours goes over all records of a log: the header-only count, for one."""

from collections.abc import Callable
from pathlib import Path

from benchmarks import ours
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Run, ensure_equal, rounds_of, timed


class RecordCounter:
    """Counts the records of one data set, by whichever function.

    Parameters
    ----------
    bench, data_set
        Where the data set lies, and which it is.
    what
        What the function does, for an error.
    count
        Returns how many records a directory holds.
    """

    def __init__(
        self, bench: Bench, data_set: DataSet, what: str, count: Callable[[Path], int]
    ) -> None:
        self._directory = bench.directory(data_set.name)
        self._what = what
        self._count = count
        self.name = data_set.name
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        ensure_equal(self._what, self._count(self._directory), self.records)

    def repeat(self) -> Run:
        return timed(lambda: self._count(self._directory))


def count_sets(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure for 100-byte and 1000-byte values, batches of 16 KB both."""
    say("counting by headers")
    sets = [bench.base(100, "none"), bench.segment("seg1g")]
    return rounds_of([RecordCounter(bench, each, "count()", ours.count) for each in sets], rounds)
