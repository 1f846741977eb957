"""``pylog.doctor``: how fast it reads, checks and decodes all of a log on one core."""

from collections.abc import Callable

from tests.benchmarks import ours
from tests.benchmarks.data_sets import Bench, DataSet
from tests.benchmarks.measuring import Figure, Run, ensure_equal, rounds_of, timed


class _DoctorReader:
    """Looks for what is wrong with one sound data set."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self._directory = bench.directory(data_set.name)
        self.name = data_set.name
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        ensure_equal("doctor", ours.examined_records(self._directory), self.records)

    def repeat(self) -> Run:
        return timed(lambda: ours.examined_records(self._directory))


def examine_sets(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure for 100-byte and 1000-byte values, and for the former compressed."""
    say("looking for what is wrong")
    sets = [bench.base(100, "none"), bench.segment("seg1g"), bench.base(100, "lz4")]
    return rounds_of([_DoctorReader(bench, data_set) for data_set in sets], rounds)
