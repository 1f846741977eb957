"""What Spark has written, a real broker serves: records, partitions of keys, files as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.spark_session import last_line, load, save, spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

__all__ = ["spark"]

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 3
KEYS = 50
ROWS = 4_000


def rows_of(spark: SparkSession, text: str) -> DataFrame:
    columns = (f"concat('k', id % {KEYS}) key", f"concat('{text} ', id) value")
    return spark.range(ROWS, numPartitions=3).selectExpr(*columns)


def places(broker: KafkaBroker) -> dict[int, list[tuple[bytes | None, bytes | None]]]:
    return {
        partition: [(each.key, each.value) for each in records]
        for partition, records in broker.consume("orders", PARTITIONS).items()
    }


def read(spark: SparkSession, directory: Path) -> dict[int, list[tuple[bytes, bytes]]]:
    frame = load(spark, directory, subscribe="orders", columns="partition,offset,key,value")
    found: dict[int, list[tuple[bytes, bytes]]] = {each: [] for each in range(PARTITIONS)}
    for row in frame.sort("partition", "offset").collect():
        found[row.partition].append((bytes(row.key), bytes(row.value)))
    return found


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_broker_and_spark_take_turns_in_one_log_directory(
    spark: SparkSession, new_broker: NewBroker, version: str
) -> None:
    broker = new_broker(version)
    broker.create_topic("orders", PARTITIONS)
    with broker.producer() as producer:
        for number in range(KEYS):
            key = f"k{number}".encode()
            producer.send("orders", key=key, value=b"from a producer").get(30)
    message = last_line(
        lambda: save(rows_of(spark, "in vain"), broker.log_dir, topic="orders", commitTimeout="1s")
    )
    assert message.startswith("pylog.errors.LogLockedError: host ")
    broker.stop()

    save(rows_of(spark, "large"), broker.log_dir, topic="orders", batchSizeBytes="4k")
    save(rows_of(spark, "small"), broker.log_dir, topic="orders", compression="zstd")
    written = {path: path.read_bytes() for path in broker.log_dir.glob("orders-*/*.log")}

    broker.start()
    found = places(broker)
    partition_of = {
        key: partition
        for partition, records in found.items()
        for key, value in records
        if value == b"from a producer"
    }
    assert len(partition_of) == KEYS
    expected = {(b"k%d" % (number % KEYS), number) for number in range(ROWS)}
    for text in (b"large", b"small"):
        of_job = [
            (partition, key, value)
            for partition, records in found.items()
            for key, value in records
            if value is not None and value.startswith(text)
        ]
        assert {(key, int(value.split()[1])) for _, key, value in of_job} == expected
        assert len(of_job) == ROWS
        assert all(partition == partition_of[key] for partition, key, _ in of_job)
    with broker.producer() as producer:
        producer.send("orders", key=b"k1", value=b"later", partition=0).get(30)
    assert places(broker)[0][-1] == (b"k1", b"later")
    broker.stop()
    assert "unclean shutdown" not in broker.server_log
    assert "Truncating" not in broker.server_log
    assert all(path.read_bytes().startswith(content) for path, content in written.items())

    save(rows_of(spark, "last"), broker.log_dir, topic="orders")
    broker.start()
    last = places(broker)
    broker.stop()
    assert read(spark, broker.log_dir) == last
    assert pylog.scan(broker.log_dir, topics="orders").count() == KEYS + 3 * ROWS + 1
