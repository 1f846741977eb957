"""Three voters are killed, two disks are gone: the third starts on what first aid writes."""

from __future__ import annotations

import gc
import hashlib
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.results import Fate
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE
from tests.support.kafka_broker_tools import run_tool
from tests.support.kafka_cluster import KafkaCluster
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# The client leaves the sockets of connections to nodes that are gone to the garbage collector.
_LEFT_SOCKETS = (
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings(_LEFT_SOCKETS)]

TOPICS = ("orders", "payments")
PARTITIONS = 3
RECORDS = 40
PROPERTIES = {
    "broker.session.timeout.ms": "5000",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
}


@pytest.fixture(autouse=True)
def sockets_are_collected() -> Iterator[None]:
    """Have what the client has left collected here, where the warning about it is known."""
    yield
    gc.collect()


def tree_hash(directory: Path) -> str:
    """Return a hash of all names and bytes below a directory."""
    digest = hashlib.sha256()
    for each in sorted(directory.rglob("*")):
        digest.update(str(each.relative_to(directory)).encode())
        if each.is_file():
            digest.update(each.read_bytes())
    return digest.hexdigest()


def known_to(broker: KafkaBroker) -> dict[str, Any]:
    """Return what one node tells of brokers and topics: a client may ask another one."""
    with RawClient(broker.bootstrap_servers) as client:
        return client.ask("Metadata", 12, {"topics": None})


def are_in_sync(broker: KafkaBroker, topics: Iterable[str], replicas: set[int]) -> bool:
    """Whether a node knows that these replicas of topics are in sync."""
    found = {each["name"]: each["partitions"] for each in known_to(broker)["topics"]}
    return set(topics) <= set(found) and all(
        set(each["isrNodes"]) == replicas for topic in topics for each in found[topic]
    )


def wait_until_alone(broker: KafkaBroker, node: int) -> None:
    """Wait until the survivor leads all, and tells no client of the lost brokers any more."""

    def is_alone() -> bool:
        found = known_to(broker)
        leaders = {each["leaderId"] for topic in found["topics"] for each in topic["partitions"]}
        return {each["nodeId"] for each in found["brokers"]} == leaders == {node}

    wait_for(is_alone, f"node {node} alone")


def produced(cluster: KafkaCluster | KafkaBroker, topic: str, label: str) -> set[bytes]:
    """Append records to each partition, and return the values that were acknowledged."""
    values = set()
    with cluster.producer(acks="all") as producer:
        sent = {}
        for number in range(RECORDS):
            value = f"{topic}-{label}-{number}".encode()
            sent[value] = producer.send(topic, value, partition=number % PARTITIONS)
        for value, future in sent.items():
            future.get(30)
            values.add(value)
    return values


def in_transaction(cluster: KafkaCluster | KafkaBroker, topic: str, value: bytes) -> set[bytes]:
    with cluster.producer(transactional_id="first-aid") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, value, partition=0).get(30)
        producer.commit_transaction()
    return {value}


def read(broker: KafkaBroker | KafkaCluster, topic: str) -> set[bytes | None]:
    found = broker.consume(topic, PARTITIONS, "read_committed")
    return {record.value for records in found.values() for record in records}


@pytest.fixture
def killed(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[KafkaCluster, dict[str, set[bytes]]]]:
    """Three nodes that were killed, and what they had acknowledged."""
    version, is_dynamic = request.param
    disks = [tmp_path / f"disk-{node}" for node in (1, 2, 3)]
    cluster = KafkaCluster(
        tmp_path, version=version, disks=disks, properties=PROPERTIES, is_dynamic=is_dynamic
    )
    with cluster:
        topics = {
            topic: {"num_partitions": PARTITIONS, "replication_factor": 3} for topic in TOPICS
        }
        cluster.create_topics(topics)
        ledger = {topic: produced(cluster, topic, "before") for topic in TOPICS}
        ledger["orders"] |= in_transaction(cluster, "orders", b"in a transaction")
        for node in cluster.nodes:
            all_of = partial(are_in_sync, node, (*TOPICS, "__transaction_state"), {1, 2, 3})
            wait_for(all_of, "replicas in sync, in the metadata of each node")
        cluster.kill()
        yield cluster, ledger


def put_in_place(copy: Path, disk: Path) -> None:
    shutil.rmtree(disk / "__cluster_metadata-0")
    shutil.copytree(copy / "__cluster_metadata-0", disk / "__cluster_metadata-0")


