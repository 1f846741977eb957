"""Threads that write to a broker all the time and enter what they write into ledgers."""

from __future__ import annotations

import functools
import itertools
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer
from kafka.structs import TopicPartitionReplica

from tests.broker.background_thread import BackgroundThread
from tests.broker.ledger import Ledger, Sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka import KafkaProducer

    from tests.support.kafka_broker import KafkaBroker

_PAUSE_SECONDS = 0.02
_LIFE_SECONDS = 0.5
_KEYS = 300
_EVERY_WHICH_TRANSACTION_ABORTS = 3
_EVERY_WHICH_RECORD_IS_A_TOMBSTONE = 17


def key_of(offset: int) -> bytes:
    """Return the key at an offset: some of them often, some rarely."""
    mixed = offset * 2_654_435_761 >> 7
    return b"key-%d" % (mixed % _KEYS if offset % 4 else mixed % 10)


def value_of(name: str, offset: int) -> bytes:
    """Return the value at an offset, which tells where it belongs; 100 to 700 bytes."""
    return b"%s:%d:" % (name.encode(), offset) + b"%08x" % (offset * 40_503) * (10 + offset % 70)


class GroupReader(BackgroundThread):
    """A thread that reads topics as a consumer group, and commits where it is."""

    def __init__(self, broker: KafkaBroker, topics: Sequence[str]) -> None:
        super().__init__()
        self._broker = broker
        self._topics = topics

    def work(self) -> None:
        with closing(
            KafkaConsumer(
                *self._topics,
                bootstrap_servers=self._broker.bootstrap_servers,
                group_id="live",
                auto_offset_reset="earliest",
                auto_commit_interval_ms=100,
            )
        ) as consumer:
            while not self.has_to_end.is_set():
                consumer.poll(100)


class TopicChanger(BackgroundThread):
    """A thread that creates topics, and deletes them again."""

    def __init__(self, broker: KafkaBroker) -> None:
        super().__init__()
        self._broker = broker

    def work(self) -> None:
        for number in itertools.count():
            topic = f"passing{number}"
            self._broker.create_topic(topic)
            if self.has_to_end.wait(_LIFE_SECONDS):
                return
            self._broker.admin().delete_topics([topic])


class PartitionMover(BackgroundThread):
    """A thread that has partitions 0 of topics moved between the disks of a broker, in turn."""

    def __init__(self, broker: KafkaBroker, topics: Sequence[str]) -> None:
        super().__init__()
        self._broker = broker
        self._topics = topics
        self.moves = 0

    def work(self) -> None:
        admin = self._broker.admin()
        disks = self._broker.log_dirs
        places = dict.fromkeys(self._topics, 0)
        for topic in itertools.cycle(self._topics):
            if self.has_to_end.wait(_PAUSE_SECONDS):
                return
            places[topic] = (places[topic] + 1) % len(disks)
            replica = TopicPartitionReplica(topic, 0, 1)
            admin.alter_replica_log_dirs({replica: str(disks[places[topic]])})
            self.moves += 1


class Writer(BackgroundThread):
    """A thread with a producer.

    Parameters
    ----------
    broker
        Where to write.
    ledgers
        The partitions to write to, in turn.
    records_a_round
        For each partition, between two short pauses.
    tombstones_in
        A topic in which some values are null.
    **options
        Of the producer.
    """

    def __init__(
        self,
        broker: KafkaBroker,
        ledgers: Sequence[Ledger],
        *,
        records_a_round: int,
        tombstones_in: str | None = None,
        **options: Any,  # noqa: ANN401 - of KafkaProducer
    ) -> None:
        super().__init__()
        self._broker = broker
        self._ledgers = ledgers
        self._records_a_round = records_a_round
        self._tombstones_in = tombstones_in
        self._options = options

    def check(self) -> None:
        """Raise what ended the thread before its time, or what was acknowledged as not planned."""
        super().check()
        surprises = [each for ledger in self._ledgers for each in ledger.surprises]
        assert not surprises, surprises[:10]

    def work(self) -> None:
        """Write until the block is left."""
        with self._broker.producer(**self._options) as producer:
            self._write(producer)

    def _write(self, producer: KafkaProducer) -> None:
        while not self.has_to_end.wait(_PAUSE_SECONDS):
            self._send_round(producer, is_committed=True)
        producer.flush()

    def _send_round(self, producer: KafkaProducer, *, is_committed: bool) -> None:
        for ledger in self._ledgers:
            for _ in range(self._records_a_round):
                self._send(producer, ledger, is_committed=is_committed)

    def _send(self, producer: KafkaProducer, ledger: Ledger, *, is_committed: bool) -> None:
        offset = ledger.next_offset
        value: bytes | None = value_of(ledger.name, offset)
        if ledger.topic == self._tombstones_in and offset % _EVERY_WHICH_RECORD_IS_A_TOMBSTONE == 0:
            value = None
        last_timestamp = ledger.sent[-1].timestamp if ledger.sent else 0
        now = max(time.time_ns() // 1_000_000, last_timestamp)  # a clock may be set back
        sent = Sent(offset, now, key_of(offset), value, is_committed)
        ledger.plan(sent)
        future = producer.send(
            ledger.topic,
            key=sent.key,
            value=sent.value,
            partition=ledger.partition,
            timestamp_ms=sent.timestamp,
        )
        future.add_callback(functools.partial(ledger.acknowledge, planned=offset))


class TransactionalWriter(Writer):
    """Writes transactions; every third one is aborted."""

    def _write(self, producer: KafkaProducer) -> None:
        producer.init_transactions()
        count = 0
        while not self.has_to_end.wait(_PAUSE_SECONDS):
            count += 1
            is_committed = count % _EVERY_WHICH_TRANSACTION_ABORTS != 0
            starts = [ledger.next_offset for ledger in self._ledgers]
            producer.begin_transaction()
            self._send_round(producer, is_committed=is_committed)
            producer.flush()  # an abort would drop what has not been sent yet
            # The coordinator lets a transaction write after the one before it has its markers.
            for ledger, start in zip(self._ledgers, starts, strict=True):
                ledger.settle(start)
                ledger.decide()
            if is_committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
