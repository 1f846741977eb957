"""Real cleaners of two brokers, one of them late, and damage: no key has a wrong last value.

Each of twenty partitions has damage of its own. The ledger has what was acknowledged: of each key
the last value, or that it was deleted.
"""

from __future__ import annotations

import random
import shutil
import struct
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import DivergedReplicasError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.jobs import merge
from tests.broker.test_merge import (
    CONTROLLER,
    FIRST,
    SECOND,
    Cluster,
    copied,
    sockets_are_collected,
)
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION
from tests.support.replica_histories import damage, stored_batches, whole_in

if TYPE_CHECKING:
    from pathlib import Path

    from kafka import KafkaProducer

    from tests.conftest import Counted

__all__ = ["sockets_are_collected"]

_LEFT_SOCKETS = (
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings(_LEFT_SOCKETS)]

TOPIC, PARTITIONS, KEYS, SEED = "orders", 20, 30, 5508
Ledger = list[dict[bytes, tuple[int, bytes | None]]]


class Writer:
    """Appends to all partitions, and keeps the ledger."""

    def __init__(self, choice: random.Random) -> None:
        self._choice = choice
        self._numbers = iter(range(1 << 30))
        self.ledger: Ledger = [{} for _ in range(PARTITIONS)]

    def write(self, producer: KafkaProducer, rounds: int) -> None:
        for _ in range(rounds):
            sent = []
            for partition in range(PARTITIONS):
                for _ in range(self._choice.randrange(1, 6)):
                    key = b"k%d" % self._choice.randrange(KEYS)
                    is_deleted = self._choice.random() < 0.3
                    value = None if is_deleted else b"%d" % next(self._numbers) * 20
                    future = producer.send(TOPIC, value, key=key, partition=partition)
                    sent.append((partition, key, value, future))
            for partition, key, value, future in sent:
                self.ledger[partition][key] = future.get(60).offset, value


def cleaned_up_to(cluster: Cluster, node: int) -> int:
    """Return up to which offset each partition has been cleaned at least."""
    path = cluster.nodes[node].log_dir / "cleaner-offset-checkpoint"
    found = read_offset_checkpoint(str(path)) if path.exists() else {}
    return min(found.get(pylog.TopicPartition(TOPIC, each), 0) for each in range(PARTITIONS))


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("version", [NEWEST_VERSION, LAST_VERSION_3])
def test_replicas_that_were_cleaned_at_other_times_are_put_together(
    tmp_path: Path, version: str, counted: Counted
) -> None:
    choice = random.Random(SEED)
    backoffs = {FIRST: "1000", SECOND: "3600000"}
    own = {node: {"log.cleaner.backoff.ms": backoff} for node, backoff in backoffs.items()}
    cluster = Cluster(tmp_path, version, own)
    writer = Writer(choice)
    try:
        cluster.start(CONTROLLER, FIRST, SECOND)
        name = (
            "internal.segment.bytes" if cluster.nodes[FIRST].version >= "4.1" else "segment.bytes"
        )
        settings = {
            "cleanup.policy": "compact",
            name: "4000",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "1",
            "max.compaction.lag.ms": "100",
        }
        topic = {
            "assignments": {each: [FIRST, SECOND] for each in range(PARTITIONS)},
            "configs": settings,
        }
        cluster.nodes[CONTROLLER].create_topics({TOPIC: topic})
        with cluster.nodes[CONTROLLER].producer(acks="all") as producer:
            writer.write(producer, 40)
            # Tombstones go with a later cleaning than the one that has given them their time.
            seen, end = {0}, time.monotonic() + 300
            while len(seen) < 4:
                assert time.monotonic() < end, f"the third cleaning did not come: {seen}"
                writer.write(producer, 5)
                time.sleep(0.5)
                seen.add(cleaned_up_to(cluster, FIRST))
        cluster.kill()
        copied(cluster, tmp_path / "copies")
        outcomes: Counter[str] = Counter()
        for number in range(3):
            _check(tmp_path, number, choice, writer.ledger, outcomes)
    finally:
        cluster.kill()
    counted("last values of cleaned replicas", outcomes)
    assert outcomes["right"] > 0.8 * outcomes.total()


def _offsets(batch: bytes) -> range:
    first, last_delta = struct.unpack_from(">q15xi", batch)
    return range(first, first + last_delta + 1)


def _check(
    tmp_path: Path, number: int, choice: random.Random, ledger: Ledger, outcomes: Counter[str]
) -> None:
    """Damage copies of the disks, merge them, and hold the result against the ledger."""
    here = tmp_path / f"round-{number}"
    shutil.copytree(tmp_path / "copies", here)
    disks = [here / str(each) for each in (FIRST, SECOND)]
    batches = {
        (partition, disk): list(stored_batches(disk / f"{TOPIC}-{partition}"))
        for partition in range(PARTITIONS)
        for disk in disks
    }
    hits: dict[int, list[tuple[int, str]]] = {each: [] for each in range(PARTITIONS)}
    for partition in range(PARTITIONS):
        for _ in range(choice.randrange(1, 4)):
            at = choice.randrange(2)
            kind = damage(disks[at] / f"{TOPIC}-{partition}", choice)
            hits[partition].append((at, kind))
    for partition in range(PARTITIONS):
        what = f"seed {SEED}, {TOPIC}-{partition}, {hits[partition]}"
        result = here / f"merged-{partition}"
        ones = [each / f"{TOPIC}-{partition}" for each in disks]
        try:
            (merged,) = merge(*ones, to=result, metadata=here / str(CONTROLLER)).partitions
        except DivergedReplicasError:  # all of the last leader's replica is gone
            outcomes["undecided partitions"] += 1
            continue
        gaps = [(each.start_offset, each.end_offset) for each in merged.gaps]
        gaps += [(each.start_offset, each.end_offset) for each in merged.branches]
        intact = {
            offset
            for disk in disks
            for data in batches[partition, disk]
            if whole_in(disk / f"{TOPIC}-{partition}", data)
            for offset in _offsets(data)
        }
        found: dict[bytes, tuple[int, bytes | None]] = {}
        columns = ["key", "offset", "value"]
        table = pylog.scan(result / f"{TOPIC}-{partition}", columns=columns).to_table()
        for key, offset, value in zip(*(each.to_pylist() for each in table.columns), strict=True):
            found[key] = offset, value
        for key, last in ledger[partition].items():
            got = found.get(key, (-1, None))
            if got == last or (got[1] is None and last[1] is None):
                outcomes["right"] += 1
            elif got[1] is None:
                is_told = any(start <= last[0] < (end or sys.maxsize) for start, end in gaps)
                assert is_told or last[0] not in intact, f"{what}: {key!r} {last}"
                outcomes["held back, or lost"] += 1
            else:
                # An earlier value: what came last is on no disk any more.
                assert last[0] not in intact, f"{what}: {key!r} is {got}, and last {last}"
                is_told = any(start <= last[0] < (end or sys.maxsize) for start, end in gaps)
                is_beyond = last[0] >= merged.end_offset  # both tails are cut
                assert last[1] is not None or is_told or is_beyond, (
                    f"{what}: {key!r} was deleted at {last[0]}, and is {got}"
                )
                outcomes["an earlier value"] += 1
