"""What doctor says of a node's log directories is what a broker does to them: states of nodes.

They need more than one log directory, more than one start, or another version of Kafka than the one
that has written the directory; for the others see `tests.broker.test_starts`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.results import Severity
from pylog.server.messages import APIS
from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.streams_messages import STREAMS_APIS
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.results import DoctorReport
    from tests.broker.conftest import NewBroker

pytestmark = pytest.mark.broker

SNAPSHOT_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "100"}
SECONDS = 30.0


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
