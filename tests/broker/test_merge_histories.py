"""Random histories of three real brokers, and random damage: `merge` against what the leader had.

Each run of a cluster gives twenty topics with fates of their own: brokers are killed and come back
in any company, those that were behind are elected, too, and what clients were told is kept. The
truth is the log of the last leader, as it was on its disk before the disks were damaged.
"""

from __future__ import annotations

import gc
import random
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka.cimpl import NewTopic

import pylog
from pylog.jobs import merge
from tests.broker.recovery_cluster import RecoveryCluster, Shape, wait_for
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION
from tests.support.replica_histories import damage, stored_batches, whole_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pylog.results import MergedPartition
    from tests.conftest import Counted

_LEFT_SOCKETS = (
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)
pytestmark = [
    pytest.mark.broker,
    pytest.mark.filterwarnings(_LEFT_SOCKETS),
    pytest.mark.usefixtures("kafka_is_here"),
]

CONTROLLER, BROKERS = 1, (2, 3, 4)
TOPICS = [f"topic-{number}" for number in range(20)]
VERSIONS = (NEWEST_VERSION, LAST_VERSION_3)
RUNS = [(seed, VERSIONS[seed % 2]) for seed in range(550, 560)]
ROUNDS = 4
DAMAGED = 3
_UNCLEAN = {
    "unclean.leader.election.interval.ms": "1000",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(autouse=True)
def sockets_are_collected() -> Iterator[None]:
    yield
    gc.collect()


class Life(NamedTuple):
    """What became of a cluster: the disks, who led each topic last, and what that acknowledged."""

    disks: dict[int, Path]
    leaders: dict[str, int]
    acknowledged: dict[str, dict[int, bytes]]


@pytest.mark.thorough(of_all=10)
@pytest.mark.parametrize(("seed", "version"), RUNS)
def test_what_is_intact_of_the_last_leaders_log_is_in_the_result(
    tmp_path: Path, seed: int, version: str, counted: Counted
) -> None:
    choice = random.Random(seed)
    is_forked = seed % 3 > 0
    disks = {each: tmp_path / f"disk-{each}" for each in (CONTROLLER, *BROKERS)}
    shape = Shape(version, is_dynamic=False, brokers=BROKERS, controllers=(CONTROLLER,))
    outcomes: Counter[str] = Counter()
    with RecoveryCluster(tmp_path / "cluster", shape, disks, _UNCLEAN) as cluster:
        life = _live(cluster, disks, choice, is_forked=is_forked)
        whole = _merged(disks, tmp_path / "whole")
        for number in range(DAMAGED):
            here = tmp_path / f"damaged-{number}"
            copies = {each: here / str(each) for each in disks}
            for each, copy in copies.items():
                shutil.copytree(disks[each], copy)
            hits = _damage(copies, choice)
            found = _merged(copies, here / "merged")
            for topic in TOPICS:
                what = f"seed {seed}, {topic}, {hits.get(topic)}"
                _judge(life, copies, topic, found[topic], here / "merged", outcomes, what)
        for topic in TOPICS:
            table = pylog.scan(tmp_path / "whole", topics=topic).to_table()
            stored = zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)
            assert life.acknowledged[topic].items() <= set(stored), topic
        outcomes["of logs that Kafka made equal"] = _follow(
            cluster, life, tmp_path / "whole", whole
        )
    counted("batches of merged histories", outcomes)
    assert outcomes["of other leaders"] or not is_forked
    assert outcomes["of logs that Kafka made equal"]
    assert outcomes["in the result"] > 20 * outcomes["reported"]


def _live(
    cluster: RecoveryCluster, disks: dict[int, Path], choice: random.Random, *, is_forked: bool
) -> Life:
    """Let clients write while brokers come and go; end all at once."""
    segment = "internal.segment.bytes" if cluster.shape.version >= "4.1" else "segment.bytes"
    config = {"unclean.leader.election.enable": "true", segment: "2500"}
    for node in cluster.nodes.values():
        node.format()
    cluster.each(KafkaBroker.start)
    orders = [choice.sample(BROKERS, 3) for _ in TOPICS]
    cluster.create(
        NewTopic(name, num_partitions=1, replica_assignment=[order], config=config)
        for name, order in zip(TOPICS, orders, strict=True)
    )
    acknowledged: dict[str, dict[int, bytes]] = {each: {} for each in TOPICS}
    running = set(BROKERS)
    for number in range(ROUNDS):
        if number:
            chosen = set(choice.sample(BROKERS, choice.choice((1, 1, 2))))
            if is_forked and number == ROUNDS - 1:  # nobody who is left has what was written last
                chosen = set(BROKERS) - running
            cluster.each(KafkaBroker.kill, running - chosen)
            cluster.each(KafkaBroker.start, chosen - running)
            running = chosen
        for topic in TOPICS:
            wait_for(lambda: cluster.leader(topic, 0) >= 0, f"a leader of {topic}")  # noqa: B023
            values = [
                f"{topic} {number} {each}".encode() * choice.randrange(1, 12)
                for each in range(choice.randrange(30))
            ]
            acknowledged[topic] = cluster.produce(topic, 0, values)
    leaders = {each: cluster.leader(each, 0) for each in TOPICS}
    cluster.each(KafkaBroker.kill)
    for disk in disks.values():
        (disk / ".lock").unlink(missing_ok=True)
    return Life(disks, leaders, acknowledged)


