"""A stream's trigger with nothing new: what the driver does for it, Spark's part left out."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from pyspark.sql.datasource import CaseInsensitiveDict

from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from benchmarks.planning import PARTITIONS, planning_directory
from pyspark_pylog import DefaultSource

_TRIGGERS_A_ROUND = 5


@dataclass(frozen=True, slots=True)
class FollowingFigure:
    """Seconds of a trigger, offsets as JSON included."""

    name: str
    median_seconds: float
    best_seconds: float


FIRST, NOTHING_NEW = "the first of a run", "nothing new"


def measure_following(
    bench: Bench, rounds: int, say: Callable[[str], None]
) -> list[FollowingFigure]:
    """Return the figures of a stream on `PARTITIONS` partitions, new ones first."""
    directory = planning_directory(bench, PARTITIONS, say)
    say("following")
    seconds: dict[str, list[float]] = {FIRST: [], NOTHING_NEW: []}
    for _ in range(rounds):
        source = DefaultSource(CaseInsensitiveDict({"path": str(directory)}))
        reader = source.streamReader(schema=source.schema())
        offset, name = reader.initialOffset(), FIRST
        for _ in range(1 + _TRIGGERS_A_ROUND):
            start = perf_counter()
            end = json.loads(json.dumps(reader.latestOffset(offset, reader.getDefaultReadLimit())))
            json.dumps(reader.reportLatestOffset())
            seconds[name].append(perf_counter() - start)
            ensure_equal("new offsets", int(name == NOTHING_NEW and end != offset), 0)
            offset, name = end, NOTHING_NEW
    return [FollowingFigure(name, median(took), min(took)) for name, took in seconds.items()]
