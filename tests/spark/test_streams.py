"""`readStream` on directories that grow: batches, restarts, triggers, errors, progress."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import pyspark_pylog
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition, write_segment
from tests.support.spark_session import NEEDS_SPARK, SPARK_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = NEEDS_SPARK

NEEDS_ADMISSION_CONTROL = pytest.mark.skipif(
    SPARK_VERSION < (4, 2), reason="Spark asks Python sources for limits from version 4.2 on"
)
ENDS_SOON_SECONDS = 60
EARLIEST = {"startingOffsets": "earliest"}
Batches = list[list[tuple[int, int]]]


class Stream:
    """A query with a checkpoint, started any number of times; every batch's rows are kept."""

    def __init__(self, spark: SparkSession, logs: Path, **options: object) -> None:
        self._spark = spark
        self.logs = logs
        self.checkpoint = logs.parent / "checkpoint"
        self.options = options
        self.batches: dict[int, list[tuple[int, int]]] = {}

    def start(self, *, schema: str | None = None, **trigger: Any) -> StreamingQuery:  # noqa: ANN401
        reader = self._spark.readStream.format("pylog").options(**self.options)  # type: ignore[arg-type]
        if schema is not None:
            reader = reader.schema(schema)
        writer = reader.load(str(self.logs)).writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self, **trigger: Any) -> Batches:  # noqa: ANN401 - of Spark
        """Run for what is available now, or by ``trigger``; return the batches of that run."""
        self.batches.clear()
        query = self.start(**(trigger or {"availableNow": True}))
        assert query.awaitTermination(ENDS_SOON_SECONDS)
        return [self.batches[number] for number in sorted(self.batches)]

    def catch_up(self) -> Batches:
        """Run until there is nothing new, however many batches come first; return all of them."""
        self.batches.clear()
        query = self.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return [self.batches[number] for number in sorted(self.batches)]

    def _keep(self, rows: DataFrame, number: int) -> None:
        self.batches[number] = sorted(
            (row.partition, row.offset) for row in rows.select("partition", "offset").collect()
        )

    def failure(self, **trigger: Any) -> list[str]:  # noqa: ANN401 - of Spark
        """Run until it fails; return the lines of the error."""
        query = self.start(**(trigger or {"availableNow": True}))
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination(ENDS_SOON_SECONDS)
        lines = str(caught.value).splitlines()
        assert not any("UnboundLocalError" in line or "During handling" in line for line in lines)
        return lines

    def forget_commit(self, number: int) -> None:
        """Take back the commit of a batch, as if the driver had died before it."""
        for name in (f"{number}", f".{number}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)


def offsets(*numbers: int, partition: int = 0) -> list[tuple[int, int]]:
    return [(partition, number) for number in numbers]


def append(logs: Path, base: int, count: int, *, partition: int = 0, segment: int = 0) -> None:
    with segment_path(logs / f"orders-{partition}", segment).open("ab") as file:
        for offset in range(base, base + count):
            file.write(batch_v2(plain_records(offset, 1)).data)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Path]:
    """Give a log directory with offsets 0 to 9 in orders-0, ten batches of one record."""
    write_partition(tmp_path / "logs", {0: []})
    append(tmp_path / "logs", 0, 10)
    return tmp_path / "logs"  # type: ignore[return-value]


def test_a_stream_goes_on_where_its_checkpoint_ends(spark: SparkSession, logs: Path) -> None:
    stream = Stream(spark, logs, **EARLIEST)
    assert stream.run() == [offsets(*range(10))]
    append(logs, 10, 3)
    rows = [each for each in stream.run() if each]
    assert rows == [offsets(10, 11, 12)]
    assert [each for each in stream.run() if each] == []


def test_the_latest_offsets_are_pinned_before_the_first_batch_is_committed(
    spark: SparkSession, logs: Path
) -> None:
    stream = Stream(spark, logs)
    query = stream.start()
    try:
        query.processAllAvailable()
        append(logs, 10, 3)
        query.processAllAvailable()
    finally:
        query.stop()
    assert stream.batches == {0: [], 1: offsets(10, 11, 12)}
    # The driver dies before it commits batch 0, and the log grows before it comes again.
    for name in ("0", "1"):
        stream.forget_commit(int(name))
    for name in ("1", ".1.crc"):
        (stream.checkpoint / "offsets" / name).unlink(missing_ok=True)
    append(logs, 13, 7)
    assert [each for each in stream.catch_up() if each] == [offsets(*range(10, 20))]


def test_a_batch_that_is_done_again_has_the_same_rows(spark: SparkSession, logs: Path) -> None:
    stream = Stream(spark, logs, **EARLIEST)
    first = stream.run()
    stream.forget_commit(0)
    append(logs, 10, 3)
    again = [each for each in stream.catch_up() if each]
    assert again == [*first, offsets(10, 11, 12)]


