"""What consumers of a broker get of partitions, whatever is in them.

librdkafka ends its process by an assertion on some damaged bytes, so that each look is a process of
its own, and partitions are looked at one by one where one of them ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.kafka_broker import KafkaBroker

_ROOT = Path(__file__).parents[2]
_SECONDS = 60.0
_QUIET_SECONDS = 3.0
_MOST = 2_000
ENDED = "the client's process has ended"
OF_LATEST_TIME = -3
"""Asks for the first record that has the largest timestamp of all."""
STUCK = "no more records come"


class Consumed(NamedTuple):
    """What a consumer got from one offset on."""

    values: dict[int, str]  # by offset
    position: int  # where it stands
    trouble: str | None  # why it does not come to the end of what it may read; None if it does


def what_consumers_get(
    broker: KafkaBroker,
    starts: Mapping[tuple[str, int], int],
    isolation: str = "read_uncommitted",
) -> dict[tuple[str, int], Consumed]:
    """Return what consumers get of partitions that begin at these offsets."""
    lines, has_ended = _ask(
        "consume", broker, [[*key, at] for key, at in starts.items()], isolation
    )
    if has_ended and len(starts) > 1:
        items = list(starts.items())
        halves = items[: len(items) // 2], items[len(items) // 2 :]
        one, other = (what_consumers_get(broker, dict(half), isolation) for half in halves)
        return one | other
    values: dict[tuple[str, int], dict[int, str]] = {each: {} for each in starts}
    positions, trouble = dict(starts), dict.fromkeys(starts, ENDED if has_ended else STUCK)
    for topic, partition, kind, offset, text in lines:
        place = topic, partition
        positions[place] = max(positions[place], offset)
        if kind == "record":
            values[place][offset] = text
            positions[place] = offset + 1
        elif kind == "end":
            trouble.pop(place, None)
        else:
            trouble[place] = f"{STUCK}: {text}"
    return {each: Consumed(values[each], positions[each], trouble.get(each)) for each in starts}


def offsets_for_times(
    broker: KafkaBroker, partitions: Sequence[tuple[str, int]], times: Sequence[int]
) -> dict[tuple[str, int], dict[int, int | None]]:
    """Return the first offset at or after each time; None where there is none, or an error.

    Besides, that of the record with the largest time, by `OF_LATEST_TIME`.
    """
    lines, has_ended = _ask("times", broker, [list(each) for each in partitions], list(times))
    assert not has_ended
    found: dict[tuple[str, int], dict[int, int | None]] = {each: {} for each in partitions}
    for topic, partition, at, offset in lines:
        found[topic, partition][at] = offset
    return found


def epoch_ends(
    broker: KafkaBroker, topic: str, partitions: Sequence[int], epoch: int
) -> dict[tuple[str, int], int]:
    """Return where a leader epoch has ended, as a consumer asks that goes on."""
    asked = [
        {"partition": each, "currentLeaderEpoch": -1, "leaderEpoch": epoch} for each in partitions
    ]
    request = {"replicaId": -1, "topics": [{"topic": topic, "partitions": asked}]}
    with RawClient(broker.bootstrap_servers) as client:
        [answer] = client.ask("OffsetForLeaderEpoch", 4, request)["topics"]
    assert {each["errorCode"] for each in answer["partitions"]} == {0}
    return {(topic, each["partition"]): each["endOffset"] for each in answer["partitions"]}


def _ask(what: str, broker: KafkaBroker, *arguments: object) -> tuple[list[Any], bool]:
    """Return what a process of its own says, and whether it ended by itself."""
    asked = json.dumps([what, broker.bootstrap_servers, *arguments])
    command = [sys.executable, "-m", "tests.broker.consumption"]
    done = subprocess.run(
        command, input=asked, capture_output=True, text=True, cwd=_ROOT, check=False
    )
    assert done.returncode <= 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode < 0


def _client(servers: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "nobody",  # asked for, and never used
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 100,
            # So that each batch is fetched by itself, and looked up.
            "max.partition.fetch.bytes": 1_500,
            "log_level": 0,
        }
    )


def _consume(servers: str, starts: list[tuple[str, int, int]], isolation: str) -> None:
    unfinished = {(topic, partition) for topic, partition, _ in starts}
    client = _client(servers, isolation)
    client.assign([TopicPartition(*each) for each in starts])
    began = latest = time.monotonic()
    while unfinished and time.monotonic() < min(began + _SECONDS, latest + _QUIET_SECONDS):
        for message in client.consume(_MOST, 0.1):
            place = str(message.topic()), int(message.partition() or 0)
            offset, error = int(message.offset() or 0), message.error()
            if error is None:
                latest = time.monotonic()
                _say(*place, "record", offset, (message.value() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(place)
                _say(*place, "end", offset, None)
            elif place in unfinished:
                unfinished.discard(place)
                _say(*place, "error", offset, error.name())
    client.close()


def _times(servers: str, partitions: list[tuple[str, int]], times: list[int]) -> None:
    client = _client(servers, "read_uncommitted")
    client.list_topics(timeout=20)
    admin = AdminClient({"bootstrap.servers": servers})
    of_latest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
    latest = dict.fromkeys((TopicPartition(*each) for each in partitions), of_latest)
    for place, asked_for in admin.list_offsets(latest, request_timeout=30).items():
        try:
            offset = asked_for.result().offset
        except KafkaException:
            offset = -1
        _say(place.topic, place.partition, OF_LATEST_TIME, offset if offset >= 0 else None)
    for each in times:
        asked = [TopicPartition(topic, at, each) for topic, at in partitions]
        for answer in _answers(client, asked):
            is_there = answer.error is None and answer.offset >= 0
            _say(answer.topic, answer.partition, each, answer.offset if is_there else None)
    client.close()


def _answers(client: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """Return what a broker answers; nothing of a partition where that is an error."""
    try:
        return client.offsets_for_times(asked, timeout=30)
    except KafkaException:
        half = len(asked) // 2
        return [*_answers(client, asked[:half]), *_answers(client, asked[half:])] if half else []


def _say(*line: object) -> None:
    """Print it at once: a client may end the process."""
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    what, *arguments = json.load(sys.stdin)
    (_consume if what == "consume" else _times)(*arguments)
