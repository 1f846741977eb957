"""Everything that looks at the disks of a broker, while it moves partitions between them."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.writers import PartitionMover

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.broker.conftest import NewBroker

pytestmark = pytest.mark.broker

TOPICS = [f"t{number}" for number in range(4)]
RECORDS = 150
LEAST_ROUNDS = 4
LIVE_SECONDS = 8.0


def scan(*disks: Path) -> list[str]:
    counts = Counter(pylog.scan(disks, columns=["topic"]).to_table()["topic"].to_pylist())
    assert set(counts.values()) == {RECORDS}, counts
    return list(counts)


def list_partitions(*disks: Path) -> list[str]:
    listing = pylog.list_partitions(*disks).partitions
    assert [each.errors for each in listing if each.errors] == []
    return [each.topic for each in listing]


def stats(*disks: Path) -> list[str]:
    found = pylog.stats(*disks)
    assert found.problems == []
    topics: list[str] = found.tables["topics"]["topic"].to_pylist()
    return topics


def info(*disks: Path) -> list[str]:
    found = pylog.info(*disks)
    assert found.errors == []
    return TOPICS[: found.topics]


def doctor(*disks: Path) -> list[str]:
    report = pylog.doctor(*disks)
    assert [
        (each.code, each.path, each.message)
        for each in report.findings
        if each.severity is not pylog.results.Severity.INFO
    ] == []
    assert report.verdict.would_start is True
    return [each.topic_partition.topic for each in report.partitions]


WAYS: list[Callable[..., list[str]]] = [scan, list_partitions, stats, info, doctor]


def test_partitions_that_are_moved_are_seen_once_by_all_who_look(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk in disks:
        disk.mkdir()
    broker = new_broker(properties={"log.dirs": ",".join(map(str, disks))})
    for topic in TOPICS:
        properties = {"internal.segment.bytes": "65536", "file.delete.delay.ms": "100"}
        broker.create_topic(topic, config=properties)
    with broker.producer(acks="all") as producer:
        for number in range(RECORDS * len(TOPICS)):
            producer.send(TOPICS[number % len(TOPICS)], b"x" * 1000)
    followed = pylog.follow(*disks)
    rounds = 0
    started = time.monotonic()
    with PartitionMover(broker, TOPICS) as mover:
        while rounds < LEAST_ROUNDS or time.monotonic() < started + LIVE_SECONDS:
            for look in WAYS:
                seen = [each for each in look(*disks) if each in TOPICS]
                assert sorted(seen) == TOPICS, look
                logs = followed.refresh()
                assert [log.end_offset for log in logs.values()] == [RECORDS] * len(TOPICS)
                assert [log.rewritten_below for log in logs.values()] == [None] * len(TOPICS)
            rounds += 1
    assert mover.moves > 20
