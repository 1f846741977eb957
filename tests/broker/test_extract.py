"""Brokers start on parts of a log, and serve what the whole log has there."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

import pylog
from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.server_log import lines_of_logs, log_lines_of_trouble
from tests.broker.test_first_aid import tree_hash
from tests.support.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tests.conftest import HowMany
    from tests.support.batches import Stored

pytestmark = pytest.mark.broker

TOPIC = "cut"
PARTITIONS = 10
WAYS = ("name", "include", "abort")
ISOLATIONS = ("read_uncommitted", "read_committed")
CODECS = ("none", "gzip", "lz4", "zstd")
SEED = 20261129


@dataclass
class Ended:
    """A transaction, by the order in which all of them ended."""

    values: set[bytes]
    is_committed: bool
    markers: dict[int, int] = field(default_factory=dict)  # by partition


@dataclass
class Source:
    """A topic as its broker served it, and the transactions that were written to it."""

    broker: KafkaBroker
    records: Mapping[int, list[Stored]]
    transactions: list[Ended]
    ends: dict[int, int]

    def range(self, partition: int, start: int, end: int) -> list[Stored]:
        return [each for each in self.records[partition] if start <= each.offset < end]

    def cut(self, partition: int, start: int, end: int) -> list[Ended]:
        """Return the transactions with records in a range, and a marker after it."""
        inside = {each.value for each in self.range(partition, start, end)}
        return [
            each
            for each in self.transactions
            if each.values & inside and each.markers[partition] >= end
        ]

    def visible(
        self, partition: int, start: int, end: int, isolation: str, *, is_aborted: bool
    ) -> list[Stored]:
        """Return what a consumer gets of a range of which all is replicated.

        ``is_aborted`` tells whether the transactions that it cuts have an ABORT marker after it.
        """
        records = self.range(partition, start, end)
        if isolation == "read_uncommitted":
            return records
        cut = self.cut(partition, start, end)
        gone = [each for each in self.transactions if not each.is_committed]
        unstable = [e.offset for e in records if any(e.value in each.values for each in cut)]
        stable = end if is_aborted else min(unstable, default=end)
        lost = set[bytes]().union(*(each.values for each in (*gone, *cut)))
        return [each for each in records if each.offset < stable and each.value not in lost]


def producer(broker: KafkaBroker, codec: str, transactional_id: str | None = None) -> Producer:
    settings: dict[str, str | int] = {
        "bootstrap.servers": broker.bootstrap_servers,
        "compression.type": codec,
        "linger.ms": 20,
        "batch.num.messages": 20,
    }
    if transactional_id is None:
        return Producer({**settings, "enable.idempotence": True})
    client = Producer({**settings, "transactional.id": transactional_id})
    client.init_transactions(60)
    return client


def send(client: Producer, values: Iterable[bytes]) -> None:
    """Write values to all partitions in turn, and wait until they are there."""
    for place, value in enumerate(values):
        client.produce(TOPIC, value, b"k%d" % place, partition=place % PARTITIONS)
    assert client.flush(60) == 0


def write_source(broker: KafkaBroker) -> list[Ended]:
    """Write plain batches of all codecs between transactions of two producers."""
    draw = random.Random(SEED)
    broker.create_topic(TOPIC, PARTITIONS, {"segment.bytes": "1048576", "retention.ms": "-1"})
    ended = []
    clients = [producer(broker, "none", "a"), producer(broker, "lz4", "b")]
    for number in range(8):
        plain = producer(broker, CODECS[number % len(CODECS)])
        count = PARTITIONS * draw.randint(3, 30)
        send(
            plain,
            [b"plain %d %d" % (number, n) + b"x" * draw.randint(0, 300) for n in range(count)],
        )
        opened: list[tuple[Producer, set[bytes]]] = []
        for client in clients:
            client.begin_transaction()
            values = [b"%d %d %d" % (number, len(opened), n) for n in range(27 * PARTITIONS)]
            send(client, values)
            opened.append((client, set(values)))
        send(plain, [b"between %d %d" % (number, n) for n in range(2 * PARTITIONS)])
        draw.shuffle(opened)
        for client, all_values in opened:
            is_committed = draw.random() < 0.5
            before = offsets_of(broker)[1]
            if is_committed:
                client.commit_transaction(60)
            else:
                client.abort_transaction(60)
            ended.append(Ended(all_values, is_committed))
            # Markers come after the answer: without this, those of two may change places.
            wait_for_markers(broker, {each: end + 1 for each, end in before.items()})
    return ended


def wait_for_markers(broker: KafkaBroker, ends: dict[int, int]) -> None:
    deadline = time.monotonic() + 60
    while (found := offsets_of(broker)[1]) != ends:
        assert time.monotonic() < deadline, f"logs end at {found}, expected {ends}"
        time.sleep(0.1)


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def source(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Source]:
    directory = tmp_path_factory.mktemp(f"extract-{request.param}-")
    with KafkaBroker(directory, version=request.param) as broker:
        ended = write_source(broker)
        records = broker.consume(TOPIC, PARTITIONS)
        ends = offsets_of(broker)[1]
        broker.stop()
        for partition, end in ends.items():
            served = {each.offset for each in records[partition]}
            markers = [offset for offset in range(end) if offset not in served]
            assert len(markers) == len(ended)
            for each, offset in zip(ended, markers, strict=True):
                each.markers[partition] = offset
        before = tree_hash(broker.log_dir)
        yield Source(broker, records, ended, ends)
        assert tree_hash(broker.log_dir) == before


def broker_on(source: Source, part: Path, directory: Path) -> KafkaBroker:
    """Return a broker for a part of the source's log, with the metadata of the whole."""
    for name in ("__cluster_metadata-0", "bootstrap.checkpoint"):
        each = source.broker.log_dir / name
        if each.is_dir():
            shutil.copytree(each, part / name)
        elif each.exists():
            shutil.copy(each, part / name)
    return KafkaBroker(directory, version=source.broker.version, log_dir=part)


