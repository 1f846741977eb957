"""``writeStream.format("pylog")``: each micro-batch is written once, whatever is run again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

import pylog
from tests.support.spark_session import NEEDS_SPARK, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

pytestmark = NEEDS_SPARK


class Input:
    """A directory of text files that a stream reads, a file in each micro-batch."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        directory.mkdir()
        self._spark = spark
        self._directory = directory
        self._count = 0

    def add(self, *values: int) -> None:
        """Add a file with a line for each value."""
        path = self._directory / f"{self._count:03}.txt"
        waiting = path.with_suffix(".tmp")
        waiting.write_text("".join(f"{value}\n" for value in values), "utf-8")
        waiting.rename(path)
        self._count += 1

    def frame(self) -> DataFrame:
        """Return the stream: column ``value``."""
        reader = self._spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        return reader.option("pathGlobFilter", "*.txt").load(str(self._directory))


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Input:
    return Input(spark, tmp_path / "input")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def run(tmp_path: Path, logs: Path) -> Callable[..., StreamingQuery]:
    """Write all that there is, and wait for the end; a query that failed raises."""

    def run(frame: DataFrame, checkpoint: str = "checkpoint", **options: str) -> StreamingQuery:
        writer: DataStreamWriter = frame.writeStream.format("pylog").options(**options)
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.trigger(availableNow=True).start(str(logs))
        assert query.awaitTermination(120)
        return query

    return run


def values(logs: Path, topic: str = "orders") -> list[int]:
    table = pylog.scan(logs, topics=topic, columns=["value"]).to_table()
    return sorted(int(value) for value in table["value"].to_pylist())


def messages_of(run: Callable[[], StreamingQuery]) -> list[str]:
    """Return the lines of the error that ends a query."""
    with pytest.raises(StreamingQueryException) as caught:
        run()
    return str(caught.value).splitlines()


def test_a_stream_is_written_to_its_topic(
    lines: Input, run: Callable[..., StreamingQuery], logs: Path
) -> None:
    lines.add(1, 2, 3, 4, 5)
    run(lines.frame(), topic="orders", numPartitions="2", compression="zstd")
    assert values(logs) == [1, 2, 3, 4, 5]
    lines.add(6, 7)
    lines.add(8)
    run(lines.frame(), topic="orders")
    assert values(logs) == list(range(1, 9))
    names = {path.name for path in logs.glob(".pylog-*")}
    assert names == {".pylog-ledger", ".pylog-only-replica"}
    names = {path.name for path in logs.iterdir() if path.is_dir()}
    assert names == {"orders-0", "orders-1"}


def test_a_query_that_goes_on_writes_each_micro_batch(
    lines: Input, tmp_path: Path, logs: Path
) -> None:
    writer = (
        lines.frame().writeStream.format("pylog").queryName("goes_on").option("topic", "orders")
    )
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(logs))
    try:
        for number in range(4):
            lines.add(number)
            query.processAllAvailable()
            assert values(logs) == list(range(number + 1))
    finally:
        query.stop()


def test_a_micro_batch_that_is_run_again_is_skipped(
    lines: Input, run: Callable[..., StreamingQuery], logs: Path, tmp_path: Path
) -> None:
    lines.add(1, 2)
    lines.add(3)
    run(lines.frame(), topic="orders")
    # As after a crash between our commit and Spark's note of it.
    for path in (tmp_path / "checkpoint/commits").glob("*1*"):
        path.unlink()
    lines.add(4)
    run(lines.frame(), topic="orders")
    assert values(logs) == [1, 2, 3, 4]
    assert [path.name for path in logs.glob(".pylog-staged-*")] == []


def test_all_micro_batches_that_spark_forgets_are_skipped(
    lines: Input, run: Callable[..., StreamingQuery], logs: Path, tmp_path: Path
) -> None:
    lines.add(1, 2)
    run(lines.frame(), topic="orders")
    shutil.rmtree(tmp_path / "checkpoint/commits")
    run(lines.frame(), topic="orders")
    assert values(logs) == [1, 2]


def test_another_checkpoint_is_another_query(
    lines: Input, run: Callable[..., StreamingQuery], logs: Path
) -> None:
    lines.add(1, 2)
    run(lines.frame(), topic="orders")
    run(lines.frame(), "another", topic="orders")
    assert values(logs) == [1, 1, 2, 2]


def test_two_queries_write_to_one_topic(
    spark: SparkSession, run: Callable[..., StreamingQuery], logs: Path, tmp_path: Path
) -> None:
    first, second = (Input(spark, tmp_path / name) for name in ("first", "second"))
    for number in range(3):
        first.add(number)
        second.add(100 + number)
        run(first.frame(), "of-first", topic="orders")
        run(second.frame(), "of-second", topic="orders")
    assert values(logs) == [0, 1, 2, 100, 101, 102]


