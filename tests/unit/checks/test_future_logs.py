"""What becomes of ``-future`` directories, as doctor says it: `pylog.checks.future_logs`."""

from __future__ import annotations

import base64
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks import future_logs
from pylog.checks.doctor import doctor
from pylog.checks.replicas import find_fork
from pylog.errors import SegmentVanishedError
from pylog.files.directory_lock import DirectoryLock
from pylog.results import Severity
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import mark_clean_shutdown, write_partition, write_topic_id
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import DoctorReport, Finding, LogView
    from tests.unit.checks.conftest import AtThirdPause

FIRST, SECOND, GONE = (bytes(15) + bytes([number]) for number in (200, 201, 202))
NAME = f"orders-0.{'a' * 32}-future"


def id_text(directory_id: bytes) -> str:
    return base64.urlsafe_b64encode(directory_id).decode().rstrip("=")


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Give the two log directories of a node; the first one is for the metadata."""
    found = [tmp_path / "d1", tmp_path / "d2"]
    for disk, directory_id in zip(found, (FIRST, SECOND), strict=True):
        disk.mkdir()
        text = f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={id_text(directory_id)}\n"
        (disk / "meta.properties").write_text(text)
        mark_clean_shutdown(disk)
        (disk / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return found


def assign(disks: list[Path], *directory_ids: bytes) -> None:
    records = [topic_record("orders")]
    records += [partition_record(at, 1, (1,), (each,)) for at, each in enumerate(directory_ids)]
    write_metadata_log(disks[0], records)


def write_log(disk: Path, name: str, records: int, *, timestamp: int = 1_000) -> Path:
    batches = [
        batch_v2(plain_records(offset, 5, timestamp=timestamp)) for offset in range(0, records, 5)
    ]
    place = write_partition(disk, {0: batches}, name=name)
    write_topic_id(place, TOPIC_ID_TEXT)
    return place


def about_future(report: DoctorReport) -> Finding:
    [found] = [each for each in report.findings if each.code.startswith("future")]
    return found


@pytest.mark.parametrize("directory_id", [FIRST, GONE, bytes(16)])
def test_the_only_copy_is_lost_where_the_partition_is_assigned_elsewhere(
    disks: list[Path], directory_id: bytes
) -> None:
    assign(disks, directory_id)
    place = write_log(disks[1], NAME, 20)
    report = pylog.doctor(*disks)
    found = about_future(report)
    assert (found.code, found.path) == ("future_is_cut", str(place))
    assert (found.next_offset, found.end_offset) == (0, 20)
    assert "rename the directory to orders-0 before a broker starts" in found.message
    [lost] = report.verdict.loses_records
    assert (lost.topic, lost.partition, lost.from_offset, lost.to_offset) == ("orders", 0, 0, 20)
    is_gone = directory_id == GONE
    assert [each.name for each in report.verdict.unserved] == ["orders-0"] * is_gone


def test_the_only_copy_becomes_the_partition_where_it_is_assigned(disks: list[Path]) -> None:
    assign(disks, SECOND)
    write_log(disks[1], NAME, 20)
    report = pylog.doctor(*disks)
    assert about_future(report).severity is Severity.INFO
    assert report.verdict.reasons == ["A broker starts, and loses nothing"]


@pytest.mark.parametrize(
    ("assigned", "live", "future", "expected"),
    [
        (SECOND, 20, 10, ("future_replaces_live", 10, 20)),
        (SECOND, 20, 20, None),
        (SECOND, 10, 20, None),
        (FIRST, 10, 20, ("future_is_cut", 10, 20)),
        (FIRST, 20, 20, None),
        (FIRST, 20, 10, None),
        (GONE, 10, 20, ("future_is_cut", 10, 20)),
        (bytes(16), 10, 20, ("future_is_cut", 10, 20)),
    ],
)
def test_one_of_two_is_kept_and_the_offsets_that_only_the_other_has_are_lost(
    disks: list[Path],
    assigned: bytes,
    live: int,
    future: int,
    expected: tuple[str, int, int] | None,
) -> None:
    assign(disks, assigned)
    write_log(disks[0], "orders-0", live)
    place = write_log(disks[1], NAME, future)
    found = about_future(pylog.doctor(*disks))
    assert found.path == str(place)
    if expected is None:
        assert found.severity is Severity.INFO
    else:
        assert (found.code, found.next_offset, found.end_offset) == expected


def test_offsets_from_where_two_of_equal_length_differ_are_lost(disks: list[Path]) -> None:
    assign(disks, SECOND)
    write_log(disks[0], "orders-0", 20)
    write_log(disks[1], NAME, 20, timestamp=2_000)
    found = about_future(pylog.doctor(*disks))
    assert (found.code, found.next_offset, found.end_offset) == ("future_replaces_live", 0, 20)


def test_beside_the_live_one_it_ends_the_broker_at_once_or_at_the_next_start(
    disks: list[Path],
) -> None:
    assign(disks, SECOND)
    write_log(disks[1], "orders-0", 10)
    write_log(disks[1], NAME, 10)
    assert pylog.doctor(*disks).verdict.would_start is False
    shutil.rmtree(disks[0] / "__cluster_metadata-0")
    assign(disks, FIRST)
    report = pylog.doctor(*disks)
    verdict = report.verdict
    # 3.9.2, 4.3.1 and 4.4.0 start, and their second start ends: "Directory not empty".
    assert verdict.would_start is True
    assert [each.name for each in verdict.ends_later] == [NAME]
    assert verdict.reasons[0].startswith("A broker starts on this once, and then not again: ")
    assert "its next start ends" in about_future(report).message


def test_one_on_each_disk_ends_the_broker(disks: list[Path]) -> None:
    assign(disks, SECOND)
    for disk in disks:
        write_log(disk, NAME, 10)
    refusals = pylog.doctor(*disks).refusals
    assert [each.code for each in refusals] == ["duplicate_partition"]


def test_what_becomes_of_the_only_copy_is_not_known_without_the_metadata(
    disks: list[Path],
) -> None:
    write_log(disks[1], NAME, 20)
    report = pylog.doctor(disks[1])
    assert about_future(report).severity is Severity.INFO
    assert report.verdict.would_start is None


def test_the_repaired_copy_has_the_longer_one_under_the_name_of_the_partition(
    disks: list[Path], tmp_path: Path
) -> None:
    write_log(disks[1], "clicks-0", 5)
    write_log(disks[1], "orders-0", 10)
    longer = write_log(disks[1], NAME, 20)
    summary = pylog.repair_copy(disks[1], tmp_path / "copy")
    [orders] = [each for each in summary.partitions if each.topic_partition == ("orders", 0)]
    assert (orders.source, orders.end_offset) == (str(longer), 20)
    assert pylog.scan(tmp_path / "copy", topics=["orders"]).count() == 20


def test_the_repaired_copy_has_the_live_one_where_the_other_does_not_begin_with_it(
    disks: list[Path], tmp_path: Path
) -> None:
    live = write_log(disks[1], "orders-0", 10)
    write_log(disks[1], NAME, 20, timestamp=2_000)
    summary = pylog.repair_copy(disks[1], tmp_path / "copy")
    assert [(each.source, each.end_offset) for each in summary.partitions] == [(str(live), 10)]


def test_repaired_copies_of_both_disks_have_it_once(disks: list[Path], tmp_path: Path) -> None:
    assign(disks, FIRST)
    write_log(disks[0], "orders-0", 10)
    write_log(disks[1], NAME, 20)
    summary = pylog.repair_copy(disks, tmp_path / "copy")
    [orders] = [each for each in summary.partitions if each.topic_partition == ("orders", 0)]
    assert orders.path == str(tmp_path / "copy" / "d2" / "orders-0")
    assert not (tmp_path / "copy" / "d1" / "orders-0").exists()
    assert summary.copy.refusals == []


def test_what_consumers_get_of_one_that_becomes_the_partition_is_said(disks: list[Path]) -> None:
    assign(disks, SECOND)
    place = write_log(disks[1], NAME, 20)
    write_log(disks[0], "orders-0", 10)
    log = place / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + bytes(12))
    verdict = pylog.doctor(*disks).verdict
    assert [(each.name, each.from_offset) for each in verdict.consumers] == [(NAME, 20)]


def test_what_the_start_of_one_that_becomes_the_partition_cuts_off_is_lost(
    disks: list[Path],
) -> None:
    assign(disks, SECOND, SECOND)
    write_log(disks[1], "orders-1", 20)
    place = write_log(disks[1], NAME, 20)
    (disks[1] / ".kafka_cleanshutdown").unlink()
    log = place / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 4 + 70] ^= 1  # of the second batch of four
    log.write_bytes(content)
    [lost] = pylog.doctor(*disks).verdict.loses_records
    assert (lost.name, lost.from_offset, lost.to_offset) == (NAME, 5, None)


def test_one_of_a_topic_that_is_not_known_is_a_stray(disks: list[Path]) -> None:
    assign(disks, SECOND, SECOND)
    write_log(disks[0], "orders-0", 20)
    write_log(disks[1], "orders-1", 20)
    place = write_log(disks[1], NAME, 20)
    (place / "partition.metadata").unlink()
    verdict = pylog.doctor(*disks).verdict
    assert [each.name for each in verdict.stray_partitions] == [NAME]


@pytest.mark.parametrize("is_gone", [True, False])
def test_one_that_a_broker_puts_in_its_place_meanwhile_is_no_finding(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch, *, is_gone: bool
) -> None:
    assign(disks, FIRST)
    write_log(disks[0], "orders-0", 10)
    place = write_log(disks[1], NAME, 10)
    fork = find_fork
    looks = 0

    def taken_away(dropped: LogView, kept: LogView) -> tuple[str, int, int, int] | None:
        nonlocal looks
        looks += 1
        if looks > 1:
            return fork(dropped, kept)
        if is_gone:
            place.rename(disks[1] / "orders-1")
        raise SegmentVanishedError("file is gone", str(place))

    monkeypatch.setattr(future_logs, "find_fork", taken_away)
    found = doctor(*disks).findings
    assert [each.code for each in found if each.code.startswith("future")] == (
        [] if is_gone else ["future_directory"]
    )
    assert looks == (1 if is_gone else 2)


def test_what_becomes_of_one_is_not_told_from_metadata_of_another_moment(
    disks: list[Path], at_third_pause: AtThirdPause
) -> None:
    assign(disks, SECOND)
    write_log(disks[0], "orders-0", 10)
    write_log(disks[1], NAME, 5)

    def lost() -> list[str]:
        found = doctor(*disks).findings
        return [each.code for each in found if each.severity is Severity.ERROR]

    assert lost() == ["future_replaces_live"]

    def go_on() -> None:
        shutil.rmtree(disks[0] / "__cluster_metadata-0")
        assign(disks, FIRST)

    at_third_pause(go_on)
    with DirectoryLock(disks[0]):
        assert lost() == []