def test_nothing_new_is_no_batch(spark: SparkSession, logs: Path) -> None:
    stream = Stream(spark, logs, **EARLIEST)
    query = stream.start(processingTime="0 seconds")
    try:
        query.processAllAvailable()
        append(logs, 10, 1)
        query.processAllAvailable()
        query.processAllAvailable()
    finally:
        query.stop()
    assert stream.batches == {0: offsets(*range(10)), 1: offsets(10)}


@NEEDS_ADMISSION_CONTROL
def test_a_run_for_what_is_available_now_keeps_limits_and_ends(
    spark: SparkSession, logs: Path
) -> None:
    stream = Stream(spark, logs, maxOffsetsPerTrigger=4, **EARLIEST)
    assert stream.run() == [offsets(0, 1, 2, 3), offsets(4, 5, 6, 7), offsets(8, 9)]
    append(logs, 10, 5)
    assert stream.run() == [offsets(10, 11, 12, 13), offsets(14)]


@NEEDS_ADMISSION_CONTROL
def test_a_query_that_runs_once_takes_all(spark: SparkSession, logs: Path) -> None:
    stream = Stream(spark, logs, maxOffsetsPerTrigger=4, minOffsetsPerTrigger=4, **EARLIEST)
    assert stream.run(once=True) == [offsets(*range(10))]
    append(logs, 10, 1)
    assert stream.run(once=True) == [offsets(10)]


@NEEDS_ADMISSION_CONTROL
def test_a_run_for_what_is_available_now_ends_while_the_log_grows(
    spark: SparkSession, logs: Path
) -> None:
    stream = Stream(spark, logs, maxOffsetsPerTrigger=4, **EARLIEST)
    keep = stream._keep

    def keep_and_append(rows: DataFrame, number: int) -> None:
        keep(rows, number)
        append(logs, 10 + 5 * number, 5)

    stream._keep = keep_and_append  # type: ignore[method-assign]
    assert stream.run() == [offsets(0, 1, 2, 3), offsets(4, 5, 6, 7), offsets(8, 9)]


def test_segments_that_are_rolled_and_deleted_once_they_were_read(
    spark: SparkSession, logs: Path
) -> None:
    stream = Stream(spark, logs, **EARLIEST)
    stream.run()
    write_segment(logs / "orders-0", 10, [batch_v2(plain_records(10, 4))])
    segment_path(logs / "orders-0", 0).unlink()
    assert [each for each in stream.run() if each] == [offsets(10, 11, 12, 13)]


def test_a_loss_fails_the_query_and_says_how_to_go_on(spark: SparkSession, logs: Path) -> None:
    stream = Stream(spark, logs, **EARLIEST)
    stream.run()
    write_segment(logs / "orders-0", 15, [batch_v2(plain_records(15, 1))])
    segment_path(logs / "orders-0", 0).unlink()
    loss = "offsets 10 to 14 of partition orders-0 were deleted before this query had "
    loss += "read them"
    if SPARK_VERSION < (4, 2):  # the end of the batch has been logged by the time it is noticed
        loss = "offsets 10 to 15 of partition orders-0 were to be read, and the log "
        loss += "holds offset 15"
    words = "pyspark_pylog.errors.StreamDataLossError: data loss: "
    advice = ". To go on with what is there, set option failOnDataLoss=false; the checkpoint may "
    advice += "stay as it is"
    assert words + loss + advice in stream.failure()
    stream.options["failOnDataLoss"] = False
    assert [each for each in stream.run() if each] == [offsets(15)]


def test_a_partition_that_comes_back_was_never_given_up(spark: SparkSession, logs: Path) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 2))]}, name="orders-1")
    stream = Stream(spark, logs, **EARLIEST)
    stream.run()
    (logs / "orders-1").rename(logs.parent / "aside")
    lines = stream.failure()
    assert any(
        "partition orders-1 is gone, which this query had read up to" in each for each in lines
    )
    (logs.parent / "aside").rename(logs / "orders-1")
    append(logs, 2, 1, partition=1)
    if SPARK_VERSION >= (4, 2):  # earlier versions log an end before they say where a batch starts
        assert [each for each in stream.run() if each] == [offsets(2, partition=1)]


def test_what_stands_at_load_is_said_at_load(spark: SparkSession, logs: Path) -> None:
    with pytest.raises(Exception, match="unknown option 'maxoffsetspertriger'; did you mean 'maxO"):
        Stream(spark, logs, maxOffsetsPerTriger=4).start()
    with pytest.raises(Exception, match="no topic 'order' here; did you mean 'orders'"):
        Stream(spark, logs, subscribe="order").start()


@pytest.mark.skipif(SPARK_VERSION >= (4, 2), reason="later versions have limits")
def test_limits_are_refused_where_spark_cannot_keep_them(spark: SparkSession, logs: Path) -> None:
    lines = Stream(spark, logs, maxOffsetsPerTrigger=4).failure()
    assert any("need Spark 4.2 or later" in line for line in lines)


