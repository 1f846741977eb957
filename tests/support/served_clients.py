"""What three Kafka clients get of a server: whole partitions, as lines of an expected file.

Each client is itself, with its own sockets and parsers; checksums are checked by all of them.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import aiokafka
import confluent_kafka

from tests.support import peers  # repairs kafka-python's Snappy
from tests.support.librdkafka import consumer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

if TYPE_CHECKING:
    from collections.abc import Mapping

Line = dict[str, Any]
SECONDS = 30.0


class Wanted(NamedTuple):
    """A partition, and the offsets to read: up to ``end``, exclusive."""

    topic: str
    partition: int
    start: int
    end: int


def encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def _headers(headers: Any) -> list[list[str | None]]:  # noqa: ANN401 - of three clients
    return [[name, encoded(value)] for name, value in headers or ()]


def librdkafka_lines(address: str, wanted: Wanted, isolation: str, lines: list[Line]) -> None:
    """Add what confluent-kafka reads to ``lines``; raises `confluent_kafka.KafkaException`."""
    deadline = time.monotonic() + SECONDS
    with consumer(address, isolation) as client:
        client.assign(
            [confluent_kafka.TopicPartition(wanted.topic, wanted.partition, wanted.start)]
        )
        while time.monotonic() < deadline:
            message = client.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    return
                raise confluent_kafka.KafkaException(error)
            kind, timestamp = message.timestamp()
            lines.append(
                {
                    "offset": message.offset(),
                    "timestamp": timestamp if kind else -1,
                    "timestampType": kind - 1,
                    "leaderEpoch": message.leader_epoch() or 0,
                    "key": encoded(message.key()),
                    "value": encoded(message.value()),
                    "headers": _headers(message.headers()),
                }
            )
    msg = f"{wanted}: no end within {SECONDS:.0f} s"
    raise TimeoutError(msg)


def kafka_python_lines(address: str, wanted: Wanted, isolation: str, lines: list[Line]) -> None:
    """Add what kafka-python reads to ``lines``; raises `kafka.errors.KafkaError`."""
    where = kafka.TopicPartition(wanted.topic, wanted.partition)
    client = kafka.KafkaConsumer(
        bootstrap_servers=address,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    deadline = time.monotonic() + SECONDS
    try:
        client.assign([where])
        client.seek(where, wanted.start)
        while client.position(where) < wanted.end:
            if time.monotonic() > deadline:
                msg = f"{wanted}: no end within {SECONDS:.0f} s"
                raise TimeoutError(msg)
            lines += map(_python_line, client.poll(timeout_ms=100).get(where, ()))
    finally:
        client.close()


def kafka_python_offsets_for_times(
    address: str, topic: str, partition: int, isolation: str, stamps: list[int]
) -> list[tuple[int, int] | None]:
    """Return timestamp and offset of the first record at or after each of some times."""
    where = kafka.TopicPartition(topic, partition)
    client = kafka.KafkaConsumer(bootstrap_servers=address, isolation_level=isolation)
    try:
        found = [client.offsets_for_times({where: each})[where] for each in stamps]
    finally:
        client.close()
    return [None if each is None else (each.timestamp, each.offset) for each in found]


def aiokafka_lines(address: str, wanted: Wanted, isolation: str, lines: list[Line]) -> None:
    """Add what aiokafka reads to ``lines``; raises `aiokafka.errors.KafkaError`."""
    asyncio.run(_aiokafka_lines(address, wanted, isolation, lines))


async def _aiokafka_lines(address: str, wanted: Wanted, isolation: str, lines: list[Line]) -> None:
    where = aiokafka.TopicPartition(wanted.topic, wanted.partition)
    client = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    await client.start()
    deadline = time.monotonic() + SECONDS
    failed = _FailedFetches(logging.WARNING)
    fetcher = logging.getLogger("aiokafka.consumer.fetcher")
    fetcher.addHandler(failed)
    try:
        client.assign([where])
        client.seek(where, wanted.start)
        while True:
            # At least once: a client that is stopped before it has begun to run fails.
            found = await client.getmany(where, timeout_ms=100)
            lines += map(_python_line, found.get(where, ()))
            if failed.messages and not found:
                raise aiokafka.errors.KafkaError(failed.messages[0])
            if await client.position(where) >= wanted.end:
                break
            if time.monotonic() > deadline:
                msg = f"{wanted}: no end within {SECONDS:.0f} s"
                raise TimeoutError(msg)
    finally:
        fetcher.removeHandler(failed)
        await client.stop()


class _FailedFetches(logging.Handler):
    """What aiokafka says in its log alone: it tells no caller of an error that it does not know."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Unexpected error while fetching data"):
            self.messages.append(record.getMessage())


def _python_line(found: Any) -> Line:  # noqa: ANN401 - a record of two clients
    return {
        "offset": found.offset,
        "timestamp": -1 if found.timestamp is None else found.timestamp,
        "timestampType": -1 if found.timestamp_type is None else found.timestamp_type,
        "key": encoded(found.key),
        "value": encoded(found.value),
        "headers": _headers(found.headers),
    }


Reader = Callable[[str, Wanted, str, list[Line]], None]
READERS: Mapping[str, Reader] = {
    "librdkafka": librdkafka_lines,
    "kafka-python": kafka_python_lines,
    "aiokafka": aiokafka_lines,
}

__all__ = ["READERS", "SECONDS", "Line", "Reader", "Wanted", "encoded", "kafka", "peers"]
