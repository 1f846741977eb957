"""One per cent of a topic's time: by look-up and by predicate, against the full scan, in Spark."""

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyspark_pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from benchmarks.spark_scan import spark_session
from tests.support.large_topic import (
    FIRST_TIMESTAMP_MS,
    STEP_MS,
    LargeTopic,
    write_large_topic,
)

TOPIC_BYTES = 1 << 30
SEGMENTS = 4
LEAST_ROUNDS = 5
FULL = "full scan"
_BATCH_RECORDS = 140

Way = Callable[[], DataFrame]


@dataclass(frozen=True, slots=True)
class PruningFigure:
    """Seconds of one way to read; rows that it gave."""

    name: str
    rows: int
    median_seconds: float
    best_seconds: float


def large_topic(bench: Bench) -> LargeTopic:
    """Return a topic of 1 GiB, made once: 100-byte values, batches of 16 KB, one a second."""
    root = bench.root / "pruning"
    size = TOPIC_BYTES // SEGMENTS
    made = root / "done"
    if not made.exists():
        shutil.rmtree(root, ignore_errors=True)
        topic = write_large_topic(
            root / "logs", segments=SEGMENTS, segment_bytes=size, batch_records=_BATCH_RECORDS
        )
        made.write_text(f"{topic.batch_bytes} {topic.segment_batches}", encoding="ascii")
    batch_bytes, segment_batches = map(int, made.read_text("ascii").split())
    (directory,) = (root / "logs").iterdir()
    return LargeTopic(directory, batch_bytes, segment_batches, SEGMENTS, _BATCH_RECORDS)


def _ways(spark: SparkSession, topic: LargeTopic) -> dict[str, tuple[int, Way]]:
    """Return each way to read, with how many rows it is to give."""
    path, records = str(topic.directory.parent), topic.end_offset
    batches = records // _BATCH_RECORDS
    share = batches // 100
    spans = {
        "newest": (batches - share, batches),
        "in the middle": (batches // 2, batches // 2 + share),
        "oldest": (0, share),
    }

    def stamp(batch: int) -> int:
        return FIRST_TIMESTAMP_MS + batch * STEP_MS

    def look_up(low: int, high: int) -> DataFrame:
        reader = spark.read.format("pylog").option("startingTimestamp", stamp(low))
        if high < batches:
            reader = reader.option("endingTimestamp", stamp(high))
        return reader.load(path)

    def predicate(low: int, high: int) -> DataFrame:
        times = [dt.datetime.fromtimestamp(stamp(each) / 1000, dt.UTC) for each in (low, high)]
        first, end = map(sf.lit, times)
        condition = (sf.col("timestamp") >= first) & (sf.col("timestamp") < end)
        return pyspark_pylog.table(spark, path).where(condition).to_df()

    ways: dict[str, tuple[int, Way]] = {
        FULL: (records, lambda: spark.read.format("pylog").load(path))
    }
    for where, span in spans.items():
        rows = share * _BATCH_RECORDS
        ways[f"look-up, {where}"] = (rows, partial(look_up, *span))
        ways[f"predicate, {where}"] = (rows, partial(predicate, *span))
    return ways


def measure_pruning(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[PruningFigure]:
    """Return the figures of all ways, taken in turns."""
    say("a topic of 1 GiB")
    topic = large_topic(bench)
    say("1 % of the time in Spark")
    session = spark_session()
    try:
        ways = _ways(session, topic)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for name, (rows, make) in ways.items():  # which also warms up
            ensure_equal(name, make().count(), rows)
        for _ in range(max(rounds, LEAST_ROUNDS)):
            for name, (_, make) in ways.items():
                start = perf_counter()
                make().write.format("noop").mode("overwrite").save()
                seconds[name].append(perf_counter() - start)
    finally:
        session.stop()
    return [
        PruningFigure(name, rows, median(seconds[name]), min(seconds[name]))
        for name, (rows, _) in ways.items()
    ]
