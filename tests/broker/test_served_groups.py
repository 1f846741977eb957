"""Groups as `pylog.serve` has them against those of a real broker: field by field."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.files.partition_metadata import read_partition_metadata
from pylog.internal_topics.group_state import StoredOffset
from pylog.reading.log_directory import TopicChoice
from pylog.server.broker_server import BrokerServer, Listener
from pylog.server.group_config import GroupCoordinatorConfig
from pylog.server.group_coordinator_service import GroupOptions
from pylog.server.offset_metadata_manager import CommitKey, OffsetsFile
from pylog.server.replica_manager import ServedLogs
from tests.broker.group_scenarios import SCENARIOS, RandomClassicMembers, RandomMembers
from tests.broker.group_sides import Side, differences
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_tools import dump_log_segments, run_tool, tool_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.golden import GoldenRoot

pytestmark = pytest.mark.broker

STEPS = 40
SNAPSHOT = "4.3.0/internal-logdir"
SNAPSHOT_COMMIT = ("grp-late", "orders-1"), ("9", "49", "40")
GROUPS_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSUMER_TIMEOUT_MS = "60000"
TOPICS = {"orders": 3, "payments": 2}
# Assignments are made with the heartbeat that asks for them, as they are here.
PROPERTIES = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
# As the broker's, so that answers are alike.
CONFIG = GroupCoordinatorConfig(
    group_initial_rebalance_delay_ms=0, consumer_heartbeat_interval_ms=5_000
)


class Servers(NamedTuple):
    """Where both are, and what their topics' ids are."""

    broker: str
    served: str
    topic_ids: dict[str, uuid.UUID]


