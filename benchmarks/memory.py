"""Peak memory of draining one segment, each in a process of its own.

``python -m benchmarks.memory DIRECTORY`` drains and prints ``rows peak-bytes``.
"""

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ours
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import ensure_equal

ROUNDS = 3
_MODULE = "benchmarks.memory"
_REPOSITORY = Path(__file__).parents[1]
_STATUS = Path("/proc/self/status")
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class MemoryFigure:
    """Peak resident bytes over one segment, one number a process."""

    log_bytes: int
    peaks: list[int]

    @property
    def median_mb(self) -> float:
        """The middle process, in MiB."""
        return statistics.median(self.peaks) / (1 << 20)


def peak_bytes() -> int:
    """Return this process's peak resident memory.

    On Linux that is ``VmHWM``: ``ru_maxrss`` there is at least what the parent had at the fork.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def peak_elsewhere(module: str, bench: Bench, data_set: DataSet, *arguments: str) -> int:
    """Return the peak of a fresh process that reads the set and drops every batch.

    `module` does that, of the directory and the arguments, and prints its rows and its peak.
    """
    directory = bench.directory(data_set.name).resolve()
    done = subprocess.run(
        [sys.executable, "-m", module, str(directory), *arguments],
        check=True,
        cwd=_REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        timeout=_SECONDS,
    )
    rows, peak = map(int, done.stdout.split())
    ensure_equal(" ".join((module, *arguments)), rows, data_set.records)
    return peak


def measure_memory(bench: Bench, say: Callable[[str], None]) -> list[MemoryFigure]:
    """Return the figures of the small and the large segment, measured in turns."""
    say("memory")
    sets = [bench.segment("seg64m"), bench.segment("seg1g")]
    ours.drain(bench.directory(sets[0].name))  # compiles the kernels into the cache: not measured
    peaks: dict[str, list[int]] = {data_set.name: [] for data_set in sets}
    for _ in range(ROUNDS):
        for data_set in sets:
            peaks[data_set.name].append(peak_elsewhere(_MODULE, bench, data_set))
    return [MemoryFigure(data_set.log_bytes, peaks[data_set.name]) for data_set in sets]


def main() -> None:
    """Drain the directory named on the command line and print rows and peak bytes."""
    rows = ours.drain(Path(sys.argv[1]))
    sys.stdout.write(f"{rows} {peak_bytes()}\n")


if __name__ == "__main__":
    main()
