"""``option("table", "latest")``: the state of a topic, as a table of Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
import pyspark_pylog
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.tables.test_latest import STATES, expected, typed_orders, written

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK


@pytest.mark.parametrize(
    ("option", "value", "end"),
    [
        ("mode", "FAILFAST", 3_000),
        ("endingOffsets", '{"orders": {"0": 777}}', 777),
        ("endingTimestamp", "1234", 1_233),
    ],
)
def test_spark_has_the_state_at_an_offset_or_a_time(
    spark: SparkSession, tmp_path: Path, option: str, value: str, end: int
) -> None:
    records = written(tmp_path)
    frame = spark.read.format("pylog").option("table", "latest").option(option, value)
    rows = frame.load(str(tmp_path)).select("key", "offset", "value").collect()
    assert {bytes(row.key): (row.offset, bytes(row.value)) for row in rows} == expected(
        records, end
    )


def test_starting_offsets_make_no_sense(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path)
    frame = (
        spark.read.format("pylog").option("table", "latest").option("startingOffsets", "earliest")
    )
    message = "table 'latest' is about the last records of keys and takes no option startingOffsets"
    with pytest.raises(Exception, match=message):
        frame.load(str(tmp_path))


def test_each_partition_is_one_task_s(spark: SparkSession, tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "many", 3)
    frame = spark.read.format("pylog").options(table="latest", packPartitions="false")
    assert frame.load(str(tmp_path)).rdd.getNumPartitions() == 3


def test_spark_has_typed_values_of_the_last_records(spark: SparkSession, tmp_path: Path) -> None:
    wanted = typed_orders(tmp_path)
    reader = spark.read.format("pylog").options(table="latest", subscribe="orders")
    rows = reader.option("valueFormat", "auto").load(str(tmp_path)).select("key", "value").collect()
    assert {bytes(row.key): row.value.asDict() for row in rows} == wanted


@pytest.mark.parametrize("state", STATES)
def test_a_pushed_condition_is_about_the_last_value(
    spark: SparkSession, tmp_path: Path, state: str | None
) -> None:
    every = typed_orders(tmp_path)
    wanted = {key: value for key, value in every.items() if value["state"] == state}
    condition = "value.state IS NULL" if state is None else f"value.state = '{state}'"
    options = {"table": "latest", "subscribe": "orders", "valueFormat": "auto"}
    found = pyspark_pylog.table(spark, str(tmp_path), **options).where(condition)
    rows = found.select("key", "value").collect()
    assert {bytes(row.key): row.value.asDict() for row in rows} == wanted


def test_ids_and_reasons_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    wanted = typed_orders(tmp_path)
    names = "key,timestamp,value_schema_id,value_subject,_corrupt_record"
    reader = spark.read.format("pylog").options(table="latest", subscribe="orders", columns=names)
    rows = reader.option("valueFormat", "auto").load(str(tmp_path)).collect()
    assert {bytes(row.key) for row in rows} == wanted.keys()
    assert {row.value_schema_id for row in rows} == {1, 2}
    assert {(row.value_subject, row[4]) for row in rows} == {("orders-value", None)}


def test_other_tables_have_no_values(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path)
    reader = spark.read.format("pylog").options(table="segments", valueFormat="auto")
    with pytest.raises(Exception, match="table 'segments' is about whole logs and takes no option"):
        reader.load(str(tmp_path))
