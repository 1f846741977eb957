"""Real brokers, an unclean election, and damage: `merge` has what Kafka's own follower has then."""

from __future__ import annotations

import gc
import logging
import shutil
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from kafka.errors import KafkaConnectionError

import pylog
from pylog.jobs import merge
from tests.support.kafka_broker import KafkaBroker, free_ports
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION
from tests.support.log_files import segment_path
from tests.support.replica_histories import stored_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_LEFT_SOCKETS = (
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings(_LEFT_SOCKETS)]

TOPIC = "orders"
CONTROLLER, FIRST, SECOND = 1, 2, 3


@pytest.fixture(autouse=True)
def sockets_are_collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Have what clients of killed nodes have left collected here, where the warning is known."""
    caplog.set_level(logging.CRITICAL, logger="kafka")  # kept lines of its log keep the sockets
    yield
    gc.collect()


class Cluster:
    """A node that controls, and two brokers with the replicas; each is killed by itself."""

    def __init__(
        self,
        directory: Path,
        version: str,
        properties: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        ports = free_ports(6)
        voters = f"1@127.0.0.1:{ports[1]}"
        common = {
            "controller.quorum.voters": voters,
            "broker.session.timeout.ms": "6000",
            "broker.heartbeat.interval.ms": "500",
            "replica.lag.time.max.ms": "15000",
            "unclean.leader.election.interval.ms": "1000",
            "replica.fetch.wait.max.ms": "100",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "1",
        }
        self.nodes: dict[int, KafkaBroker] = {}
        for number in (CONTROLLER, FIRST, SECOND):
            port = ports[2 * number - 2]
            own = {"node.id": str(number), **common, **(properties or {}).get(number, {})}
            if number != CONTROLLER:
                own["process.roles"] = "broker"
                own["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
            self.nodes[number] = KafkaBroker(
                directory / f"node-{number}",
                version=version,
                log_dir=directory / f"disk-{number}",
                ports=(port, ports[2 * number - 1]),
                properties=own,
            )
            self.nodes[number].cluster_id = self.nodes[CONTROLLER].cluster_id

    def start(self, *numbers: int) -> None:
        for number in numbers:
            self.nodes[number].start()

    def kill(self) -> None:
        for each in self.nodes.values():
            each.kill()

    def partition(self, number: int) -> Path:
        return self.nodes[number].log_dir / f"{TOPIC}-0"

    def send(self, count: int, label: str, *, acks: str | int = "all") -> list[bytes]:
        """Append records, one a batch; return what was acknowledged."""
        values = [f"{label}-{number}".encode() for number in range(count)]
        with self.nodes[CONTROLLER].producer(acks=acks) as producer:
            for each in values:
                producer.send(TOPIC, each, partition=0).get(60)
        return values

    def transaction(self, label: str) -> None:
        # The coordinator may be on a node that was killed: another loads its transactions first.
        options = {"transactional_id": label, "max_block_ms": 180_000}
        with self.nodes[CONTROLLER].producer(**options) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(TOPIC, label.encode(), partition=0).get(60)
            producer.commit_transaction()

    def described(self, topic: str) -> list[dict[str, Any]]:
        """Return the partitions of a topic; a client may ask a node first that was killed."""
        for _ in range(100):
            with suppress(KafkaConnectionError):
                (found,) = self.nodes[CONTROLLER].admin().describe_topics([topic])
                return list(found["partitions"])
            time.sleep(0.2)
        pytest.fail("no node describes the topic")

    def in_sync(self) -> set[int]:
        return set(self.described(TOPIC)[0]["isr_nodes"])

    def has_transactions_in_sync(self) -> bool:
        """Whether the node that stays has every partition of the coordinators' topic in sync."""
        partitions = self.described("__transaction_state")
        return all(CONTROLLER in each["isr_nodes"] for each in partitions)

    def leader(self) -> int:
        return int(self.described(TOPIC)[0]["leader_id"])


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.3)


