"""A partition whose directory is gone, and of which checkpoints still have lines."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

import pylog
from pylog.checks.doctor import doctor
from pylog.files.directory_lock import DirectoryLock
from pylog.files.partition_metadata import format_uuid
from pylog.results import Severity
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    write_high_watermarks,
    write_log_start_offsets,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import Finding
    from tests.unit.checks.conftest import AtThirdPause

BATCHES = [batch_v2(plain_records(0, 5)), batch_v2(plain_records(5, 5))]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give a directory that was shut down cleanly and has lost one of its two partitions."""
    directory = tmp_path / "logs"
    place = write_partition(directory, {0: BATCHES}, name="orders-1")
    write_topic_id(place, TOPIC_ID_TEXT)
    write_high_watermarks(directory, {("orders", 0): 150, ("orders", 1): 10})
    mark_clean_shutdown(directory)
    return directory


def give_metadata(logs: Path, *records: bytes) -> None:
    write_metadata_log(logs, [topic_record("orders"), partition_record(1, 1, (1,)), *records])
    write_meta_properties(logs)


def absent(*paths: Path) -> list[Finding]:
    return [each for each in pylog.doctor(*paths).findings if each.code == "absent_partition"]


def test_after_a_clean_stop_all_its_records_are_lost(logs: Path) -> None:
    [finding] = absent(logs)
    assert (finding.severity, finding.path) == (Severity.ERROR, str(logs / "orders-0"))
    assert (finding.next_offset, finding.end_offset) == (0, 150)
    verdict, *_ = pylog.doctor(logs).verdict.reasons
    assert verdict.startswith(
        "150 records are lost: orders-0: 150 records, offsets 0 to 149, the directory is missing"
    )
    write_log_start_offsets(logs, {("orders", 0): 40})
    [finding] = absent(logs)
    assert (finding.next_offset, finding.end_offset) == (40, 150)


def test_after_a_crash_it_may_have_been_deleted(logs: Path) -> None:
    (logs / ".kafka_cleanshutdown").unlink()
    [finding] = absent(logs)
    assert finding.severity is Severity.INFO
    assert finding.path == str(logs / "replication-offset-checkpoint")


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    ("record", "severity"),
    [
        (partition_record(0, 1, (2, 1)), Severity.ERROR),
        (partition_record(0, 2, (2,)), Severity.INFO),
        (partition_record(2, 1, (1,)), Severity.INFO),
    ],
    ids=["assigned to the node", "assigned to another node", "not in the metadata"],
)
def test_the_metadata_say_whether_a_broker_misses_it(
    logs: Path, record: bytes, severity: Severity, *, is_clean: bool
) -> None:
    give_metadata(logs, record)
    if not is_clean:
        (logs / ".kafka_cleanshutdown").unlink()
    assert [each.severity for each in absent(logs)] == [severity]


def test_one_that_a_live_broker_has_just_made_is_not_missed(
    logs: Path, at_third_pause: AtThirdPause
) -> None:
    give_metadata(logs, partition_record(0, 1, (1,)))
    (logs / ".kafka_cleanshutdown").unlink()
    assert [each.severity for each in absent(logs)] == [Severity.ERROR]
    at_third_pause(lambda: shutil.copytree(logs / "orders-1", logs / "orders-0"))
    with DirectoryLock(logs):  # as a broker has it
        found = doctor(logs).findings  # once: the directory changes
    assert "absent_partition" not in [each.code for each in found]


