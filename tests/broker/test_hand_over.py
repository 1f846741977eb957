"""Who continues where an export ended gets the rest from the broker: nothing missing or twice."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pyarrow.parquet as pq
import pytest

from pylog_jobs import export
from tests.support.java_source import java_command
from tests.support.kafka_broker_tools import run_tool
from tests.support.spark_session import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

__all__ = ["spark"]

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
JAVA = Path(__file__).parent / "java"
TOOL_SECONDS = 120


def produce(broker: KafkaBroker, numbers: range) -> None:
    with broker.producer() as producer:
        for number in numbers:
            producer.send("orders", value=b"%d" % number, partition=number % 3)


def rest_of(broker: KafkaBroker, group: str, count: int) -> list[int]:
    """Return the values that a consumer of the group gets, until there are so many."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "error",
        }
    )
    consumer.subscribe(["orders"])
    found: list[int] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None, message.error()
        found.append(int(message.value() or b""))
    consumer.close()
    return found


def test_a_consumer_group_and_connect_continue_where_the_export_ends(
    new_broker: NewBroker, spark: SparkSession, tmp_path: Path
) -> None:
    broker = new_broker()
    broker.create_topic("orders", partitions=3)
    produce(broker, range(100))
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    to = tmp_path / "offsets"
    arguments = [str(broker.log_dir), str(tmp_path / "lake"), "--topic", "orders"]
    given = parser.parse_args([*arguments, "--hand-over", str(to)])
    export.run(spark.newSession(), export.prepare(given))
    produce(broker, range(100, 160))

    at = ("--bootstrap-server", broker.bootstrap_servers, "--group", "sink")
    reset = ("--reset-offsets", "--from-file", str(to / "consumer-group.csv"), "--execute")
    run_tool(GROUPS, *at, *reset)
    exported = pq.read_table(tmp_path / "lake", columns=["value"])["value"].to_pylist()
    rest = rest_of(broker, "sink", 60)
    assert sorted([*map(int, exported), *rest]) == list(range(160))

    done = subprocess.run(
        [*java_command(JAVA / "ConnectOffsets.java"), str(to / "connect-offsets.json")],
        capture_output=True,
        text=True,
        check=True,
        timeout=TOOL_SECONDS,
    )
    assert sorted(done.stdout.splitlines()) == ["orders-0 34", "orders-1 33", "orders-2 33"]
