"""Two threads against one: ``pylog.scan(directory, threads=2)``, by wall time and by memory.

``python -m benchmarks.threads DIRECTORY THREADS`` drains and prints ``rows peak-bytes``.
"""

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pylog
from benchmarks.batches import CODECS
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Run, ensure_equal, rounds_of, timed
from benchmarks.memory import peak_bytes, peak_elsewhere

VALUE_BYTES = 1000
THREADS = (1, 2, 3)
_MEMORY_ROUNDS = 3
_MEMORY_CODEC = "none"
_MODULE = "benchmarks.threads"


@dataclass(slots=True)
class ThreadsResult:
    """Figures of one and two threads by codec, and peak memory in MiB by number of threads."""

    one: dict[str, Figure] = field(default_factory=dict)
    two: dict[str, Figure] = field(default_factory=dict)
    peaks_mb: dict[int, float] = field(default_factory=dict)


def drain(directory: Path, threads: int) -> int:
    """Return how many records there are, having decoded each and dropped it."""
    batches = pylog.scan(str(directory), threads=threads).to_reader()
    return sum(batch.num_rows for batch in batches)


class _ThreadsReader:
    """Reads one data set with so many threads."""

    def __init__(self, bench: Bench, data_set: DataSet, threads: int) -> None:
        self._directory = bench.directory(data_set.name)
        self._threads = threads
        self.name = f"{data_set.name}, threads={threads}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        ensure_equal(self.name, drain(self._directory, self._threads), self.records)

    def repeat(self) -> Run:
        return timed(lambda: drain(self._directory, self._threads))


def measure_threads(bench: Bench, rounds: int, say: Callable[[str], None]) -> ThreadsResult:
    """Return one and two threads over each codec, in turns, and the memory of one to three."""
    say("threads")
    result = ThreadsResult()
    for codec in CODECS:
        data_set = bench.base(VALUE_BYTES, codec)
        readers = [_ThreadsReader(bench, data_set, threads) for threads in THREADS[:2]]
        result.one[codec], result.two[codec] = rounds_of(readers, rounds)
    data_set = bench.base(VALUE_BYTES, _MEMORY_CODEC)
    peaks: dict[int, list[int]] = {threads: [] for threads in THREADS}
    for _ in range(_MEMORY_ROUNDS):
        for threads, of_it in peaks.items():
            of_it.append(peak_elsewhere(_MODULE, bench, data_set, str(threads)))
    result.peaks_mb = {
        threads: statistics.median(of_it) / (1 << 20) for threads, of_it in peaks.items()
    }
    return result


def main() -> None:
    """Drain the directory with the threads that the command line names; print rows and peak."""
    rows = drain(Path(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write(f"{rows} {peak_bytes()}\n")


if __name__ == "__main__":
    main()