def copied(cluster: Cluster, to: Path) -> list[Path]:
    """Copy the disks of all nodes; return the directories of the replicas."""
    for number, node in cluster.nodes.items():
        shutil.copytree(node.log_dir, to / str(number))
        (to / str(number) / ".lock").unlink(missing_ok=True)
    return [to / str(number) / f"{TOPIC}-0" for number in (FIRST, SECOND)]


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("version", [NEWEST_VERSION, LAST_VERSION_3])
def test_of_an_unclean_election_the_result_is_what_a_follower_has_that_cut_its_log(
    tmp_path: Path, version: str
) -> None:
    cluster = Cluster(tmp_path, version)
    try:
        _diverge(cluster)
        ones = copied(cluster, tmp_path / "copies")
        result = tmp_path / "merged"
        (merged,) = merge(*ones, to=result, metadata=tmp_path / "copies/1").partitions
        # What Kafka makes of it: the second node leads, the first one cuts its log.
        cluster.start(CONTROLLER, SECOND, FIRST)
        wait_for(lambda: cluster.in_sync() == {FIRST, SECOND}, "the follower")
        time.sleep(1)
        cluster.kill()
        by_kafka = list(stored_batches(cluster.partition(FIRST)))
        by_merge = list(stored_batches(result / f"{TOPIC}-0"))
        assert by_merge == by_kafka[: len(by_merge)]
        # A coordinator that comes back may write a marker again.
        assert all(each[22] & 0x20 for each in by_kafka[len(by_merge) :])
        assert (merged.gaps, merged.is_proven) == ([], True)
        assert merged.leader == str(ones[1])
        assert any(each.epoch < merged.epoch for each in merged.branches)
        _damaged(tmp_path, by_merge)
        _boots(tmp_path, version, result)
    finally:
        cluster.kill()


def _diverge(cluster: Cluster) -> None:
    """Let the second broker lead, unclean, while the first has more."""
    cluster.start(CONTROLLER, FIRST, SECOND)
    segment = "internal.segment.bytes" if cluster.nodes[FIRST].version >= "4.1" else "segment.bytes"
    settings = {"unclean.leader.election.enable": "true", segment: "2000"}
    topic = {"assignments": {0: [FIRST, SECOND]}, "configs": settings}
    cluster.nodes[CONTROLLER].create_topics({TOPIC: topic})
    wait_for(lambda: cluster.in_sync() == {FIRST, SECOND}, "the topic")
    cluster.send(30, "both")
    cluster.transaction("both")
    # Else a partition of the coordinators has no leader once a slow machine's only one is killed.
    wait_for(cluster.has_transactions_in_sync, "the coordinators' replicas")
    cluster.nodes[SECOND].kill()
    wait_for(lambda: cluster.in_sync() == {FIRST}, "a smaller set of replicas in sync")
    cluster.send(20, "first alone")
    cluster.transaction("first alone")
    wait_for(cluster.has_transactions_in_sync, "the coordinators' replicas")
    cluster.nodes[FIRST].kill()
    cluster.start(SECOND)
    wait_for(lambda: cluster.leader() == SECOND, "the unclean election")
    cluster.send(25, "second alone")
    cluster.transaction("second alone")
    cluster.kill()


def _damaged(tmp_path: Path, whole: list[bytes]) -> None:
    """Lose a segment of the leader, flip a byte of the other: the result is the same."""
    ones = [tmp_path / "copies" / str(number) / f"{TOPIC}-0" for number in (FIRST, SECOND)]
    bases = sorted(int(each.stem) for each in ones[1].glob("*.log"))
    assert len(bases) > 2
    segment_path(ones[1], bases[0]).unlink()
    last = segment_path(ones[0], sorted(int(each.stem) for each in ones[0].glob("*.log"))[-1])
    data = bytearray(last.read_bytes() or b"\0")
    data[len(data) // 2] ^= 16
    last.write_bytes(data)
    (merged,) = merge(*ones, to=tmp_path / "again").partitions
    assert merged.gaps == []
    assert list(stored_batches(tmp_path / "again" / f"{TOPIC}-0")) == whole
    assert {each.source for each in merged.ranges} == set(map(str, ones))


def _boots(tmp_path: Path, version: str, result: Path) -> None:
    """Have a broker serve the result after adoption, and append to it."""
    expected = pylog.scan(result, topics=[TOPIC]).to_table()
    broker = KafkaBroker(tmp_path / "new", version=version, log_dir=tmp_path / "new-disk")
    with broker:
        pass
    pylog.adopt(result, into=tmp_path / "new-disk")
    broker.start()
    try:
        found = broker.consume(TOPIC, 1)
        assert [each.offset for each in found[0]] == expected["offset"].to_pylist()
        assert [each.value for each in found[0]] == expected["value"].to_pylist()
        with broker.producer() as producer:
            sent = producer.send(TOPIC, b"new", partition=0).get(60)
        # The last record may be a marker, if the broker was killed after it and not before.
        last = list(stored_batches(result / f"{TOPIC}-0"))[-1]
        base_offset, last_delta = struct.unpack_from(">q15xi", last)
        assert sent.offset == base_offset + last_delta + 1
    finally:
        broker.kill()
