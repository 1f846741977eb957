"""`pylog.doctor` beside a broker that writes, and a broker on what `pylog.repair_copy` wrote."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.broker.ledger import Ledger
from tests.broker.server_log import log_lines_of_trouble
from tests.broker.writers import GroupReader, TopicChanger, TransactionalWriter, Writer
from tests.support.corruption import entries
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.conftest import NewBroker
    from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.broker

LIVE_SECONDS = 8.0
MOST_SECONDS = 120.0
LEAST_LOOKS = 6
BRISK_BROKER = {"log.retention.check.interval.ms": "300", "log.cleaner.backoff.ms": "50"}
SMALL_SEGMENTS = {"internal.segment.bytes": "65536", "file.delete.delay.ms": "100"}
TOPICS = {
    "bounded": {**SMALL_SEGMENTS, "retention.bytes": "300000"},
    "compacted": {
        **SMALL_SEGMENTS,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
    },
    "transactions": {**SMALL_SEGMENTS},
}


def test_nothing_is_wrong_with_a_directory_that_a_broker_writes(new_broker: NewBroker) -> None:
    broker = new_broker(properties=BRISK_BROKER)
    for topic, config in TOPICS.items():
        broker.create_topic(topic, config=config)
    plain = [Ledger("bounded", 0), Ledger("compacted", 0)]
    transactional = [Ledger("transactions", 0, is_transactional=True)]
    with (
        Writer(broker, plain, records_a_round=6, tombstones_in="compacted"),
        TransactionalWriter(broker, transactional, records_a_round=20, transactional_id="live"),
    ):
        look_again_and_again(broker)


def test_nothing_is_wrong_where_groups_read_on_and_topics_come_and_go(
    new_broker: NewBroker,
) -> None:
    broker = new_broker(properties=BRISK_BROKER)
    for topic in ("bounded", "compacted"):
        broker.create_topic(topic, config=TOPICS[topic])
    with (
        Writer(broker, [Ledger("bounded", 0), Ledger("compacted", 0)], records_a_round=6),
        GroupReader(broker, ["bounded", "compacted"]),
        TopicChanger(broker),
    ):
        look_again_and_again(broker)


def look_again_and_again(broker: KafkaBroker) -> None:
    """Look for some seconds, and on a slow machine as often as shows something."""
    looks = 0
    started = time.monotonic()
    while looks < LEAST_LOOKS or time.monotonic() < started + LIVE_SECONDS:
        assert time.monotonic() < started + MOST_SECONDS, f"only {looks} looks came to an end"
        looks += look(broker)


def look(broker: KafkaBroker) -> bool:
    """Look once; return whether the broker let it come to an end."""
    try:
        found = list(pylog.doctor(broker.log_dir).findings)
    except pylog.errors.SegmentVanishedError:
        return False
    assert [each for each in found if each.severity is not pylog.results.Severity.INFO] == []
    return True


def test_a_log_that_was_cleaned_after_a_clean_stop_is_not_in_doubt(new_broker: NewBroker) -> None:
    """The stop leaves a producer snapshot within a segment, and all around it is cleaned later."""
    broker = new_broker(properties=BRISK_BROKER)
    broker.create_topic("t", config=TOPICS["compacted"])
    send(broker, range(200))
    broker.stop()
    broker.start()
    send(broker, range(200, 1000))
    directory = broker.log_dir / "t-0"
    wait_for(lambda: cleaned_size(directory) < 150_000, "a cleaned log")
    broker.stop()
    bases = {int(each.stem) for each in directory.glob("*.log")}
    alone = {int(each.stem) for each in directory.glob("*.snapshot")} - bases
    assert len([each for each in alone if each < max(bases)]) == 1
    assert "missing_segment" not in [each.code for each in pylog.doctor(broker.log_dir).findings]


def send(broker: KafkaBroker, numbers: range) -> None:
    """Append records: forty of keys of their own, all others of three keys."""
    with broker.producer(acks="all") as producer:
        for number in numbers:
            key = b"first %d" % number if number < 40 else b"%d" % (number % 3)
            producer.send("t", b"x" * 900, key=key, partition=0).get(60)


def cleaned_size(directory: Path) -> int:
    return sum(each.stat().st_size for each in directory.glob("*.log"))


def test_a_broker_serves_what_a_repaired_copy_holds(new_broker: NewBroker, tmp_path: Path) -> None:
    broker = new_broker()
    broker.create_topic("orders", config=SMALL_SEGMENTS)
    with broker.producer(batch_size=4000, linger_ms=5) as producer:
        for number in range(2000):
            producer.send("orders", b"%d" % number * 20, b"k%d" % (number % 7))
        producer.flush()
    before = broker.consume("orders")[0]
    broker.stop()
    logs = sorted(broker.partition_directory("orders").glob("*.log"))
    assert len(logs) > 2
    lost = damage(logs[1])
    summary = pylog.repair_copy(broker.log_dir, tmp_path / "repaired")
    assert [each.code for each in summary.source.findings if each.severity == "error"] == [
        "damaged_batches"
    ]
    for name in ("orders-0", "__cluster_metadata-0"):
        if (tmp_path / "repaired" / name).exists():
            shutil.rmtree(broker.log_dir / name)
            shutil.copytree(tmp_path / "repaired" / name, broker.log_dir / name)
    broker.start()
    assert broker.consume("orders")[0] == [each for each in before if each.offset not in lost]
    assert log_lines_of_trouble(broker.server_log) == []


def damage(path: Path) -> range:
    """Flip a byte in the third batch of a file; return the offsets that it has."""
    content = path.read_bytes()
    batches = entries(content)
    at = len(batches[0]) + len(batches[1]) + 70
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    first = int.from_bytes(batches[2][:8], "big")
    return range(first, first + int.from_bytes(batches[2][23:27], "big") + 1)
