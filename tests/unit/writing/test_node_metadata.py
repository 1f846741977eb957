"""What a node makes of its metadata and of the files beside them, through doctor."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError
from tests.support.corruption import entries
from tests.support.log_files import write_topic_id
from tests.support.metadata_log import METADATA, feature_record, write_metadata_log, write_snapshot
from tests.unit.writing.nodes import OTHER_ID, TOPIC, found, node_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return node_directory(tmp_path)


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


VERSIONS = ["3.9", "4.0", "4.3", "4.4"]


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
