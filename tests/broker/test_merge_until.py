"""What a broker serves of a result that is as at an instant: whole transactions, and groups."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

import pylog
from pylog.jobs import merge
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.broker

TOPIC, PARTITIONS, GROUP = "orders", 3, "readers"


class Instant(NamedTuple):
    """A moment of the history, and the values that readers of committed records had then."""

    timestamp: int
    committed: frozenset[bytes]
    is_in_transaction: bool


def now() -> int:
    """Return an instant that lies after all that was sent, and before all that is sent later."""
    instant = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= instant:
        pass
    return instant


def history(broker: KafkaBroker, seed: int) -> list[Instant]:
    """Have two transactional producers and a plain one write, and a group commit now and then."""
    rng = random.Random(seed)
    instants = []
    committed: set[bytes] = set()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id=GROUP, enable_auto_commit=False
    )
    consumer.assign([TopicPartition(TOPIC, each) for each in range(PARTITIONS)])
    try:
        with (
            broker.producer() as plain,
            broker.producer(transactional_id="one") as one,
            broker.producer(transactional_id="other") as other,
        ):
            for each in (one, other):
                each.init_transactions()
            for number in range(24):
                producer = rng.choice((one, other))
                values = []
                producer.begin_transaction()
                for partition in rng.sample(range(PARTITIONS), rng.randint(1, PARTITIONS)):
                    for at in range(rng.randint(1, 4)):
                        values.append(b"%d-%d-%d" % (number, partition, at))
                        producer.send(TOPIC, values[-1], partition=partition).get(60)
                alone = b"plain-%d" % number
                plain.send(TOPIC, alone, partition=number % PARTITIONS).get(60)
                committed.add(alone)
                if number % 5 == 3:
                    instants.append(Instant(now(), frozenset(committed), is_in_transaction=True))
                if rng.random() < 0.75:
                    producer.commit_transaction()
                    committed.update(values)
                else:
                    producer.abort_transaction()
                broker.wait_for_markers("one", "other")
                if number % 3 == 1:
                    consumer.commit(
                        {
                            each: OffsetAndMetadata(end, "", -1)
                            for each, end in consumer.end_offsets(consumer.assignment()).items()
                        }
                    )
                if number % 5 == 1:
                    instants.append(Instant(now(), frozenset(committed), is_in_transaction=False))
    finally:
        consumer.close()
    return instants


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("version", [NEWEST_VERSION, LAST_VERSION_3])
def test_a_broker_serves_what_was_committed_by_the_instant(tmp_path: Path, version: str) -> None:
    with KafkaBroker(tmp_path / "old", version=version, log_dir=tmp_path / "disk") as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        instants = history(broker, seed=55)
        broker.kill()
    (tmp_path / "disk" / ".lock").unlink(missing_ok=True)
    assert {each.is_in_transaction for each in instants} == {True, False}
    markers = 0
    for number, instant in enumerate(instants):
        result = tmp_path / f"merged-{number}"
        done = merge(tmp_path / "disk", to=result, until=pylog.Timestamp(instant.timestamp))
        markers += sum(len(each.transactions) for each in done.partitions)
        scan = pylog.scan(result, topics=[TOPIC], isolation="read_committed", columns=["value"])
        assert set(scan.to_table()["value"].to_pylist()) == instant.committed
        ends = {each.partition: each.end_offset for each in done.partitions if each.topic == TOPIC}
        positions = pylog.groups(result).groups[0].offsets if number else ()
        assert all((each.offset or 0) <= ends[each.partition] for each in positions)
    assert markers  # some instant was within a transaction
    in_one = next(each for each in reversed(instants) if each.is_in_transaction)
    _serves(tmp_path, version, in_one, tmp_path / f"merged-{instants.index(in_one)}")


def _serves(tmp_path: Path, version: str, instant: Instant, result: Path) -> None:
    with KafkaBroker(tmp_path / "new", version=version, log_dir=tmp_path / "new-disk") as broker:
        broker.stop()
        broker.is_to_be_formatted = False
        pylog.adopt(result, into=tmp_path / "new-disk")
        broker.start()
        found = broker.consume(TOPIC, PARTITIONS, "read_committed")
        served = [each.value or b"" for records in found.values() for each in records]
        assert sorted(served) == sorted(instant.committed)
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id=GROUP, enable_auto_commit=False
        )
        try:
            places = [TopicPartition(TOPIC, each) for each in range(PARTITIONS)]
            ends = consumer.end_offsets(places)
            for each in places:
                assert (consumer.committed(each) or 0) <= ends[each]
        finally:
            consumer.close()
        with broker.producer(transactional_id="one") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(TOPIC, b"new", partition=0).get(60)
            producer.commit_transaction()
        assert broker.consume(TOPIC, PARTITIONS, "read_committed")[0][-1].value == b"new"
