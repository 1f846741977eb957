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
from tests.support.corruption import entries
from tests.support.log_files import write_partition
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    config_record,
    feature_record,
    partition_record,
    topic_record,
    write_metadata_log,
    write_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OTHER_ID = "Igo74ZAZCxWJ1lxdTzs-vQ"
TOPIC_RESOURCE = 2
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
    assert "the cluster's metadata is not here" in pylog.doctor(logs).verdict.reasons[-1]
    (logs / METADATA).mkdir()
    strays = [("stray_partition", f"logs/orders-{number}") for number in range(2)]
    assert found(logs) == [("missing_metadata_log", f"logs/{METADATA}"), *strays]
    verdict = pylog.doctor(logs).verdict
    assert [each.name for each in verdict.stray_partitions] == ["orders-0", "orders-1"]
    assert [each.name for each in verdict.lost_already] == [METADATA]


def test_without_the_metadata_a_partition_without_its_topic_id_is_a_stray_all_the_same(
    logs: Path,
) -> None:
    shutil.rmtree(logs / METADATA)
    (logs / "orders-0" / "partition.metadata").unlink()
    assert found(logs) == [("stray_partition", "logs/orders-0")]
    assert not pylog.doctor(logs).refusals


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


VERSIONS = ["3.9", "4.0", "4.3", "4.4"]
QUORUM_STATE = (
    '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    '"data_version":1}'
)


@pytest.mark.parametrize(
    ("content", "is_read"),
    [
        (QUORUM_STATE, True),
        (QUORUM_STATE + "\n\0\0", True),  # a node reads one value from the first line
        (QUORUM_STATE + "\0\0", True),
        ("\n" + QUORUM_STATE, False),
        ("", False),
        ("\0" * 60, False),
        (QUORUM_STATE[:40], False),
        (QUORUM_STATE.replace('"leaderEpoch":1,', ""), False),
        (QUORUM_STATE.replace(":1}", ":0}"), False),
        (QUORUM_STATE.replace(":1}", ":2}"), False),
        (QUORUM_STATE.replace(":1}", ":[]}"), False),
    ],
)
def test_a_node_does_not_start_on_a_quorum_state_that_it_cannot_read(
    logs: Path, content: str, *, is_read: bool
) -> None:
    (logs / METADATA / "quorum-state").write_text(content)
    expected = [] if is_read else [("unusable_metadata", f"{METADATA}/quorum-state")]
    assert found(logs) == expected
    assert bool(pylog.doctor(logs).refusals) != is_read


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        (lambda content: content, True),
        (lambda content: content[:-5], True),  # the footer is cut
        (lambda content: content + bytes(17), True),
        # No checksum is verified.
        (lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:], True),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), False),
        (lambda content: content + bytes(18), False),
        (lambda content: content[: len(content) // 2], False),
        (lambda _: b"", False),
        (lambda _: bytes(60), False),
        (lambda content: content.replace(b"metadata.version", b"metadatx.version"), False),
    ],
)
def test_a_node_does_not_start_on_a_bootstrap_checkpoint_that_it_cannot_read(
    logs: Path, change: Callable[[bytes], bytes], *, is_read: bool
) -> None:
    path = write_snapshot(logs, 0, [feature_record(21)]).rename(logs / "bootstrap.checkpoint")
    path.write_bytes(change(path.read_bytes()))
    for version in ("3.9", "4.3", "4.4"):
        expected = [] if is_read else [("unusable_metadata", "logs/bootstrap.checkpoint")]
        assert found(logs, kafka_version=version) == expected


@pytest.mark.parametrize(
    ("level", "versions"),
    [
        (1, ["3.9"]),
        (6, ["3.9"]),
        (7, VERSIONS),
        (21, VERSIONS),
        (22, VERSIONS[1:]),
        (30, ["4.3", "4.4"]),
        (33, ["4.4"]),
        (34, []),
    ],
)
def test_each_version_knows_some_levels_of_metadata_version(
    logs: Path, level: int, versions: list[str]
) -> None:
    shutil.rmtree(logs / METADATA)
    earlier = feature_record(20)
    other = feature_record(99, "share.version")
    write_metadata_log(logs, [earlier, *TOPIC, feature_record(level), other])
    started = [each for each in VERSIONS if found(logs, kafka_version=each) == []]
    assert started == versions


def test_a_level_that_is_not_known_names_the_version_to_start(logs: Path) -> None:
    shutil.rmtree(logs / METADATA)
    write_metadata_log(logs, [*TOPIC, feature_record(30)])
    [finding] = pylog.doctor(logs, kafka_version="3.9").refusals
    assert finding.message == (
        "metadata.version is 30, and Kafka 3.9 can use 1 to 21: start Kafka 4.3 or later on this"
    )
    # Kafka 3.9 looks into this file, too; later versions do if the log gives no level.
    write_snapshot(logs, 0, [feature_record(30)]).rename(logs / "bootstrap.checkpoint")
    assert len(pylog.doctor(logs, kafka_version="3.9").refusals) == 2
    assert len(pylog.doctor(logs, kafka_version="4.0").refusals) == 1
    shutil.rmtree(logs / METADATA)
    write_metadata_log(logs, TOPIC)
    for version, count in (("3.9", 1), ("4.0", 1), ("4.3", 0)):
        assert len(pylog.doctor(logs, kafka_version=version).refusals) == count


