"""What a broker is filled with whose answers are compared with those of `pylog.serve`."""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING

import confluent_kafka

from tests.support import librdkafka

if TYPE_CHECKING:
    from pathlib import Path

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
    options: dict[str, str | int] = {
        "bootstrap.servers": broker.bootstrap_servers,
        "transactional.id": "changes",
        "transaction.timeout.ms": 900_000,  # the last one is open as long as anybody looks
    }
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


def copy_beside(broker: KafkaBroker, to: Path) -> None:
    """Copy the directory of a running broker, without files that it is about to rename."""
    shutil.copytree(broker.log_dir, to, ignore=shutil.ignore_patterns("*.tmp"))


def commit(broker: KafkaBroker) -> None:
    """Commit offsets of two groups that have no members."""
    for group_id in (GROUP, OTHER_GROUP):
        options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group_id}
        consumer = confluent_kafka.Consumer(options)
        offsets = [("plain", 0, 12), ("plain", 1, 0), ("changes", 0, 7)]
        librdkafka.commit(consumer, [confluent_kafka.TopicPartition(*each) for each in offsets])
        consumer.close()
