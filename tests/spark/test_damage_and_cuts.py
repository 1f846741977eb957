"""Options about damage, lost records and directories that are not live; and about cutting reads.

Those that cut a read into tasks change no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_log_start_offsets, write_partition
from tests.support.spark_plans import tasks_of
from tests.support.spark_session import NEEDS_SPARK, PLANS_ONCE, last_line, load

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.batches import Built

pytestmark = NEEDS_SPARK

RECORDS = 20


def batches(first: int, end: int) -> list[Built]:
    return [
        batch_v2([Stored(offset, 1000 * offset, b"k%d" % (offset % 5), b"v" * 100)])
        for offset in range(first, end)
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give orders-0 and orders-1 with `RECORDS` records each, in two segments of unlike size."""
    directory = tmp_path_factory.mktemp("sound")
    for name in ("orders-0", "orders-1"):
        segments = {0: batches(0, 15), 15: batches(15, RECORDS)}
        write_partition(directory, segments, name=name)
    return directory


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Give orders-0 with offsets 0 to 9, of which 4 has a wrong checksum; orders-1 is sound."""
    write_partition(tmp_path, {0: batches(0, 10)}, name="orders-1")
    path = segment_path(write_partition(tmp_path, {0: batches(0, 10)}), 0)
    flip(path, 5 * len(batches(4, 5)[0].data) - 1)
    return tmp_path


def offsets(frame: DataFrame, partition: int = 0) -> list[int | None]:
    """Return a partition's offsets in the order read."""
    return [row.offset for row in frame.where(f"partition = {partition}").collect()]


def test_failfast_is_the_default_and_tells_file_and_byte(
    spark: SparkSession, damaged: Path
) -> None:
    message = last_line(load(spark, damaged).collect)
    size = len(batches(4, 5)[0].data)
    assert "pylog.errors.CorruptRecordError" in message
    assert f"{segment_path(damaged / 'orders-0', 0)} at byte {4 * size}: " in message
    assert last_line(load(spark, damaged, mode="failfast").collect) == message


def test_dropmalformed_leaves_out_exactly_the_damage(spark: SparkSession, damaged: Path) -> None:
    frame = load(spark, damaged, mode="DROPMALFORMED")
    assert offsets(frame) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert offsets(frame, 1) == [*range(10)]
    assert frame.count() == 19
    assert "_corrupt_record" not in frame.columns
    findings = load(spark, damaged, table="findings")
    assert findings.where("partition = 0").count() > 0
    assert findings.where("partition = 1 AND severity = 'error'").count() == 0


@pytest.mark.parametrize("way", ["columns", "schema"])
def test_permissive_gives_a_row_of_nulls_that_tells_the_damage(
    spark: SparkSession, damaged: Path, way: str
) -> None:
    reader = spark.read.format("pylog").option("mode", "permissive")
    if way == "columns":
        reader = reader.option("columns", "partition,offset,value,_corrupt_record")
    else:
        reader = reader.schema("partition INT, offset BIGINT, value BINARY, _corrupt_record STRING")
    frame = reader.load(str(damaged))
    assert offsets(frame) == [0, 1, 2, 3, None, 5, 6, 7, 8, 9]
    [row] = frame.where("_corrupt_record IS NOT NULL").collect()
    assert (row.partition, row.offset, row.value) == (0, None, None)
    assert str(segment_path(damaged / "orders-0", 0)) in row["_corrupt_record"]
    assert "CRC" in row["_corrupt_record"]


def test_permissive_gives_the_row_also_where_nothing_tells_of_it(
    spark: SparkSession, damaged: Path
) -> None:
    frame = load(spark, damaged, mode="PERMISSIVE")
    assert "_corrupt_record" not in frame.columns
    assert offsets(frame) == [0, 1, 2, 3, None, 5, 6, 7, 8, 9]
    whole = frame.where("partition = 0 AND offset IS NULL").select("value", "timestamp", "topic")
    assert [tuple(row) for row in whole.collect()] == [(None, None, "orders")]


def test_a_directory_that_cannot_be_listed_is_left_out_and_has_a_row(
    spark: SparkSession, damaged: Path
) -> None:
    (damaged / "aaa-0").symlink_to("aaa-0")
    assert "Too many levels of symbolic links" in last_line(lambda: load(spark, damaged).count())
    assert load(spark, damaged, mode="DROPMALFORMED").count() == 19
    frame = load(spark, damaged, mode="PERMISSIVE", columns="topic,offset,_corrupt_record")
    [row] = frame.where("topic = 'aaa'").collect()
    assert row["_corrupt_record"].startswith(f"{damaged}/aaa-0: cannot be read; records from ")
    assert frame.where("topic = 'orders'").count() == 20


