"""What is small in Spark: many small topic-partitions, a task, one offset, and a count."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import pylog
import pyspark_pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from benchmarks.pair_figure import PairFigure
from benchmarks.prebuilt_source import NAME
from benchmarks.pruning import large_topic
from benchmarks.spark_scan import save, spark_session
from tests.support.batches import Built, batch_v2, plain_records
from tests.support.log_files import write_segment

DIRECTORIES = 5_000
DIRECTORY_BYTES = 110_000
TASKS = 200
LEAST_ROUNDS = 5
MANY = "5,000 topic-partitions of 110 KB"
TASK = "200 tasks of one batch"
ONE_OFFSET = "one offset"
FRESH_TASKS = 8
FRESH = "8 tasks, each the first of its worker"
REUSE = "spark.python.worker.reuse"
COUNT = "count of 1 GB by table"
_BATCH_RECORDS = 140
_VALUE_BYTES = 100
_TOPIC = "small"

Way = Callable[[], int]
"""Does the work, and returns how many records it saw."""


def _batches() -> list[Built]:
    """Return one segment of about `DIRECTORY_BYTES`."""
    batches: list[Built] = []
    base = size = 0
    while size < DIRECTORY_BYTES:
        batch = batch_v2(plain_records(base, _BATCH_RECORDS, value_size=_VALUE_BYTES))
        batches.append(batch)
        base, size = base + _BATCH_RECORDS, size + len(batch.data)
    return batches


def _directories(bench: Bench) -> tuple[Path, int]:
    """Return a log directory of `DIRECTORIES` partitions, and how many records each holds."""
    root = bench.root / "small"
    made = root / "done"
    if not made.exists():
        shutil.rmtree(root, ignore_errors=True)
        batches = _batches()
        write_segment(root / "model", 0, batches)
        for number in range(DIRECTORIES):
            # No links: each is read from memory of its own.
            shutil.copytree(root / "model", root / "logs" / f"{_TOPIC}-{number}")
        made.write_text(str(len(batches) * _BATCH_RECORDS), encoding="ascii")
    return root / "logs", int(made.read_text("ascii"))


def _pairs(
    spark: SparkSession, bench: Bench
) -> list[tuple[PairFigure, Callable[[], object], Callable[[], object]]]:
    """Return each pair with how to read one and the other."""
    logs, records = _directories(bench)
    large = large_topic(bench)
    path = str(large.directory.parent)
    ours = spark.read.format("pylog")

    def by_library() -> None:
        read = sum(batch.num_rows for batch in pylog.scan(logs).to_batches())
        ensure_equal(MANY, read, DIRECTORIES * records)

    def positions(offset: int) -> str:
        return json.dumps({_TOPIC: {str(number): offset for number in range(TASKS)}})

    def of_tasks() -> DataFrame:
        return spark.read.format("pylog").load(
            str(logs),
            assign=json.dumps({_TOPIC: [*range(TASKS)]}),
            endingOffsets=positions(_BATCH_RECORDS),
            packPartitions="false",
        )

    def of_prebuilt(tasks: int, rows: int) -> DataFrame:
        return spark.read.format(NAME).load(
            records=tasks * rows,
            partitions=tasks,
            batchrows=rows,
            valuebytes=_VALUE_BYTES,
            cycles=0,
        )

    def one_offset() -> DataFrame:
        topic = large.directory.name.rpartition("-")[0]
        middle = large.end_offset // 2
        return spark.read.format("pylog").load(
            path,
            assign=json.dumps({topic: [0]}),
            startingOffsets=json.dumps({topic: {"0": middle}}),
            endingOffsets=json.dumps({topic: {"0": middle + 1}}),
        )

    def counted() -> None:
        ensure_equal(COUNT, pyspark_pylog.table(spark, path).count(), large.end_offset)

    ensure_equal(MANY, ours.load(str(logs)).count(), DIRECTORIES * records)
    ensure_equal(TASK, of_tasks().count(), TASKS * _BATCH_RECORDS)
    ensure_equal(ONE_OFFSET, one_offset().count(), 1)
    return [
        (PairFigure(MANY, "the library"), lambda: save(lambda: ours.load(str(logs))), by_library),
        (
            PairFigure(TASK, "prebuilt Arrow"),
            lambda: save(of_tasks),
            lambda: save(lambda: of_prebuilt(TASKS, _BATCH_RECORDS)),
        ),
        (
            PairFigure(ONE_OFFSET, "prebuilt Arrow"),
            lambda: save(one_offset),
            lambda: save(lambda: of_prebuilt(1, 1)),
        ),
        (PairFigure(COUNT, "a full scan"), counted, lambda: save(lambda: ours.load(path))),
    ]


def _fresh_pair(
    spark: SparkSession, bench: Bench
) -> tuple[PairFigure, Callable[[], None], Callable[[], None]]:
    """Return how to read by tasks that each have a worker of their own."""
    logs, _ = _directories(bench)
    assign = json.dumps({_TOPIC: [*range(FRESH_TASKS)]})
    ends = json.dumps({_TOPIC: {str(number): _BATCH_RECORDS for number in range(FRESH_TASKS)}})

    def ours() -> DataFrame:
        reader = spark.read.format("pylog").options(assign=assign, endingOffsets=ends)
        return reader.load(str(logs))

    def prebuilt() -> DataFrame:
        return spark.read.format(NAME).load(
            records=FRESH_TASKS * _BATCH_RECORDS,
            partitions=FRESH_TASKS,
            batchrows=_BATCH_RECORDS,
            valuebytes=_VALUE_BYTES,
            cycles=0,
        )

    ensure_equal(FRESH, ours().count(), FRESH_TASKS * _BATCH_RECORDS)
    ensure_equal(FRESH, prebuilt().count(), FRESH_TASKS * _BATCH_RECORDS)
    return PairFigure(FRESH, "prebuilt Arrow"), lambda: save(ours), lambda: save(prebuilt)


def measure_small(bench: Bench, rounds: int, say: Callable[[str], None]) -> list[PairFigure]:
    """Return the figures of all pairs."""
    figures = []
    for make, settings in (
        (_pairs, {}),
        (lambda spark, bench: [_fresh_pair(spark, bench)], {REUSE: "false"}),
    ):
        say("fresh workers of Spark" if settings else "what is small in Spark")
        session = spark_session(settings)
        try:
            pairs = make(session, bench)
            for _, ours, peer in pairs:  # a warm-up
                ours()
                peer()
            for _ in range(max(rounds, LEAST_ROUNDS)):
                for figure, ours, peer in pairs:
                    figure.measure_round(ours, peer)
            figures += [figure for figure, _, _ in pairs]
        finally:
            session.stop()
    return figures
