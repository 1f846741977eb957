"""``pylog.search`` for a value that is nowhere, so that everything is looked through.

Beside it ``grep -F`` over the same ``.log`` files, which knows neither batches nor checksums, and a
whole scan with Arrow looking for the value in its column: what one did before.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable

import pyarrow.compute as pc

import pylog
from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Reader, Run, ensure_equal, rounds_of, timed

NEEDLE = "xyzzy-8675309"
OURS = "pylog.search"
SCAN = "pylog.scan, then Arrow"
GREP = "grep -F"


class _Search:
    """Searches one data set, one thread."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self._directory = bench.directory(data_set.name)
        self.name = f"{OURS}: {data_set.name}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def _search(self) -> tuple[int, int]:
        found = pylog.search(self._directory, value_contains=NEEDLE, columns=["offset"], threads=1)
        matches = sum(batch.num_rows for batch in found)
        return matches, found.summary.scanned_records

    def check(self) -> None:
        ensure_equal(self.name, self._search(), (0, self.records))

    def repeat(self) -> Run:
        return timed(self._search)


class _Scan:
    """Reads all values of one data set, and looks for the needle in them."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self._directory = bench.directory(data_set.name)
        self.name = f"{SCAN}: {data_set.name}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def _search(self) -> tuple[int, int]:
        matches = records = 0
        for batch in pylog.scan(self._directory, columns="value", threads=1).to_batches():
            found = pc.match_substring(batch.column("value"), NEEDLE)
            matches += pc.sum(found).as_py() or 0
            records += batch.num_rows
        return matches, records

    def check(self) -> None:
        ensure_equal(self.name, self._search(), (0, self.records))

    def repeat(self) -> Run:
        return timed(self._search)


class _Grep:
    """Runs grep over the files of one data set."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self.name = f"{GREP}: {data_set.name}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes
        files = map(str, bench.logs(data_set.name))
        self._command = ["grep", "-a", "-c", "-F", NEEDLE, *files]

    def _grep(self) -> bytes:
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(self._command, check=False, capture_output=True, env=environment)
        return done.stdout.strip()

    def check(self) -> None:
        ensure_equal(self.name, self._grep(), b"0")

    def repeat(self) -> Run:
        before, started = os.times(), time.perf_counter()
        self._grep()
        seconds, after = time.perf_counter() - started, os.times()
        cpu_before = before.children_user + before.children_system
        return Run(seconds, after.children_user + after.children_system - cpu_before)


def measure_search(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return figures for 100-byte and 1000-byte values, and 1000-byte ones of two codecs."""
    say("searching")
    figures = []
    for data_set in (bench.base(100, "none"), bench.base(1000, "none")):
        readers: list[Reader] = [_Search(bench, data_set), _Scan(bench, data_set)]
        if shutil.which("grep"):
            readers.append(_Grep(bench, data_set))
        figures += rounds_of(readers, rounds)
    for codec in ("lz4", "zstd"):
        data_set = bench.base(1000, codec)
        figures += rounds_of([_Search(bench, data_set), _Scan(bench, data_set)], rounds)
    return figures
