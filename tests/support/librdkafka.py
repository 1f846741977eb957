"""Consumers and producers of a running broker through librdkafka, always in partition 0.

Unlike kafka-python it sends a record without key and value, and a header without a value.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.support.batches import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE, Stored
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from confluent_kafka import Message

    from tests.support.batches import Headers

_SECONDS = 90.0
_POLL_SECONDS = 0.1
_RETRY_SECONDS = 0.1
_BATCH = 1_000
_PRODUCER_BATCH_BYTES = 1_000

_TIMESTAMP_TYPES = {
    TIMESTAMP_CREATE_TIME: CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME: LOG_APPEND_TIME,
}


@contextmanager
def consumer(bootstrap_servers: str, isolation: str = "read_uncommitted") -> Iterator[Consumer]:
    """Give a consumer that commits nothing and checks every checksum."""
    client = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "nobody",  # asked for, and never used
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        yield client
    finally:
        client.close()


def consume_from(
    bootstrap_servers: str, offsets: Mapping[str, int], isolation: str
) -> dict[str, list[Stored]]:
    """Return what a consumer gets of each topic from an offset to its present end.

    Raises
    ------
    RuntimeError
        The broker refused something, or a topic does not come to its end.
    """
    found: dict[str, list[Stored]] = {topic: [] for topic in offsets}
    unfinished = set(offsets)
    deadline = time.monotonic() + _SECONDS
    with consumer(bootstrap_servers, isolation) as client:
        client.assign([TopicPartition(topic, 0, offset) for topic, offset in offsets.items()])
        while unfinished:
            if time.monotonic() > deadline:
                msg = f"no end of {sorted(unfinished)} within {_SECONDS:.0f} s"
                raise RuntimeError(msg)
            for message in client.consume(_BATCH, _POLL_SECONDS):
                topic = str(message.topic())
                error = message.error()
                if error is None:
                    found[topic].append(_stored(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(topic)
                else:
                    msg = f"{topic} at {message.offset()}: {error}"
                    raise RuntimeError(msg)
    return found


def offset_ranges(bootstrap_servers: str, topics: list[str]) -> dict[str, tuple[int, int]]:
    """Return log start and high watermark of each topic."""
    with consumer(bootstrap_servers) as client:
        return {
            topic: client.get_watermark_offsets(TopicPartition(topic, 0), timeout=_SECONDS)
            for topic in topics
        }


def offsets_for_times(bootstrap_servers: str, times: Mapping[str, int]) -> dict[str, int | None]:
    """Return the first offset at or after a time, of each topic; None where there is none."""
    found: dict[str, int | None] = {}
    deadline = time.monotonic() + _SECONDS
    with consumer(bootstrap_servers) as client:
        while missing := [each for each in times if each not in found]:
            if time.monotonic() > deadline:
                msg = f"no answer about {missing} within {_SECONDS:.0f} s"
                raise RuntimeError(msg)
            asked = [TopicPartition(each, 0, times[each]) for each in missing]
            for each in client.offsets_for_times(asked, timeout=_SECONDS):
                if each.error is None:
                    found[each.topic] = each.offset if each.offset >= 0 else None
            if len(found) < len(times):
                # A leader that is new does not know yet how far it may tell.
                time.sleep(_RETRY_SECONDS)
    return found


def commit(client: Consumer, offsets: list[TopicPartition]) -> None:
    """Commit offsets, once a broker that has just made its topic coordinates groups."""
    wait_for(
        lambda: client.commit(offsets=offsets, asynchronous=False) is not None,
        "a commit",
        tolerates=(KafkaException,),
    )


def new_producer(
    bootstrap_servers: str,
    transactional_id: str | None = None,
    properties: Mapping[str, str | int | bool] | None = None,
) -> Producer:
    """Return an idempotent producer of small batches."""
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap_servers,
        "enable.idempotence": True,
        "batch.size": _PRODUCER_BATCH_BYTES,
        **(properties or {}),
    }
    if transactional_id is not None:
        config["transactional.id"] = transactional_id
    return Producer(config)


def produce(client: Producer, topic: str, records: Iterable[Stored]) -> list[tuple[int, int]]:
    """Send records, whose offsets do not count; return offset and timestamp of each in the log.

    Raises
    ------
    RuntimeError
        The broker refused one, or did not answer.
    """
    answers: list[tuple[int, int]] = []
    refused: list[str] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(str(error))
        answers.append((int(message.offset() or 0), message.timestamp()[1]))

    for each in records:
        client.produce(
            topic,
            value=each.value,
            key=each.key,
            partition=0,
            timestamp=each.timestamp,
            headers=list(each.headers),
            on_delivery=on_delivery,
        )
    left = client.flush(_SECONDS)
    if left or refused:
        msg = f"{topic}: {left} records without an answer, errors: {refused}"
        raise RuntimeError(msg)
    return answers


def _stored(message: Message) -> Stored:
    kind, timestamp = message.timestamp()
    return Stored(
        int(message.offset() or 0),
        timestamp,
        message.key(),
        message.value(),
        cast("Headers", tuple(message.headers() or ())),  # typed as what producers may give
        _TIMESTAMP_TYPES.get(kind, NO_TIMESTAMP_TYPE),
    )