def offsets_of(broker: KafkaBroker) -> tuple[dict[int, int], dict[int, int]]:
    """Return where the partitions start and end."""
    with broker.consumer([(TOPIC, each) for each in range(PARTITIONS)]) as consumer:
        assigned = consumer.assignment()
        starts, ends = consumer.beginning_offsets(assigned), consumer.end_offsets(assigned)
    return (
        {each.partition: offset for each, offset in starts.items()},
        {each.partition: offset for each, offset in ends.items()},
    )


def test_a_broker_serves_exactly_the_range(
    source: Source, tmp_path: Path, how_many: HowMany
) -> None:
    """Ten cuts a start: one in each partition."""
    draw = random.Random(SEED)
    cut = rewritten = 0
    for number in range(how_many(2, 30)):
        way = WAYS[number % len(WAYS)]
        starts = {each: draw.randrange(end) for each, end in source.ends.items()}
        ends = {
            each: min(end, starts[each] + draw.randint(1, 150)) for each, end in source.ends.items()
        }
        part = tmp_path / f"part-{number}"
        done = pylog.jobs.extract(
            source.broker.log_dir,
            to=part,
            topics=[TOPIC],
            start={(TOPIC, each): offset for each, offset in starts.items()},
            end={(TOPIC, each): offset for each, offset in ends.items()},
            exact=True,
            transactions=way,
        )
        rewritten += sum(each.rewritten_batches for each in done.partitions)
        log_ends = {}
        for part_of in done.partitions:
            partition, start = part_of.partition, part_of.start_offset
            assert start == starts[partition]
            if way == "include":
                assert part_of.end_offset >= ends[partition]
                ends[partition] = part_of.end_offset
                assert source.cut(partition, start, part_of.end_offset) == []
            open_there = len(source.cut(partition, start, ends[partition]))
            cut += open_there
            log_ends[partition] = ends[partition] + (open_there if way == "abort" else 0)
        with broker_on(source, part, tmp_path / f"broker-{number}") as broker:
            for isolation in ISOLATIONS:
                found = broker.consume(TOPIC, PARTITIONS, isolation)
                for each, start in starts.items():
                    expected = source.visible(
                        each, start, ends[each], isolation, is_aborted=way == "abort"
                    )
                    case = f"seed {SEED}, round {number}, {way}, {TOPIC}-{each}, {isolation}"
                    assert found[each] == expected, case
            assert offsets_of(broker) == (starts, log_ends)
            with broker.producer() as client:
                for each, end in log_ends.items():
                    sent = client.send(TOPIC, b"after", partition=each).get(30)
                    assert sent.offset == end
            broker.stop()
        # That the controller takes it for another directory than before is not about logs.
        of_logs = lines_of_logs(broker.server_log)
        trouble = [each for each in log_lines_of_trouble(broker.server_log) if each in of_logs]
        assert trouble == []
        assert "clean shutdown" in broker.server_log
        assert not list(part.glob("*-stray"))
        shutil.rmtree(part)
    assert cut
    assert rewritten


def test_the_command_says_with_its_status_that_a_transaction_is_cut(
    source: Source, tmp_path: Path
) -> None:
    """The contract for checks from outside."""
    first = source.transactions[0]
    whole, marker = source.ends[0], first.markers[0]
    records = [each.offset for each in source.records[0] if each.value in first.values]
    for end, status in ((whole, 0), (marker, 1), (max(records), 1), (min(records), 0)):
        part = tmp_path / f"part-{end}"
        arguments = ["--topic", TOPIC, "--partition", "0", "--start-offset", "0"]
        arguments += ["--end-offset", str(end), "--exact", "--json"]
        command = [sys.executable, "-m", "pylog", "extract", str(source.broker.log_dir)]
        done = subprocess.run(
            [*command, "--to", str(part), *arguments], check=False, capture_output=True, text=True
        )
        assert done.returncode == status, (end, done.stderr)
        document = json.loads(done.stdout)
        cut = {each["firstOffset"] for each in document["cutTransactions"]}
        assert (min(records) in cut) == (min(records) < end <= marker)
        with broker_on(source, part, tmp_path / f"broker-{end}") as broker:
            with broker.consumer([(TOPIC, 0)]) as consumer:
                assert [*consumer.end_offsets(consumer.assignment()).values()] == [end]
            broker.stop()
