"""What doctor says that consumers get of a harmed partition is what a real broker gives them.

Each harm is done to a partition of its own, and a broker starts once on all of them. Compared are
consumers of all and of committed records, look-ups by time, and where a leader epoch ends: an
offset of which any answer is not that of the sound log lies in what doctor names, and where it
names something, some answer is wrong.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.consumption import (
    ISOLATIONS,
    epoch_ends,
    offsets_for_times,
    what_consumers_get,
)
from tests.support.faults.consumers import CONSUMER_HARMS, nothing_open
from tests.support.faults.partitions import Harmed
from tests.support.kafka_broker import KafkaBroker
from tests.support.librdkafka import new_producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.results import DoctorReport
    from tests.broker.conftest import NewBroker

pytestmark = pytest.mark.broker

TOPIC = "told"
PARTITIONS = [(TOPIC, number) for number in range(len(CONSUMER_HARMS))]
FIRST_TIME = 2_000_000_000_000
"""Behind the times of markers, which are the broker's."""
TRANSACTIONS, RECORDS = 18, 10
ALL_SCANNED = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")
TIMES = [FIRST_TIME + 1_000 * number for number in range(0, TRANSACTIONS * RECORDS, 5)]


class Answers(NamedTuple):
    """What a broker answers about one partition."""

    reads: dict[str, dict[int, str]]  # by isolation level: values by offset
    stops: dict[str, list[int]]  # where a consumer gets no further
    times: dict[int, int | None]
    epoch_end: int = 0  # of the epoch in which all records were written


class Node:
    """A directory that a broker closed in order, with what it served of it."""

    def __init__(self, directory: Path, version: str) -> None:
        self.version = version
        self._directory = directory
        with KafkaBroker(directory / "base", version=version) as broker:
            name = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
            config = {
                name: "9000",
                "index.interval.bytes": "1000",
                "retention.ms": "-1",
                "message.timestamp.after.max.ms": str(2**62),
            }
            broker.create_topic(TOPIC, partitions=len(PARTITIONS), config=config)
            write(broker)
            broker.stop()
        self.base = directory / "base" / "logs"
        with self.copy(()) as logs, self.broker(logs) as broker:
            broker.start()
            self.sound = answers(broker, pylog.doctor(logs))

    @contextmanager
    def copy(self, without: tuple[str, ...]) -> Iterator[Path]:
        """Give a copy to harm."""
        place = self._directory / "copy"
        shutil.copytree(self.base, place / "logs")
        for name in without:
            (place / "logs" / name).unlink()
        try:
            yield place / "logs"
        finally:
            shutil.rmtree(place)

    @contextmanager
    def broker(self, logs: Path) -> Iterator[KafkaBroker]:
        """Give a broker that is to start on a log directory."""
        broker = KafkaBroker(logs.parent, version=self.version, log_dir=logs)
        broker.is_to_be_formatted = False
        try:
            yield broker
        finally:
            broker.kill()


def write(broker: KafkaBroker) -> None:
    """Write transactions to all partitions; every third one is aborted."""
    producer = new_producer(broker.bootstrap_servers, "teller")
    producer.init_transactions(30)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for topic, partition in PARTITIONS:
            for at in range(number * RECORDS, (number + 1) * RECORDS):
                producer.produce(
                    topic,
                    value=b"%06d" % at * 25,
                    partition=partition,
                    timestamp=FIRST_TIME + 1_000 * at,
                )
        producer.flush(30)
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)(60)
    broker.wait_for_markers("teller")


def announced(report: DoctorReport, partition: int) -> list[tuple[int, float]]:
    """Return the offsets about which doctor says that consumers do not get what was written."""
    verdict = report.verdict
    return [
        (each.from_offset or 0, float("inf") if each.to_offset is None else each.to_offset)
        for each in (*verdict.loses_records, *verdict.lost_already, *verdict.consumers)
        if (each.topic, each.partition) == (TOPIC, partition)
    ]


