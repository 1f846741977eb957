"""Names of files and folders in a partition: what a broker makes of them is said."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogStorageError
from tests.support.batches import batch_v2, crc32c, plain_records
from tests.support.log_files import mark_clean_shutdown, segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import Finding

BATCHES = [batch_v2(plain_records(base, 5)) for base in range(0, 30, 5)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    directory = write_partition(logs, {0: BATCHES[:2], 10: BATCHES[2:4], 20: BATCHES[4:]})
    mark_clean_shutdown(logs)
    return directory


def found(directory: Path) -> list[Finding]:
    return list(pylog.doctor(directory.parent).findings)


@pytest.mark.parametrize(
    "name", ["copy.log", f"{12:020d}.log", "9" * 20 + ".log", f"{0:020d}.log.swap", "copy.snapshot"]
)
def test_a_folder_is_no_file_of_a_log(directory: Path, name: str) -> None:
    (directory / name).mkdir()
    assert found(directory) == []
    assert pylog.scan(directory).count() == 30


def test_a_folder_beside_an_index_without_entries_is_no_segment(directory: Path) -> None:
    segment_path(directory, 12).mkdir()
    segment_path(directory, 12, ".timeindex").touch()
    assert pylog.scan(directory).count() == 30
    report = pylog.doctor(directory.parent)
    assert (report.verdict.lost_already, report.verdict.consumers) == ([], [])
    assert report.verdict.would_start
    assert {each.code for each in report.findings} <= {"missing_log"}


def test_a_folder_in_the_place_of_a_segment_is_a_missing_segment(directory: Path) -> None:
    path = segment_path(directory, 10)
    path.unlink()
    path.mkdir()
    [finding] = [each for each in found(directory) if each.code == "unreadable"]
    assert (finding.next_offset, finding.end_offset) == (10, 20)
    assert finding.broker_action == "it ignores the folder, and misses the segment"
    verdict = pylog.doctor(directory.parent).verdict
    assert verdict.would_start
    assert [(each.from_offset, each.to_offset) for each in verdict.lost_already] == [(10, 20)]
    with pytest.raises(LogStorageError, match="not a regular file but a directory"):
        pylog.scan(directory).count()
    summary = pylog.repair_copy(directory.parent, directory.parent.parent / "copy")
    assert summary.partitions[0].missing == [(10, 20)]


def test_a_folder_in_the_place_of_an_index_is_no_index(directory: Path) -> None:
    path = segment_path(directory, 10, ".index")
    path.unlink()
    path.mkdir()
    assert "damaged_index" in {each.code for each in found(directory)}


@pytest.mark.parametrize(
    ("name", "action", "effect", "offsets"),
    [
        ("9" * 20 + ".log", "it does not start", "refuses", (None, None)),
        ("copy.log", "it does not start", "refuses", (None, None)),
        ("10.log", "it does not read the file", "None", (None, None)),
        ("-1.log", "it makes an empty segment before all others", "None", (None, None)),
        ("40.log", "it makes an empty segment at offset 40", "None", (None, None)),
        ("12.copy.log", "it makes an empty segment at offset 12, which", "consumers", (12, 20)),
        ("25.log", "it makes an empty segment at offset 25, which", "consumers", (25, 30)),
    ],
)
def test_a_log_of_an_unusual_name(
    directory: Path, name: str, action: str, effect: str, offsets: tuple[int | None, int | None]
) -> None:
    (directory / name).write_bytes(b"")
    [finding] = found(directory)
    assert (finding.code, finding.path) == ("misnamed_log", str(directory / name))
    assert finding.broker_action.startswith(action)
    assert str(finding.effect) == effect
    assert (finding.next_offset, finding.end_offset) == offsets


@pytest.mark.parametrize("name", ["9" * 20 + ".index", "copy.swap", "copy.cleaned", "x.snapshot"])
def test_other_names_without_an_offset_end_a_broker(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"")
    [refusal] = pylog.doctor(directory.parent).refusals
    assert refusal.path == str(directory / name)
    assert refusal.message == "what is before the first dot of the file's name is not an offset"


@pytest.mark.parametrize("name", ["9" * 20 + ".log.deleted", "copy.deleted", "notes.txt"])
def test_names_that_nobody_reads_are_none(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"")
    assert pylog.doctor(directory.parent).refusals == []


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("recovery-point-offset-checkpoint", "None"),
        ("log-start-offset-checkpoint", "consumers"),
        ("replication-offset-checkpoint", "unserved"),
        ("cleaner-offset-checkpoint", "None"),
    ],
)
def test_a_number_of_a_checkpoint_that_does_not_fit_ends_no_broker(
    directory: Path, name: str, effect: str
) -> None:
    (directory.parent / name).write_text(f"0\n1\norders 0 {2**63}\n")
    [finding] = [each for each in found(directory) if each.code == "damaged_checkpoint"]
    assert str(finding.effect) == effect
    assert pylog.doctor(directory.parent).refusals == []
    assert pylog.scan(directory.parent).count() == 30


def test_a_blank_in_a_cluster_id_ends_the_node_and_makes_no_other_cluster(tmp_path: Path) -> None:
    for name, cluster in (("one", "c"), ("two", "c ")):
        write_partition(tmp_path / name, {0: BATCHES}, name=f"{name}-0")
        text = f"version=1\nnode.id=1\ncluster.id={cluster}\n"
        (tmp_path / name / "meta.properties").write_text(text)
    report = pylog.doctor(tmp_path / "one", tmp_path / "two")
    [refusal] = report.refusals
    assert refusal.path == str(tmp_path / "two" / "meta.properties")
    assert "blanks are part of it" in refusal.message
    assert list(report.of_clusters) == ["c"]


@pytest.mark.parametrize(
    ("suffix", "severity", "effect"),
    [
        (".index", "warning", "None"),
        (".timeindex", "warning", "None"),
        (".txnindex", "error", "consumers"),
    ],
)
def test_an_index_that_replaces_another_one(
    directory: Path, suffix: str, severity: str, effect: str
) -> None:
    old = segment_path(directory, 10, suffix)
    old.write_bytes(b"" if suffix == ".txnindex" else old.read_bytes())
    path = segment_path(directory, 10, f"{suffix}.swap")
    path.write_bytes(old.read_bytes())
    [finding] = [each for each in found(directory) if each.code == "leftover_file"]
    assert str(finding.severity) == "info"
    path.write_bytes(b"\1" * 34)
    [finding] = [each for each in found(directory) if each.code == "leftover_file"]
    assert (str(finding.severity), str(finding.effect)) == (severity, effect)
    assert finding.broker_action.startswith(f"it puts the file in the place of {old.name}")


@pytest.mark.parametrize(("name", "log_start"), [("-1.log", 0), ("5.log", 5), ("20.log", 10)])
def test_a_log_begins_where_a_broker_makes_a_segment_of_a_name(
    directory: Path, name: str, log_start: int
) -> None:
    for each in directory.glob("0" * 20 + ".*"):
        each.unlink()
    (directory / name).write_bytes(b"")
    [partition] = pylog.doctor(directory.parent).partitions
    assert partition.start is not None
    assert partition.start.log_start_offset == log_start
    assert pylog.open_directory(directory.parent)["orders", 0].log_start_offset == log_start


def test_a_broker_that_makes_a_segment_below_zero_reads_all_again(directory: Path) -> None:
    path = segment_path(directory, 10, ".log")
    path.write_bytes(path.read_bytes() + bytes(5000))
    (directory.parent / ".kafka_cleanshutdown").unlink()
    (directory.parent / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    for base in (20, 30):
        none_open = bytes(4)
        snapshot = struct.pack(">hI", 1, crc32c(none_open)) + none_open
        (directory / f"{base:020d}.snapshot").write_bytes(snapshot)
    assert pylog.doctor(directory.parent).verdict.would_start is True
    (directory / "-1.log").write_bytes(b"")
    [refusal] = pylog.doctor(directory.parent).refusals
    assert (refusal.code, refusal.path) == ("start_refused", str(path))
