"""Planning a log directory of many partitions and segments: time, and how it grows."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_segment

PARTITIONS = 1_000
SEGMENTS = 50
_RECORDS = 10


@dataclass(frozen=True, slots=True)
class PlanningFigure:
    """Seconds to open a directory and plan a scan of it."""

    partitions: int
    median_seconds: float
    best_seconds: float


def _write(directory: Path, partitions: int) -> None:
    model = directory.parent / "model-0"
    shutil.rmtree(directory.parent, ignore_errors=True)
    for number in range(SEGMENTS):
        base = number * _RECORDS
        write_segment(model, base, [batch_v2(plain_records(base, _RECORDS))])
    for number in range(partitions):
        partition = directory / f"topic{number % 10}-{number // 10}"
        partition.mkdir(parents=True)
        for path in model.iterdir():
            os.link(path, partition / path.name)
    (directory.parent / "done").touch()


def planning_directory(bench: Bench, partitions: int, say: Callable[[str], None]) -> Path:
    """Return a log directory of so many partitions, made at its first use."""
    directory = bench.root / f"planning-{partitions}" / "logs"
    if not (directory.parent / "done").exists():
        say(f"making {partitions} partitions of {SEGMENTS} segments")
        _write(directory, partitions)
    return directory


def measure_planning(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[PlanningFigure]:
    """Return the figures of half the partitions and of all, taken in turns."""
    directories = {}
    for partitions in (PARTITIONS // 2, PARTITIONS):
        directories[partitions] = planning_directory(bench, partitions, say)
    say("planning")
    seconds: dict[int, list[float]] = {partitions: [] for partitions in directories}
    for _ in range(rounds):
        for partitions, directory in directories.items():
            start = perf_counter()
            tasks = pylog.scan(directory).plan()
            seconds[partitions].append(perf_counter() - start)
            ensure_equal("tasks", len(tasks), partitions)
    return [PlanningFigure(each, median(took), min(took)) for each, took in seconds.items()]
