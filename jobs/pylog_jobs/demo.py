"""What ``make demo`` shows: Spark over a real broker's log directory, without the broker.

``python -m pylog_jobs.demo LOG_DIRECTORY`` works on any directory.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions

import pylog
from pylog_jobs.session import spark_session
from pyspark_pylog.jobs import JavaNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW = 5
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


def _say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _heading(text: str) -> None:
    _say(f"\n== {text}")


def show_topics(directory: pylog.results.LogDirectory) -> None:
    """Print the topics, from file names and batch headers alone."""
    for topic, views in directory.topics.items():
        records = sum(view.log_end_offset - view.log_start_offset for view in views)
        size = sum(view.size_bytes for view in views)
        _say(f"  {topic:<24}{len(views):>3} partitions {records:>8} offsets {size:>10,} bytes")


def show_rows(spark: SparkSession, path: str) -> None:
    """Print the schema, the first rows of one partition, and a count by topic."""
    frame = spark.read.format("pylog").load(path)
    _heading('spark.read.format("pylog").load(path).printSchema()')
    frame.printSchema()
    first = next(iter(pylog.scan(path).plan()), None)
    if first is None:
        return
    topic, partition = first.topic_partition
    end = min(first.start_offset + _FEW, first.end_offset)
    few = (
        spark.read.format("pylog")
        .option("assign", f'{{"{topic}":[{partition}]}}')
        .option("endingOffsets", f'{{"{topic}":{{"{partition}":{end}}}}}')
        .load(path)
    )
    _heading(f"the first records of {topic}-{partition}")
    rows = few.selectExpr(
        "offset", "timestamp", "cast(key as string) key", "cast(value as string) value"
    )
    for row in rows.collect():
        _say(f"  {row.offset:>4}  {row.timestamp}  {row.key!s:<12.12}  {row.value!s:.60}")


def show_counts(spark: SparkSession, path: str) -> tuple[int, int] | None:
    """Print a count by topic; return the first and last timestamp in ms, None without records."""
    frame = spark.read.format("pylog").option("columns", "topic,timestamp").load(path)
    counts = frame.groupBy("topic").agg(
        functions.count("*").alias("records"),
        functions.min("timestamp").alias("first"),
        functions.max("timestamp").alias("last"),
    )
    _heading("a count by topic")
    rows = counts.orderBy("topic").selectExpr(
        "topic", "records", "first", "last", "unix_millis(first) low", "unix_millis(last) high"
    )
    collected = rows.collect()
    for row in collected:
        _say(f"  {row.topic:<24}{row.records:>9} records  {row['first']} to {row['last']}")
    if not collected:
        return None
    return min(row.low for row in collected), max(row.high for row in collected)


def show_time_range(spark: SparkSession, path: str, span: tuple[int, int]) -> None:
    """Print what lies in the middle third of the time that the log covers, found by index."""
    third = (span[1] - span[0]) // 3
    start, end = span[0] + third, span[1] - third
    frame = (
        spark.read.format("pylog")
        .option("startingTimestamp", start)
        .option("startingOffsetsByTimestampStrategy", "latest")
        .option("endingTimestamp", end)
        .load(path)
    )
    _heading(f"startingTimestamp {start} ({_utc(start)}), endingTimestamp {end} ({_utc(end)})")
    counts = frame.groupBy("topic", "partition").agg(
        functions.count("*").alias("records"),
        functions.min("offset").alias("first offset"),
        functions.max("offset").alias("last offset"),
    )
    counts.orderBy("topic", "partition").show(truncate=48)


def _utc(milliseconds: int) -> str:
    return f"{dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC):%Y-%m-%d %H:%M} UTC"


def _fail(reason: str) -> int:
    sys.stderr.write(f"demo: error: {reason}\n")
    return 2


def main() -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="a log directory, or a topic-partition directory")
    path = parser.parse_args().path
    try:
        began = time.monotonic()
        directory = pylog.open_directory(path)
        _heading(f"{path}: a Kafka broker's log directory; no broker is running")
        show_topics(directory)
        spark = spark_session("pylog demo")
        spark.sparkContext.setLogLevel("ERROR")
        started = time.monotonic()
        show_rows(spark, path)
        span = show_counts(spark, path)
        if span is not None:
            show_time_range(spark, path, span)
        plan = pylog.scan(directory)
        _heading(
            f"read {plan.count()} records, {sum(task.size_bytes for task in plan.plan()):,} bytes "
            f"of segments; Spark started in {started - began:.1f} s, its queries took "
            f"{time.monotonic() - started:.1f} s"
        )
        spark.stop()
    except (pylog.LogStorageError, JavaNotFoundError) as error:
        return _fail(str(error))
    except PySparkException as error:
        # A worker's whole traceback; the cause comes last.
        return _fail(_SQLSTATE.sub("", str(error)).splitlines()[-1])
    _say(
        "\nOn your own directory:\n"
        "  .venv/bin/pylog ls /path/to/kafka-logs\n"
        "  .venv/bin/pylog cat /path/to/kafka-logs --topic TOPIC --format jsonl | head\n"
        "  .venv/bin/python -m pylog_jobs.demo /path/to/kafka-logs"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
