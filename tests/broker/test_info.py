"""What ``pylog info`` says of a running node's disk is what Kafka's own tools say of the node."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE
from tests.support.kafka_broker_tools import run_tool
from tests.support.waiting import eventually

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


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("version", [NEWEST_VERSION, VERSION_BEFORE])
def test_a_topic_with_small_segments_keeps_kafka_4_from_starting(
    tmp_path: Path, version: str
) -> None:
    with KafkaBroker(tmp_path / "old", version=LAST_VERSION_3) as broker:
        broker.create_topic("orders", config={"segment.bytes": "100000"})
        broker.stop()
    release = version.rpartition(".")[0]
    found = pylog.info(broker.log_dir)
    assert found.starts_on == ["3.9"]
    assert not pylog.doctor(broker.log_dir, kafka_version="3.9").refusals
    assert pylog.doctor(broker.log_dir, kafka_version=release).refusals
    later = KafkaBroker(tmp_path / "new", version=version, log_dir=broker.log_dir)
    with pytest.raises(BrokerFailedError, match="Invalid value 100000 for configuration segment"):
        later.start()


@pytest.mark.parametrize("line", ["log.segment.bytes=100000", "metadata.log.segment.bytes=100000"])
def test_a_broker_of_kafka_4_does_not_start_with_properties_that_doctor_names(
    tmp_path: Path, line: str
) -> None:
    with KafkaBroker(tmp_path / "old", version=NEWEST_VERSION) as broker:
        broker.stop()
    name, _, value = line.partition("=")
    (tmp_path / "server.properties").write_text(line)
    settings = pylog.ServerProperties.read(tmp_path / "server.properties")
    [refusal] = pylog.doctor(broker.log_dir, server_properties=settings).refusals
    assert refusal.code == "unusable_broker_config"
    later = KafkaBroker(tmp_path / "new", log_dir=broker.log_dir, properties={name: value})
    with pytest.raises(BrokerFailedError, match=f"Invalid value {value} for configuration {name}"):
        later.start()


ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
BROKER_SETTINGS = ("--entity-type", "brokers", "--entity-default")
_ACL = re.compile(
    r"principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)", re.IGNORECASE
)
_PATTERN = re.compile(r"resourceType=(\w+), name=(\S+), patternType=(\w+)\)")
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("version", [NEWEST_VERSION, VERSION_BEFORE, LAST_VERSION_3])
def test_acls_users_quotas_and_configurations_are_those_that_kafkas_tools_show(
    tmp_path: Path, version: str
) -> None:
    with KafkaBroker(tmp_path, version=version, properties=_AUTHORIZER) as broker:
        server = ("--bootstrap-server", broker.bootstrap_servers)
        for arguments in (
            "--allow-principal User:anna --operation Read --topic orders",
            (
                "--deny-principal User:bob --deny-host 10.0.0.1 --operation All --group pay"
                " --resource-pattern-type prefixed"
            ),
            "--allow-principal User:* --operation Describe --cluster",
        ):
            run_tool(ACLS, *server, "--add", "--force", *arguments.split())
        gone = "--allow-principal User:* --operation Describe --cluster"
        run_tool(ACLS, *server, "--remove", "--force", *gone.split())
        alter = (*server, "--alter", "--add-config")
        credential = "SCRAM-SHA-512=[iterations=4096,password=hidden-word]"
        run_tool(CONFIGS, *alter, credential, "--entity-type", "users", "--entity-name", "anna")
        run_tool(
            *(CONFIGS, *alter, "producer_byte_rate=2048"),
            *("--entity-type", "users", "--entity-name", "anna"),
            *("--entity-type", "clients", "--entity-default"),
        )
        run_tool(CONFIGS, *alter, "log.cleaner.threads=2", *BROKER_SETTINGS)
        eventually(partial(ensure_same, broker))  # a broker goes by what was altered a moment later
        broker.stop()


def ensure_same(broker: KafkaBroker) -> None:
    """Compare what tools print with what is found in the directory."""
    server = ("--bootstrap-server", broker.bootstrap_servers)
    printed = run_tool(ACLS, *server, "--list")
    described = run_tool(CONFIGS, *server, "--describe", *BROKER_SETTINGS)
    users = run_tool(CONFIGS, *server, "--describe", "--entity-type", "users")
    found = pylog.info(broker.log_dir)
    storage = run_tool(
        "kafka.tools.StorageTool", "info", "--config", str(broker.directory / "server.properties")
    )
    expected: set[tuple[str, ...]] = set()
    pattern: tuple[str, ...] = ()
    for line in printed.splitlines():
        if header := _PATTERN.search(line):
            pattern = header.groups()
        for entry in _ACL.findall(line):
            expected.add((*pattern, *entry))
    assert len(expected) == 2
    assert set(map(tuple, found.acls)) == expected
    [user] = found.users
    assert (user.name, user.mechanism, user.iterations) == ("anna", "SCRAM-SHA-512", 4096)
    assert "SCRAM-SHA-512=iterations=4096" in users
    [quota] = found.quotas
    assert (quota.entity, quota.limits) == (
        {"user": "anna", "client-id": None},
        {"producer_byte_rate": 2048.0},
    )
    [setting] = found.broker_configs
    assert setting.broker == ""
    assert setting.configs == dict(re.findall(r"^\s+(\S+?)=(\S*) sensitive=", described, re.M))
    assert setting.configs["log.cleaner.threads"] == "2"
    assert f"cluster.id={found.cluster_id}" in storage.replace("cluster.id: ", "cluster.id=")
    assert f"node.id={found.node_id}" in storage.replace("node.id: ", "node.id=")
    assert "hidden-word" not in str(found)
