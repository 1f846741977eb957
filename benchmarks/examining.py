"""``pylog.doctor``: how fast it reads, checks and decodes all of a log on one core."""

from collections.abc import Callable

from benchmarks import ours
from benchmarks.counting import RecordCounter
from benchmarks.data_sets import Bench
from benchmarks.measuring import Figure, rounds_of


def examine_sets(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure for 100-byte and 1000-byte values, and for the former compressed."""
    say("looking for what is wrong")
    sets = [bench.base(100, "none"), bench.segment("seg1g"), bench.base(100, "lz4")]
    readers = [RecordCounter(bench, each, "doctor", ours.examined_records) for each in sets]
    return rounds_of(readers, rounds)
