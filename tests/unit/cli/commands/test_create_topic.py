from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import LogConfig
from pylog.model import TopicPartition
from tests.golden.test_recovery_pairs import copy_state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

TOPIC_ID = "7bGSu7gYRDuEkZTQ2w4F_g"


def test_all_partitions_are_made_under_the_id_given(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    arguments = ("--topic", "orders", "--partitions", "3", "--topic-id", TOPIC_ID)
    done = pylog_run("create-topic", tmp_path / "logs", *arguments)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [f"created topic orders with 3 partitions, id {TOPIC_ID}"]
    found = sorted(path.name for path in (tmp_path / "logs").iterdir() if path.is_dir())
    assert found == ["orders-0", "orders-1", "orders-2"]
    for name in found:
        metadata = (tmp_path / "logs" / name / "partition.metadata").read_text()
        assert metadata == f"version: 0\ntopic_id: {TOPIC_ID}"
    assert pylog_run("ls", tmp_path / "logs").status == 0


def test_a_random_id_is_the_same_in_all_partitions(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("create-topic", tmp_path, "--topic", "t", "--partitions", "2", "--json")
    document = json.loads(done.output)
    assert document == {
        "schemaVersion": 1,
        "topic": "t",
        "partitions": 2,
        "topicId": document["topicId"],
        "config": {},
    }
    for partition in (0, 1):
        metadata = (tmp_path / f"t-{partition}" / "partition.metadata").read_text()
        assert metadata == f"version: 0\ntopic_id: {document['topicId']}"
    stored = json.loads((tmp_path / "pylog-topic-configs.json").read_text())
    assert stored["topics"] == {"t": {}}, "it is known that the topic has no properties"


def test_properties_are_kept_for_whoever_opens_the_directory_next(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    config = ("--config", "cleanup.policy=compact", "--config", "segment.bytes = 2000")
    assert pylog_run("create-topic", tmp_path, "--topic", "t", *config).status == 0
    assert pylog_run("create-topic", tmp_path, "--topic", "u").status == 0
    stored = json.loads((tmp_path / "pylog-topic-configs.json").read_text())
    assert stored["topics"] == {
        "t": {"cleanup.policy": "compact", "segment.bytes": "2000"},
        "u": {},
    }
    own = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=2000)
    of_all = LogConfig(index_interval_bytes=100)
    with pylog.logs.LogManager([tmp_path], of_all) as manager:
        assert manager.get_log(TopicPartition("u", 0)).config == of_all
        found = manager.get_log(TopicPartition("t", 0)).config
        assert (found.segment_bytes, found.index_interval_bytes) == (2000, 100)
    with pylog.logs.LogManager([tmp_path]) as manager:
        assert manager.config_of("t") == own
    given = {"t": LogConfig(segment_bytes=3000)}
    with pylog.logs.LogManager([tmp_path], topic_configs=given) as manager:
        assert manager.config_of("t") == given["t"]


def test_server_properties_say_what_the_command_does_not(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path}/logs\nnum.partitions=3\nlog.segment.bytes=14\n")
    done = pylog_run(
        *("create-topic", tmp_path / "logs", "--topic", "t", "--server-properties", file)
    )
    assert (done.status, done.error) == (0, "")
    assert [path.name for path in sorted((tmp_path / "logs").glob("t-*"))] == ["t-0", "t-1", "t-2"]
    more = ("--topic", "u", "--partitions", 1, "--server-properties", file)
    done = pylog_run("create-topic", tmp_path / "others", *more)
    assert done.status == 0
    assert done.error == (
        f"pylog: warning: {tmp_path}/others is not among the log.dirs of {file}, which are "
        f"{tmp_path}/logs: its configuration is used all the same\n"
    )
    assert [path.name for path in (tmp_path / "others").glob("u-*")] == ["u-0"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file of server properties"),
        ("\nlog.roll.hours=no", "line 2: property log.roll.hours is 'no', expected a whole number"),
        (
            "retention.ms=3",
            "line 1: retention.ms is a property of topics, which a broker passes over",
        ),
    ],
)
def test_server_properties_that_cannot_be_used_are_one_line(
    content: str | None, reason: str, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    file = tmp_path / "server.properties"
    if content is not None:
        file.write_text(content)
    done = pylog_run(
        *("create-topic", tmp_path / "logs", "--topic", "t", "--server-properties", file)
    )
    assert (done.status, done.output) == (2, b"")
    assert done.error.startswith(f"pylog: error: {file}: {reason}")
    assert done.error.count("\n") == 1
    assert not (tmp_path / "logs").exists()


def test_a_property_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    assert pylog_run("create-topic", tmp_path, "--topic", "t").status == 0
    path = tmp_path / "pylog-topic-configs.json"
    path.write_text('{"version": 1, "topics": {"t": {"segment.byte": "1"}}}')
    done = pylog_run("create-topic", tmp_path, "--topic", "u")
    assert done.status == 1
    assert done.error == (
        f"pylog: error: {path}: configuration of topic 't': segment.byte is not a property of a "
        "topic; did you mean segment.bytes?\n"
    )


def test_a_new_topic_does_not_get_what_is_stored_of_one_that_is_gone(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    arguments = ("create-topic", tmp_path, "--topic", "t")
    pylog_run(*arguments, "--config", "segment.bytes=2000")
    with pylog.logs.LogManager([tmp_path]) as manager:
        manager.delete_log(TopicPartition("t", 0))
    assert pylog_run(*arguments).status == 0
    with pylog.logs.LogManager([tmp_path]) as manager:
        assert manager.config_of("t") == LogConfig()


@pytest.mark.parametrize("command", ["create-topic", "alter-topic"])
def test_a_refused_command_changes_no_file(
    tmp_path: Path, pylog_run: Callable[..., Outcome], command: str
) -> None:
    pylog.create_topic(tmp_path, "there", 1)
    marker = tmp_path / ".kafka_cleanshutdown"
    before = marker.stat().st_mtime_ns
    assert pylog_run(command, tmp_path, "--topic", "there", "--partitions", "1").status == 2
    assert marker.stat().st_mtime_ns == before


def test_a_partition_directory_is_not_taken_for_a_log_directory(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    pylog_run("create-topic", tmp_path, "--topic", "t")
    done = pylog_run("create-topic", tmp_path / "t-0", "--topic", "t")
    assert done.status == 2
    assert f"give the log directory that holds it, {tmp_path}\n" in done.error
    assert not (tmp_path / "t-0" / ".lock").exists()


def test_an_object_store_cannot_be_written_to(pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("create-topic", "s3://bucket/logs", "--topic", "t")
    assert done.status == 2
    assert done.error == (
        "pylog: error: s3://bucket/logs: only local directories can be written to\n"
    )


@pytest.mark.parametrize(
    ("name", "other"),
    [("test_b", "test.b"), ("test.b", "test_b"), ("a.b_c", "a_b.c"), ("__", "_.")],
)
def test_names_that_are_the_same_in_metrics_are_refused(
    name: str, other: str, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    assert pylog_run("create-topic", tmp_path, "--topic", other).status == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    done = pylog_run("create-topic", tmp_path, "--topic", name)
    assert (done.status, done.output) == (2, b"")
    assert f"topic {name!r} would collide with {other!r}" in done.error
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert pylog_run("create-topic", tmp_path, "--topic", "test-b").status == 0


@pytest.mark.parametrize("case", ["4.3.0/internal-logdir", "4.4.0/controller-logdir"])
def test_a_topic_that_a_kraft_cluster_does_not_have_is_a_warning(
    case: str, golden_root: GoldenRoot, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    copy_state(golden_root.case(case), tmp_path)
    done = pylog_run("create-topic", tmp_path, "--topic", "new", "--topic-id", TOPIC_ID)
    assert done.status == 0
    assert done.lines == [f"created topic new with 1 partition, id {TOPIC_ID}"]
    (line,) = (each for each in done.error.splitlines() if "a KRaft cluster" in each)
    assert f"does not have topic new with the id {TOPIC_ID}: a broker sets a topic that" in line
    assert "aside as -stray" in line


def test_where_the_metadata_lie_elsewhere_the_warning_says_so(
    golden_root: GoldenRoot, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    meta = golden_root.case("4.3.0/internal-logdir") / "meta.properties"
    (tmp_path / "meta.properties").write_bytes(meta.read_bytes())
    done = pylog_run("create-topic", tmp_path, "--topic", "new")
    assert done.status == 0
    assert "whose metadata is not here, and has to have topic new" in done.error


def test_a_topic_that_the_cluster_has_under_its_id_is_none(
    golden_root: GoldenRoot, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    copy_state(golden_root.case("4.3.0/internal-logdir"), tmp_path)
    text = (tmp_path / "orders-0" / "partition.metadata").read_text()
    for directory in tmp_path.glob("orders-*"):
        shutil.rmtree(directory)
    topic_id = text.partition("topic_id: ")[2].strip()
    done = pylog_run("create-topic", tmp_path, "--topic", "orders", "--topic-id", topic_id)
    assert (done.status, "a KRaft cluster" in done.error) == (0, False)
