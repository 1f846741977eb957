from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

TOPIC_ID = "7bGSu7gYRDuEkZTQ2w4F_g"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a topic of two partitions, with two properties of its own."""
    pylog.create_topic(
        tmp_path,
        "orders",
        2,
        topic_id=pylog.parse_uuid(TOPIC_ID),
        properties={"retention.ms": "5", "segment.bytes": "2000"},
    )
    return tmp_path


def stored(directory: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(
        (directory / "pylog-topic-configs.json").read_text()
    )["topics"]
    return found


def test_properties_are_set_and_deleted(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    change = ("--config", "retention.ms=7", "--config", "flush.ms=9", "--delete-config")
    done = pylog_run("alter-topic", logs, "--topic", "orders", *change, "segment.bytes")
    assert (done.status, done.error) == (0, "")
    assert done.lines == ["topic orders has these properties: flush.ms=9 retention.ms=7"]
    assert stored(logs) == {"orders": {"retention.ms": "7", "flush.ms": "9"}}
    deleted = ("--delete-config", "retention.ms", "--delete-config", "flush.ms", "--json")
    done = pylog_run("alter-topic", logs, "--topic", "orders", *deleted)
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "topic": "orders",
        "partitions": 2,
        "addedPartitions": 0,
        "config": {},
    }
    assert stored(logs) == {"orders": {}}


def test_partitions_are_added_under_the_id_of_the_topic(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("alter-topic", logs, "--topic", "orders", "--partitions", 4)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [
        "topic orders has these properties: retention.ms=5 segment.bytes=2000",
        "2 partitions added, 4 in all: keys now go to other partitions than before",
    ]
    for partition in range(4):
        metadata = (logs / f"orders-{partition}" / "partition.metadata").read_text()
        assert metadata == f"version: 0\ntopic_id: {TOPIC_ID}"


def test_a_topic_that_is_not_there_is_not_made(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("alter-topic", logs, "--topic", "order", "--partitions", 3)
    assert done.status == 2
    assert "no topic 'order' in this log directory; did you mean 'orders'?" in done.error
    done = pylog_run("alter-topic", logs / "none", "--topic", "orders", "--partitions", 3)
    assert done.status == 2
    assert not (logs / "none").exists()


def test_partitions_of_a_topic_that_lies_on_several_brokers_cannot_be_counted(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for partition in (0, 3):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=f"t-{partition}")
    done = pylog_run("alter-topic", tmp_path, "--topic", "t", "--partitions", 5)
    assert done.status == 2
    assert "topic 't' has only partitions 0, 3 here: the others lie elsewhere" in done.error
    done = pylog_run("alter-topic", tmp_path, "--topic", "t", "--config", "retention.ms=-1")
    assert done.status == 0
    assert stored(tmp_path) == {"t": {"retention.ms": "-1"}}


def test_topics_of_brokers_keep_their_number_of_partitions(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    name = "__consumer_offsets"
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=f"{name}-0")
    done = pylog_run("alter-topic", tmp_path, "--topic", name, "--partitions", 5)
    assert done.status == 2
    assert f"the number of partitions of {name} stays: brokers find what is in it by" in done.error


def test_partitions_alone_do_not_make_the_configuration_of_a_copied_topic_known(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name="t-0")
    assert pylog_run("alter-topic", tmp_path, "--topic", "t", "--partitions", 2).status == 0
    with pylog.logs.LogManager([tmp_path]) as manager:
        assert manager.unconfigured_topics(["t"]) == ["t"]
        pylog.alter_topic(manager, "t", properties={"retention.ms": "1"})
        assert manager.unconfigured_topics(["t"]) == []


def test_logs_that_are_open_follow_the_configuration(logs: Path) -> None:
    with pylog.logs.LogManager([logs]) as manager:
        log = manager.get_log(pylog.TopicPartition("orders", 0))
        assert (log.config.segment_bytes, log.config.flush_messages) == (2000, 2**63 - 1)
        pylog.alter_topic(
            manager,
            "orders",
            properties={"flush.messages": "1"},
            deleted_properties=["segment.bytes"],
        )
        assert (log.config.segment_bytes, log.config.flush_messages) == (1 << 30, 1)
        assert log.config == manager.config_of("orders")
