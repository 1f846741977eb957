from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_pylog import topic_views
from tests.support.spark_session import NEEDS_SPARK, spark
from tests.unit.reading.typed_logs import write_orders, write_values

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

__all__ = ["spark"]
pytestmark = NEEDS_SPARK


def test_topics_are_tables_with_typed_values_where_there_is_a_schema(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_orders(tmp_path)
    write_values(tmp_path, "plain.text-0", [b"x"])
    write_values(tmp_path, "ORDERS-0", [b"x"])

    with caplog.at_level(logging.WARNING):
        made = topic_views(spark, str(tmp_path), valueFormat="auto")

    assert [each for each in made if each.lower() in ("orders", "plain.text")] == [
        "ORDERS",
        "plain.text",
    ]
    assert "topic orders has no view: Spark takes its name for that of ORDERS" in caplog.text
    assert spark.sql("SELECT CAST(value AS STRING) FROM `plain.text`").first() == ("x",)


def test_a_view_has_the_fields_of_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    write_orders(tmp_path)

    topic_views(spark, str(tmp_path), valueFormat="auto")

    assert spark.sql("SELECT max(value.id) FROM orders").first() == (2,)
