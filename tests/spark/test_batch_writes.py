"""``df.write.format("pylog")``: what is written is what Spark, and the library, read again."""

from __future__ import annotations

import datetime as dt
import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

import pylog
from tests.support.spark_session import NEEDS_SPARK, SPARK_VERSION, load, save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = NEEDS_SPARK

HEADERS = "array<struct<key:string,value:binary>>"


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "logs"
    assert left_over(tmp_path / "logs") == []


def left_over(logs: Path) -> list[str]:
    """Return the names of files that only a job under way may have in the log directory."""
    names = {path.name for path in logs.glob(".pylog-*")}
    return sorted(names - {".pylog-ledger", ".pylog-only-replica"})


def records(logs: Path, *columns: str, topic: str = "orders") -> list[tuple[Any, ...]]:
    """Return the records of a topic by partition and offset."""
    scan = pylog.scan(logs, topics=topic, columns=list(columns), include_headers=True)
    return [tuple(row.values()) for row in scan.to_table().to_pylist()]


def keyed(spark: SparkSession, count: int = 500) -> DataFrame:
    return spark.range(count).selectExpr("concat('k', id % 50) key", "cast(id as string) value")


def test_all_columns_come_back_as_they_were(spark: SparkSession, logs: Path) -> None:
    instant = dt.datetime(2026, 1, 15, 5, 0, 0, 123_000, tzinfo=dt.UTC)
    early = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    rows = [
        (b"k0", b"v0", instant, [("a", b"1"), ("a", None), ("b", b"")]),
        (None, b"", early, None),
        (b"", None, instant, []),
        (b"\x00\xff", b"\xfe", instant, [("ä", b"\x00")]),
    ]
    frame = spark.createDataFrame(
        rows, f"key binary, value binary, timestamp timestamp, headers {HEADERS}"
    )
    save(frame.coalesce(1), logs, topic="orders")
    read = load(spark, logs, includeHeaders=True).sort("offset")
    # What has no header has none, as of Spark's kafka source.
    assert [
        (
            row.key and bytes(row.key),
            row.value and bytes(row.value),
            row.timestamp.astimezone(dt.UTC),
            None if row.headers is None else [tuple(each) for each in row.headers],
        )
        for row in read.collect()
    ] == [rows[0], (None, b"", early, None), (b"", None, instant, None), rows[3]]
    assert [
        (row.topic, row.partition, row.offset, row.timestampType) for row in read.collect()
    ] == [("orders", 0, offset, 0) for offset in range(4)]


def test_text_is_written_as_utf_8(spark: SparkSession, logs: Path) -> None:
    save(spark.sql("SELECT 'ключ' key, 'wért' value"), logs, topic="orders")
    assert records(logs, "key", "value") == [("ключ".encode(), "wért".encode())]


def test_a_timestamp_is_the_instant_that_the_session_shows(spark: SparkSession, logs: Path) -> None:
    # Midnight in New York; a record's timestamp has milliseconds, and what is finer is cut off.
    frame = spark.sql("SELECT 'v' value, timestamp'2026-01-15 00:00:00.123999' timestamp")
    save(frame, logs, topic="orders")
    instant = dt.datetime(2026, 1, 15, 5, 0, 0, 123_000, tzinfo=dt.UTC)
    assert records(logs, "timestamp") == [(instant,)]


def test_a_row_without_a_timestamp_is_of_the_time_of_writing(
    spark: SparkSession, logs: Path
) -> None:
    before = dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=1)
    frame = spark.sql("SELECT 'v' value, CAST(null AS TIMESTAMP) timestamp")
    save(frame, logs, topic="orders")
    save(frame.drop("timestamp"), logs, topic="orders")
    times = [time for (time,) in records(logs, "timestamp")]
    assert len(times) == 2
    assert all(before <= time <= dt.datetime.now(dt.UTC) for time in times)


def test_the_rows_of_a_read_can_be_written_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    save(keyed(spark), tmp_path / "a", topic="orders", numPartitions=3)
    save(load(spark, tmp_path / "a"), tmp_path / "b", numPartitions=3)
    columns = ("partition", "key", "value", "timestamp")
    assert sorted(records(tmp_path / "b", *columns)) == sorted(records(tmp_path / "a", *columns))


def test_rows_of_a_task_keep_their_order_in_a_partition(spark: SparkSession, logs: Path) -> None:
    frame = keyed(spark, 30_000).coalesce(1)
    save(frame, logs, topic="orders", numPartitions=3, batchSizeBytes="1k")
    values: dict[int, list[int]] = {}
    for partition, value in records(logs, "partition", "value"):
        values.setdefault(partition, []).append(int(value))
    assert sorted(values) == [0, 1, 2]
    assert all(each == sorted(each) for each in values.values())
    assert sorted(chain.from_iterable(values.values())) == list(range(30_000))


