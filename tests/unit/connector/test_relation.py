"""What a `PylogTable` shows of itself, before any Spark is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

import pyspark_pylog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", None)


def test_a_table_shows_its_path_options_and_conditions() -> None:
    orders = pyspark_pylog.table(NO_SPARK, "/mnt/kafka-logs", subscribe="orders", minPartitions=8)
    assert repr(orders) == "PylogTable('/mnt/kafka-logs', subscribe='orders', minPartitions=8)"
    narrowed = orders.where("offset > 5").where("key IS NOT NULL")
    assert repr(narrowed) == f"{orders!r}.where('offset > 5').where('key IS NOT NULL')"
    several = pyspark_pylog.table(NO_SPARK, ["/a/orders-0", "/a/orders-1"])
    assert repr(several) == "PylogTable('/a/orders-0', '/a/orders-1')"


@pytest.mark.parametrize(
    "path",
    [
        "s3://AKIA:hidden@bucket/logs?region=hidden",
        "ftp://user:hidden@host/logs",
    ],
)
def test_a_table_shows_no_secret(path: str) -> None:
    options = {"kafka.ssl.key.password": "hidden", "Path": "s3://AKIA:hidden@bucket/x"}
    text = repr(pyspark_pylog.table(NO_SPARK, path, **options))
    assert "hidden" not in text
    assert "kafka.ssl.key.password=…" in text
