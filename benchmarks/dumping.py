"""``pylog dump --print-data-log`` against Kafka's own tool, as a user runs both.

A topic of 500 MB of records of 100 bytes: one segment, named twice. Output is dropped. What both
take for a file without batches is their start; it is measured in each round, so that ratios can be
given with and without it.
"""

import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.data_sets import Bench
from benchmarks.measuring import Figure, NotHereError, Run, WrongAnswerError, rounds_of
from benchmarks.start_up import program
from tests.support.kafka_broker_jars import (
    NEWEST_VERSION,
    KafkaNotFoundError,
    find_java,
    kafka_class_path,
)

OURS = "pylog dump --print-data-log"
OURS_JSON = f"{OURS} --json"
KAFKAS = "kafka-dump-log --print-data-log"
STARTS = {name: f"{name}, of nothing" for name in (OURS, OURS_JSON, KAFKAS)}
TIMES_NAMED = 2
_CHUNK_BYTES = 1 << 20


class _Tool:
    """A command over some files, its output dropped."""

    def __init__(
        self, name: str, command: Sequence[str], records: int, log_bytes: int, lines: int
    ) -> None:
        self.name = name
        self.records = records
        self.log_bytes = log_bytes
        self._command = command
        self._lines = lines

    def check(self) -> None:
        """Count the lines of records."""
        found = 0
        with subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                found += line.startswith((b"| offset", b'{"type":"record"'))
        if found != self._lines:
            raise WrongAnswerError(f"{self.name} printed {found} records, not {self._lines}")

    def repeat(self) -> Run:
        """Dump once; the processor time is the command's."""
        before, started = _cpu_seconds_of_children(), time.perf_counter()
        subprocess.run(
            self._command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        seconds = time.perf_counter() - started
        return Run(seconds, _cpu_seconds_of_children() - before)


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_dumping(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Return a figure a tool, and one of its start.

    Raises
    ------
    NotHereError
        Kafka's tool is not to be had.
    """
    try:
        java = [str(find_java()), "-Xmx512m", "-cp", kafka_class_path(NEWEST_VERSION)]
    except KafkaNotFoundError as error:
        raise NotHereError(str(error)) from error
    data_set = bench.base(100, "none")
    say(f"dumping {data_set.name}, {TIMES_NAMED} times")
    kafkas = [*java, "org.apache.kafka.tools.DumpLogSegments", "--print-data-log"]
    commands = {
        OURS: [program(), "dump", "--print-data-log"],
        OURS_JSON: [program(), "dump", "--print-data-log", "--json"],
        KAFKAS: kafkas,
    }
    files = ",".join(map(str, bench.logs(data_set.name) * TIMES_NAMED))
    records, size = TIMES_NAMED * data_set.records, TIMES_NAMED * data_set.log_bytes
    with tempfile.TemporaryDirectory(prefix="pylog-bench-") as scratch:
        nothing = Path(scratch) / f"{0:020d}.log"
        nothing.touch()
        tools = []
        for name, command in commands.items():
            tools.append(_Tool(name, [*command, "--files", files], records, size, records))
            tools.append(_Tool(STARTS[name], [*command, "--files", str(nothing)], 0, 0, 0))
        return rounds_of(tools, rounds)
