"""A member of a consumer group, in a process of its own that can be killed.

``python -m tests.interop.group_member CLIENT ADDRESS GROUP INSTANCE TOPIC...``, where INSTANCE is
``-`` for a dynamic member. It commits by itself, leaves the group on SIGTERM, and prints a line of
JSON whenever something is new: the partitions that it is assigned, and of each partition that it
has read the first offset and the next one.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any

import aiokafka
import confluent_kafka

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

if TYPE_CHECKING:
    from collections.abc import Iterable

SESSION_MS = 2_000
HEARTBEAT_MS = 300
COMMIT_MS = 200


class _Report:
    """Prints what is new."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._assigned: list[str] = []
        self._read: dict[str, list[int]] = {}
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.is_stopped = True

    def look(self, assigned: Iterable[Any], messages: Iterable[tuple[str, int, int]]) -> None:
        """Take in what a client has now, and what it has read."""
        now = sorted(f"{each.topic}-{each.partition}" for each in assigned)
        is_new = now != self._assigned
        self._assigned = now
        for topic, partition, offset in messages:
            first, _ = self._read.setdefault(f"{topic}-{partition}", [offset, offset])
            self._read[f"{topic}-{partition}"] = [first, offset + 1]
            is_new = True
        if is_new:
            sys.stdout.write(json.dumps({"assigned": now, "read": self._read}) + "\n")
            sys.stdout.flush()


def _librdkafka(
    address: str, group: str, instance: str | None, topics: list[str], **own: str
) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_MS,
        "isolation.level": "read_uncommitted",
        **own,
    }
    if "group.protocol" not in own:
        settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    if instance is not None:
        settings["group.instance.id"] = instance
    client = confluent_kafka.Consumer(settings)
    client.subscribe(topics)
    report = _Report()
    while not report.is_stopped:
        messages = [each for each in client.consume(500, 0.1) if each.error() is None]
        places: list[Any] = [(m.topic(), m.partition(), m.offset()) for m in messages]
        report.look(client.assignment(), places)
    client.close()


def _librdkafka_848(address: str, group: str, instance: str | None, topics: list[str]) -> None:
    _librdkafka(address, group, instance, topics, **{"group.protocol": "consumer"})


def _kafka_python(address: str, group: str, instance: str | None, topics: list[str]) -> None:
    client = kafka.KafkaConsumer(
        *topics,
        bootstrap_servers=address,
        group_id=group,
        group_instance_id=instance,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=COMMIT_MS,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    report = _Report()
    while not report.is_stopped:
        found = client.poll(timeout_ms=100)
        places = [(m.topic, m.partition, m.offset) for each in found.values() for m in each]
        report.look(client.assignment(), places)
    client.close()


def _aiokafka(address: str, group: str, instance: str | None, topics: list[str]) -> None:
    async def run() -> None:
        client = aiokafka.AIOKafkaConsumer(
            *topics,
            bootstrap_servers=address,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_MS,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        await client.start()
        report = _Report()
        while not report.is_stopped:
            found = await client.getmany(timeout_ms=100)
            places = [(m.topic, m.partition, m.offset) for each in found.values() for m in each]
            report.look(client.assignment(), places)
        await client.stop()

    asyncio.run(run())


CLIENTS = {
    "librdkafka": _librdkafka,
    "librdkafka-848": _librdkafka_848,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}


def main(client: str, address: str, group: str, instance: str, *topics: str) -> None:
    """Be a member until SIGTERM."""
    CLIENTS[client](address, group, None if instance == "-" else instance, list(topics))


if __name__ == "__main__":
    main(*sys.argv[1:])
