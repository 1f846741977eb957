"""What a broker is filled with whose answers are compared with those of `pylog.serve`."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

import confluent_kafka

if TYPE_CHECKING:
    from tests.support.kafka_broker import KafkaBroker

SEED = 11
TOPICS = {"plain": 2, "changes": 1, "zipped": 1}
GROUP, OTHER_GROUP = "readers", "others"
_SMALL = {"segment.bytes": str(1 << 20)}


def fill(broker: KafkaBroker, transactions: int = 12) -> None:
    """Write three topics: of several segments, with transactions, compressed."""
    random = Random(SEED)
    for name, partitions in TOPICS.items():
        broker.create_topic(name, partitions=partitions, config=_SMALL)
    with broker.producer() as producer:
        for number in range(90):
            producer.send(
                "plain", value=random.randbytes(30_000), partition=0, timestamp_ms=1000 * number + 1
            )
    with broker.producer(compression_type="zstd", linger_ms=20) as producer:
        for number in range(200):
            producer.send("zipped", value=b"%d" % number * 20, headers=[("h", b"1")])
    options = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "changes"}
    writer = confluent_kafka.Producer(options)
    writer.init_transactions()
    for number in range(transactions):
        writer.begin_transaction()
        for each in range(5):
            writer.produce("changes", value=b"%d-%d" % (number, each))
        writer.flush()
        if number % 3 == 1:
            writer.abort_transaction()
        else:
            writer.commit_transaction()
    writer.begin_transaction()
    writer.produce("changes", value=b"undecided")
    writer.flush()


def await_epochs(broker: KafkaBroker) -> None:
    """Wait for the checkpoints of leader epochs, which are written in the background."""
    deadline = time.monotonic() + 60
    for topic in TOPICS:
        checkpoint = broker.partition_directory(topic) / "leader-epoch-checkpoint"
        while not checkpoint.exists() or checkpoint.read_text().split()[1:2] in ([], ["0"]):
            assert time.monotonic() < deadline, checkpoint
            time.sleep(0.1)


def commit(broker: KafkaBroker) -> None:
    """Commit offsets of two groups that have no members."""
    for group_id in (GROUP, OTHER_GROUP):
        options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group_id}
        consumer = confluent_kafka.Consumer(options)
        offsets = [("plain", 0, 12), ("plain", 1, 0), ("changes", 0, 7)]
        consumer.commit(
            offsets=[confluent_kafka.TopicPartition(*each) for each in offsets], asynchronous=False
        )
        consumer.close()
