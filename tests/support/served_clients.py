"""What three Kafka clients get of a server: whole partitions, as lines of an expected file.

Each client is itself, with its own sockets and parsers; checksums are checked by all of them.
"""

from __future__ import annotations

import asyncio
import base64
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import aiokafka
import confluent_kafka

from tests.support import peers  # repairs kafka-python's Snappy
from tests.support.librdkafka import consumer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


def librdkafka_lines(address: str, wanted: Wanted, isolation: str) -> list[Line]:
    """Return what confluent-kafka reads; raises `confluent_kafka.KafkaException`."""
    lines: list[Line] = []
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
                    return lines
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


def kafka_python_lines(address: str, wanted: Wanted, isolation: str) -> list[Line]:
    """Return what kafka-python reads; raises `kafka.errors.KafkaError`."""
    lines: list[Line] = []
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
            for found in client.poll(timeout_ms=100).get(where, ()):
                lines.append(_python_line(found))
    finally:
        client.close()
    return lines


def aiokafka_lines(address: str, wanted: Wanted, isolation: str) -> list[Line]:
    """Return what aiokafka reads; raises `aiokafka.errors.KafkaError`."""
    return asyncio.run(_aiokafka_lines(address, wanted, isolation))


async def _aiokafka_lines(address: str, wanted: Wanted, isolation: str) -> list[Line]:
    lines: list[Line] = []
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
    try:
        client.assign([where])
        client.seek(where, wanted.start)
        while True:
            # At least once: a client that is stopped before it has begun to run fails.
            found = await client.getmany(where, timeout_ms=100)
            lines += map(_python_line, found.get(where, ()))
            if await client.position(where) >= wanted.end:
                break
            if time.monotonic() > deadline:
                msg = f"{wanted}: no end within {SECONDS:.0f} s"
                raise TimeoutError(msg)
    finally:
        await client.stop()
    return lines


def _python_line(found: Any) -> Line:  # noqa: ANN401 - a record of two clients
    return {
        "offset": found.offset,
        "timestamp": -1 if found.timestamp is None else found.timestamp,
        "timestampType": -1 if found.timestamp_type is None else found.timestamp_type,
        "key": encoded(found.key),
        "value": encoded(found.value),
        "headers": _headers(found.headers),
    }


READERS: Mapping[str, Callable[[str, Wanted, str], list[Line]]] = {
    "librdkafka": librdkafka_lines,
    "kafka-python": kafka_python_lines,
    "aiokafka": aiokafka_lines,
}

__all__ = ["READERS", "SECONDS", "Line", "Wanted", "encoded", "peers"]
