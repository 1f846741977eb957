"""What a node does at its start beside loading logs: `pylog.writing.node`, through doctor."""

from __future__ import annotations

import itertools
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptCheckpointError, SegmentVanishedError, UnexpectedFileError
from pylog.reading.internal_logs import read_committed_metadata
from pylog.writing.node import nodes_of
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition, write_topic_id
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID,
    TOPIC_ID_TEXT,
    config_record,
    partition_record,
    topic_record,
    write_metadata_log,
)
from tests.unit.writing.nodes import OTHER_ID, TOPIC, found, node_directory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pylog.reading.internal_logs import CommittedMetadata

TOPIC_RESOURCE = 2


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return node_directory(tmp_path)


def test_nothing_is_wrong_with_a_node_that_has_its_partitions(logs: Path) -> None:
    assert found(logs) == []
    assert pylog.doctor(logs).verdict.reasons == ["A broker starts, and loses nothing"]


@pytest.mark.parametrize(
    ("text", "code", "file"),
    [
        (None, "stray_partition", "logs/orders-0"),
        ("version: 0\ntopic_id: " + OTHER_ID, "stray_partition", "logs/orders-0"),
        ("", "damaged_metadata", "orders-0/partition.metadata"),
        ("version: 0\n", "damaged_metadata", "orders-0/partition.metadata"),
        ("version: 0\ntopic_id: " + "A" * 22, "damaged_metadata", "orders-0/partition.metadata"),
    ],
    ids=["missing", "another topic's", "empty", "cut", "zero"],
)
def test_the_topic_id_of_a_partition(logs: Path, text: str | None, code: str, file: str) -> None:
    path = logs / "orders-0" / "partition.metadata"
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert found(logs) == [(code, file)]
    assert found(logs / "orders-0") == [(code, file)]
    report = pylog.doctor(logs)
    assert bool(report.refusals) == (code == "damaged_metadata")
    (start_text,) = (
        each.start_text for each in report.partitions if each.topic_partition == ("orders", 0)
    )
    assert start_text is not None
    assert ("sets it aside as -stray" in start_text) == (code == "stray_partition")
    shutil.rmtree(logs / METADATA)
    (logs / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    assert found(logs) == ([] if code == "stray_partition" else [(code, file)])


def test_a_live_broker_is_given_the_time_to_write_what_belongs_to_a_new_partition(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logs / "orders-0" / "partition.metadata"
    text = path.read_text()
    path.unlink()
    monkeypatch.setattr(time, "sleep", lambda _: path.write_text(text))
    assert found(logs) == []


def test_files_of_the_metadata_that_a_broker_removes_meanwhile_are_looked_for_again(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0

    def read(*arguments: Any, **options: Any) -> CommittedMetadata:  # noqa: ANN401
        nonlocal reads
        reads += 1
        if reads == 1:
            raise SegmentVanishedError("file is gone", str(logs))
        return read_committed_metadata(*arguments, **options)

    monkeypatch.setattr("pylog.writing.node.read_committed_metadata", read)
    assert nodes_of([str(logs)])[str(logs)].knows_metadata
    assert reads == 2


def controllers(tmp_path: Path, first: list[bytes], others: list[bytes]) -> list[Path]:
    """Give three controllers, and a broker with a partition and without metadata of its own."""
    places = [tmp_path / str(number) for number in (1, 2, 3, 4)]
    for number, place in enumerate(places[:3], 1):
        write_metadata_log(place, first if number == 1 else others, voters=(1, 2, 3))
    partition = write_partition(places[3], {0: [batch_v2(plain_records(0, 3))]}, name="orders-0")
    write_topic_id(partition, TOPIC_ID_TEXT)
    for number, place in enumerate(places, 1):
        (place / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")
    return places


def strays(places: Iterable[Path]) -> list[list[str]]:
    """Return what is a stray, for each order of the controllers."""
    *controllers, broker = places
    reports = [pylog.doctor(*order, broker) for order in itertools.permutations(controllers)]
    return [[each.name for each in report.verdict.stray_partitions] for report in reports]


def test_what_one_of_the_controllers_cannot_read_another_tells_whatever_the_order(
    tmp_path: Path,
) -> None:
    other = [topic_record("other", bytes(range(1, 17)))]
    illegible = [partition_record(0, 1, (1,))]  # of a topic that is not there
    assert strays(controllers(tmp_path, illegible, other)) == [["orders-0"]] * 6


def test_the_controller_that_goes_furthest_tells_whatever_the_order(tmp_path: Path) -> None:
    topic = [topic_record("orders"), partition_record(0, 4, (4,))]
    assert strays(controllers(tmp_path, topic[:1], topic)) == [[]] * 6


def test_nor_does_one_tell_who_leads_that_cannot_be_read_and_goes_furthest(tmp_path: Path) -> None:
    topic = [topic_record("orders"), partition_record(0, 4, (4,))]
    illegible = partition_record(0, 4, (4,)).replace(TOPIC_ID, bytes(range(1, 17)))
    *_, broker = places = controllers(tmp_path, [*topic, illegible], topic)
    node = nodes_of(map(str, places))[str(broker)]
    assert node.may_lead(pylog.TopicPartition("orders", 0))
    assert [each.name for each in node.newest_image.topics] == ["orders"]


def test_two_nodes_with_two_logs_of_the_metadata_each(tmp_path: Path) -> None:
    places = [tmp_path / f"{number}{letter}" for number in (1, 2) for letter in "ab"]
    for place in places:
        write_metadata_log(place, TOPIC, voters=(1, 2))
        text = f"version=1\nnode.id={place.name[0]}\ncluster.id=c\n"
        (place / "meta.properties").write_text(text)
    codes = [each.code for each in pylog.doctor(*places).findings]
    assert codes.count("metadata_log_twice") == 4


def test_a_partition_that_is_another_nodes(logs: Path) -> None:
    shutil.rmtree(logs / METADATA)
    records = [topic_record("orders"), partition_record(0, 1, (1, 2)), partition_record(1, 2, (2,))]
    write_metadata_log(logs, records)
    assert found(logs) == [("stray_partition", "logs/orders-1")]
    [finding] = pylog.doctor(logs).findings
    assert finding.message == "the cluster's metadata assigns it to nodes 2, not to 1"


def test_a_partition_that_the_topic_does_not_have(logs: Path) -> None:
    shutil.copytree(logs / "orders-0", logs / "orders-7")
    assert found(logs) == [("stray_partition", "logs/orders-7")]


def test_a_future_partition_beside_the_live_one_ends_a_broker(logs: Path) -> None:
    name = f"orders-0.{1:032x}-future"
    shutil.copytree(logs / "orders-0", logs / name)
    assert found(logs) == [("future_beside_live", f"logs/{name}")]
    (logs / name / "partition.metadata").unlink()
    assert found(logs) == []  # it is set aside before


def test_meta_properties_beside_the_metadata(logs: Path) -> None:
    (logs / "meta.properties").unlink()
    assert found(logs) == [("missing_meta_properties", "logs/meta.properties")]
    (logs / "meta.properties").write_text("")
    assert ("damaged_meta_properties", "logs/meta.properties") in found(logs)


@pytest.fixture
def second_disk(logs: Path) -> Path:
    """Give another log directory of the node; partition 1 is moved to it."""
    directory = logs.with_name("disk-2")
    directory.mkdir()
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copyfile(logs / name, directory / name)
    shutil.move(logs / "orders-1", directory / "orders-1")
    (directory / "recovery-point-offset-checkpoint").write_text("0\n1\norders 1 3\n")
    return directory


class TestMetaPropertiesOfASecondDisk:
    """The metadata is in the first log directory, beside which the second one is given."""

    MISSING = ("missing_meta_properties", "disk-2/meta.properties")

    def test_both_are_a_nodes(self, logs: Path, second_disk: Path) -> None:
        assert found(logs, second_disk) == []

    @pytest.mark.parametrize("version", ["3.9", "4.4"])
    def test_a_broker_needs_it_everywhere(
        self, logs: Path, second_disk: Path, version: str
    ) -> None:
        (second_disk / "meta.properties").unlink()
        assert found(logs, second_disk, kafka_version=version) == [self.MISSING]
        assert "does not start" in pylog.doctor(logs, second_disk).verdict.reasons[0]
        (second_disk / ".kafka_cleanshutdown").unlink()
        (second_disk / "orders-1" / "partition.metadata").unlink()
        assert found(logs, second_disk, kafka_version=version) == [self.MISSING]
        (second_disk / "recovery-point-offset-checkpoint").unlink()
        assert found(logs, second_disk) == []  # a copy of partitions

    def test_alone_it_may_be_a_broker_of_zookeepers_until_4_0(self, second_disk: Path) -> None:
        (second_disk / "meta.properties").unlink()
        assert found(second_disk) == []  # pylog writes such files, too
        (second_disk / "replication-offset-checkpoint").write_text("0\n1\norders 1 3\n")
        assert found(second_disk) == []
        (second_disk / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":15}')
        assert found(second_disk, kafka_version="3.9") == []
        assert found(second_disk, kafka_version="4.0") == [self.MISSING]
        (second_disk / "orders-1" / "partition.metadata").unlink()
        assert found(second_disk, kafka_version="4.0") == []  # of a broker before 2.8


def test_what_shows_remote_storage_to_all_log_directories_of_a_node(
    logs: Path, second_disk: Path
) -> None:
    shutil.rmtree(second_disk / "orders-1")
    place = write_partition(second_disk, {10: [batch_v2(plain_records(10, 3))]}, name="orders-1")
    write_topic_id(place, TOPIC_ID_TEXT)
    (place / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (second_disk / "recovery-point-offset-checkpoint").unlink()
    assert found(logs, second_disk) == [("missing_segment", "disk-2/orders-1")]
    (logs / "remote-log-index-cache").mkdir()
    assert found(logs, second_disk) == []
    assert found(second_disk) == [("missing_segment", "disk-2/orders-1")]
    (logs / "remote-log-index-cache").rmdir()
    shutil.rmtree(logs / METADATA)
    is_tiered = config_record(TOPIC_RESOURCE, "orders", "remote.storage.enable", "true")
    write_metadata_log(logs, [*TOPIC, is_tiered])
    assert found(logs, second_disk) == []
    shutil.move(logs / METADATA, second_disk / METADATA)
    assert found(second_disk) == []
    rows = pylog.read_table(second_disk, "findings").to_pylist()
    assert "missing_segment" not in {each["code"] for each in rows}


def append_to(logs: Path) -> None:
    with pylog.logs.own_log_directory(logs, must_exist=True):
        pass


def test_a_writer_refuses_what_a_broker_does_not_start_on(logs: Path) -> None:
    append_to(logs)
    path = logs / "orders-0" / "partition.metadata"
    content = path.read_text()
    path.write_text("")
    with pytest.raises(CorruptCheckpointError, match=r"partition\.metadata"):
        append_to(logs)
    path.write_text(content)
    name = f"orders-0.{1:032x}-future"
    shutil.copytree(logs / "orders-0", logs / name)
    with pytest.raises(UnexpectedFileError, match="a broker does not start on this"):
        append_to(logs)
    assert (logs / ".kafka_cleanshutdown").exists()


def test_a_writer_warns_of_what_a_broker_sets_aside(
    logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append_to(logs)
    assert not caplog.records
    (logs / "orders-0" / "partition.metadata").unlink()
    append_to(logs)
    [record] = caplog.records
    assert "a broker sets it aside as -stray" in record.getMessage()
    assert (logs / "orders-0").is_dir()