def test_one_that_is_dropped_from_the_metadata_of_another_node_is_not_missed(
    tmp_path: Path, at_third_pause: AtThirdPause
) -> None:
    controller, broker = tmp_path / "1", tmp_path / "2"
    kept = [topic_record("orders"), partition_record(1, 2, (2,))]
    write_metadata_log(controller, [*kept, partition_record(0, 2, (2,))])
    write_meta_properties(controller)
    write_topic_id(write_partition(broker, {0: BATCHES}, name="orders-1"), TOPIC_ID_TEXT)
    write_high_watermarks(broker, {("orders", 0): 150, ("orders", 1): 10})
    (broker / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=c\n")

    def severities() -> list[Severity]:
        found = doctor(controller, broker).findings
        return [each.severity for each in found if each.code == "absent_partition"]

    def drop() -> None:
        shutil.rmtree(controller / METADATA)
        write_metadata_log(controller, kept)

    assert severities() == [Severity.ERROR]
    at_third_pause(drop)
    with DirectoryLock(broker):
        assert severities() == [Severity.INFO]


def test_one_that_nothing_has_named_yet_is_waited_for(
    logs: Path, at_third_pause: AtThirdPause
) -> None:
    directory = bytes(range(16))
    partitions = [partition_record(each, 1, (1,), (directory,)) for each in (0, 1)]
    write_high_watermarks(logs, {("orders", 1): 10})
    write_metadata_log(logs, [topic_record("orders"), *partitions])
    write_meta_properties(logs)
    with (logs / "meta.properties").open("a") as file:
        file.write(f"directory.id={format_uuid(UUID(bytes=directory))}\n")
    (logs / ".kafka_cleanshutdown").unlink()
    [finding] = absent(logs)
    assert finding.path == str(logs / "orders-0")
    at_third_pause(lambda: shutil.copytree(logs / "orders-1", logs / "orders-0"))
    with DirectoryLock(logs):
        found = doctor(logs).findings
    assert "absent_partition" not in [each.code for each in found]


def test_a_topic_that_was_deleted_is_missed_by_nobody(logs: Path) -> None:
    shutil.rmtree(logs / "orders-1")
    write_metadata_log(logs, [])
    write_meta_properties(logs)
    assert [each.severity for each in absent(logs)] == [Severity.INFO]


def test_one_that_never_had_a_record_is_no_loss(logs: Path) -> None:
    write_high_watermarks(logs, {("orders", 0): 0, ("orders", 1): 10})
    assert [each.severity for each in absent(logs)] == [Severity.INFO]


@pytest.mark.parametrize("state", ["stray", "delete"])
def test_a_directory_that_is_not_live_does_not_stand_for_it(logs: Path, state: str) -> None:
    shutil.copytree(logs / "orders-1", logs / f"orders-0.{1:032x}-{state}")
    assert [each.severity for each in absent(logs)] == [Severity.ERROR]


def test_one_that_is_being_moved_here_stands_for_it(logs: Path) -> None:
    shutil.copytree(logs / "orders-1", logs / f"orders-0.{1:032x}-future")
    assert absent(logs) == []


def test_one_in_another_directory_of_the_node_is_not_missed(logs: Path, tmp_path: Path) -> None:
    write_meta_properties(logs)
    other = tmp_path / "other"
    write_partition(other, {0: BATCHES}, name="orders-0")
    shutil.copyfile(logs / "meta.properties", other / "meta.properties")
    assert absent(logs, other) == []
    (other / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=c\n")
    assert [each.severity for each in absent(logs, other)] == [Severity.ERROR]


def test_a_repaired_copy_does_not_pass_over_it(logs: Path, tmp_path: Path) -> None:
    summary = pylog.repair_copy(logs, tmp_path / "copy")
    assert summary.absent == {pylog.TopicPartition("orders", 0): (0, 150)}
    assert not summary.is_complete
    assert [each.missing for each in summary.partitions] == [[]]
    chosen = pylog.repair_copy(logs, tmp_path / "chosen", partitions=iter([1]))
    assert (chosen.absent, chosen.is_complete) == ({}, True)
    chosen = pylog.repair_copy(logs, tmp_path / "of topic", topics=iter(["orders"]))
    assert not chosen.is_complete


def test_nor_over_a_directory_that_is_empty(logs: Path, tmp_path: Path) -> None:
    (logs / "orders-0").mkdir()
    summary = pylog.repair_copy(logs, tmp_path / "copy")
    assert [each.code for each in summary.source.gone] == ["empty_partition"]
    assert summary.absent == {pylog.TopicPartition("orders", 0): (0, 150)}


def test_a_live_broker_is_given_the_time_to_make_the_log_of_a_new_partition(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (logs / "orders-0").mkdir()
    log = logs / "orders-0" / f"{0:020}.log"

    def codes() -> set[str]:
        return {each.code for each in doctor(logs).findings}  # once: the directory changes

    assert "empty_partition" in codes()
    monkeypatch.setattr(time, "sleep", lambda _: log.touch())
    (logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
    assert "empty_partition" not in codes()
    log.unlink()
    mark_clean_shutdown(logs)
    assert "empty_partition" in codes()


def test_the_copy_of_a_controller_has_its_meta_properties(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_metadata_log(logs, [topic_record("orders")])
    write_meta_properties(logs)
    summary = pylog.repair_copy(logs, tmp_path / "copy")
    assert (tmp_path / "copy" / "meta.properties").read_bytes() == (
        logs / "meta.properties"
    ).read_bytes()
    assert (tmp_path / "copy" / METADATA).is_dir()
    assert summary.copy.refusals == []


@pytest.mark.parametrize("state", ["", f".{1:032x}-stray", f".{1:032x}-delete"])
def test_a_directory_without_a_log_ends_a_broker_that_cannot_load_it(
    logs: Path, state: str
) -> None:
    place = logs / f"orders-0{state}"
    place.mkdir()
    assert pylog.doctor(logs).verdict.would_start
    (place / "copy.swap").write_bytes(b"")
    [refusal] = pylog.doctor(logs).refusals
    assert refusal.path == str(place / "copy.swap")


def test_a_future_directory_without_a_log_is_a_stray(logs: Path) -> None:
    give_metadata(logs)
    (logs / f"orders-1.{1:032x}-future").mkdir()
    strays = pylog.doctor(logs).verdict.stray_partitions
    assert [each.name for each in strays] == [f"orders-1.{1:032x}-future"]
