"""What ``pylog info`` says of a running node's disk is what Kafka's own tools say of the node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE
from tests.support.kafka_broker_tools import run_tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.broker

_FEATURE = re.compile(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)")


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", [NEWEST_VERSION, VERSION_BEFORE, LAST_VERSION_3])
def test_ids_voters_and_features_are_those_that_kafkas_tools_show(
    tmp_path: Path, version: str
) -> None:
    with KafkaBroker(tmp_path, version=version) as broker:
        broker.create_topic("orders", partitions=3)
        server = ("--bootstrap-server", broker.bootstrap_servers)
        status = run_tool(
            "org.apache.kafka.tools.MetadataQuorumCommand", *server, "describe", "--status"
        )
        features = run_tool("org.apache.kafka.tools.FeatureCommand", *server, "describe")
        found = pylog.info(broker.log_dir)
        broker.stop()
    stopped = pylog.info(broker.log_dir)
    said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert found.cluster_id == said["ClusterId"].strip()
    assert found.metadata_copies[0].last_epoch == int(said["LeaderEpoch"])
    assert f'"id": {found.voters[0].voter_id}' in said["CurrentVoters"]
    assert found.quorum == (1, (1,))
    release = version.rpartition(".")[0]
    names = {name: level for name, level in _FEATURE.findall(features) if level != "0"}
    assert names.pop("metadata.version") == found.metadata_release
    levels = {**found.features, "kraft.version": found.kraft_version}
    assert levels.pop("metadata.version") == found.metadata_version
    assert names == {name: str(level) for name, level in levels.items() if level}
    assert found.starts_on[0] == stopped.starts_on[0] == release
    assert found.starts_on[-1] == "4.4"
    assert found.brokers[0].kafka_version == release
    assert found.brokers[0].leaderships == 3
    assert (
        f"{found.brokers[0].endpoints[0].host}:{found.brokers[0].endpoints[0].port}" == (server[1])
    )
    assert stopped.nodes[0].log_directories[0].was_stopped_cleanly
