"""What a node does at its start beside loading logs: `pylog.writing.node`, through doctor."""

from __future__ import annotations

import logging
import shutil
import time
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    LogDirectoryError,
    UnexpectedFileError,
)
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
    write_snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

OTHER_ID = "Igo74ZAZCxWJ1lxdTzs-vQ"
TOPIC = [topic_record("orders"), *(partition_record(number, 1, (1,)) for number in range(2))]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give the only directory of a node: two partitions, and metadata that have them."""
    directory = tmp_path / "logs"
    for number in range(2):
        place = write_partition(
            directory, {0: [batch_v2(plain_records(0, 3))]}, name=f"orders-{number}"
        )
        write_topic_id(place, TOPIC_ID_TEXT)
    write_metadata_log(directory, TOPIC)
    (directory / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (directory / ".kafka_cleanshutdown").write_bytes(b"")
    return directory


def write_topic_id(partition: Path, text: str) -> None:
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}")


def found(*paths: Path, kafka_version: str | None = None) -> list[tuple[str, str]]:
    """Return codes of what is above info, and the last two parts of their paths."""
    findings = pylog.doctor(*paths, kafka_version=kafka_version).findings
    return [
        (each.code, "/".join(each.path.split("/")[-2:]))
        for each in findings
        if each.severity is not pylog.results.Severity.INFO
        and each.code != "topic_ids_disagree"  # of partitions, and not of what a node does
    ]


def test_nothing_is_wrong_with_a_node_that_has_its_partitions(logs: Path) -> None:
    assert found(logs) == []
    assert pylog.doctor(logs).verdict == [
        "A broker starts on this, and loses no record that can be read"
    ]


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


def test_a_partition_that_is_another_nodes(logs: Path) -> None:
    shutil.rmtree(logs / METADATA)
    records = [topic_record("orders"), partition_record(0, 1, (1, 2)), partition_record(1, 2, (2,))]
    write_metadata_log(logs, records)
    assert found(logs) == [("stray_partition", "logs/orders-1")]
    [finding] = pylog.doctor(logs).findings
    assert finding.message == "the cluster's metadata assign it to nodes 2, not to 1"


def test_a_partition_that_the_topic_does_not_have(logs: Path) -> None:
    shutil.copytree(logs / "orders-0", logs / "orders-7")
    assert found(logs) == [("stray_partition", "logs/orders-7")]


def test_without_the_metadata_nobody_knows_whose_a_partition_is(logs: Path) -> None:
    shutil.rmtree(logs / METADATA)
    assert found(logs) == []
    assert "The cluster's metadata are not here" in pylog.doctor(logs).verdict[-1]
    (logs / METADATA).mkdir()
    assert found(logs) == [("missing_metadata_log", f"logs/{METADATA}")]


def test_the_metadata_are_taken_from_another_directory_of_the_node(
    logs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copyfile(logs / "meta.properties", other / "meta.properties")
    shutil.move(logs / METADATA, other / METADATA)
    write_topic_id(logs / "orders-1", OTHER_ID)
    assert found(logs) == []
    assert ("stray_partition", "logs/orders-1") in found(logs, other)
    shutil.copytree(other / METADATA, logs / METADATA)
    twice = [each for each in found(logs, other) if each[0] == "metadata_log_twice"]
    assert len(twice) == 2


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


class TestSnapshots:
    """The log of the metadata begins at offset 10, and runs to 14."""

    @pytest.fixture
    def metadata(self, logs: Path) -> Path:
        shutil.rmtree(logs / METADATA)
        return write_metadata_log(logs, TOPIC, base=10)

    def test_none_that_reaches_the_log(self, logs: Path, metadata: Path) -> None:
        assert found(logs) == [("unusable_metadata", f"logs/{METADATA}")]
        write_snapshot(metadata, 9, [])
        assert found(logs) == [("unusable_metadata", f"logs/{METADATA}")]
        write_snapshot(metadata, 10, [])
        assert found(logs) == []
        (metadata / f"{10:020}-{0:010}.checkpoint").unlink()
        with pytest.raises(LogDirectoryError):
            pylog.topics(logs)

    def test_the_newest_is_damaged(
        self, logs: Path, metadata: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        old, new = write_snapshot(metadata, 10, TOPIC), write_snapshot(metadata, 12, TOPIC)
        content = new.read_bytes()
        new.write_bytes(content[:140] + b"\xee" + content[141:])
        assert found(logs) == [("unusable_metadata", f"{METADATA}/{new.name}")]
        with pytest.raises(CorruptRecordError):
            pylog.topics(logs)
        # A damaged older one harms nobody.
        new.write_bytes(content)
        old.write_bytes(content[:140] + b"\xee" + content[141:])
        assert found(logs) == []
        caplog.set_level(logging.WARNING)
        assert [each.topic for each in pylog.topics(logs).topics] == ["orders"]
        assert "a newer snapshot is taken" in caplog.text

    def test_one_without_its_footer_is_a_part_of_the_topics(
        self, logs: Path, metadata: Path
    ) -> None:
        shutil.rmtree(metadata)
        metadata = write_metadata_log(logs, [], base=10)
        path = write_snapshot(metadata, 10, [], has_footer=False)
        assert set(found(logs)) == {
            ("cut_metadata_snapshot", f"{METADATA}/{path.name}"),
            ("stray_partition", "logs/orders-0"),
            ("stray_partition", "logs/orders-1"),
        }
        with pytest.raises(CorruptRecordError, match="footer"):
            pylog.topics(logs)

    def test_one_of_a_later_leader_takes_the_place_of_the_log(
        self, logs: Path, metadata: Path
    ) -> None:
        write_snapshot(metadata, 12, []).rename(metadata / f"{12:020}-{5:010}.checkpoint")
        assert set(found(logs)) == {
            ("discarded_metadata", f"logs/{METADATA}"),
            ("stray_partition", "logs/orders-0"),
            ("stray_partition", "logs/orders-1"),
        }
        assert [each.is_in_metadata for each in pylog.topics(logs).topics] == [False]

    def test_the_first_one_alone_needs_kafka_4_4(self, logs: Path, metadata: Path) -> None:
        shutil.rmtree(metadata)
        write_metadata_log(logs, [])
        for path in (logs / METADATA).glob("*.log"):
            path.write_bytes(b"")
        path = write_snapshot(logs / METADATA, 0, TOPIC)
        assert [each for each in found(logs) if "metadata" in each[0]] == []
        old = [each for each in found(logs, kafka_version="4.3") if "metadata" in each[0]]
        assert old == [("unusable_metadata", f"{METADATA}/{path.name}")]
        (logs / "bootstrap.checkpoint").write_bytes(b"")
        assert "unusable_metadata" not in dict(found(logs, kafka_version="4.3"))


def test_a_version_that_is_not_known_is_wrong_usage(logs: Path) -> None:
    with pytest.raises(ValueError, match=r"'2\.8' is not known"):
        pylog.doctor(logs, kafka_version="2.8")


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
