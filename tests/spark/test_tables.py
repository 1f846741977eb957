"""Metadata tables in Spark are those of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.testing import assertDataFrameEqual

import pylog
from pylog.tables import TABLE_NAMES
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import NEEDS_SPARK, last_line, load

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pylog.tables import TableName
    from tests.support.golden import GoldenRoot

pytestmark = NEEDS_SPARK


UNKNOWN_TABLE = (
    "ValueError: option table: no table 'segmnts'; did you mean 'segments'? The tables are: "
    f"records, {', '.join(TABLE_NAMES)}"
)
NOT_OF_RECORDS = (
    "ValueError: table 'segments' is about whole logs and takes no option startingOffsets; choose "
    "logs by subscribe, assign or subscribePattern, and rows by WHERE"
)
UNKNOWN_COLUMN = (
    "ValueError: option columns names 'sise_in_bytes', which is not a column; did you mean "
    "'size_in_bytes'? The columns are: topic, partition, segment, "
)


@pytest.fixture
def payments(golden_root: GoldenRoot) -> Path:
    """Give a real broker's log directory with transactions in two partitions."""
    return golden_root.case("4.3.0/txn")


def of_library(spark: SparkSession, path: Path, table: TableName) -> DataFrame:
    """Return what the library reads, with milliseconds as Spark's microseconds."""
    return spark.createDataFrame(pylog.read_table(path, table))


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_every_table_has_the_library_s_columns_and_rows(
    spark: SparkSession, payments: Path, table: TableName
) -> None:
    frame = load(spark, payments, table=table.upper())
    expected = pylog.read_table(payments, table)
    assert frame.columns == expected.column_names
    found = frame.toArrow()
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        ours = expected[name]
        if str(ours.type).startswith("timestamp"):
            ours = ours.cast(pa.timestamp("us", tz="UTC")).cast("int64")
            assert found[name].cast("int64").to_pylist() == ours.to_pylist(), name
        else:
            assert found[name].to_pylist() == ours.to_pylist(), name


def test_each_partition_directory_is_one_task(spark: SparkSession, payments: Path) -> None:
    frame = load(spark, payments, table="batches")
    assert frame.rdd.getNumPartitions() == 2
    one = load(spark, payments, table="batches", assign='{"payments":[1]}')
    assert one.rdd.getNumPartitions() == 1
    assert {row.partition for row in one.collect()} == {1}


def test_a_part_of_the_columns_is_read_by_schema_or_option(
    spark: SparkSession, payments: Path
) -> None:
    whole = load(spark, payments, table="segments").select("offset_index", "max_timestamp")
    state = "STRUCT<state: STRING, entries: BIGINT, reason: STRING>"
    schema = f"offset_index {state}, max_timestamp TIMESTAMP"
    reader = spark.read.format("pylog").option("table", "segments").schema(schema)
    assertDataFrameEqual(reader.load(str(payments)), whole)
    named = load(spark, payments, table="segments", columns="offset_index,max_timestamp")
    assertDataFrameEqual(named, whole)


def test_sql_reads_a_table_through_a_temporary_view(spark: SparkSession, payments: Path) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW txn USING pylog OPTIONS (path '{payments}', "
        "table 'transactions')"
    )
    found = spark.sql("SELECT state, count(*) AS n FROM txn GROUP BY state ORDER BY state")
    assert {row.state: row.n for row in found.collect()} == {
        "aborted": 8,
        "committed": 12,
        "open": 1,
    }
    spark.catalog.dropTempView("txn")


def test_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    frame = load(spark, tmp_path, table="producers")
    assert (frame.count(), frame.columns[:3]) == (0, ["topic", "partition", "snapshot"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "segmnts"}, UNKNOWN_TABLE),
        ({"table": "segments", "startingOffsets": "earliest"}, NOT_OF_RECORDS),
        ({"table": "segments", "columns": "sise_in_bytes"}, UNKNOWN_COLUMN),
    ],
)
def test_what_makes_no_sense_is_reported_at_load(
    spark: SparkSession, payments: Path, options: dict[str, str], message: str
) -> None:
    assert last_line(lambda: load(spark, payments, **options)).startswith(message)


def test_damage_is_reported_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    path = segment_path(directory, 0)
    path.write_bytes(path.read_bytes() + b"\xff" * 100)
    message = last_line(load(spark, tmp_path, table="batches").collect)
    assert str(path) in message
    assert message.endswith(
        "look at another replica, set option mode=DROPMALFORMED, which leaves the damage out, or "
        "leave the partition out by subscribe, assign"
    )
