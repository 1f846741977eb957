"""``CREATE TABLE … USING pylog``: a table in the catalog, read by queries and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import segment_path, write_partition
from tests.support.spark_session import NEEDS_SPARK, last_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = NEEDS_SPARK


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give orders-0 and -1 with offsets 0 to 9, in a path with a space."""
    directory = tmp_path / "kafka logs"
    for name in ("orders-0", "orders-1"):
        batches = [batch_v2([Stored(offset, offset, b"k", b"v")]) for offset in range(10)]
        write_partition(directory, {0: batches[:5], 5: batches[5:]}, name=name)
    return directory


@pytest.fixture(autouse=True)
def tables_are_dropped(spark: SparkSession) -> Iterator[None]:
    yield
    for each in spark.catalog.listTables():
        if not each.isTemporary:
            spark.sql(f"DROP TABLE {each.name}")


def test_a_table_is_read_with_its_options(spark: SparkSession, logs: Path) -> None:
    spark.sql(
        f"CREATE TABLE orders USING pylog OPTIONS (path '{logs}', "
        "startingOffsets '{\"orders\":{\"0\":3}}', columns 'partition,offset')"
    )
    query = "SELECT partition, count(*), min(offset) FROM orders GROUP BY ALL ORDER BY ALL"
    assert [tuple(row) for row in spark.sql(query).collect()] == [(0, 7, 3), (1, 10, 0)]
    assert spark.table("orders").where("offset = 3").count() == 2
    other_partition = (
        "SELECT * FROM orders WITH (startingOffsets = 'earliest', assign = '{\"orders\":[1]}')"
    )
    assert spark.sql(other_partition).count() == 10


def test_a_location_is_a_path(spark: SparkSession, logs: Path) -> None:
    spark.sql(f"CREATE TABLE orders USING pylog LOCATION '{logs}'")
    assert spark.table("orders").count() == 20


def test_each_query_sees_what_came_since_the_last(spark: SparkSession, logs: Path) -> None:
    spark.sql(f"CREATE TABLE orders USING pylog OPTIONS (path '{logs}')")
    assert spark.sql("SELECT * FROM orders").count() == 20
    with segment_path(logs / "orders-0", 5).open("ab") as log:
        log.write(batch_v2([Stored(10, 10, b"k", b"new")]).data)
    assert spark.sql("SELECT * FROM orders").count() == 21


def test_a_stream_reads_a_table(spark: SparkSession, logs: Path, tmp_path: Path) -> None:
    options = f"OPTIONS (path '{logs}', startingOffsets 'earliest')"
    spark.sql(f"CREATE TABLE orders USING pylog {options}")
    query = (
        spark.readStream.table("orders")
        .writeStream.format("memory")
        .queryName("streamed_orders")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert spark.table("streamed_orders").count() == 20
    spark.catalog.dropTempView("streamed_orders")


def test_a_dropped_table_leaves_its_directory(spark: SparkSession, logs: Path) -> None:
    before = sorted(logs.rglob("*"))
    spark.sql(f"CREATE TABLE orders USING pylog OPTIONS (path '{logs}')")
    spark.sql("ALTER TABLE orders RENAME TO renamed")
    spark.sql("DROP TABLE renamed PURGE")
    spark.sql("CREATE DATABASE of_logs")
    spark.sql(f"CREATE TABLE of_logs.orders USING pylog LOCATION '{logs}'")
    spark.sql("DROP DATABASE of_logs CASCADE")
    assert sorted(logs.rglob("*")) == before


def test_an_error_of_the_options_is_raised_when_the_table_is_made(
    spark: SparkSession, logs: Path
) -> None:
    statement = f"CREATE TABLE orders USING pylog OPTIONS (path '{logs}', subscrib 'orders')"
    assert "did you mean 'subscribe'?" in last_line(lambda: spark.sql(statement))
    assert not spark.catalog.tableExists("orders")


@pytest.mark.parametrize(
    "options",
    [
        "path 's3://reader:hidden@bucket/logs'",
        "path 's3://bucket/logs?secret_key=hidden'",
        "path 's3://bucket/logs', 'storage.secret_key' 'hidden'",
        "path '{logs}', 'kafka.sasl.jaas.config' 'hidden'",
    ],
)
def test_a_secret_does_not_get_into_the_catalog(
    spark: SparkSession, logs: Path, options: str
) -> None:
    statement = f"CREATE TABLE orders USING pylog OPTIONS ({options.format(logs=logs)})"
    message = last_line(lambda: spark.sql(statement))
    assert "may hold a password or a key, which a catalog would show" in message
    assert "hidden" not in message
    assert not spark.catalog.tableExists("orders")


def test_a_table_with_a_list_of_columns_says_how_to_make_it(
    spark: SparkSession, logs: Path
) -> None:
    columns = "(offset BIGINT, value BINARY)"
    spark.sql(f"CREATE TABLE orders {columns} USING pylog OPTIONS (path '{logs}')")
    message = last_line(lambda: spark.table("orders").collect())
    assert message.endswith(
        "CREATE TABLE … USING pylog OPTIONS (path '/path/to/kafka-logs'), without a list of "
        "columns, with which Spark keeps no options (option columns chooses some)."
    )


def test_rows_are_inserted_into_views_and_not_into_tables(spark: SparkSession, logs: Path) -> None:
    spark.sql(f"CREATE TABLE orders USING pylog OPTIONS (path '{logs}', columns 'key,value')")
    message = last_line(lambda: spark.sql("INSERT INTO orders VALUES (X'00', X'01')"))
    assert "INSERT INTO a view, CREATE TEMPORARY VIEW … USING pylog OPTIONS (path " in message
    spark.sql("DROP TABLE orders")
    message = last_line(lambda: spark.range(1).write.format("pylog").saveAsTable("orders"))
    assert "INSERT INTO a view, CREATE TEMPORARY VIEW … USING pylog OPTIONS (path " in message
