"""A pool of Python threads, each of which reads, writes and streams its own topics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.spark.test_worker_python import python, run, surroundings
from tests.support.spark_session import NEEDS_SPARK, load, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["python", "surroundings"]  # fixtures

pytestmark = NEEDS_SPARK

TOPICS = range(20)


def in_pool(work: Callable[[int], object]) -> list[object]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, TOPICS))


def values(logs: Path) -> list[tuple[str, bytes]]:
    rows = pylog.scan(logs, columns=["topic", "value"]).to_table().to_pylist()
    return sorted((row["topic"], row["value"]) for row in rows)


def test_each_thread_of_a_pool_writes_and_reads_its_topic(
    spark: SparkSession, tmp_path: Path
) -> None:
    def write(number: int) -> None:
        frame = spark.range(number, number + 2).selectExpr("CAST(id AS STRING) value")
        save(frame, tmp_path, topic=f"topic-{number:02}", createTopic=True)

    in_pool(write)
    expected = [(f"topic-{n:02}", f"{n + more}".encode()) for n in TOPICS for more in (0, 1)]
    assert values(tmp_path) == sorted(expected)
    counts = in_pool(lambda n: load(spark, tmp_path, subscribe=f"topic-{n:02}").count())
    assert counts == [2] * len(TOPICS)


def test_each_thread_of_a_pool_runs_its_stream_into_a_topic(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    pylog.write_topic(logs, "input", [{"value": "a"}])

    def stream(number: int) -> None:
        reader = spark.readStream.format("pylog").option("subscribe", "input")
        records = reader.option("startingOffsets", "earliest").load(str(logs)).select("value")
        options = {"topic": f"topic-{number:02}", "createTopic": "true"}
        writer = records.writeStream.format("pylog").options(**options)
        writer = writer.option("checkpointLocation", str(tmp_path / f"query-{number}"))
        query = writer.trigger(availableNow=True).start(str(logs))
        query.awaitTermination()

    in_pool(stream)
    written = [(f"topic-{number:02}", b"a") for number in TOPICS]
    assert values(logs) == sorted([("input", b"a"), *written])


@pytest.mark.parametrize("kind", ["saveAsTable", "toTable"])
def test_a_thread_writes_to_a_table_of_the_catalog(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    logs = tmp_path / "logs"
    pylog.write_topic(logs, "input", [{"value": "a"}])
    options = {"path": str(logs), "topic": "output"}

    def batch(name: str) -> None:
        frame: DataFrame = load(spark, logs, subscribe="input").select("value")
        frame.write.format("pylog").options(**options).saveAsTable(name)

    def stream(name: str) -> None:
        reader = spark.readStream.format("pylog").option("subscribe", "input")
        records = reader.option("startingOffsets", "earliest").load(str(logs)).select("value")
        writer = records.writeStream.format("pylog").options(**options)
        writer = writer.option("checkpointLocation", f"{tmp_path}/query")
        writer.trigger(availableNow=True).toTable(name).awaitTermination()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(batch if kind == "saveAsTable" else stream, f"of_thread_{kind}").result()
    spark.sql(f"DROP TABLE of_thread_{kind}")
    assert values(logs) == [("input", b"a"), ("output", b"a")]


def test_a_thread_keeps_no_session_that_it_did_not_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    sessions = spark._jvm.org.apache.spark.sql.SparkSession  # type: ignore[union-attr]

    def work() -> tuple[bool, bool]:
        before = sessions.getActiveSession().isDefined()
        save(spark.range(1).selectExpr("'a' value"), tmp_path, topic="orders")
        return before, sessions.getActiveSession().isDefined()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == (False, False)
    assert sessions.getActiveSession().isDefined()


_PLAIN = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
def write():
    frame = spark.range(2).selectExpr("'a' value")
    frame.write.format("pylog").mode("append").option("topic", "written").save(sys.argv[1])
with ThreadPoolExecutor(1) as pool:
    print("[DATA_SOURCE_NOT_FOUND]" in str(pool.submit(write).exception()))
    import pyspark_pylog
    print(pyspark_pylog.session() is spark)
    pool.submit(write).result()
    read = spark.read.format("pylog").option("subscribe", "written")
    print(pool.submit(lambda: read.load(sys.argv[1]).count()).result())
"""


def test_threads_of_a_plain_session_write_after_one_call(
    python: str, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    surroundings["PYSPARK_PYTHON"] = python
    assert run(python, _PLAIN, tmp_path / "logs", surroundings) == ["True", "True", "2"]