def test_a_micro_batch_without_rows_writes_nothing(
    lines: Input, run: Callable[..., StreamingQuery], logs: Path
) -> None:
    lines.add(1, 2)
    run(lines.frame().where("value > 100"), topic="orders")
    assert [path for path in logs.iterdir() if path.is_dir()] == []
    lines.add(101)
    run(lines.frame().where("value > 100"), topic="orders")
    assert values(logs) == [101]


def test_a_row_that_cannot_be_written_ends_the_query_and_is_named(
    lines: Input, run: Callable[..., StreamingQuery], logs: Path
) -> None:
    lines.add(1, 2)
    run(lines.frame().selectExpr("'orders' topic", "value"))
    lines.add(3, 4)
    frame = lines.frame().selectExpr("if(value = 4, null, 'orders') topic", "value")
    messages = messages_of(lambda: run(frame))
    [line] = {line for line in messages if "row 1 has no topic" in line}
    assert line.startswith("ValueError: host ")
    assert ", partition 0 of the DataFrame: row 1 has no topic: name one for all rows" in line
    assert values(logs) == [1, 2]
    assert [path.name for path in logs.glob(".pylog-staged-*")] == []
    run(lines.frame().selectExpr("'orders' topic", "value"))  # the micro-batch, mended
    assert values(logs) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["value key", "value"], "nothing says which topic the rows go to: give option topic"),
        (["'t' topic", "value", "value partition"], "column 'partition' is of type string, expect"),
    ],
)
def test_columns_that_are_wrong_end_the_query(
    lines: Input, run: Callable[..., StreamingQuery], columns: list[str], reason: str
) -> None:
    lines.add(1)
    messages = messages_of(lambda: run(lines.frame().selectExpr(*columns)))
    assert any(line.startswith(f"ValueError: {reason}") for line in messages)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("topics", "unknown option 'topics'; did you mean 'topic'?"),
        ("jobId", "option jobId is for batch writes; leave it out: a micro-batch is known by its"),
    ],
)
def test_options_that_are_wrong_end_the_query(
    lines: Input, run: Callable[..., StreamingQuery], option: str, reason: str
) -> None:
    lines.add(1)
    messages = messages_of(lambda: run(lines.frame(), topic="orders", **{option: "foo"}))
    assert any(line.startswith(f"ValueError: {reason}") for line in messages)


def test_the_progress_of_a_query_counts_the_rows_written(
    lines: Input, run: Callable[..., StreamingQuery]
) -> None:
    lines.add(1, 2, 3)
    progress = run(lines.frame(), topic="orders").lastProgress
    assert progress is not None
    assert progress.sink.numOutputRows == 3


def test_mode_complete_is_refused(lines: Input, tmp_path: Path, logs: Path) -> None:
    lines.add(1, 1)
    counts = lines.frame().groupBy("value").count()
    writer = counts.writeStream.format("pylog").outputMode("complete").option("topic", "orders")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    messages = messages_of(lambda: _ended(writer.start(str(logs))))
    assert (
        'ValueError: format("pylog") appends to topics and replaces nothing: write '
        '.outputMode("append"); to append the whole result of each trigger, use foreachBatch'
    ) in messages


def test_mode_update_is_refused_by_spark_and_foreach_batch_does_it(
    lines: Input, tmp_path: Path, logs: Path
) -> None:
    lines.add(1, 1)
    counts = lines.frame().groupBy("value").count()
    writer = counts.writeStream.outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    messages = messages_of(
        lambda: _ended(writer.format("pylog").option("topic", "t").start(str(logs)))
    )
    assert "does not support Update mode" in "".join(messages)

    def append(frame: DataFrame, batch_id: int) -> None:
        rows = frame.select(F.to_json(F.struct("*")).alias("value"))
        save(rows, logs, topic="counts", jobId=f"counts-{batch_id}")
        save(rows, logs, topic="counts", jobId=f"counts-{batch_id}")  # as where it is run again

    writer = counts.writeStream.outputMode("update").foreachBatch(append)
    writer = writer.option("checkpointLocation", str(tmp_path / "another"))
    _ended(writer.trigger(availableNow=True).start())
    found = pylog.scan(logs, topics="counts", columns=["value"]).to_table()["value"].to_pylist()
    assert found == [b'{"value":"1","count":2}']


def _ended(query: StreamingQuery) -> StreamingQuery:
    assert query.awaitTermination(120)
    return query