def test_keys_go_where_every_kafka_producer_sends_them(spark: SparkSession, tmp_path: Path) -> None:
    frame = keyed(spark)
    save(frame, tmp_path / "spark", topic="orders", numPartitions=7)
    pylog.write_topic(tmp_path / "library", "orders", frame.toArrow(), partitions=7)
    placed = {tuple(row) for row in records(tmp_path / "spark", "partition", "key")}
    assert placed == {tuple(row) for row in records(tmp_path / "library", "partition", "key")}
    # As Kafka's UtilsTest has murmur2 of these: 1540579149 of "abc"… modulo partitions.
    known = spark.createDataFrame([("21",), ("foobar",)], "key string")
    save(known.selectExpr("key", "key value"), tmp_path / "known", topic="orders", numPartitions=7)
    hashes = {b"21": -973932308, b"foobar": -790332482}
    expected = {((number & 0x7FFFFFFF) % 7, key) for key, number in hashes.items()}
    assert set(records(tmp_path / "known", "partition", "key")) == expected


def test_the_column_partition_comes_before_the_partitioner(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = keyed(spark)
    by_key, by_column, by_null = (tmp_path / name for name in ("by-key", "by-column", "by-null"))
    save(frame, by_key, topic="orders", numPartitions=4)
    save(frame.withColumn("partition", F.lit(2)), by_column, topic="orders", numPartitions=4)
    no_number = F.lit(None).cast("int")
    save(frame.withColumn("partition", no_number), by_null, topic="orders", numPartitions=4)
    assert {row[0] for row in records(by_column, "partition")} == {2}
    assert set(records(by_null, "partition", "key")) == set(records(by_key, "partition", "key"))


def test_a_partitioner_can_be_chosen(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(8).coalesce(1).selectExpr("cast(10 - id as string) key", "'v' value")
    for name in ("round_robin", "integer_key"):
        save(frame, tmp_path / name, topic="orders", numPartitions=4, partitioner=name)
    assert records(tmp_path / "round_robin", "partition", "key") == [
        *((0, b"10"), (0, b"6"), (1, b"9"), (1, b"5")),
        *((2, b"8"), (2, b"4"), (3, b"7"), (3, b"3")),
    ]
    assert set(records(tmp_path / "integer_key", "partition", "key")) == {
        (number % 4, b"%d" % number) for number in range(3, 11)
    }


def test_each_row_may_name_its_topic(spark: SparkSession, logs: Path) -> None:
    frame = spark.range(10).selectExpr("if(id % 3 = 0, 'a', 'b') topic", "cast(id as string) value")
    save(frame, logs, numPartitions=2)
    assert sorted(records(logs, "value", topic="a")) == [(b"0",), (b"3",), (b"6",), (b"9",)]
    assert len(records(logs, "value", topic="b")) == 6
    assert sorted(pylog.open_directory(logs).topics) == ["a", "b"]
    names = {path.name for path in logs.iterdir() if path.is_dir()}
    assert names == {"a-0", "a-1", "b-0", "b-1"}


def test_the_option_topic_comes_before_the_column(spark: SparkSession, logs: Path) -> None:
    save(spark.sql("SELECT 'foo' topic, 'v' value"), logs, topic="orders")
    assert list(pylog.open_directory(logs).topics) == ["orders"]


def test_a_topic_that_the_write_creates_has_the_properties_given(
    spark: SparkSession, logs: Path
) -> None:
    given: dict[str, object] = {"topic.retention.ms": -1, "topic.cleanup.policy": "compact"}
    save(keyed(spark, 3), logs, topic="orders", **given)
    save(keyed(spark, 3), logs, topic="plain", numPartitions=3)
    with pylog.logs.LogManager([logs]) as manager:
        assert manager.config_of("orders").retention_ms == -1
        assert manager.config_of("orders").is_compact
        assert not manager.config_of("plain").is_compact
    # A topic that is there keeps what it has.
    save(keyed(spark, 3), logs, topic="plain", numPartitions=5, **given)
    with pylog.logs.LogManager([logs]) as manager:
        assert not manager.config_of("plain").is_compact
        partitions = [each.partition for each in manager.logs if each.topic == "plain"]
    assert sorted(partitions) == [0, 1, 2]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_compressed_as_the_option_says(
    spark: SparkSession, logs: Path, codec: str
) -> None:
    save(keyed(spark), logs, topic="orders", compression=codec)
    frame = load(spark, logs, includeBatchMetadata=True)
    assert {row.compression for row in frame.select("batch.compression").collect()} == {codec}
    assert frame.count() == 500


def test_a_level_and_the_size_of_batches_can_be_given(spark: SparkSession, logs: Path) -> None:
    frame = spark.range(400).coalesce(1).selectExpr("repeat(cast(id as string), 100) value")
    save(frame, logs, topic="large", compression="gzip", level=9)
    save(frame, logs, topic="small", batchSizeBytes="10k")
    batches = pylog.read_table(logs, "batches").to_pylist()
    large = [each for each in batches if each["topic"] == "large"]
    small = [each for each in batches if each["topic"] == "small"]
    assert len(large) == 1
    assert len(small) >= 11
    assert all(each["size_in_bytes"] <= 10 << 10 for each in small)


def test_a_dataframe_without_rows_writes_nothing(spark: SparkSession, logs: Path) -> None:
    save(keyed(spark, 0), logs, topic="orders")
    assert [path.name for path in logs.iterdir() if path.is_dir()] == []
    save(keyed(spark, 5), logs, topic="orders")
    save(keyed(spark, 0), logs, topic="orders")
    assert len(records(logs, "value")) == 5


def test_a_job_that_is_run_again_writes_nothing_twice(spark: SparkSession, logs: Path) -> None:
    save(keyed(spark, 100), logs, topic="orders", jobId="nightly-1")
    save(keyed(spark, 100), logs, topic="orders", jobId="nightly-1")
    save(keyed(spark, 7), logs, topic="others", jobId="nightly-1")
    assert len(records(logs, "value")) == 100
    assert list(pylog.open_directory(logs).topics) == ["orders"]
    save(keyed(spark, 100), logs, topic="orders", jobId="nightly-2")
    assert len(records(logs, "value")) == 200


def test_without_a_job_id_every_write_is_a_job_of_its_own(spark: SparkSession, logs: Path) -> None:
    frame = keyed(spark, 10)
    save(frame, logs, topic="orders")
    save(frame, logs, topic="orders")
    assert len(records(logs, "value")) == 20


def test_a_topic_can_be_read_and_written_in_one_job(spark: SparkSession, logs: Path) -> None:
    save(keyed(spark, 100), logs, topic="orders")
    save(load(spark, logs, subscribe="orders"), logs, topic="orders")
    assert len(records(logs, "value")) == 200


def test_sql_inserts_into_a_view(spark: SparkSession, logs: Path) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW sink (key STRING, value STRING) USING pylog "
        f"OPTIONS (path '{logs}', topic 'orders', numPartitions '2')"
    )
    spark.sql("INSERT INTO sink VALUES ('a', '1'), ('b', '2')")
    spark.sql("INSERT INTO sink SELECT 'c', cast(id as string) FROM range(3)")
    expected = [(b"a", b"1"), (b"b", b"2"), (b"c", b"0"), (b"c", b"1"), (b"c", b"2")]
    assert sorted(records(logs, "key", "value")) == expected


def test_sql_inserts_into_a_view_that_is_read_too(spark: SparkSession, logs: Path) -> None:
    save(keyed(spark, 1), logs, topic="orders")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW both USING pylog OPTIONS (path '{logs}')")
    if SPARK_VERSION >= (4, 1):
        spark.sql("INSERT INTO both (topic, key, value) VALUES ('orders', X'61', X'31')")
    else:  # it wants a value for each column
        spark.sql("INSERT INTO both VALUES (X'61', X'31', 'orders', NULL, NULL, NULL, NULL)")
    assert records(logs, "key", "value") == [(b"k0", b"0"), (b"a", b"1")]
    assert spark.table("both").count() == 2


def test_a_view_that_writes_says_how_to_read(spark: SparkSession, logs: Path) -> None:
    with pytest.raises(Exception, match="option 'topic' is for writes, not for reads; to read a"):
        load(spark, logs, topic="orders")


def test_columns_of_any_width_and_rows_of_any_number_are_taken(
    spark: SparkSession, logs: Path
) -> None:
    # Spark hands over 10,000 rows or 64 MB at a time, and long types if it is told so.
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        save(keyed(spark, 25_000), logs, topic="orders")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert len(records(logs, "value")) == 25_000


def test_a_whole_row_can_be_written_as_json(spark: SparkSession, logs: Path) -> None:
    save(spark.range(1, 1000).select(F.to_json(F.struct("*")).alias("value")), logs, topic="orders")
    values = [json.loads(value)["id"] for (value,) in records(logs, "value")]
    assert sorted(values) == list(range(1, 1000))


def test_more_bytes_than_a_task_keeps_in_memory_are_written(
    spark: SparkSession, logs: Path
) -> None:
    frame = spark.range(6_000).coalesce(1).selectExpr("rpad(cast(id as string), 15000, '.') value")
    save(frame, logs, topic="orders", numPartitions=2)
    found = [(len(value), int(value.rstrip(b"."))) for (value,) in records(logs, "value")]
    assert sorted(found) == [(15_000, number) for number in range(6_000)]
