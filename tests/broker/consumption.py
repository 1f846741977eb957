"""What consumers of a broker get of partitions, whatever is in them.

librdkafka ends its process by an assertion on some damaged bytes, so that each look is a process of
its own, and partitions are looked at one by one where one of them ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_ROOT = Path(__file__).parents[2]
_SECONDS = 60.0
_QUIET_SECONDS = 5.0
_ANSWERS_LONG = 100
"""A machine that answers slowly is waited for as long as it would take for so many answers."""
_MOST = 2_000
ENDED = "the client's process has ended"
Partition = tuple[str, int]
_Start = tuple[str, str, int, int]  # isolation level, topic, partition, offset
ISOLATIONS = ("read_uncommitted", "read_committed")
OF_LATEST_TIME = -3
"""Asks for the first record that has the largest timestamp of all."""
STUCK = "no more records come"


class Consumed(NamedTuple):
    """What a consumer got from one offset on."""

    values: dict[int, str]  # by offset
    position: int  # where it stands
    trouble: str | None  # why it does not come to the end of what it may read; None if it does


def what_consumers_get(
    servers: str,
    starts: Mapping[Partition, int],
    isolation: str = "read_uncommitted",
) -> dict[Partition, Consumed]:
    """Return what consumers get of partitions that begin at these offsets."""
    return _got(servers, [(isolation, *place, at) for place, at in starts.items()])[isolation]


def at_each_level(
    servers: str, starts: Mapping[Partition, int]
) -> dict[str, dict[Partition, Consumed]]:
    """Return the same of both isolation levels, by one process."""
    return _got(
        servers, [(each, *place, at) for each in ISOLATIONS for place, at in starts.items()]
    )


def _got(servers: str, starts: Sequence[_Start]) -> dict[str, dict[Partition, Consumed]]:
    found: dict[str, dict[Partition, Consumed]] = {each: {} for each in ISOLATIONS}
    if not starts:
        return found
    lines, has_ended = _ask("consume", servers, starts)
    values: dict[_Start, dict[int, str]] = {each: {} for each in starts}
    positions = {each: each[-1] for each in starts}
    trouble: dict[_Start, str | None] = dict.fromkeys(starts, ENDED if has_ended else STUCK)
    begun = {each[:-1]: each for each in starts}
    for isolation, topic, partition, kind, offset, text in lines:
        place = begun[isolation, topic, partition]
        positions[place] = max(positions[place], offset)
        if kind == "record":
            values[place][offset] = text
            positions[place] = offset + 1
        else:
            trouble[place] = None if kind == "end" else f"{STUCK}: {text}"
    unfinished = [each for each in starts if trouble[each] == ENDED]
    for isolation, topic, partition, at in set(starts) - set(unfinished):
        place = isolation, topic, partition, at
        got = Consumed(values[place], positions[place], trouble[place])
        found[isolation][topic, partition] = got
    if len(starts) == len(unfinished) == 1:
        [place] = unfinished
        found[place[0]][place[1:3]] = Consumed(values[place], positions[place], ENDED)
    elif unfinished:  # one of these has ended it, or one that got no further before
        half = len(unfinished) // 2
        for each in (unfinished[:half], unfinished[half:]):
            for isolation, got_of in _got(servers, each).items():
                found[isolation] |= got_of
    return found


def offsets_of(servers: str, partitions: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
    """Return where the logs of partitions begin and end; nothing of one that gives an error."""
    lines, has_ended = _ask("offsets", servers, partitions)
    assert not has_ended
    return {(topic, partition): (start, end) for topic, partition, start, end in lines}


def leaders_of(servers: str, topic: str) -> dict[int, int]:
    """Return the leader of each partition, -1 where there is none; empty while nobody tells.

    Not by a client in Python: it leaves its sockets open where a node does not answer.
    """
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        # Of all topics: a broker makes one that is asked for by name.
        known = client.list_topics(timeout=5).topics.get(topic)
    except KafkaException:
        known = None
    return {} if known is None else {at: each.leader for at, each in known.partitions.items()}


def offsets_for_times(
    servers: str, partitions: Sequence[Partition], times: Sequence[int]
) -> dict[Partition, dict[int, int | None]]:
    """Return the first offset at or after each time; None where there is none, or an error.

    Besides, that of the record with the largest time, by `OF_LATEST_TIME`.
    """
    lines, has_ended = _ask("times", servers, [list(each) for each in partitions], list(times))
    assert not has_ended
    found: dict[Partition, dict[int, int | None]] = {each: {} for each in partitions}
    for topic, partition, at, offset in lines:
        found[topic, partition][at] = offset
    return found


def epoch_ends(
    servers: str, topic: str, partitions: Sequence[int], epoch: int
) -> dict[Partition, int]:
    """Return where a leader epoch has ended, as a consumer asks that goes on."""
    asked = [
        {"partition": each, "currentLeaderEpoch": -1, "leaderEpoch": epoch} for each in partitions
    ]
    request = {"replicaId": -1, "topics": [{"topic": topic, "partitions": asked}]}
    with RawClient(servers) as client:
        [answer] = client.ask("OffsetForLeaderEpoch", 4, request)["topics"]
    assert {each["errorCode"] for each in answer["partitions"]} == {0}
    return {(topic, each["partition"]): each["endOffset"] for each in answer["partitions"]}


_NOBODY_THERE = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)


def _ask(what: str, servers: str, *arguments: object) -> tuple[list[Any], bool]:
    """Return what a process of its own says, and whether it ended by itself."""
    asked = json.dumps([what, servers, *arguments])
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


def _consume(servers: str, starts: list[tuple[str, str, int, int]]) -> None:
    unfinished = {(level, topic, partition) for level, topic, partition, _ in starts}
    clients = {level: _client(servers, level) for level, *_ in starts}
    for level, client in clients.items():
        client.assign([TopicPartition(*each[1:]) for each in starts if each[0] == level])
    began = latest = time.monotonic()
    while unfinished and time.monotonic() < began + _SECONDS:
        if is_patience_over(next(iter(clients.values())), latest, _QUIET_SECONDS):
            break
        for level, message in _messages(clients):
            place = level, str(message.topic()), int(message.partition() or 0)
            offset, error = int(message.offset() or 0), message.error()
            if error is None:
                latest = time.monotonic()
                value = (message.value() or b"").decode(errors="replace")  # as written, or not
                _say(*place, "record", offset, value)
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(place)
                _say(*place, "end", offset, None)
            elif place in unfinished:
                unfinished.discard(place)
                _say(*place, "error", offset, error.name())
    for client in clients.values():
        client.close()


def is_patience_over(client: Consumer | AdminClient, since: float, seconds: float) -> bool:
    """Whether so long has passed, and longer where answers take long now."""
    asked = time.monotonic()
    if asked - since <= seconds:
        return False
    with suppress(KafkaException):
        client.list_topics(timeout=20)
    answered = time.monotonic()
    return answered - since > min(max(seconds, _SECONDS), _ANSWERS_LONG * (answered - asked))


def _messages(clients: Mapping[str, Consumer]) -> Iterator[tuple[str, Message]]:
    for level, client in clients.items():
        for message in client.consume(_MOST, 0.05):
            yield level, message


def _offsets(servers: str, partitions: list[Partition]) -> None:
    client = _client(servers, ISOLATIONS[0])
    for place in partitions:
        with suppress(KafkaException):
            _say(*place, *client.get_watermark_offsets(TopicPartition(*place), timeout=10))
    client.close()


def _times(servers: str, partitions: list[tuple[str, int]], times: list[int]) -> None:
    client = _client(servers, "read_uncommitted")
    with suppress(KafkaException):  # where the broker has ended, nothing is answered
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
    except KafkaException as error:
        if error.args[0].code() in _NOBODY_THERE:
            return []
        half = len(asked) // 2
        return [*_answers(client, asked[:half]), *_answers(client, asked[half:])] if half else []


def _say(*line: object) -> None:
    """Print it at once: a client may end the process."""
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    what, *arguments = json.load(sys.stdin)
    asked_for: dict[str, Callable[..., None]] = {
        "consume": _consume,
        "offsets": _offsets,
        "times": _times,
    }
    asked_for[what](*arguments)