@pytest.fixture(scope="module")
def servers(kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Give a real broker, and a server of a copy of its directory."""
    directory = tmp_path_factory.mktemp("groups")
    copy = directory / "copy"
    with KafkaBroker(directory / "broker", properties=PROPERTIES) as broker:
        for name, partitions in TOPICS.items():
            broker.create_topic(name, partitions)
        broker.stop()
        shutil.copytree(broker.log_dir, copy)
        broker.start()
        ids = {
            name: read_partition_metadata(copy / f"{name}-0" / "partition.metadata")
            for name in TOPICS
        }
        choice = TopicChoice.of(topics=None, assign=None, pattern=None)
        with BrokerServer(
            ServedLogs(paths=(copy,), choice=choice), Listener(), None, GroupOptions(config=CONFIG)
        ) as server:
            yield Servers(
                ready(broker.bootstrap_servers),
                server.address,
                {name: each.topic_id for name, each in ids.items()},
            )


def ready(address: str) -> str:
    """Wait until a broker coordinates groups; return its address."""
    for _ in range(900):
        with Side(address, {}) as side:
            find = side.ask("a", "FindCoordinator", 3, key="warm-up")
            fetch = side.ask("a", "OffsetFetch", 7, groupId="warm-up", topics=[])
        if not find["errorCode"] and not fetch["errorCode"]:
            return address
        time.sleep(0.1)
    msg = f"no coordinator at {address}"
    raise TimeoutError(msg)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_members_and_tools_get_the_same_answers(
    servers: Servers, scenario: Callable[[Side], None]
) -> None:
    broker = Side(servers.broker, servers.topic_ids)
    served = Side(servers.served, servers.topic_ids)
    assert differences(scenario, broker, served) == []


@pytest.mark.thorough(one_in=10)
@pytest.mark.parametrize("seed", range(40))
def test_random_members_of_the_consumer_protocol_get_the_same_answers(
    servers: Servers, seed: int
) -> None:
    broker = Side(servers.broker, servers.topic_ids)
    served = Side(servers.served, servers.topic_ids)
    assert differences(RandomMembers(seed, STEPS), broker, served) == []


@pytest.mark.thorough(one_in=20)
@pytest.mark.parametrize("seed", range(20))
def test_random_members_of_the_classic_protocol_get_the_same_answers(
    servers: Servers, seed: int
) -> None:
    broker = Side(servers.broker, servers.topic_ids)
    served = Side(servers.served, servers.topic_ids)
    assert differences(RandomClassicMembers(seed, STEPS), broker, served) == []


def described(address: str, *arguments: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return what kafka-consumer-groups tells of partitions, by group and partition."""
    printed = run_tool(
        GROUPS_COMMAND, "--bootstrap-server", address, "--describe", "--offsets", *arguments
    )
    return {
        (row["GROUP"], f"{row['TOPIC']}-{row['PARTITION']}"): row for row in tool_table(printed)
    }


def test_kafkas_tool_shows_commits_and_lag_of_the_snapshot(
    kafka_is_here: None, golden_root: GoldenRoot
) -> None:
    case = golden_root.case(SNAPSHOT)
    with pylog.serve(case) as server:
        rows = described(server.address, "--all-groups")
    found = {
        place: (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"])
        for place, row in rows.items()
    }
    ends = json.loads((case / "offsets.json").read_text())
    assert found == {
        (group.group_id, f"{each.topic}-{each.partition}"): (
            str(each.offset),
            str(ends[f"{each.topic}-{each.partition}"]["latest"]),
            str(ends[f"{each.topic}-{each.partition}"]["latest"] - (each.offset or 0)),
        )
        for group in pylog.groups(case).groups
        for each in group.offsets
    }
    assert found[SNAPSHOT_COMMIT[0]] == SNAPSHOT_COMMIT[1]


@pytest.mark.thorough
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafkas_tools_read_reset_and_delete_groups(
    kafka_is_here: None, golden_root: GoldenRoot, tmp_path: Path, protocol: str
) -> None:
    case = golden_root.case(SNAPSHOT)
    with pylog.serve(case, offsets=tmp_path / "offsets") as server:
        where = ["--bootstrap-server", server.address]
        of_group = [*where, "--group", "java"]
        settings = [f"group.protocol={protocol}", "auto.offset.reset=earliest"]
        properties = [each for one in settings for each in ("--command-property", one)]
        properties += ["--formatter-property", "print.value=false", "--topic", "orders"]
        properties += ["--max-messages", str(pylog.scan(case, topics=["orders"]).count())]
        run_tool(CONSUMER, *of_group, "--timeout-ms", CONSUMER_TIMEOUT_MS, *properties)
        rows = described(server.address, "--group", "java")
        assert {place for _, place in rows} == {"orders-0", "orders-1"}
        assert {row["LAG"] for row in rows.values()} == {"0"}
        groups = run_tool(GROUPS_COMMAND, *where, "--list", "--type", protocol)
        assert "java" in groups.split()
        run_tool(
            GROUPS_COMMAND,
            *of_group,
            *("--reset-offsets", "--topic", "orders:0", "--to-offset", "7", "--execute"),
        )
        run_tool(GROUPS_COMMAND, *of_group, "--delete-offsets", "--topic", "orders:1")
        rows = described(server.address, "--group", "java")
        assert {place: row["CURRENT-OFFSET"] for (_, place), row in rows.items()} == {
            "orders-0": "7"
        }
    # And all of it is there after a restart.
    with pylog.serve(case, offsets=tmp_path / "offsets") as server:
        where = ["--bootstrap-server", server.address]
        rows = described(server.address, "--group", "java")
        assert {place: row["CURRENT-OFFSET"] for (_, place), row in rows.items()} == {
            "orders-0": "7"
        }
        run_tool(GROUPS_COMMAND, *where, "--group", "java", "--delete")
        assert "java" not in run_tool(GROUPS_COMMAND, *where, "--list").split()


def test_kafkas_tool_dumps_the_file_of_offsets(kafka_is_here: None, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    with OffsetsFile(path) as file:
        key = CommitKey("billing", "orders", 3)
        file.store({key: StoredOffset(42, 1, "so far", 1_700_000_000_000, uuid.UUID(int=7))})
        file.store({key._replace(partition=4): None})
    printed = dump_log_segments([path], "--offsets-decoder", "--deep-iteration")
    assert '"group":"billing","topic":"orders","partition":3' in printed
    assert '"offset":42,"leaderEpoch":1,"metadata":"so far"' in printed
    assert '"partition":4}} payload: <DELETE>' in printed