def set_epoch(metadata: Path, epoch: int) -> None:
    [path] = metadata.glob("*.log")
    parts = [
        each[:12] + epoch.to_bytes(4, "big") + each[16:] for each in entries(path.read_bytes())
    ]
    path.write_bytes(b"".join(parts))


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
        verdict = pylog.doctor(logs).verdict
        assert [each.name for each in verdict.stray_partitions] == ["orders-0", "orders-1"]
        assert [each.name for each in verdict.lost_already] == [METADATA]
        with pytest.raises(CorruptRecordError, match="footer"):
            pylog.topics(logs)

    def test_one_whose_last_batch_is_cut_short_is_a_part_of_the_topics_too(
        self, logs: Path, metadata: Path
    ) -> None:
        shutil.rmtree(metadata)
        metadata = write_metadata_log(logs, [], base=10)
        path = write_snapshot(metadata, 10, TOPIC)
        content = path.read_bytes()
        path.write_bytes(content[:-1])  # of the footer
        assert found(logs) == [("cut_metadata_snapshot", f"{METADATA}/{path.name}")]
        assert pylog.doctor(logs).verdict.would_start
        first = 12 + int.from_bytes(content[8:12], "big")
        path.write_bytes(content[: first + 20])  # of the topics
        assert set(found(logs)) == {
            ("cut_metadata_snapshot", f"{METADATA}/{path.name}"),
            ("stray_partition", "logs/orders-0"),
            ("stray_partition", "logs/orders-1"),
        }
        path.write_bytes(content[: first - 1])
        assert found(logs) == [("unusable_metadata", f"{METADATA}/{path.name}")]

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

    @pytest.mark.parametrize("epochs", [None, "0\n0\n", "0\n1\n3 10\n", "0\n1\n2 10\n"])
    def test_epochs_that_the_checkpoint_lacks_are_in_the_batches(
        self, logs: Path, metadata: Path, epochs: str | None
    ) -> None:
        set_epoch(metadata, 3)
        write_snapshot(metadata, 12, TOPIC[:1]).rename(metadata / f"{12:020}-{3:010}.checkpoint")
        if epochs is not None:
            (metadata / "leader-epoch-checkpoint").write_text(epochs)
        assert "discarded_metadata" not in dict(found(logs))
        assert "stray_partition" not in dict(found(logs))
        (metadata / f"{14:020}.log").write_bytes(b"")
        assert "discarded_metadata" not in dict(found(logs))
        assert [each.is_in_metadata for each in pylog.topics(logs).topics] == [True]

    def test_epochs_of_the_checkpoint_that_begin_after_the_end_do_not_count(
        self, logs: Path, metadata: Path
    ) -> None:
        write_snapshot(metadata, 12, TOPIC).rename(metadata / f"{12:020}-{5:010}.checkpoint")
        (metadata / "leader-epoch-checkpoint").write_text("0\n2\n0 10\n7 90\n")
        assert "discarded_metadata" in dict(found(logs))

    def test_epochs_that_contradict_each_other_stop_no_node(
        self, logs: Path, metadata: Path
    ) -> None:
        write_snapshot(metadata, 12, TOPIC[:1])
        (metadata / "leader-epoch-checkpoint").write_text("0\n2\n3 10\n2 12\n")
        assert not pylog.doctor(logs).refusals

    def test_the_first_one_alone_needs_kafka_4_4(self, logs: Path, metadata: Path) -> None:
        shutil.rmtree(metadata)
        write_metadata_log(logs, [])
        for path in (logs / METADATA).glob("*.log"):
            path.write_bytes(b"")
        path = write_snapshot(logs / METADATA, 0, TOPIC)
        assert [each for each in found(logs) if "metadata" in each[0]] == []
        old = [each for each in found(logs, kafka_version="4.3") if "metadata" in each[0]]
        assert old == [("unusable_metadata", f"{METADATA}/{path.name}")]
        write_snapshot(logs, 0, [feature_record(30)]).rename(logs / "bootstrap.checkpoint")
        assert "unusable_metadata" not in dict(found(logs, kafka_version="4.3"))

    @pytest.mark.parametrize("snapshot", [[], TOPIC], ids=["of no topic", "of the topic"])
    def test_without_logs_a_node_begins_at_the_newest(
        self, logs: Path, metadata: Path, snapshot: list[bytes]
    ) -> None:
        write_snapshot(metadata, 10 if snapshot else 0, snapshot)
        [path] = metadata.glob("*.log")
        path.rename(path.with_suffix(".index"))
        strays = [] if snapshot else [("stray_partition", f"logs/orders-{n}") for n in range(2)]
        assert set(found(logs)) - {("misfitting_index", f"{METADATA}/{path.stem}.index")} == {
            ("missing_log", f"logs/{METADATA}"),
            *strays,
        }
        assert not pylog.doctor(logs).refusals
        with pytest.raises(CorruptRecordError, match=r"no \.log file is here"):
            pylog.topics(logs)


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