def alone(cluster: KafkaCluster, node: int, aid: pylog.results.FirstAid) -> KafkaBroker:
    """Return the survivor, configured as the steps of first aid say."""
    before = cluster.nodes[node - 1]
    setting = next(each for each in aid.steps if each.startswith("set controller.quorum"))
    name, _, value = setting.split()[1].partition("=")
    broker = KafkaBroker(
        before.directory,
        version=before.version,
        log_dir=before.log_dir,
        ports=before.ports,
        properties={
            "node.id": str(node),
            **PROPERTIES,
            "controller.quorum.voters": "",
            name: value,
        },
    )
    broker.cluster_id = before.cluster_id
    return broker


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize(
    ("version", "is_dynamic"),
    [(NEWEST_VERSION, False), (VERSION_BEFORE, True), (LAST_VERSION_3, False)],
)
def test_what_is_lost_is_what_was_announced(
    tmp_path: Path, version: str, *, is_dynamic: bool
) -> None:
    disks = [tmp_path / f"disk-{node}" for node in (1, 2, 3)]
    cluster = KafkaCluster(
        tmp_path, version=version, disks=disks, properties=PROPERTIES, is_dynamic=is_dynamic
    )
    with cluster:
        topics = {
            "elsewhere": {"assignments": {number: [3] for number in range(PARTITIONS)}},
            "behind": {"num_partitions": PARTITIONS, "replication_factor": 3},
        }
        cluster.create_topics(topics)
        produced(cluster, "elsewhere", "before")
        early = produced(cluster, "behind", "early")
        cluster.close_clients()
        cluster.nodes[0].stop()  # whose metadata says that it left in order, and all ISRs
        for node in cluster.nodes[1:]:
            wait_for(partial(are_in_sync, node, ["behind"], {2, 3}), "metadata without node 1")
        late = produced(cluster.nodes[2], "behind", "late")
        cluster.kill()
    # Of node 1 only the records are left, of node 2 the metadata too: it knows that 1 was behind.
    aid = pylog.first_aid(
        *disks[:2],
        to=tmp_path / "copy",
        voters=[1],
        lost=[2, 3],
        elects_unclean=True,
        reassigns=True,
    )
    fates = {each.topic: each.fate for each in aid.partitions}
    assert fates == {"behind": Fate.UNCLEAN, "elsewhere": Fate.REASSIGNED}
    assert sum(each.missing or 0 for each in aid.partitions) == len(late)
    assert len(aid.losses) == 2
    put_in_place(tmp_path / "copy", disks[0])
    with alone(cluster, 1, aid) as broker:
        wait_until_alone(broker, 1)
        assert read(broker, "behind") == early
        assert read(broker, "elsewhere") == set()
        for topic in topics:
            after = produced(broker, topic, "after")
            assert after <= read(broker, topic)
    assert not list(disks[0].glob("*-stray"))


CASES = [
    (NEWEST_VERSION, True),
    (LAST_VERSION_3, False),
    (VERSION_BEFORE, True),
    (NEWEST_VERSION, False),
    (LAST_VERSION_3, True),
    (VERSION_BEFORE, False),
]


@pytest.mark.thorough(one_in=6)
@pytest.mark.parametrize("killed", CASES, indirect=True)
def test_a_lone_survivor_serves_all_that_was_acknowledged(
    tmp_path: Path, killed: tuple[KafkaCluster, dict[str, set[bytes]]]
) -> None:
    cluster, ledger = killed
    disk = tmp_path / "disk-2"
    before = tree_hash(disk)
    aid = pylog.first_aid(disk, to=tmp_path / "copy", voters=[2])
    assert tree_hash(disk) == before
    assert aid.losses == []
    assert {each.fate for each in aid.partitions} <= {Fate.IN_SYNC, Fate.ELIGIBLE}
    put_in_place(tmp_path / "copy", disk)
    with alone(cluster, 2, aid) as broker:
        wait_until_alone(broker, 2)
        for topic in TOPICS:
            assert read(broker, topic) == ledger[topic]
        ledger["orders"] |= produced(broker, "orders", "after")
        ledger["orders"] |= in_transaction(broker, "orders", b"after first aid")
        assert read(broker, "orders") == ledger["orders"]
        status = run_tool(
            "org.apache.kafka.tools.MetadataQuorumCommand",
            *("--bootstrap-server", broker.bootstrap_servers, "describe", "--status"),
        )
        assert "LeaderId:               2" in status
        broker.stop()
    assert not list(disk.glob("*-stray"))


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize(
    "killed",
    [(each, True) for each in (VERSION_BEFORE, NEWEST_VERSION, LAST_VERSION_3)],
    indirect=True,
)
def test_three_nodes_with_new_addresses_are_a_quorum_again(
    tmp_path: Path, killed: tuple[KafkaCluster, dict[str, set[bytes]]]
) -> None:
    cluster, ledger = killed
    disks = [each.log_dir for each in cluster.nodes]
    again = KafkaCluster(
        tmp_path / "again",
        version=cluster.nodes[0].version,
        disks=disks,
        properties=PROPERTIES,
        is_dynamic=True,
    )
    endpoints = {
        number: f"127.0.0.1:{each.ports[1]}"
        for number, each in enumerate(again.nodes, start=1)
        if each.ports is not None
    }
    aid = pylog.first_aid(*disks, to=tmp_path / "copy", endpoints=endpoints)
    assert (len(aid.appended), aid.losses) == (1, [])
    put_in_place(tmp_path / "copy", disks[0])
    with again:
        for topic in TOPICS:
            assert read(again, topic) == ledger[topic]
        ledger["orders"] |= produced(again, "orders", "after")
        assert read(again, "orders") == ledger["orders"]
    assert not [each for disk in disks for each in disk.glob("*-stray")]


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path) as broker:
        before = {each.name for each in broker.log_dir.iterdir()}
        with pytest.raises(pylog.errors.LogLockedError):
            pylog.first_aid(broker.log_dir, to=tmp_path / "copy", voters=[1])
        assert {each.name for each in broker.log_dir.iterdir()} == before
        assert broker.is_running
    assert not (tmp_path / "copy").exists()