def test_a_schema_of_the_users_reads_those_columns_alone(spark: SparkSession, logs: Path) -> None:
    stream = Stream(spark, logs, **EARLIEST)
    found: list[list[str]] = []

    def keep_columns(rows: DataFrame, number: int) -> None:
        assert number == 0
        found.append(rows.columns)

    stream._keep = keep_columns  # type: ignore[method-assign]
    query = stream.start(schema="offset bigint, value binary", availableNow=True)
    assert query.awaitTermination(ENDS_SOON_SECONDS)
    assert found == [["offset", "value"]]


@NEEDS_ADMISSION_CONTROL
def test_the_progress_has_the_offsets_of_the_kafka_source_and_the_lag(
    spark: SparkSession, logs: Path
) -> None:
    stream = Stream(spark, logs, maxOffsetsPerTrigger=4, **EARLIEST)
    query = stream.start(processingTime="1 hour")
    try:
        while query.lastProgress is None:
            assert query.exception() is None
        progress = query.lastProgress
    finally:
        query.stop()
    [source] = progress.sources
    assert json.loads(source.endOffset)["orders"] == {"0": 4}
    assert json.loads(source.latestOffset) == {"orders": {"0": 10}}
    assert source.numInputRows == 4
    assert pyspark_pylog.lag(progress) == {("orders", 0): 6}
    assert pyspark_pylog.lag(json.loads(progress.json)) == {("orders", 0): 6}
    # What the progress has can be where another query starts, or a batch read.
    rest = spark.read.format("pylog").option("startingOffsets", source.endOffset).load(str(logs))
    assert sorted(row.offset for row in rest.select("offset").collect()) == [4, 5, 6, 7, 8, 9]


def test_a_query_with_aggregation_and_watermark(spark: SparkSession, logs: Path) -> None:
    rows = spark.readStream.format("pylog").options(**EARLIEST).load(str(logs))
    counted = rows.groupBy("topic").count()
    query = (
        counted.writeStream.format("memory")
        .queryName("counted")
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(ENDS_SOON_SECONDS)
    assert [tuple(row) for row in spark.table("counted").collect()] == [("orders", 10)]


def test_a_stream_that_is_used_twice_in_a_query(spark: SparkSession, logs: Path) -> None:
    rows = spark.readStream.format("pylog").options(**EARLIEST).load(str(logs)).select("offset")
    query = (
        rows.union(rows)
        .writeStream.format("memory")
        .queryName("twice")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(ENDS_SOON_SECONDS)
    assert sorted(row.offset for row in spark.table("twice").collect()) == sorted([*range(10)] * 2)


def test_all_columns_of_the_kafka_source(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        Stored(0, 1_000, None, b"v", (("a", b"b"), ("a", None))),
        Stored(1, 1_001, b"k", None),
    ]
    write_partition(tmp_path / "logs", {0: [batch_v2(records)]})
    rows = spark.readStream.format("pylog").options(includeHeaders=True, **EARLIEST)
    query = (
        rows.load(str(tmp_path / "logs"))
        .selectExpr("*", "unix_millis(timestamp) AS ms")
        .drop("timestamp")
        .writeStream.format("memory")
        .queryName("columns")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(ENDS_SOON_SECONDS)
    headers = [("a", b"b"), ("a", None)]
    assert [
        (*row[:-2], row.headers and [tuple(each) for each in row.headers], row.ms)
        for row in spark.table("columns").orderBy("offset").collect()
    ] == [
        (None, b"v", "orders", 0, 0, 0, headers, 1_000),
        (b"k", None, "orders", 0, 1, 0, None, 1_001),
    ]


def test_a_continuous_trigger_is_refused_by_spark(spark: SparkSession, logs: Path) -> None:
    rows = spark.readStream.format("pylog").load(str(logs))
    writer = rows.writeStream.format("noop").trigger(continuous="1 second")
    with pytest.raises(Exception, match=r"(?i)continuous"):
        writer.option(
            "checkpointLocation", str(logs.parent / "checkpoint")
        ).start().awaitTermination(ENDS_SOON_SECONDS)


def test_a_topic_that_was_made_anew_is_not_taken_for_the_one_before(
    spark: SparkSession, logs: Path
) -> None:
    def name_topic(topic_id: str) -> None:
        text = f"version: 0\ntopic_id: {topic_id}"
        (logs / "orders-0" / "partition.metadata").write_text(text, "utf-8")

    name_topic("7bGSu7gYRDuEkZTQ2w4F_g")
    stream = Stream(spark, logs, **EARLIEST)
    stream.run()
    shutil.rmtree(logs / "orders-0")
    write_partition(logs, {0: [batch_v2(plain_records(0, 12))]})
    name_topic("a8GSu7gYRDuEkZTQ2w4F_g")
    assert any("topic orders was made anew" in line for line in stream.failure())
