"""Part ``stats``: how fast ``pylog.stats`` goes over a log, by headers and with all records."""

from collections.abc import Callable

import pylog
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Run, ensure_equal, rounds_of, timed

HEADERS = "headers"


class _StatisticsReader:
    """Makes statistics of one data set, in one thread."""

    def __init__(self, bench: Bench, data_set: DataSet, read: str) -> None:
        self._directory = bench.directory(data_set.name)
        self._read = read
        self.name = f"{data_set.name}, {read}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        [topic] = self._make().document()["topics"]
        ensure_equal(self.name, topic["records"], self.records)
        ensure_equal(self.name, topic["sizeInBytes"], self.log_bytes)

    def repeat(self) -> Run:
        return timed(self._make)

    def _make(self) -> pylog.results.LogStatistics:
        return pylog.stats(self._directory, read=self._read, threads=1)


def measure_statistics(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure for batches of 16 KB of small and of large records, and with all records."""
    say("statistics")
    small, large = bench.base(100, "none"), bench.segment("seg1g")
    readers = [
        _StatisticsReader(bench, small, HEADERS),
        _StatisticsReader(bench, large, HEADERS),
        _StatisticsReader(bench, small, "all"),
    ]
    return rounds_of(readers, rounds)
