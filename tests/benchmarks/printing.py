"""``pylog cat`` over a whole data set, as a user runs it: process start included, output dropped.

The kernels are in Numba's cache: the check, which is not counted, puts them there.
"""

import resource
import subprocess
import time
from collections.abc import Callable

from tests.benchmarks.data_sets import Bench, DataSet
from tests.benchmarks.measuring import Figure, Run, ensure_equal, rounds_of
from tests.benchmarks.start_up import program

JSON = "pylog cat --format jsonl"
FORMATS = {
    JSON: ("--format", "jsonl"),
    f"{JSON} --values text": ("--format", "jsonl", "--values", "text"),
    "pylog cat --format text": ("--format", "text"),
}
_CHUNK_BYTES = 1 << 20


class _Cat:
    """Prints one data set in one format."""

    def __init__(self, name: str, bench: Bench, data_set: DataSet) -> None:
        self.name = name
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes
        self._command = [program(), "cat", str(bench.directory(data_set.name)), *FORMATS[name]]

    def check(self) -> None:
        """Count the lines."""
        lines = 0
        with subprocess.Popen(self._command, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            while chunk := running.stdout.read(_CHUNK_BYTES):
                lines += chunk.count(b"\n")
        ensure_equal(self.name, (running.returncode, lines), (0, self.records))

    def repeat(self) -> Run:
        """Print once; the processor time is the command's."""
        cpu_before, started = _cpu_seconds_of_children(), time.perf_counter()
        subprocess.run(self._command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        return Run(seconds, _cpu_seconds_of_children() - cpu_before)


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def print_records(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure a format, for 100-byte values without a codec."""
    data_set = bench.base(100, "none")
    say(f"printing {data_set.name}")
    return rounds_of([_Cat(name, bench, data_set) for name in FORMATS], rounds)
