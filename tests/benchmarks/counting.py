"""Header-only count: how fast ``pylog.scan(directory).count()`` goes over a log."""

from collections.abc import Callable

from tests.benchmarks import ours
from tests.benchmarks.data_sets import Bench, DataSet
from tests.benchmarks.measuring import Figure, Run, ensure_equal, rounds_of, timed


class _CountReader:
    """Counts one data set; decodes no record."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self._directory = bench.directory(data_set.name)
        self.name = data_set.name
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        ensure_equal("count()", ours.count(self._directory), self.records)

    def repeat(self) -> Run:
        return timed(lambda: ours.count(self._directory))


def count_sets(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure for 100-byte and 1000-byte values, batches of 16 KB both."""
    say("counting by headers")
    sets = [bench.base(100, "none"), bench.segment("seg1g")]
    return rounds_of([_CountReader(bench, data_set) for data_set in sets], rounds)
