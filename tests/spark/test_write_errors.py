"""What a user reads of a write that cannot be: the last line says what, and what to do.

After each, nothing of the job is in the log directory, and the same rows can be written there.
"""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import IllegalArgumentException

import pylog
from tests.support.spark_session import NEEDS_SPARK, last_line, save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = NEEDS_SPARK

HOST = f"host {socket.gethostname()}"
OVERWRITE = (
    'ValueError: format("pylog") appends to topics and replaces nothing: write .mode("append"), or '
    "INSERT INTO; to begin a topic anew, delete it before with pylog.delete_topic(directory, "
    "topic), or write to a new one"
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    pylog.write_topic(tmp_path / "logs", "orders", [(b"k", b"v")], partitions=2)
    return tmp_path / "logs"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(20).selectExpr("cast(id as string) key", "cast(id as string) value", "id")


@pytest.fixture(autouse=True)
def nothing_is_left_and_the_next_write_succeeds(rows: DataFrame, logs: Path) -> Iterator[None]:
    yield
    assert [path.name for path in logs.glob(".pylog-staged-*")] == []
    assert pylog.scan(logs, topics="orders").count() == 1
    save(rows, logs, topic="orders")
    assert pylog.scan(logs, topics="orders").count() == 21


def refusal(frame: DataFrame, logs: Path, **options: object) -> str:
    return last_line(lambda: save(frame, logs, **options))


def in_task(partition: int) -> str:
    return f"{HOST}, partition {partition} of the DataFrame: "


def test_save_without_a_mode_is_refused_by_spark_with_the_mode_to_write(
    rows: DataFrame, logs: Path
) -> None:
    for writer in (rows.write, rows.write.mode("ignore")):
        writer.format("pylog").option("topic", "orders")
        message = last_line(partial(writer.save, str(logs)))
        assert 'Please use either the "Append" or "Overwrite" mode instead.' in message


def test_overwrite_is_refused(spark: SparkSession, rows: DataFrame, logs: Path) -> None:
    writer = rows.write.format("pylog").mode("overwrite").option("topic", "orders")
    assert last_line(lambda: writer.save(str(logs))) == OVERWRITE
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW sink (key STRING, value STRING) USING pylog "
        f"OPTIONS (path '{logs}', topic 'orders')"
    )
    message = last_line(lambda: spark.sql("INSERT OVERWRITE sink VALUES ('a', 'b')"))
    assert message == OVERWRITE


def test_partition_by_is_refused_by_spark(rows: DataFrame, logs: Path) -> None:
    writer = rows.write.format("pylog").mode("append").option("topic", "orders").partitionBy("key")
    with pytest.raises(IllegalArgumentException):
        writer.save(str(logs))


def test_a_catalog_table_is_refused_since_spark_forgets_its_options(
    spark: SparkSession, rows: DataFrame, logs: Path
) -> None:
    options = f"OPTIONS (path '{logs}', topic 'orders')"
    spark.sql(f"CREATE TABLE orders_sink (key STRING, value STRING) USING pylog {options}")
    try:
        message = last_line(lambda: spark.sql("INSERT INTO orders_sink VALUES ('a', 'b')"))
        frame = rows.select("key", "value").write.mode("append")
        assert last_line(lambda: frame.insertInto("orders_sink")) == message
    finally:
        spark.sql("DROP TABLE orders_sink")
    assert message.startswith('ValueError: no path: say save("/path/to/kafka-logs"). ')
    assert (
        "INSERT INTO a view, CREATE TEMPORARY VIEW … USING pylog OPTIONS (path '/path/to" in message
    )


def test_an_option_with_a_typing_error(rows: DataFrame, logs: Path) -> None:
    assert refusal(rows, logs, topics="orders").startswith(
        "ValueError: unknown option 'topics'; did you mean 'topic'? The options are: path, topic, "
    )


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        (["key"], {"topic": "orders"}, "the DataFrame has no column 'value'; did you mean"),
        (["value"], {}, "nothing says which topic the rows go to: give option topic, for exam"),
        (["value", "array(1) headers"], {"topic": "orders"}, "column 'headers' is of type array<i"),
    ],
)
def test_columns_that_are_wrong_are_refused_before_a_task_runs(
    rows: DataFrame, logs: Path, columns: list[str], options: dict[str, str], reason: str
) -> None:
    fails_if_it_runs = "if(raise_error('a task has run') is null, value, value) value"
    chosen = [fails_if_it_runs if each == "value" else each for each in columns]
    message = refusal(rows.selectExpr(*chosen), logs, **options)
    assert message.startswith(f"ValueError: {reason}".removesuffix("; did you mean"))


def test_a_row_without_a_topic(rows: DataFrame, logs: Path) -> None:
    frame = rows.coalesce(1).selectExpr("if(id = 7, null, 'orders') topic", "value")
    assert refusal(frame, logs) == (
        f"ValueError: {in_task(0)}row 7 has no topic: name one for all rows, or leave the row out"
    )


def test_a_partition_that_is_not_there(rows: DataFrame, logs: Path) -> None:
    frame = rows.coalesce(1).selectExpr("cast(id as int) partition", "value")
    assert refusal(frame, logs, topic="orders").startswith(
        f"ValueError: {in_task(0)}row 2 goes to partition 2 of topic 'orders'; partitions that are"
    )


def test_a_row_without_a_key_for_a_compacted_topic(rows: DataFrame, logs: Path) -> None:
    frame = rows.coalesce(1).selectExpr("if(id = 3, null, key) key", "value")
    message = refusal(frame, logs, topic="compacted", **{"topic.cleanup.policy": "compact"})
    assert message == (
        f"pylog.errors.RecordValidationError: {in_task(0)}row 3 has no key, and topic 'compacted' "
        "is compacted: give it a key, or leave the row out"
    )
    assert list(pylog.open_directory(logs).topics) == ["orders"]


def test_a_header_without_a_name(rows: DataFrame, logs: Path) -> None:
    header = "array(named_struct('key', if(id = 4, null, 'h'), 'value', X'00')) headers"
    message = refusal(rows.coalesce(1).selectExpr("value", header), logs, topic="orders")
    assert message.startswith(f"ValueError: {in_task(0)}row 4")


def test_an_error_of_the_users_own_code_leaves_nothing(rows: DataFrame, logs: Path) -> None:
    # One task: a second one, killed while it stages, may write after the driver has cleaned up.
    frame = rows.coalesce(1).selectExpr("if(id = 9, raise_error('mine'), value) value")
    with pytest.raises(Exception, match="mine"):
        save(frame, logs, topic="orders")


def test_a_log_directory_that_somebody_else_has_open(rows: DataFrame, logs: Path) -> None:
    with pylog.logs.LogManager([logs]):
        message = refusal(rows, logs, topic="orders", commitTimeout="1s")
    assert message.startswith(f"pylog.errors.LogLockedError: {HOST}: {logs}/.lock: ")
    assert f"process {os.getpid()}" in message
    assert message.endswith(
        "; option commitTimeout says how long a write waits, for example 10 minutes"
    )


def test_a_directory_that_is_a_partition(rows: DataFrame, logs: Path) -> None:
    message = refusal(rows, logs / "orders-0", topic="orders")
    assert message == (
        f"pylog.errors.LogDirectoryError: {HOST}: {logs}/orders-0: this is a topic-partition "
        f"directory: give the log directory that holds it, {logs}"
    )
