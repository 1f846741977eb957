"""What retention takes for a topic's configuration is what a real broker goes by, and says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType

import pylog
from pylog.errors import UnknownTopicConfigError
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.kafka_broker_tools import run_tool

if TYPE_CHECKING:
    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

    Configs = dict[str, dict[str, tuple[str, str]]]

pytestmark = pytest.mark.broker

CONFIGS = "org.apache.kafka.tools.ConfigCommand"
NAMES = ("cleanup.policy", "retention.ms", "retention.bytes")
TOPICS = ("altered", "kept", "plain")
RECORDS = 20
HOUR_MS = 3_600_000
PATIENCE_SECONDS = 60.0


def said_by_the_broker(broker: KafkaBroker) -> Configs:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in TOPICS]
    return {
        resource.name: {
            name: (entry.value, ConfigSource(entry.source).name)
            for name, entry in described.result(PATIENCE_SECONDS).items()
            if name in NAMES
        }
        for resource, described in admin.describe_configs(resources).items()
    }


def found_on_the_disk(broker: KafkaBroker) -> Configs:
    summary = pylog.apply_retention(
        broker.log_dir, topics=TOPICS, server_properties=server_properties(broker), dry_run=True
    )
    return {
        topic: {each.name: (each.value, str(each.source)) for each in entries}
        for topic, entries in summary.configs.items()
    }


def server_properties(broker: KafkaBroker) -> pylog.ServerProperties:
    return pylog.ServerProperties.read(broker.directory / "server.properties")


def alter(broker: KafkaBroker, *arguments: str) -> None:
    run_tool(CONFIGS, "--bootstrap-server", broker.bootstrap_servers, "--alter", *arguments)


def ensure_same(broker: KafkaBroker, topic: str, retention_ms: str, source: str) -> None:
    """Wait until the broker goes by what was altered; it and the disk then say the same."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (said := said_by_the_broker(broker))[topic]["retention.ms"] != (retention_ms, source):
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
    assert found_on_the_disk(broker) == said


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_a_topics_configuration_is_what_the_broker_says(
    new_broker: NewBroker, version: str
) -> None:
    broker = new_broker(version, properties={"log.retention.ms": str(100 * HOUR_MS)})
    broker.create_topic("altered", config={"retention.ms": "5000", "retention.bytes": "7777"})
    broker.create_topic("kept", config={"retention.ms": "-1"})
    broker.create_topic("plain")
    with broker.producer() as producer:
        for number in range(RECORDS):
            for topic in TOPICS:
                producer.send(topic, value=b"v%d" % number)
    ensure_same(broker, "plain", str(100 * HOUR_MS), "STATIC_BROKER_CONFIG")
    one_topic = ("--entity-type", "topics", "--entity-name", "altered")
    alter(
        broker, *one_topic, "--add-config", f"retention.ms={HOUR_MS}", "--delete-config", NAMES[2]
    )
    ensure_same(broker, "altered", str(HOUR_MS), "DYNAMIC_TOPIC_CONFIG")
    all_brokers = ("--entity-type", "brokers", "--entity-default")
    alter(broker, *all_brokers, "--add-config", "log.retention.ms=888888888")
    ensure_same(broker, "plain", "888888888", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    this_broker = ("--entity-type", "brokers", "--entity-name", "1")
    alter(broker, *this_broker, "--add-config", f"log.retention.ms={50 * HOUR_MS}")
    ensure_same(broker, "plain", str(50 * HOUR_MS), "DYNAMIC_BROKER_CONFIG")
    said = said_by_the_broker(broker)
    broker.stop()
    assert found_on_the_disk(broker) == said
    with pytest.raises(UnknownTopicConfigError, match=r"does not set cleanup\.policy"):
        pylog.apply_retention(broker.log_dir, topics=["kept"])

    now_ms = int(time.time() * 1000) + 2 * HOUR_MS
    done = pylog.apply_retention(
        broker.log_dir, topics=TOPICS, server_properties=server_properties(broker), now_ms=now_ms
    )
    assert {topic: each.segments for topic, each in done.by_topic.items()} == {
        "altered": 1,
        "kept": 0,
        "plain": 0,
    }
    broker.start()
    ends = pylog.open_directory(broker.log_dir)
    starts = {topic: ends[topic, 0].log_start_offset for topic in TOPICS}
    assert starts == {"altered": RECORDS, "kept": 0, "plain": 0}
