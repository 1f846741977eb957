"""The targets of what runs on Spark."""

import statistics
from collections.abc import Iterator

from benchmarks import (
    kafka_source,
    spark_cleaning,
    spark_scan,
    spark_small,
    spark_typed,
    spark_write,
)
from benchmarks.following import NOTHING_NEW
from benchmarks.pruning import FULL
from benchmarks.ratio import faster
from benchmarks.results import Results
from benchmarks.target import NOT_MEASURED, Target, at_least

CYCLING_AT_LEAST = 0.95
SPARK_CLEANING_TIMES = 1.5
NOTHING_NEW_SECONDS = 0.5
PRUNING_TIMES = 20.0
PREDICATE_TIMES = 8.0
SMALL_TIMES = {
    spark_small.MANY: 10.0,
    spark_small.TASK: 1.15,
    spark_small.ONE_OFFSET: None,
    spark_small.COUNT: 0.1,
}
"""At most so many times the peer's time; None where no target is set."""
FRESH_SECONDS = 0.3
KAFKA_SOURCE_TIMES = {
    **{
        kafka_source.full_scan(value_bytes, with_sockets=with_sockets): 4.0
        for with_sockets in (True, False)
        for value_bytes in kafka_source.VALUE_SIZES
    },
    kafka_source.ONE_OFFSET: 1.0,
    kafka_source.ONE_PER_CENT: 1.0,
    kafka_source.PREDICATE: 10.0,
}
"""At least so many times as fast as Spark's own source."""
TYPED_TIMES = {spark_typed.PLAIN: 1.7, spark_typed.FROM_AVRO: 3.0, spark_typed.FROM_JSON: 8.0}
"""At most so many times the time of the plain scan; at least so many times as fast as others."""
WRITE_TIMES = {
    (100, spark_write.KAFKA): 4.0,
    (1000, spark_write.KAFKA): 2.0,
    (100, spark_write.PARQUET): 0.5,
    (1000, spark_write.PARQUET): 0.5,
}
"""At least so many times as fast, by bytes of a value and peer."""


def spark_targets(results: Results) -> Iterator[Target]:
    by_size = {result.data_set.value_bytes: result.figures for result in results.spark}
    for value_bytes in (100, 1000):
        figures = by_size.get(value_bytes)
        for peer, limit in ((spark_scan.CYCLING, CYCLING_AT_LEAST), (spark_scan.PARQUET, 1.0)):
            ratio = faster(figures[spark_scan.OURS], figures[peer]) if figures else None
            text = f"Spark scan, {value_bytes} B: ≥ {limit:g} times the rows/s of {peer}"
            yield at_least(text, ratio, limit)


def spark_cleaning_targets(results: Results) -> Iterator[Target]:
    text = f"compaction of many partitions by Spark: ≤ {SPARK_CLEANING_TIMES:g} times one process"
    if not results.spark_cleaning:
        yield Target(text, NOT_MEASURED, None)
        return
    [many] = [each for each in results.spark_cleaning if each.name.endswith(spark_cleaning.OF_1_MB)]
    yield Target(text, f"{many.times:.2f}", many.times <= SPARK_CLEANING_TIMES)


def following_targets(results: Results) -> Iterator[Target]:
    text = "a stream's trigger with nothing new, 1,000 partitions x 50 segments: ≤ 0.5 s"
    for figure in results.following:
        if figure.name == NOTHING_NEW:
            measured = f"{figure.median_seconds:.3f} s"
            yield Target(text, measured, figure.median_seconds <= NOTHING_NEW_SECONDS)
    if not results.following:
        yield Target(text, NOT_MEASURED, None)


def pruning_targets(results: Results) -> Iterator[Target]:
    figures = {figure.name: figure for figure in results.pruning}
    full = figures.pop(FULL, None)
    for name, figure in figures.items():
        exact = name.startswith("predicate")
        limit = PREDICATE_TIMES if exact and "newest" not in name else PRUNING_TIMES
        times = full.median_seconds / figure.median_seconds if full else 0.0
        best = full.best_seconds / figure.best_seconds if full else 0.0
        text = f"1 % of the time of 1 GB in Spark by {name}: ≥ {limit:g} times as fast as all"
        yield Target(text, f"{times:.1f} (best {best:.1f})", times >= limit)
    if not figures:
        yield Target("1 % of the time of 1 GB in Spark", NOT_MEASURED, None)


def small_targets(results: Results) -> Iterator[Target]:
    figures = {figure.name: figure for figure in results.small}
    for name, limit in SMALL_TIMES.items():
        figure = figures.get(name)
        if limit is None:
            continue
        text = f"Spark, {name}: ≤ {limit:g} times"
        if figure is None:
            yield Target(text, NOT_MEASURED, None)
        else:
            measured = f"{figure.times:.2f}"
            yield Target(f"{text} the time of {figure.peer}", measured, figure.times <= limit)


def fresh_targets(results: Results) -> Iterator[Target]:
    text = f"Spark, the first task of a worker: ≤ {FRESH_SECONDS:g} s longer than prebuilt Arrow's"
    figure = next((each for each in results.small if each.name == spark_small.FRESH), None)
    if figure is None:
        yield Target(text, NOT_MEASURED, None)
        return
    rounds = zip(figure.seconds, figure.peer_seconds, strict=True)
    longer = statistics.median(ours - peer for ours, peer in rounds)
    seconds = longer * spark_scan.CORES / spark_small.FRESH_TASKS
    yield Target(text, f"{seconds:+.3f} s", seconds <= FRESH_SECONDS)


def kafka_source_targets(results: Results) -> Iterator[Target]:
    figures = {figure.name: figure for figure in results.kafka_source}
    for name, limit in KAFKA_SOURCE_TIMES.items():
        text = f"{name}: ≥ {limit:g} times as fast as {kafka_source.PEER}"
        if name not in figures:
            yield Target(text, NOT_MEASURED, None)
            continue
        times = 1 / figures[name].times
        yield Target(text, f"{times:.2f}", times >= limit)


def typed_targets(results: Results) -> Iterator[Target]:
    for figure in results.typed:
        limit = TYPED_TIMES[figure.peer]
        if figure.peer == spark_typed.PLAIN:
            text = f"Spark, {figure.name}: ≤ {limit:g} times the time of {figure.peer}"
            yield Target(text, f"{figure.times:.2f}", figure.times <= limit)
        else:
            text = f"Spark, {figure.name}: ≥ {limit:g} times as fast as {figure.peer}"
            yield Target(text, f"{1 / figure.times:.2f}", 1 / figure.times >= limit)
    if not results.typed:
        yield Target("typed values in Spark", NOT_MEASURED, None)


def writes_targets(results: Results) -> Iterator[Target]:
    figures = {(each.value_bytes, each.way): each for each in results.writes}
    for (value_bytes, peer), limit in WRITE_TIMES.items():
        text = f"Spark writes a DataFrame, {value_bytes} B: ≥ {limit:g} times as fast as to {peer}"
        if not figures:
            yield Target(text, NOT_MEASURED, None)
            continue
        ours = figures[value_bytes, spark_write.OURS]
        times = ours.times_as_fast_as(figures[value_bytes, peer])
        yield Target(text, f"{times:.2f}", times >= limit)