def answers(broker: KafkaBroker, report: DoctorReport) -> dict[tuple[str, int], Answers]:
    """Return what consumers get; one that gets no further begins again after what was said."""
    found = {
        each: Answers({level: {} for level in ISOLATIONS}, {level: [] for level in ISOLATIONS}, {})
        for each in PARTITIONS
    }
    for level in ISOLATIONS:
        starts = dict.fromkeys(PARTITIONS, 0)
        for _ in range(4):
            again = {}
            for place, consumed in what_consumers_get(
                broker.bootstrap_servers, starts, level
            ).items():
                found[place].reads[level].update(consumed.values)
                if consumed.trouble is None:
                    continue
                found[place].stops[level].append(consumed.position)
                ends = [
                    end
                    for start, end in announced(report, place[1])
                    if start <= consumed.position < end
                ]
                if ends and max(ends) < float("inf"):
                    again[place] = int(max(ends))
            starts = again
            if not starts:
                break
    for place, times in offsets_for_times(broker.bootstrap_servers, PARTITIONS, TIMES).items():
        found[place].times.update(times)
    ended = epoch_ends(broker.bootstrap_servers, TOPIC, range(len(PARTITIONS)), epoch=0)
    return {place: each._replace(epoch_end=ended[place]) for place, each in found.items()}


def complaints(sound: Answers, now: Answers, ranges: list[tuple[int, float]]) -> list[str]:
    """Return which wrong answers are not announced, or that nothing is wrong."""
    wrong: dict[str, set[int]] = {}
    for level in ISOLATIONS:
        expected, got = sound.reads[level], now.reads[level]
        differing = {
            offset
            for offset in expected.keys() | got.keys()
            if expected.get(offset) != got.get(offset)
        }
        wrong[level] = differing | set(now.stops[level])
    wrong["times"] = {
        offset
        for each, offset in sound.times.items()
        if offset is not None and now.times.get(each) != offset
    }
    wrong["an epoch"] = set(range(now.epoch_end, sound.epoch_end))
    unsaid = {
        what: sorted(
            each for each in offsets if not any(start <= each < end for start, end in ranges)
        )
        for what, offsets in wrong.items()
    }
    found = [f"not said: {what} {offsets}" for what, offsets in unsaid.items() if offsets]
    if ranges and not any(wrong.values()):
        found.append(f"said, and nothing is wrong: {ranges}")
    return found


@pytest.mark.thorough
def test_a_transaction_that_a_snapshot_does_not_have_is_served(new_broker: NewBroker) -> None:
    broker = new_broker()
    broker.create_topic(TOPIC)
    config = {"transaction.timeout.ms": 900_000}
    producer = new_producer(broker.bootstrap_servers, "teller", config)
    producer.init_transactions(30)
    for is_committed in (True, False):
        producer.begin_transaction()
        for at in range(RECORDS):
            producer.produce(TOPIC, value=b"%d" % at, partition=0)
        producer.flush(30)
        if is_committed:
            producer.commit_transaction(30)
    broker.stop()
    assert pylog.doctor(broker.log_dir).verdict.consumers == []
    nothing_open(broker.partition_directory(TOPIC))
    [affected] = pylog.doctor(broker.log_dir).verdict.consumers
    assert (affected.from_offset, affected.to_offset) == (RECORDS + 1, 2 * RECORDS + 1)
    broker.start()
    servers = broker.bootstrap_servers
    consumed = what_consumers_get(servers, {(TOPIC, 0): 0}, "read_committed")[TOPIC, 0]
    assert sorted(consumed.values) == [*range(RECORDS), *range(RECORDS + 1, 2 * RECORDS + 1)]


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def node(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Node:
    return Node(tmp_path_factory.mktemp("node"), request.param)


@pytest.mark.parametrize(
    "without",
    [
        pytest.param((), id="clean"),
        pytest.param((".kafka_cleanshutdown",), id="unclean", marks=pytest.mark.thorough),
        pytest.param(ALL_SCANNED, id="all scanned", marks=pytest.mark.thorough),
    ],
)
def test_wrong_answers_are_announced(node: Node, without: tuple[str, ...]) -> None:
    with node.copy(without) as logs:
        for number, (_, harm) in enumerate(CONSUMER_HARMS):
            harm(Harmed(logs / f"{TOPIC}-{number}", node.base / f"{TOPIC}-0"))
        report = pylog.doctor(logs, kafka_version=node.version.rpartition(".")[0])
        assert report.refusals == []
        with node.broker(logs) as broker:
            broker.start()
            now = answers(broker, report)
    found = {
        name: complaints(node.sound[place], now[place], announced(report, place[1]))
        for place, (name, _) in zip(PARTITIONS, CONSUMER_HARMS, strict=True)
    }
    assert {name: each for name, each in found.items() if each} == {}
