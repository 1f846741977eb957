"""Threads that write to a broker all the time and enter what they write into ledgers."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from tests.broker.ledger import Ledger, Sent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from kafka import KafkaProducer

    from tests.support.kafka_broker import KafkaBroker

_PAUSE_SECONDS = 0.02
_KEYS = 300
_JOIN_SECONDS = 60.0
_EVERY_WHICH_TRANSACTION_ABORTS = 3
_EVERY_WHICH_RECORD_IS_A_TOMBSTONE = 17


def key_of(offset: int) -> bytes:
    """Return the key at an offset: some of them often, some rarely."""
    mixed = offset * 2_654_435_761 >> 7
    return b"key-%d" % (mixed % _KEYS if offset % 4 else mixed % 10)


def value_of(name: str, offset: int) -> bytes:
    """Return the value at an offset, which tells where it belongs; 100 to 700 bytes."""
    return b"%s:%d:" % (name.encode(), offset) + b"%08x" % (offset * 40_503) * (10 + offset % 70)


class Writer:
    """A thread with a producer; begins and ends with the context.

    An error of the thread is raised by `check` and at the end.

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
        self._broker = broker
        self._ledgers = ledgers
        self._records_a_round = records_a_round
        self._tombstones_in = tombstones_in
        self._options = options
        self._ended = threading.Event()
        self._error: BaseException | None = None
        # A daemon: a producer that hangs must not keep the test process alive.
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(_JOIN_SECONDS)
        if error is None:
            assert not self._thread.is_alive(), "the writer does not come to its end"
            self.check()

    def check(self) -> None:
        """Raise what ended the thread before its time, or what was acknowledged as not planned."""
        if self._error is not None:
            raise self._error
        surprises = [each for ledger in self._ledgers for each in ledger.surprises]
        assert not surprises, surprises[:10]

    def _run(self) -> None:
        try:
            with self._broker.producer(**self._options) as producer:
                self._write(producer)
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._error = error

    def _write(self, producer: KafkaProducer) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
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
        while not self._ended.wait(_PAUSE_SECONDS):
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
