"""How a DataFrame over a log behaves."""

from __future__ import annotations

import gc
import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.datasource import DataSource, DataSourceReader

from pyspark_pylog.spark_workarounds.worker_process import prepare_worker
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import (
    NEEDS_SPARK,
    PLANS_ONCE,
    SPARK_CONF,
    last_line,
    load,
    require_java,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.batches import Built

pytestmark = NEEDS_SPARK


def batches(first: int, end: int) -> list[Built]:
    return [
        batch_v2([Stored(offset, offset, b"k%d" % (offset % 3), b"v%d" % offset)])
        for offset in range(first, end)
    ]


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """Give orders-0 and -1 with offsets 0 to 9 in two segments each."""
    for name in ("orders-0", "orders-1"):
        write_partition(tmp_path, {0: batches(0, 6), 6: batches(6, 10)}, name=name)
    return tmp_path


_FRESH = """
import sys
from pylog_jobs.session import spark_session
session = spark_session("fresh")
print(session.read.format("pylog").load(sys.argv[1]).count(), "rows")
print(session.read.format("PyLog").load(sys.argv[1]).count(), "rows")
session.stop()
"""


def test_a_fresh_spark_finds_the_source_without_registration(
    log_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_java()
    monkeypatch.setenv("SPARK_CONF_DIR", str(SPARK_CONF))
    monkeypatch.chdir(log_directory)  # not where the sources are
    done = subprocess.run(
        [sys.executable, "-c", _FRESH, str(log_directory)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout == "20 rows\n20 rows\n", done.stderr


def test_each_partition_directory_is_one_input_partition(
    spark: SparkSession, log_directory: Path
) -> None:
    frame = load(spark, log_directory)
    assert frame.rdd.getNumPartitions() == 2
    assert load(spark, log_directory / "orders-1").rdd.getNumPartitions() == 1
    by_task = frame.select("partition", F.spark_partition_id().alias("task")).distinct()
    assert sorted(by_task.collect()) == [Row(partition=0, task=0), Row(partition=1, task=1)]


def test_nothing_to_read_gives_an_empty_frame_with_all_columns(
    spark: SparkSession, log_directory: Path
) -> None:
    empty = load(spark, log_directory, startingOffsets='{"orders":10}')
    assert (empty.count(), empty.collect(), empty.isEmpty()) == (0, [], True)
    assert empty.toArrow().num_rows == 0
    assert_df_equality(empty, load(spark, log_directory).where("false"))


def test_a_query_that_stops_early_gets_its_rows_and_harms_none_after_it(
    spark: SparkSession, log_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, log_directory).selectExpr("offset", "cast(value AS string) AS value")
    assert frame.limit(2).collect() == [Row(offset=0, value="v0"), Row(offset=1, value="v1")]
    assert frame.head() == Row(offset=0, value="v0")
    assert len(frame.take(15)) == 15
    frame.show(3)
    assert "|     2|   v2|" in capsys.readouterr().out
    assert frame.count() == 20


def test_a_frame_is_a_snapshot_and_a_new_load_sees_what_came(
    spark: SparkSession, log_directory: Path
) -> None:
    before = load(spark, log_directory)
    assert before.count() == 20
    with segment_path(log_directory / "orders-0", 6).open("ab") as log:
        log.write(batch_v2([Stored(10, 10, None, b"new")]).data)
    write_partition(log_directory, {0: batches(0, 3)}, name="orders-2")
    after = load(spark, log_directory)
    assert after.count() == 24
    if not PLANS_ONCE:
        assert before.count() == 24
        return
    assert (before.count(), before.where("offset < 10").count()) == (20, 20)
    new = after.subtract(before).select("partition", "offset").orderBy("partition", "offset")
    assert [tuple(row) for row in new.collect()] == [(0, 10), (2, 0), (2, 1), (2, 2)]


def test_a_frame_used_twice_in_a_query_gives_the_right_rows(
    spark: SparkSession, log_directory: Path
) -> None:
    frame = load(spark, log_directory)
    low, high = frame.where("offset < 3"), frame.where("offset >= 8")
    assert low.union(high).count() == 6 + 4
    assert (low.count(), high.count(), frame.count()) == (6, 4, 20)
    joined = frame.alias("a").join(frame.alias("b"), ["partition", "offset"])
    assert joined.count() == 20
    assert joined.where("a.value = b.value AND a.key = b.key").count() == 20
    left = frame.alias("a").where("a.partition = 0")
    right = frame.alias("b").where("b.partition = 1")
    assert left.join(right, "offset").count() == 10
    frame.createOrReplaceTempView("of_orders")
    [row] = spark.sql(
        "SELECT (SELECT count(*) FROM of_orders WHERE offset > 7) a, (SELECT count(*) FROM "
        "of_orders) b, (SELECT max(offset) FROM of_orders WHERE partition = 1) c"
    ).collect()
    assert tuple(row) == (4, 20, 9)


@pytest.fixture
def view(spark: SparkSession, log_directory: Path) -> Iterator[str]:
    spark.sql(
        f"CREATE TEMPORARY VIEW from_sql USING pylog OPTIONS (path '{log_directory}', "
        "subscribe 'orders', endingOffsets '{\"orders\":5}', includeHeaders true)"
    )
    yield "from_sql"
    spark.catalog.dropTempView("from_sql")


def test_sql_makes_a_view_with_options(spark: SparkSession, view: str) -> None:
    found = spark.sql(
        f"SELECT partition, count(*) AS records, max(offset) AS last FROM {view} "  # noqa: S608
        "WHERE CAST(key AS STRING) = 'k1' AND headers IS NULL GROUP BY partition ORDER BY partition"
    )
    assert found.collect() == [
        Row(partition=0, records=2, last=4),
        Row(partition=1, records=2, last=4),
    ]


def test_sql_makes_a_view_with_columns_of_its_own(spark: SparkSession, log_directory: Path) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW narrow (offset BIGINT, topic STRING) USING pylog "
        f"OPTIONS (path '{log_directory}')"
    )
    assert spark.table("narrow").columns == ["offset", "topic"]
    assert spark.sql("SELECT sum(offset) FROM narrow WHERE topic = 'orders'").first() == (90,)


def test_timestamps_are_instants_whatever_the_session_s_time_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    # 2024-11-03 01:30 comes twice in New York; and a record without a timestamp has -1 ms.
    times = [1_730_611_800_123, 1_730_615_400_123, -1, 0]
    records = [Stored(offset, time, None, b"v") for offset, time in enumerate(times)]
    write_partition(tmp_path, {0: [batch_v2([record]) for record in records]})
    frame = load(spark, tmp_path)
    found = frame.selectExpr("unix_millis(timestamp) AS ms", "cast(timestamp AS string) AS text")
    assert [tuple(row) for row in found.collect()] == [
        (1_730_611_800_123, "2024-11-03 01:30:00.123"),
        (1_730_615_400_123, "2024-11-03 01:30:00.123"),
        (-1, "1969-12-31 18:59:59.999"),
        (0, "1969-12-31 19:00:00"),
    ]
    at = "timestamp_millis(1730615400123)"
    assert [row.offset for row in frame.where(f"timestamp = {at}").collect()] == [1]


def test_rows_reach_python_as_the_kafka_source_s_do(
    spark: SparkSession, log_directory: Path
) -> None:
    frame = load(spark, log_directory / "orders-0", endingOffsets='{"orders":1}')
    [row] = frame.drop("timestamp").collect()
    assert row == Row(
        key=b"k0", value=b"v0", topic="orders", partition=0, offset=0, timestampType=0
    )
    assert list(frame.select("value").toPandas().value) == [b"v0"]  # type: ignore[attr-defined]
    assert frame.toArrow().column("topic").to_pylist() == ["orders"]


def test_a_batch_larger_than_a_window_is_read(spark: SparkSession, tmp_path: Path) -> None:
    value = bytes(range(256)) * 40_000  # 10 MB
    big = [batch_v2([Stored(0, 0, b"k", value)]), batch_v2([Stored(1, 0, b"k", b"small")])]
    write_partition(tmp_path, {0: big})
    found = load(spark, tmp_path).selectExpr("offset", "md5(value) AS digest").collect()
    assert [tuple(row) for row in found] == [
        (offset, hashlib.md5(content, usedforsecurity=False).hexdigest())
        for offset, content in enumerate((value, b"small"))
    ]


def test_workers_exempt_loaded_modules_from_collection(spark: SparkSession) -> None:
    """Spark collects garbage after each task; walking all modules takes longer than a small one."""

    # In the function, so that it travels to the workers by value.
    class FrozenReader(DataSourceReader):
        def read(self, _: object) -> Iterator[tuple[int]]:
            for _ in range(2):  # as at the beginning of two tasks
                prepare_worker()
            yield (gc.get_freeze_count(),)

    class FrozenObjects(DataSource):
        @classmethod
        def name(cls) -> str:
            return "frozen_objects"

        def schema(self) -> str:
            return "frozen bigint"

        def reader(self, schema: object) -> DataSourceReader:
            return FrozenReader()

    spark.dataSource.register(FrozenObjects)
    rows = spark.read.format("frozen_objects").load().collect()
    assert [row.frozen > 10_000 for row in rows] == [True]


def test_other_processes_keep_their_collection() -> None:
    for _ in range(2):
        prepare_worker()
    assert gc.get_freeze_count() == 0


MICROSECONDS = 1_764_201_600_000_000  # taken for milliseconds: a TIMESTAMP has them, in 57875
NANOSECONDS = 1000 * MICROSECONDS  # and these it has not
TIMES = [1_764_201_600_000, MICROSECONDS, NANOSECONDS, -1, 1_764_201_600_001]


@pytest.fixture
def far(tmp_path: Path) -> Path:
    built = [
        batch_v2([Stored(offset, time_ms, b"k", b"v"), Stored(offset + 1, 5, None, None)])
        for offset, time_ms in zip(range(0, 10, 2), TIMES, strict=True)
    ]
    write_partition(tmp_path, {0: built})
    return tmp_path


def test_timestamps_may_be_read_as_milliseconds(spark: SparkSession, far: Path) -> None:
    frame = load(spark, far, timestampUnit="milliseconds")
    assert dict(frame.dtypes)["timestamp"] == "bigint"
    found = {row.offset: row.timestamp for row in frame.collect()}
    assert [found[offset] for offset in range(0, 10, 2)] == TIMES
    assert {found[offset] for offset in range(1, 10, 2)} == {5}
    late = frame.where(f"timestamp >= {MICROSECONDS}").select("offset")
    assert sorted(row.offset for row in late.collect()) == [2, 4]
    assert frame.where("timestamp = 5").count() == 5
    assert frame.select("offset").count() == 10


def test_a_timestamp_that_is_too_far_is_an_error_or_null_with_the_reason(
    spark: SparkSession, far: Path
) -> None:
    message = last_line(load(spark, far).collect)
    assert "option timestampUnit=milliseconds" in message
    frame = load(
        spark,
        far,
        mode="PERMISSIVE",
        columns="offset,value,timestamp,_corrupt_record",
    )
    rows = {
        row.offset: row
        for row in frame.withColumn("timestamp", F.expr("unix_millis(timestamp)")).collect()
    }
    assert {offset: row["timestamp"] for offset, row in rows.items()} == {
        **dict.fromkeys(range(1, 10, 2), 5),
        **dict(zip(range(0, 10, 2), TIMES, strict=True)),
        4: None,
    }
    assert rows[4].value == bytearray(b"v")
    assert rows[4]["_corrupt_record"] == (
        f"timestamp {NANOSECONDS} ms is more than a TIMESTAMP holds: read with option "
        "timestampUnit=milliseconds"
    )
    assert [row["_corrupt_record"] for offset, row in rows.items() if offset != 4] == [None] * 9
    assert load(spark, far, mode="PERMISSIVE").where("timestamp IS NULL").count() == 1
