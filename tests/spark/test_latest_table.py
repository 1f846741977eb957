"""``option("table", "latest")``: the state of a topic, as a table of Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.tables.test_latest import expected, written

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
