"""What a broker does about a finding is told from its simulated start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, joined, plain_records, with_bad_crc
from tests.support.corruption import resealed
from tests.support.log_files import TIME_ENTRY, mark_clean_shutdown, segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import DoctorReport, Finding

FIRST = [batch_v2(plain_records(o, 5, timestamp=1_000 + o)) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5, timestamp=1_000 + o)) for o in (10, 15)]
SIZE = len(FIRST[0].data)
CUTS = f"it cuts the file off at byte {SIZE}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: FIRST, 10: SECOND})


def examined(directory: Path, *, is_clean: bool) -> DoctorReport:
    if is_clean:
        mark_clean_shutdown(directory.parent)
    return pylog.doctor(directory.parent)


def only(report: DoctorReport, code: str) -> Finding:
    [finding] = [each for each in report.findings if each.code == code]
    return finding


@pytest.mark.parametrize(
    ("is_clean", "action", "effect"),
    [
        (True, "it leaves these bytes: consumers get an error", "consumers"),
        (False, f"{CUTS}, and deletes the 1 segment after it", "gone"),
    ],
)
def test_damage_is_left_or_cut_off(
    directory: Path, action: str, effect: str, *, is_clean: bool
) -> None:
    segment_path(directory, 0).write_bytes(joined([FIRST[0], with_bad_crc(FIRST[1])]))
    report = examined(directory, is_clean=is_clean)
    finding = only(report, "damaged_batches")
    assert finding.broker_action.startswith(action)
    assert finding.effect == effect
    assert len(report.verdict.consumers) == is_clean
    assert len(report.verdict.lost_already) == (not is_clean)


def test_damage_below_the_recovery_point_stays_after_a_crash(directory: Path) -> None:
    segment_path(directory, 0).write_bytes(joined([FIRST[0], with_bad_crc(FIRST[1])]))
    point = directory.parent / "recovery-point-offset-checkpoint"
    point.write_text("0\n1\norders 0 20\n")
    finding = only(examined(directory, is_clean=False), "damaged_batches")
    assert finding.broker_action.startswith("it leaves these bytes: ")
    assert finding.effect == "consumers"


@pytest.mark.parametrize(
    ("is_clean", "action"),
    [
        (True, "it does not build the file again: look-ups by time"),
        (False, "it scans the segment, and builds its indexes again"),
    ],
)
def test_an_index_costs_nothing_that_the_start_builds_again(
    directory: Path, action: str, *, is_clean: bool
) -> None:
    segment_path(directory, 10, ".timeindex").write_bytes(TIME_ENTRY.pack(900, 9))
    report = examined(directory, is_clean=is_clean)
    if is_clean:
        finding = only(report, "wrong_time_index")
        assert finding.broker_action.startswith(action)
        assert [(each.from_offset, each.to_offset) for each in report.verdict.consumers] == [
            (10, 20)
        ]
    else:  # of the last segment of a log that was not closed nothing is expected
        assert list(report.findings) == []
    segment_path(directory, 0, ".timeindex").write_bytes(TIME_ENTRY.pack(900, 9))
    report = examined(directory, is_clean=is_clean)
    actions = {each.broker_action for each in report.findings if each.path.endswith("0.timeindex")}
    assert all(each.startswith(action) for each in actions)
    assert bool(report.verdict.consumers) == is_clean


def test_an_index_that_is_missing_is_built_again(directory: Path) -> None:
    segment_path(directory, 0, ".index").unlink()
    report = examined(directory, is_clean=True)
    assert only(report, "missing_index").broker_action == (
        "it scans the segment, and builds its indexes again"
    )
    assert report.verdict.consumers == []


def test_a_snapshot_that_is_not_used_is_deleted(directory: Path) -> None:
    (directory / f"{7:020d}.snapshot").write_bytes(b"nonsense")
    finding = only(examined(directory, is_clean=True), "damaged_snapshot")
    assert finding.broker_action == "it deletes the file, and does not use it"


def test_a_log_that_ends_below_its_start_begins_anew(directory: Path) -> None:
    start = directory.parent / "log-start-offset-checkpoint"
    start.write_text("0\n1\norders 0 50\n")
    finding = only(examined(directory, is_clean=False), "log_start_offset_above_log_end")
    assert finding.broker_action == "it deletes all segments, and begins anew at offset 50"
    report = examined(directory, is_clean=False)
    [lost] = report.verdict.loses_records
    assert (lost.from_offset, lost.to_offset) == (0, 20)
    assert "1 segment after it among them" in lost.reason


def test_index_files_alone_are_deleted(directory: Path) -> None:
    for base in (0, 10):
        segment_path(directory, base).unlink()
    finding = only(examined(directory, is_clean=True), "missing_log")
    action = "it deletes the index files, and begins with an empty log at offset 0"
    assert finding.broker_action == action


@pytest.mark.parametrize(("zeros", "effect"), [(11, None), (12, "consumers")])
def test_zeros_between_segments_stop_consumers(
    directory: Path, zeros: int, effect: str | None
) -> None:
    path = segment_path(directory, 0)
    path.write_bytes(path.read_bytes() + bytes(zeros))
    finding = only(examined(directory, is_clean=True), "segment_rest")
    assert finding.broker_action.startswith("it leaves these bytes: ")
    assert finding.effect == effect


def test_what_is_appended_behind_other_bytes_cannot_be_read(directory: Path) -> None:
    path = segment_path(directory, 10)
    path.write_bytes(path.read_bytes() + b"\xee" * 9)
    report = examined(directory, is_clean=True)
    assert only(report, "unreadable_appends").broker_action.startswith("it leaves these bytes: it")
    [affected] = report.verdict.consumers
    assert (affected.from_offset, affected.to_offset) == (20, None)


def test_a_header_that_is_late_hides_later_segments_once_it_is_in_a_new_index(
    directory: Path,
) -> None:
    late = resealed(FIRST[1].data[:35] + (9_000).to_bytes(8, "big") + FIRST[1].data[43:])
    segment_path(directory, 0).write_bytes(FIRST[0].data + late)
    report = examined(directory, is_clean=False)
    finding = only(report, "header_timestamp")
    assert finding.broker_action.startswith("it puts the header's timestamp into a new time index")
    assert [(each.from_offset, each.to_offset) for each in report.verdict.consumers] == [(5, None)]
    assert examined(directory, is_clean=True).verdict.consumers == []


def test_an_index_of_a_segment_that_recovery_empties_costs_nothing(directory: Path) -> None:
    segment_path(directory, 0).write_bytes(with_bad_crc(FIRST[0]).data)
    segment_path(directory, 0, ".timeindex").write_bytes(b"x")
    report = examined(directory, is_clean=False)
    finding = only(report, "damaged_time_index")
    assert finding.broker_action == "it empties the segment, and its indexes"
    assert report.verdict.consumers == []


def test_where_no_broker_starts_none_does_anything_about_the_bytes(directory: Path) -> None:
    path = segment_path(directory, 10)
    path.write_bytes(SECOND[0].data + bytes(100) + SECOND[1].data)
    report = examined(directory, is_clean=True)
    assert report.verdict.would_start is False
    finding = only(report, "damaged_batches")
    assert finding.broker_action == "nothing: it does not start"
    assert report.verdict.consumers == []
    assert [each.from_offset for each in report.verdict.lost_already] == [15]