def _merged(disks: dict[int, Path], to: Path) -> dict[str, MergedPartition]:
    paths = [disks[each] for each in BROKERS]
    done = merge(*paths, to=to, topics=TOPICS, metadata=disks[CONTROLLER])
    return {each.topic: each for each in done.partitions}


def _damage(disks: dict[int, Path], choice: random.Random) -> dict[str, list[tuple[int, str]]]:
    hits: dict[str, list[tuple[int, str]]] = {}
    for topic in TOPICS:
        for _ in range(choice.randrange(6)):
            node = choice.choice(BROKERS)
            hit = damage(disks[node] / f"{topic}-0", choice)
            hits.setdefault(topic, []).append((node, hit))
    return hits


def _judge(
    life: Life,
    copies: dict[int, Path],
    topic: str,
    merged: MergedPartition,
    result: Path,
    outcomes: Counter[str],
    what: str,
) -> None:
    """Hold a result against what the last leader had, and what the disks still have."""
    truth = list(stored_batches(life.disks[life.leaders[topic]] / f"{topic}-0"))
    found = list(stored_batches(result / f"{topic}-0"))
    is_true = [each in set(truth) for each in found]
    assert [each for each in truth if each in set(found)] == [
        each for each, true in zip(found, is_true, strict=True) if true
    ], f"{what}: another order"
    if not all(is_true):
        # Another history: allowed where the last leader's disk has lost it, and from its fork on.
        assert not merged.is_proven, f"{what}: {found[is_true.index(False)][:40]!r} is of another"
        assert not any(is_true[is_true.index(False) :]), f"{what}: two histories in one log"
        outcomes["of another history"] += 1
        return
    ranges = [(each.start_offset, each.end_offset or sys.maxsize) for each in merged.gaps]
    ranges += [(each.start_offset, each.end_offset) for each in merged.branches]
    places = [copies[each] / f"{topic}-0" for each in BROKERS]
    for batch in truth:
        offset = _offset(batch)
        if batch in found:
            outcomes["in the result"] += 1
        elif any(whole_in(each, batch) for each in places):
            assert _is_in(ranges, offset), f"{what}: offset {offset} is lost"
            outcomes["reported"] += 1
        else:
            is_beyond = offset >= merged.end_offset  # all tails are cut, and nothing tells
            assert is_beyond or _is_in(ranges, offset), f"{what}: nothing tells of {offset}"
            outcomes["on no disk"] += 1
    branches = [(each.start_offset, each.end_offset) for each in merged.branches]
    for node, place in zip(BROKERS, places, strict=True):
        for batch in stored_batches(life.disks[node] / f"{topic}-0"):
            if batch not in truth and whole_in(place, batch):
                assert _is_in(branches, _offset(batch)), f"{what}: of another leader, {node}"
                outcomes["of other leaders"] += 1


def _offset(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big")


def _is_in(ranges: Sequence[tuple[int, int]], offset: int) -> bool:
    return any(start <= offset < end for start, end in ranges)


def _follow(
    cluster: RecoveryCluster, life: Life, result: Path, merged: dict[str, MergedPartition]
) -> int:
    """Let Kafka's followers cut their logs: they get what the result of the whole disks has.

    Return of how many topics that was seen: where the last leader was not there in time, another
    one leads.
    """
    assert all(each.is_complete for each in merged.values())
    last = set(life.leaders.values())
    cluster.each(KafkaBroker.start, [CONTROLLER, *last])
    for topic in TOPICS:
        wait_for(lambda: cluster.leader(topic, 0) >= 0, f"a leader of {topic}")  # noqa: B023
    led = [each for each in TOPICS if cluster.leader(each, 0) == life.leaders[each]]
    of_merge = {topic: list(stored_batches(result / f"{topic}-0")) for topic in led}
    cluster.each(KafkaBroker.start, set(BROKERS) - last)

    def followed() -> bool:
        return all(
            list(stored_batches(life.disks[node] / f"{topic}-0")) == of_merge[topic]
            for topic in led
            for node in BROKERS
        )

    wait_for(followed, "followers that have what was merged")
    return len(led)
