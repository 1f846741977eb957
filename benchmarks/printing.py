"""``pylog cat`` and ``pylog append`` over a whole data set, as a user runs them.

The start of the process is included. The output of ``cat`` is dropped; ``append`` reads what
``cat`` has printed into a file, and makes a new log directory beside it. The kernels are in their
cache: the checks, which are not counted, put them there.
"""

import json
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Run, ensure_equal, rounds_of
from benchmarks.start_up import program

JSON = "pylog cat --format jsonl"
APPEND = "pylog append, of these lines"
FORMATS = {
    JSON: ("--format", "jsonl"),
    f"{JSON} --values base64": ("--format", "jsonl", "--values", "base64"),
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


class _Append:
    """Appends all lines of one data set to a new topic."""

    name = APPEND

    def __init__(self, bench: Bench, data_set: DataSet, scratch: Path) -> None:
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes
        self._lines = scratch / "lines.jsonl"
        self._logs = scratch / "logs"
        self._command = [program(), "append", str(self._logs), "--json", str(self._lines)]
        cat = [program(), "cat", str(bench.directory(data_set.name)), "--format", "jsonl"]
        with self._lines.open("wb") as file:
            subprocess.run(cat, check=True, stdout=file)

    def check(self) -> None:
        """Append once, and look at what it says that it has appended."""
        summary = self._append()
        appended = sum(each["records"] for each in summary["partitions"])
        ensure_equal(self.name, appended, self.records)

    def repeat(self) -> Run:
        """Append once; the processor time is the command's."""
        shutil.rmtree(self._logs)
        cpu_before, started = _cpu_seconds_of_children(), time.perf_counter()
        self._append()
        seconds = time.perf_counter() - started
        return Run(seconds, _cpu_seconds_of_children() - cpu_before)

    def _append(self) -> dict[str, Any]:
        done = subprocess.run(self._command, check=True, stdout=subprocess.PIPE)
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def print_records(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure a format, for 100-byte values without a codec."""
    data_set = bench.base(100, "none")
    say(f"printing {data_set.name}")
    cats = [_Cat(name, bench, data_set) for name in FORMATS]
    with tempfile.TemporaryDirectory(prefix="pylog-bench-") as scratch:
        return rounds_of([*cats, _Append(bench, data_set, Path(scratch))], rounds)
