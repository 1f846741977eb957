"""What is served, and as what: growth, replicas, watermarks, topics, damage where it is met."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.reading.segment_listing import list_segments
from tests.support.damage import flip
from tests.support.log_files import move_partition, write_meta_properties
from tests.support.raw_client import RawClient
from tests.unit.server.fetches import write

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.segment_listing import SegmentListing
    from tests.support.golden import GoldenRoot

OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR, NO_SESSION = 1, 2, 56, 70
UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST = 3, 42


def fetch(client: RawClient, offset: int, topic: str = "orders", **options: Any) -> dict[str, Any]:  # noqa: ANN401
    partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
    request = {
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxBytes": 1 << 20,
        "topics": [{"topic": topic, "partitions": [partition]}],
        **options,
    }
    answer = client.ask("Fetch", 12, request)
    found: dict[str, Any] = answer["responses"][0]["partitions"][0]
    return found


def test_a_waiting_fetch_gets_what_is_appended_meanwhile(log_dir: Path) -> None:
    with pylog.serve(log_dir, follow=True) as server, RawClient(server.address) as client:
        assert fetch(client, 5)["records"] == b""
        appended = threading.Timer(0.3, write, (log_dir, 7))
        appended.start()
        answer = fetch(client, 5, maxWaitMs=20_000)
        appended.join()
        assert answer["highWatermark"] == 12
        assert answer["records"][:8] == (5).to_bytes(8)


def test_topics_that_are_made_meanwhile_are_served(log_dir: Path) -> None:
    with pylog.serve(log_dir, follow=True) as server, RawClient(server.address) as client:
        pylog.create_topic(log_dir, "more", partitions=1)
        for _ in range(100):
            topics = client.ask("Metadata", 12, {"topics": None})["topics"]
            if len(topics) == 2:
                break
            fetch(client, 5, maxWaitMs=200)
        assert [each["name"] for each in topics] == ["more", "orders"]


def test_a_log_that_is_truncated_meanwhile_has_other_records(log_dir: Path) -> None:
    with pylog.serve(log_dir, follow=True) as server, RawClient(server.address) as client:
        before = fetch(client, 0)["records"]
        pylog.truncate_log(log_dir, ("orders", 0), 0)
        write(log_dir, 3)
        for _ in range(100):
            answer = fetch(client, 0)
            if answer["highWatermark"] == 3:
                break
            time.sleep(0.05)  # until the server has looked
        assert (answer["errorCode"], answer["highWatermark"]) == (0, 3)
        assert answer["records"] != before


def test_without_following_a_log_ends_where_it_did(log_dir: Path) -> None:
    with pylog.serve(log_dir) as server, RawClient(server.address) as client:
        assert fetch(client, 0)["highWatermark"] == 5
        write(log_dir, 2)
        assert fetch(client, 5, maxWaitMs=300)["highWatermark"] == 5


def test_the_high_watermark_is_that_of_the_checkpoint_on_request(log_dir: Path) -> None:
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    for choice, expected in (("log-end", 5), ("checkpoint", 3)):
        with (
            pylog.serve(log_dir, high_watermark=choice) as server,
            RawClient(server.address) as client,
        ):
            assert fetch(client, 0)["highWatermark"] == expected
            assert fetch(client, 4)["errorCode"] == 0
            assert fetch(client, 6)["errorCode"] == OFFSET_OUT_OF_RANGE


def test_damage_is_named_once_and_what_follows_it_is_served(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (log,) = (log_dir / "orders-0").glob("*.log")
    second = len(log.read_bytes())
    write(log_dir, 2)
    write(log_dir, 4)
    flip(log, second + 70)
    for mode, expected in (("FAILFAST", CORRUPT_MESSAGE), ("DROPMALFORMED", 0)):
        with pylog.serve(log_dir, mode=mode) as server, RawClient(server.address) as client:  # type: ignore[arg-type]
            assert len(fetch(client, 0)["records"]) == second
            assert [fetch(client, 5)["errorCode"] for _ in range(3)] == [expected] * 3
            assert fetch(client, 7)["records"][:8] == (7).to_bytes(8)
    named = [each for each in caplog.messages if f"{log} at byte {second}" in each]
    assert len(named) == 1


def test_only_the_topics_that_are_chosen_are_served(log_dir: Path) -> None:
    pylog.create_topic(log_dir, "payments", partitions=1)
    for options in ({"topics": ["payments"]}, {"pattern": "^pay"}):
        with (
            pylog.serve(log_dir, **options) as server,
            RawClient(server.address) as client,
        ):
            topics = client.ask("Metadata", 12, {"topics": None})["topics"]
            assert [each["name"] for each in topics] == ["payments"]
            assert fetch(client, 0)["errorCode"] == 3


def test_internal_topics_are_served_by_name_alone(golden_root: GoldenRoot) -> None:
    case = golden_root.case("4.4.0/internal-logdir")
    name = "__consumer_offsets"
    with pylog.serve(case) as server:
        assert name not in _names(server.address)
    with pylog.serve(case, topics=[name]) as server:
        assert _names(server.address) == [name]


def _names(address: str) -> list[str]:
    with RawClient(address) as client:
        return [each["name"] for each in client.ask("Metadata", 12, {"topics": None})["topics"]]


def test_partitions_that_are_not_there_have_no_leader(log_dir: Path) -> None:
    shutil.copytree(log_dir / "orders-0", log_dir / "orders-2")
    with pylog.serve(log_dir) as server, RawClient(server.address) as client:
        (topic,) = client.ask("Metadata", 12, {"topics": None})["topics"]
    assert [(each["partitionIndex"], each["errorCode"]) for each in topic["partitions"]] == [
        (0, 0),
        (1, 5),
        (2, 0),
    ]


def test_replicas_that_have_diverged_are_refused_until_one_is_chosen(
    golden_root: GoldenRoot,
) -> None:
    brokers = sorted(golden_root.case("3.9.1/replicas-diverged").glob("broker-*"))
    with pytest.raises(LogDirectoryError, match=r"has other records than the one in .*--replica"):
        pylog.serve(*brokers)
    with pylog.serve(*brokers, replica=3) as server:
        assert server.partition_count


def test_replicas_of_which_one_stopped_early_are_served(golden_root: GoldenRoot) -> None:
    brokers = sorted(golden_root.case("3.9.1/replicas").glob("broker-*"))
    with pylog.serve(*brokers) as server, RawClient(server.address) as client:
        assert fetch(client, 0, "ledger")["errorCode"] == 0


def test_what_is_asked_for_again_and_again_is_answered_once(log_dir: Path) -> None:
    named = [{"name": "orders"}] * 3
    resource = {"resourceType": 2, "resourceName": "orders", "configurationKeys": []}
    with pylog.serve(log_dir) as server, RawClient(server.address) as client:
        topics = client.ask("Metadata", 13, {"topics": named})["topics"]
        answer = client.ask("DescribeConfigs", 4, {"resources": [resource] * 3})
        partition = {"partitionIndex": 0, "timestamp": -2}
        asked = {"topics": [{"name": "orders", "partitions": [partition] * 2}] * 2}
        (topic,) = client.ask("ListOffsets", 7, asked)["topics"]
    assert [each["name"] for each in topics] == ["orders"]
    assert [(each["errorCode"], bool(each["configs"])) for each in answer["results"]] == [
        (0, True),
        (INVALID_REQUEST, False),
        (INVALID_REQUEST, False),
    ]
    assert [each["errorCode"] for each in topic["partitions"]] == [INVALID_REQUEST]


@pytest.mark.parametrize("follow", [False, True])
def test_a_copy_with_a_date_in_its_name_is_no_partition_of_millions(
    log_dir: Path, caplog: pytest.LogCaptureFixture, *, follow: bool
) -> None:
    shutil.copytree(log_dir / "orders-0", log_dir / "orders-20240101")
    with pylog.serve(log_dir, follow=follow) as server, RawClient(server.address) as client:
        (topic,) = client.ask("Metadata", 12, {"topics": None})["topics"]
    assert len(topic["partitions"]) == 1
    assert any("orders-20240101 is not served" in each for each in caplog.messages)


@pytest.mark.parametrize("is_back", [False, True])
def test_a_partition_that_is_on_its_way_when_it_is_listed_is_no_damage(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_back: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    pylog.create_topic(other, "payments", partitions=1)
    for each in (log_dir, other):
        write_meta_properties(each)
    listed = list_segments
    to_move = [log_dir / "orders-0"]

    def gone_at_first(path: str) -> SegmentListing:
        if path != str(log_dir / "orders-0") or not to_move:
            return listed(path)
        moved = move_partition(to_move.pop(), other)
        try:
            return listed(path)
        finally:
            if is_back:
                move_partition(moved, log_dir)

    with pylog.serve(log_dir, other) as server, RawClient(server.address) as client:
        monkeypatch.setattr("pylog.reading.log_view.list_segments", gone_at_first)
        answers = [fetch(client, 0) for _ in range(2)]  # a client asks again
    assert not to_move
    assert [each["errorCode"] for each in answers] == [KAFKA_STORAGE_ERROR if is_back else 0, 0]
    assert answers[-1]["highWatermark"] == 5


@pytest.mark.parametrize("follow", [False, True])
def test_a_partition_that_is_moved_to_another_disk_is_served_from_there(
    log_dir: Path, tmp_path: Path, *, follow: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    pylog.create_topic(other, "payments", partitions=1)
    write_meta_properties(log_dir)
    write_meta_properties(other)
    with (
        pylog.serve(log_dir, other, follow=follow) as server,
        RawClient(server.address) as client,
    ):
        move_partition(log_dir / "orders-0", other)
        codes = set()
        for _ in range(100):
            answer = fetch(client, 0)
            codes.add(answer["errorCode"])
            if answer["records"]:
                break
            time.sleep(0.05)  # a client asks again
    assert answer["highWatermark"] == 5
    assert codes <= {0, KAFKA_STORAGE_ERROR}