def test_permissive_refuses_columns_that_cannot_be_null(spark: SparkSession, damaged: Path) -> None:
    reader = (
        spark.read.format("pylog").option("mode", "PERMISSIVE").schema("offset BIGINT NOT NULL")
    )
    message = last_line(reader.load(str(damaged)).count)
    assert "declares 'offset' NOT NULL, but mode PERMISSIVE gives a row of nulls" in message


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 2),
        ({"minPartitions": 1}, 2),
        ({"minPartitions": 7}, 7),
        ({"maxRecordsPerPartition": 8}, 6),
        ({"maxRecordsPerPartition": 1_000_000}, 2),
        ({"maxPartitionBytes": "1k"}, 8),
        ({"maxPartitionBytes": "1g"}, 2),
        ({"maxPartitionBytes": "1000b", "minPartitions": 3}, 8),
        ({"minPartitions": 2 * RECORDS - 1}, 2 * RECORDS - 1),
        ({"minPartitions": 2 * RECORDS + 10}, 2 * RECORDS),
    ],
)
def test_cuts_change_the_tasks_and_no_row(
    spark: SparkSession, sound: Path, options: dict[str, object], tasks: int
) -> None:
    frame = load(spark, sound, **options)
    found = frame.rdd.getNumPartitions()
    assert found == len(tasks_of(frame))
    assert found == tasks if tasks == 2 else found >= tasks
    rows = sorted((row.partition, row.offset) for row in frame.collect())
    assert rows == [(partition, offset) for partition in (0, 1) for offset in range(RECORDS)]
    some = frame.where("key = X'6B33' AND offset >= 10").groupBy("partition").count()
    assert sorted(map(tuple, some.collect())) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_cuts_change_no_row_around_damage(spark: SparkSession, damaged: Path, mode: str) -> None:
    whole = sorted(map(str, load(spark, damaged, mode=mode).collect()))
    cut = load(spark, damaged, mode=mode, maxRecordsPerPartition=2)
    assert cut.rdd.getNumPartitions() > 2
    assert sorted(map(str, cut.collect())) == whole


def test_timestamp_disorder_ends_a_read_early_where_the_user_vouches_for_it(
    spark: SparkSession, sound: Path
) -> None:
    conf = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(conf, "true")
    try:
        for disorder in ("0ms", "5 seconds", "1h"):
            frame = load(spark, sound, pushdown="on", timestampDisorder=disorder)
            assert frame.where("timestamp < timestamp_millis(7000)").count() == 14
    finally:
        spark.conf.unset(conf)
    message = last_line(lambda: load(spark, sound, timestampDisorder="soon"))
    assert "option timestampDisorder is 'soon', expected a duration like 500ms" in message


def test_directories_that_are_not_live_are_read_when_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: batches(0, 3)}, name="orders-0")
    gone = "0123456789abcdef0123456789abcdef"
    write_partition(tmp_path, {0: batches(0, 5)}, name=f"orders-1.{gone}-delete")
    write_partition(tmp_path, {0: batches(0, 7)}, name=f"orders-2.{gone}-stray")
    write_partition(tmp_path, {0: batches(0, 9)}, name=f"orders-3.{gone}-future")

    def counts(**options: object) -> dict[int, int]:
        grouped = load(spark, tmp_path, **options).groupBy("partition").count()
        return {row["partition"]: row["count"] for row in grouped.collect()}

    assert counts() == counts(includeStray="false") == {0: 3}
    assert counts(includeStray="true") == {0: 3, 1: 5, 2: 7, 3: 9}


def test_a_start_that_moves_between_two_actions_is_lost_records_or_not_as_the_option_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_partition(tmp_path, {0: batches(0, 4), 4: batches(4, 9)})
    frames = {
        fails: load(spark, tmp_path, failOnDataLoss=str(fails).lower()) for fails in (True, False)
    }
    assert [frame.count() for frame in frames.values()] == [9, 9]
    write_log_start_offsets(tmp_path, {("orders", 0): 4})
    segment_path(tmp_path / "orders-0", 0).unlink()  # as retention does
    if PLANS_ONCE:
        error = last_line(frames[True].collect)
        assert "records of orders-0 are lost, offsets 0 to 3;" in error
    else:  # plans anew at each action, so that nothing which was planned is lost
        assert offsets(frames[True]) == [4, 5, 6, 7, 8]
    assert offsets(frames[False]) == [4, 5, 6, 7, 8]
    assert frames[False].count() == 5


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_sharing_tasks_changes_no_row(spark: SparkSession, damaged: Path, mode: str) -> None:
    for number in range(40):
        write_partition(damaged, {0: batches(0, 4)}, name=f"invoices-{number}")
    alone = load(spark, damaged, mode=mode, packPartitions="false")
    shared = load(spark, damaged, mode=mode, packPartitions="true")
    assert alone.rdd.getNumPartitions() == 42
    assert shared.rdd.getNumPartitions() == 2
    assert load(spark, damaged, mode=mode).rdd.getNumPartitions() == 42  # few: one each
    rows = alone.collect()
    assert len(rows) == 160 + 19 + (mode == "PERMISSIVE")
    assert shared.collect() == rows
    late = "offset > 2 AND partition < 5"
    assert shared.where(late).collect() == alone.where(late).collect()
    segments = load(spark, damaged, table="segments", packPartitions="true")
    assert segments.rdd.getNumPartitions() == 2
    assert segments.collect() == load(spark, damaged, table="segments").collect()


# ---- one answer, of Spark, too


@pytest.mark.parametrize(
    "options",
    [{}, {"minPartitions": 5}, {"maxRecordsPerPartition": 7}, {"mode": "DROPMALFORMED"}],
    ids=str,
)
@pytest.mark.parametrize("start", [0, 12])
def test_where_segments_overlap_rows_are_those_of_a_consumer_however_they_are_split(
    spark: SparkSession, tmp_path: Path, start: int, options: dict[str, object]
) -> None:
    def of(segment: bytes, first: int, end: int) -> list[Built]:
        return [batch_v2([Stored(at, at, b"k", segment)]) for at in range(first, end)]

    write_partition(tmp_path, {0: of(b"a", 0, 20), 10: of(b"b", 10, 30), 30: of(b"c", 30, 35)})
    frame = load(spark, tmp_path, startingOffsets=f'{{"orders":{{"0":{start}}}}}', **options)
    rows = frame.where("offset < 28").select("offset", "value").collect()
    expected = b"a" * 20 + b"b" * 8 if start == 0 else b"b" * 16
    assert [row.offset for row in rows] == list(range(start, 28))
    assert b"".join(bytes(row.value) for row in rows) == expected
