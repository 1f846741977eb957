"""What doctor says of a node's log directories is what a broker does to them: states of nodes.

They need more than one log directory, more than one start, or another version of Kafka than the one
that has written the directory; for the others see `tests.broker.test_starts`.
"""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.results import Severity
from pylog.server.messages import APIS
from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.streams_messages import STREAMS_APIS
from tests.support.faults.nodes import NODE_HARMS, TOPIC, change_properties
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.results import AffectedOffsets, DoctorReport
    from tests.broker.conftest import NewBroker
    from tests.conftest import Counted
    from tests.support.faults.nodes import NodeHarm

pytestmark = pytest.mark.broker

SNAPSHOT_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "100"}
SECONDS = 90.0


def doctor(version: str, *paths: Path) -> DoctorReport:
    return pylog.doctor(*paths, kafka_version=version.rpartition(".")[0])


def does_start(broker: KafkaBroker) -> bool:
    try:
        broker.start()
    except BrokerFailedError:
        return False
    return True


@pytest.fixture(params=BROKER_VERSIONS)
def version(request: pytest.FixtureRequest, kafka_is_here: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return [tmp_path / "node" / "logs", tmp_path / "node" / "disk-2"]


@pytest.fixture
def broker(version: str, disks: list[Path]) -> Iterator[KafkaBroker]:
    """Give a broker that was stopped; partitions of "orders" are on both of its disks."""
    properties = {"log.dirs": ",".join(map(str, disks)), **SNAPSHOT_OFTEN}
    broker = KafkaBroker(disks[0].parent, version=version, properties=properties)
    disks[1].mkdir()
    with broker:
        broker.create_topic("orders", partitions=4)
        with broker.producer() as producer:
            for partition in range(4):
                producer.send("orders", b"value", partition=partition)
            producer.flush()
        broker.stop()
        broker.is_to_be_formatted = False
        yield broker


def partitions_on(disk: Path) -> list[Path]:
    return sorted(disk.glob("orders-?"))


def test_each_disk_of_a_node_needs_its_meta_properties(
    version: str, disks: list[Path], broker: KafkaBroker
) -> None:
    assert all(map(partitions_on, disks))
    assert not doctor(version, *disks).refusals
    (disks[1] / "meta.properties").unlink()
    [refusal] = doctor(version, *disks).refusals
    assert refusal.code == "missing_meta_properties"
    assert not does_start(broker)
    assert "No `meta.properties` found in" in broker.server_log


def test_a_partition_without_its_topic_id_is_set_aside_on_any_disk(
    version: str, disks: list[Path], broker: KafkaBroker
) -> None:
    place = partitions_on(disks[1])[0]
    (place / "partition.metadata").unlink()
    found = [each for each in doctor(version, disks[1]).findings if each.code == "stray_partition"]
    assert [(each.severity, each.path) for each in found] == [(Severity.ERROR, str(place))]
    assert does_start(broker)
    assert list(disks[1].glob(f"{place.name}.*-stray"))


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("epochs", [None, "0\n0\n"])
def test_a_node_knows_the_epochs_of_its_metadata_without_their_checkpoint(
    version: str, disks: list[Path], broker: KafkaBroker, epochs: str | None
) -> None:
    metadata = disks[0] / "__cluster_metadata-0"
    does_start(broker)  # epoch 2
    broker.create_topic("of-the-second-epoch")
    deadline = time.monotonic() + SECONDS
    while not list(metadata.glob("*-0000000002.checkpoint")):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    broker.create_topic("after-the-snapshot")
    broker.stop()
    checkpoint = metadata / "leader-epoch-checkpoint"
    checkpoint.unlink()
    if epochs is not None:
        checkpoint.write_text(epochs)
    names = {each.topic for each in pylog.topics(disks[0]).topics if each.is_in_metadata}
    assert names >= {"orders", "of-the-second-epoch", "after-the-snapshot"}
    codes = {each.code for each in doctor(version, *disks).findings}
    assert codes.isdisjoint({"discarded_metadata", "stray_partition", "unusable_metadata"})
    assert does_start(broker)
    assert not [each for disk in disks for each in disk.glob("*-stray")]
    with broker.consumer([("after-the-snapshot", 0)]) as consumer:
        assert consumer.partitions_for_topic("after-the-snapshot")


@pytest.mark.parametrize("other", BROKER_VERSIONS)
def test_a_version_that_does_not_know_the_metadata_version_does_not_start(
    version: str, disks: list[Path], broker: KafkaBroker, other: str
) -> None:
    properties = {"log.dirs": ",".join(map(str, disks))}
    with_other = KafkaBroker(disks[0].parent, version=other, properties=properties)
    with_other.is_to_be_formatted = False
    refusals = doctor(other, *disks).refusals
    try:
        assert does_start(with_other) == (not refusals)
    finally:
        with_other.kill()
    if other == LAST_VERSION_3 and version != LAST_VERSION_3:
        assert {each.code for each in refusals} == {"unusable_metadata"}


@pytest.mark.parametrize("is_made", [False, True])
def test_a_streams_group_is_in_the_state_that_a_broker_names(
    new_broker: NewBroker, *, is_made: bool
) -> None:
    broker = new_broker(NEWEST_VERSION)
    if is_made:
        broker.create_topic("source")
    lists = (
        *("sourceTopicRegex", "repartitionSinkTopics", "stateChangelogTopics"),
        *("repartitionSourceTopics", "copartitionGroups"),
    )
    subtopology = {"subtopologyId": "0", "sourceTopics": ["source"], **{each: [] for each in lists}}
    join = {
        "groupId": "app",
        "memberId": "member-1",
        "memberEpoch": 0,
        "processId": "process",
        "rebalanceTimeoutMs": 60_000,
        "topology": {"epoch": 3, "subtopologies": [subtopology]},
        **{each: [] for each in ("activeTasks", "standbyTasks", "warmupTasks")},
    }
    with RawClient(broker.bootstrap_servers) as client:
        client.ask(APIS["FindCoordinator"], 4, {"keyType": 0, "coordinatorKeys": ["app"]})
        deadline = time.monotonic() + SECONDS
        while client.ask(STREAMS_APIS["StreamsGroupHeartbeat"], 0, join)["errorCode"]:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        listed = client.ask(APIS["ListGroups"], 5, {"statesFilter": [], "typesFilter": ["streams"]})
    [theirs] = listed["groups"]
    [ours] = [each for each in pylog.groups(broker.log_dir).groups if each.group_id == "app"]
    assert (ours.kind, ours.state) == ("streams", theirs["groupState"])
    assert (ours.state == "NotReady") == (not is_made)


# ---- harms of nodes


PARTITIONS, RECORDS = 6, 120
NOT_KNOWN = ("the first disk alone", "the second disk alone", "the metadata missing")
"""Which disks there are besides, and whether other controllers have the metadata, is not known."""
OF_ANOTHER_NODE = ("another node on the each disk",)
"""Which node the broker is configured to be is not on its disks."""
LIVE_STAYS = ("a future without its topic id", "a future without a file")
"""The copy is set aside, and the partition is served."""


@dataclass(slots=True)
class StartedNode:
    """What a broker made of the disks of a node."""

    is_up: bool
    without_leader: set[str] = field(default_factory=set)
    shortened: set[str] = field(default_factory=set)
    strays: int = 0
    log: str = ""


class StoppedNode:
    """A node with two disks that a broker has closed in order; copies of it are harmed."""

    def __init__(self, directory: Path, version: str) -> None:
        self.version = version
        self._directory = directory
        self._disks = [directory / "base" / name for name in ("d1", "d2")]
        self._disks[1].mkdir(parents=True)
        name = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
        with self._broker(self._disks) as broker:
            broker.is_to_be_formatted = True
            broker.start()
            config = {name: "16384", "retention.ms": "-1"}
            broker.create_topic(TOPIC, partitions=PARTITIONS, config=config)
            with broker.producer(batch_size=1200, linger_ms=20) as producer:
                for partition in range(PARTITIONS):
                    for number in range(RECORDS):
                        producer.send(TOPIC, b"%06d" % number * 40, partition=partition)
                producer.flush()
            broker.stop()

    @contextmanager
    def copy(self) -> Iterator[list[Path]]:
        """Give the disks of a copy."""
        place = self._directory / "copy"
        disks = [place / each.name for each in self._disks]
        try:
            for source, target in zip(self._disks, disks, strict=True):
                shutil.copytree(source, target)
            yield disks
        finally:
            shutil.rmtree(place)

    @contextmanager
    def _broker(self, disks: list[Path]) -> Iterator[KafkaBroker]:
        properties = {"log.dirs": ",".join(map(str, disks)), SNAPSHOT_EVERY[0]: SNAPSHOT_EVERY[1]}
        broker = KafkaBroker(
            disks[0].parent / "run", version=self.version, log_dir=disks[0], properties=properties
        )
        broker.is_to_be_formatted = False
        try:
            yield broker
        finally:
            broker.kill()

    def start(
        self, disks: list[Path], expected: set[str], *, starts: int = 1, all_or_none: bool = False
    ) -> StartedNode:
        """Start a broker, as often as is said, and return what it makes of the disks.

        Partitions get their leaders soon; ``expected`` are those that may get none, and with
        ``all_or_none`` it is waited until all of them have one, or none has.
        """
        with self._broker(disks) as broker:
            for _ in range(starts - 1):
                assert does_start(broker)
                broker.stop()
            if not does_start(broker):
                return StartedNode(is_up=False, log=broker.server_log)
            without_leader, shortened = _served(broker, expected, all_or_none=all_or_none)
            return StartedNode(
                is_up=True,
                without_leader=without_leader,
                shortened=shortened,
                strays=sum(len(list(each.glob("*-stray"))) for each in disks),
                log=broker.server_log,
            )


SNAPSHOT_EVERY = ("metadata.log.max.record.bytes.between.snapshots", "1500")


def _served(
    broker: KafkaBroker, expected: set[str], *, all_or_none: bool
) -> tuple[set[str], set[str]]:
    """Return which partitions have no leader, and which have not the offsets that they had."""
    deadline = time.monotonic() + SECONDS
    while True:
        leaders = {
            f"{TOPIC}-{each['partition_index']}": each["leader_id"]
            for topic in broker.admin().describe_topics()
            if topic["name"] == TOPIC
            for each in topic["partitions"]
        }
        without = {name for name, leader in leaders.items() if leader < 0}
        is_settled = without in (set(), expected) if all_or_none else without <= expected
        if is_settled or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    led = [(TOPIC, int(name.rpartition("-")[2])) for name in leaders if name not in without]
    shortened = set()
    if led:
        with broker.consumer(led) as consumer:
            assigned = consumer.assignment()
            first, last = consumer.beginning_offsets(assigned), consumer.end_offsets(assigned)
        shortened = {
            f"{TOPIC}-{each.partition}"
            for each in assigned
            if (first[each], last[each]) != (0, RECORDS)
        }
    return without, shortened


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def stopped_node(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> StoppedNode:
    return StoppedNode(tmp_path_factory.mktemp("disks"), request.param)


def partitions_of(affected: list[AffectedOffsets]) -> set[str]:
    return {f"{each.topic}-{each.partition}" for each in affected if each.topic == TOPIC}


@pytest.mark.thorough(one_in=9)
@pytest.mark.parametrize("harm", NODE_HARMS, ids=[name for name, _ in NODE_HARMS])
def test_what_doctor_says_of_harmed_disks_is_what_a_broker_does(
    stopped_node: StoppedNode, harm: NodeHarm
) -> None:
    name, change = harm
    with stopped_node.copy() as disks:
        given = change(disks)
        verdict = doctor(stopped_node.version, *given).verdict
        gone = partitions_of([*verdict.loses_records, *verdict.lost_already])
        unserved = partitions_of(verdict.unserved)
        started = stopped_node.start(given, unserved | gone)
        if verdict.ends_later:
            assert not stopped_node.start(given, unserved | gone).is_up
    if name in NOT_KNOWN:
        assert verdict.would_start is None
    if verdict.would_start is None:
        assert name in NOT_KNOWN or name.startswith("the metadata's log flipped"), verdict.reasons
        return  # a flipped offset, of which no checksum tells, is said to be not known
    if name not in OF_ANOTHER_NODE:
        assert started.is_up == verdict.would_start, (verdict.reasons, started.log[-3000:])
    if started.is_up:
        assert unserved - gone <= started.without_leader <= unserved | gone, verdict.reasons
        assert started.shortened <= gone, verdict.reasons
        said = {each.path for each in verdict.stray_partitions if TOPIC in each.name}
        assert started.strays == len(said) or name in LIVE_STAYS, verdict.reasons


@pytest.mark.parametrize("place", [0, 1])
def test_a_log_directory_without_its_id_is_led_again_after_the_second_start(
    stopped_node: StoppedNode, place: int, counted: Counted
) -> None:
    with stopped_node.copy() as disks:
        change_properties(disks[place], directory_id=None)
        unserved = partitions_of(doctor(stopped_node.version, *disks).verdict.unserved)
        assert len(unserved) == PARTITIONS // 2
        # The broker gets a new id, and tells it the controller before that elects leaders or after:
        # milliseconds decide, and either way it is for all of these partitions.
        without = stopped_node.start(disks, unserved, all_or_none=True).without_leader
        assert without in (set(), unserved)
        counted(
            "log directories without their id",
            {"led after the second start" if without else "led after the first start": 1},
        )
        assert doctor(stopped_node.version, *disks).verdict.unserved == []
        assert stopped_node.start(disks, set()).without_leader == set()
