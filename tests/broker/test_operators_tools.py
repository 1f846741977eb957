"""Groups, transactions and topics of a running broker's directory are what Kafka's tools say."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.kafka_broker_tools import run_tool, tool_table
from tests.support.librdkafka import commit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
RECORDS = 40
COMMITTED = {0: 7, 1: 11}


def fill(broker: KafkaBroker) -> confluent_kafka.Producer:
    """Write two topics, commit offsets, and leave the producer's transaction open."""
    broker.create_topic("orders", partitions=2, config={"retention.ms": "86400000"})
    broker.create_topic("short-lived")
    broker.admin().delete_topics(["short-lived"])
    with broker.producer() as producer:
        for number in range(RECORDS):
            producer.send("orders", value=b"v%d" % number, partition=number % 2)
    options = {"bootstrap.servers": broker.bootstrap_servers, "enable.auto.commit": False}
    offsets = [
        confluent_kafka.TopicPartition("orders", partition, offset)
        for partition, offset in COMMITTED.items()
    ]
    consumer = confluent_kafka.Consumer(options | {"group.id": "plain"})
    commit(consumer, offsets)
    consumer.close()
    undecided = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "the-id",
            "transaction.timeout.ms": 900_000,
        }
    )
    undecided.init_transactions()
    undecided.begin_transaction()
    consumer = confluent_kafka.Consumer(options | {"group.id": "in-transaction"})
    undecided.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
    undecided.commit_transaction()
    consumer.close()
    undecided.begin_transaction()
    undecided.produce("orders", value=b"not decided", partition=1)
    undecided.flush()
    return undecided


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_groups_transactions_and_topics_are_what_kafkas_tools_say(
    new_broker: NewBroker, tmp_path: Path, version: str
) -> None:
    broker = new_broker(
        version,
        properties={
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "2",
        },
    )
    producer = fill(broker)
    at = ("--bootstrap-server", broker.bootstrap_servers)
    directory = broker.log_dir
    described = tool_table(run_tool(GROUPS, *at, "--describe", "--all-groups"))
    assert {
        (row["GROUP"], row["TOPIC"], row["PARTITION"]): tuple(
            int(row[name]) for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
        )
        for row in described
    } == {
        (group.group_id, each.topic, str(each.partition)): (
            each.offset,
            each.log_end_offset,
            each.lag,
        )
        for group in pylog.groups(directory).groups
        for each in group.offsets
    }
    assert len(described) == 4

    (listed,) = tool_table(run_tool(TRANSACTIONS, *at, "list"))
    (found,) = pylog.transactions(directory).transactions
    assert (found.transactional_id, str(found.producer_id), found.coordinator_state) == (
        listed["TransactionalId"],
        listed["ProducerId"],
        listed["TransactionState"],
    )
    producers = ("describe-producers", "--topic", "orders", "--partition", "1")
    first_offsets = {
        row["ProducerId"]: row["CurrentTransactionStartOffset"]
        for row in tool_table(run_tool(TRANSACTIONS, *at, *producers))
    }
    assert first_offsets[str(found.producer_id)] == str(found.first_offset)
    assert (found.topic, found.partition, found.is_hanging) == ("orders", 1, False)

    ours = {each.topic: each for each in pylog.topics(directory).topics}
    for line in run_tool(TOPICS, *at, "--describe").splitlines():
        fields = dict(part.split(": ", 1) for part in line.strip().split("\t") if ": " in part)
        topic = ours[fields["Topic"]]
        if "TopicId" in fields:
            assert fields["TopicId"] == topic.topic_id
            assert int(fields["PartitionCount"]) == len(topic.partitions)
            assert int(fields["ReplicationFactor"]) == topic.replication_factor
            own = {f"{name}={value}" for name, value in (topic.configs or {}).items()}
            assert own <= set(fields["Configs"].split(","))
        else:
            partition = topic.partitions[int(fields["Partition"])]
            assert (int(fields["Leader"]), fields["Replicas"], fields["Isr"]) == (
                partition.leader,
                ",".join(map(str, partition.replicas or ())),
                ",".join(map(str, partition.isr or ())),
            )
    assert [each.topic for each in pylog.topics(directory).deleted] == ["short-lived"]

    path = tmp_path / "offsets.csv"
    with path.open("w", newline="") as file:
        for group in pylog.groups(directory, groups=["plain"]).groups:
            for each in group.offsets:
                csv.writer(file).writerow([group.group_id, each.topic, each.partition, each.offset])
    options = ("--reset-offsets", "--group", "plain", "--from-file", str(path), "--dry-run")
    planned = tool_table(run_tool(GROUPS, *at, *options))
    assert {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in planned} == COMMITTED
    producer.abort_transaction()
