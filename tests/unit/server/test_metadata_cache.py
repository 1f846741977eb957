"""Which leader epoch clients are told: they ignore one that is lower than what they have seen."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.files.partition_metadata import format_uuid
from tests.support.log_files import segment_path, write_partition
from tests.support.raw_client import RawClient
from tests.unit.server.followed import followed
from tests.unit.server.test_partition import batches
from tests.unit.server.test_replica_manager import fetch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built


def write_epochs(directory: Path, *entries: tuple[int, int]) -> None:
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in entries)
    (directory / "aside").write_text(f"0\n{len(entries)}\n{lines}")
    (directory / "aside").rename(directory / "leader-epoch-checkpoint")


def answer_of(client: RawClient, api: str, version: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of ``orders-0``."""
    name = "topic" if api == "OffsetForLeaderEpoch" else "name"
    request = {"topics": [{name: "orders", "partitions": [asked]}]}
    (topic,) = client.ask(api, version, request)["topics"]
    partition: dict[str, Any] = topic["partitions"][0]
    return partition


@pytest.mark.parametrize(
    ("segments", "checkpoint"),
    [
        ({0: batches(*range(10), epoch=6)}, None),
        ({0: batches(*range(10), epoch=6)}, "not a checkpoint"),
        ({0: batches(*range(10), epoch=6), 10: []}, None),
        ({0: [*batches(*range(5), epoch=4), *batches(*range(5, 10), epoch=6)]}, "0\n1\n4 0\n"),
        ({0: batches(*range(10), epoch=4)}, "0\n2\n4 0\n6 12\n"),
    ],
    ids=["missing", "unreadable", "rolled", "older than the log", "newer than the log"],
)
def test_the_leader_epoch_is_not_below_that_of_a_batch_or_the_checkpoint(
    tmp_path: Path, segments: dict[int, list[Built]], checkpoint: str | None
) -> None:
    directory = write_partition(tmp_path, segments)
    if checkpoint is not None:
        (directory / "leader-epoch-checkpoint").write_text(checkpoint)
    asked = {"partitionIndex": 0, "timestamp": -1, "currentLeaderEpoch": 6}
    of_epoch = {"partition": 0, "currentLeaderEpoch": 6}
    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        (topic,) = client.ask("Metadata", 12, {"topics": None})["topics"]
        latest = answer_of(client, "ListOffsets", 7, asked)
        ends = [
            answer_of(client, "OffsetForLeaderEpoch", 3, {**of_epoch, "leaderEpoch": each})
            for each in (4, 6)
        ]
        partition = {"partition": 0, "fetchOffset": 5, "partitionMaxBytes": 1 << 20}
        partition |= {"currentLeaderEpoch": 6, "lastFetchedEpoch": 6}
        answer = fetch(client, 5, topics=[{"topic": "orders", "partitions": [partition]}])
    assert topic["partitions"][0]["leaderEpoch"] == 6
    assert (latest["errorCode"], latest["offset"], latest["leaderEpoch"]) == (0, 10, 6)
    assert [(each["errorCode"], each["endOffset"]) for each in ends] == [(0, 10), (0, 10)]
    assert answer["errorCode"] == 0
    assert answer["records"]
    assert answer["divergingEpoch"] == {"epoch": -1, "endOffset": -1}


def test_an_epoch_that_a_follower_forgets_is_told_on(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: batches(*range(10))})
    write_epochs(directory, (0, 0), (3, 10))
    with followed(tmp_path) as replicas:
        assert replicas.partition("orders", 0).leader_epoch == 3
        write_epochs(directory, (0, 0))
        with segment_path(directory, 0).open("ab") as file:
            file.write(batches(10)[0].data)
        replicas.refresh()
        partition = replicas.partition("orders", 0)
        assert partition.leader_epoch == 3
        assert [partition.end_offset_for(each) for each in (0, 3)] == [(0, 11), (3, 11)]


def write_topic(log_directory: Path, epoch: int) -> None:
    """Write a topic with an id of its own."""
    directory = write_partition(log_directory, {0: batches(*range(10))})
    metadata = f"version: 0\ntopic_id: {format_uuid(uuid.uuid4())}"
    (directory / "partition.metadata").write_text(metadata)
    write_epochs(directory, (epoch, 0))


def test_the_epochs_of_a_topic_that_is_made_anew_begin_anew(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_topic(logs, 3)
    with followed(logs) as replicas:
        assert replicas.partition("orders", 0).leader_epoch == 3
        (logs / "orders-0").rename(tmp_path / "deleted")
        write_topic(logs, 0)
        replicas.refresh()
        assert replicas.partition("orders", 0).leader_epoch == 0


def test_the_ids_are_those_of_the_first_directory_that_has_them(tmp_path: Path) -> None:
    kept = {"empty": None, "old": "broker.id=3\n", "one": "broker.id=4\ncluster.id=c\n"}
    for name, ids in kept.items():
        write_partition(tmp_path / name, {0: batches(0)}, name=f"{name}-0")
        if ids is not None:
            (tmp_path / name / "meta.properties").write_text(f"version=0\n{ids}")
    found = []
    for names in (("empty", "old", "one"), ("empty", "old")):
        with (
            pylog.serve(*(tmp_path / each for each in names)) as server,
            RawClient(server.address) as client,
        ):
            answer = client.ask("Metadata", 12, {"topics": None})
            found.append((answer["clusterId"], [each["nodeId"] for each in answer["brokers"]]))
    assert found == [("pylog-serve-c", [4]), ("pylog-serve-unknown", [1])]


def test_of_many_partitions_the_epochs_are_told_when_they_have_been_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.server.metadata_cache._MOST_LOADED", 2)
    for number in range(5):
        write_partition(tmp_path, {0: batches(*range(10), epoch=6)}, name=f"orders-{number}")

    def told(client: RawClient, topics: list[dict[str, Any]] | None = None) -> list[int]:
        (topic,) = client.ask("Metadata", 12, {"topics": topics})["topics"]
        return [each["leaderEpoch"] for each in topic["partitions"]]

    with pylog.serve(tmp_path) as server, RawClient(server.address) as client:
        assert told(client) == [6, 6, -1, -1, -1]
        assert fetch(client, 0)["errorCode"] == 0  # of a partition that is known
        assert told(client, [{"name": "orders"}]) == [6, 6, 6, 6, -1]
        asked = {"topics": [{"name": "orders"}], "responsePartitionLimit": 10}
        (topic,) = client.ask("DescribeTopicPartitions", 0, asked)["topics"]
        assert [each["leaderEpoch"] for each in topic["partitions"]] == [6] * 5
