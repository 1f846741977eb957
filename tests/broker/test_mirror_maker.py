"""MirrorMaker 2 restores a directory that is served into a real broker."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.golden import read_expected, stored_of
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import VERSION_BEFORE, fetch_jars, find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.batches import Stored
    from tests.support.golden import GoldenRoot

pytestmark = [
    pytest.mark.broker,
    pytest.mark.thorough,
    pytest.mark.usefixtures("kafka_is_here"),
]

JARS = Path(__file__).parents[2] / "build" / "mirror-maker" / VERSION_BEFORE
SECONDS = 180
PROPERTIES = """
clusters = lost, new
lost.bootstrap.servers = {lost}
new.bootstrap.servers = {new}
lost->new.enabled = true
lost->new.topics = .*
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
offset-syncs.topic.location = target
sync.group.offsets.enabled = true
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
refresh.topics.interval.seconds = 5
"""


@contextmanager
def mirror_maker(lost: str, new: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run MirrorMaker 2 from one cluster to another one, until the block ends."""
    packages = ",".join(
        f"org.apache.kafka:{each}:{VERSION_BEFORE}"
        for each in ("connect-mirror", "connect-runtime")
    )
    jars = fetch_jars(packages, JARS)
    properties = directory / "mm2.properties"
    properties.write_text(PROPERTIES.format(lost=lost, new=new))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    with (directory / "mm2.log").open("wb") as log:
        process = subprocess.Popen(
            [find_java(), "-Xmx400m", "-cp", os.pathsep.join(map(str, jars)), main, properties],
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_a_lost_cluster_is_restored(golden_root: GoldenRoot, tmp_path: Path) -> None:
    case = golden_root.case("4.3.0/plain")
    expected = {}
    for number in range(3):
        path = golden_root.partition(f"4.3.0/plain:orders-{number}").expected_path("uncommitted")
        assert path is not None
        lines = enumerate(read_expected(path))
        expected[number] = [stored_of(line)._replace(offset=offset) for offset, line in lines]
    with (
        KafkaBroker(tmp_path / "broker", version=VERSION_BEFORE) as broker,
        pylog.serve(case, topics=["orders"]) as server,
        mirror_maker(server.address, broker.bootstrap_servers, tmp_path) as process,
    ):
        found: dict[int, list[Stored]] = {}
        for _ in range(SECONDS):
            assert process.poll() is None, (tmp_path / "mm2.log").read_text()
            if "orders" in broker.admin().list_topics():
                found = broker.consume("orders", 3)
                if sum(map(len, found.values())) == sum(map(len, expected.values())):
                    break
            time.sleep(1)
    assert found == expected
