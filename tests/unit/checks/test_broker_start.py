"""What a broker's start does with a log: where it looks, cuts, replaces and deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.broker_start import broker_start
from pylog.checks.doctor import doctor
from pylog.files import disk
from pylog.log.log_loader import LogLoading, load_log
from tests.support.batches import batch_v2, joined, plain_records, with_bad_crc
from tests.support.log_files import (
    mark_clean_shutdown,
    offset_index_bytes,
    segment_path,
    write_partition,
)
from tests.unit.checks.examined import FIRST, SECOND, THIRD, codes

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog


def test_what_a_broker_would_lose(directory: Path) -> None:
    path = segment_path(directory, 10)
    path.write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert (start.is_clean, start.scanned_segments, start.deleted_segments) == (False, 2, 1)
    assert (start.cut_path, start.cut_position) == (str(path), len(SECOND[0].data))
    assert (start.cut_offset, start.end_offset) == (15, 30)
    assert start.lost_bytes == len(SECOND[1].data) + len(joined(THIRD))
    assert start.loses_records


def test_a_broker_looks_at_nothing_after_a_clean_stop(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    mark_clean_shutdown(directory.parent)
    report = pylog.doctor(directory.parent)
    start = report.partitions[0].start
    assert start is not None
    assert (start.is_clean, start.scanned_segments, start.cut_path) == (True, 0, None)
    assert report.directories[0].is_clean


@pytest.mark.parametrize(
    ("zeros", "code"),
    [(5, "unreadable_appends"), (17, "unreadable_appends"), (18, "start_refused")],
)
def test_zeros_at_the_end_after_a_clean_stop(directory: Path, zeros: int, code: str) -> None:
    """A broker reads the last segment's end all the same: from 18 zeros on it does not start."""
    with segment_path(directory, 20).open("ab") as file:
        file.write(bytes(zeros))
    assert codes(pylog.doctor(directory.parent)) == [("info", "zero_tail")]
    mark_clean_shutdown(directory.parent)
    report = pylog.doctor(directory.parent)
    severity = "error" if code == "start_refused" else "warning"
    assert codes(report) == [(severity, code)]
    start = report.partitions[0].start
    assert start is not None
    assert (start.refusal is not None) == (code == "start_refused")


def test_a_refusal_has_the_path_that_was_given(
    directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with segment_path(directory, 20).open("ab") as file:
        file.write(bytes(18))
    mark_clean_shutdown(directory.parent)
    alias = tmp_path_factory.mktemp("other") / "alias"
    alias.symlink_to(directory.parent)
    [refusal] = pylog.doctor(alias).refusals
    assert refusal.path == str(segment_path(alias / directory.name, 20))


def test_offsets_that_go_back_below_an_index_entry_cost_a_broker_nothing(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([*SECOND, SECOND[0]]))
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert (start.scanned_segments, start.cut_path, start.loses_records) == (3, None, False)


def test_a_start_is_not_known_where_files_go_meanwhile(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_and_lose(_: object) -> object:
        raise FileNotFoundError(segment_path(directory, 10, ".timeindex.deleted"))

    monkeypatch.setattr("pylog.checks.broker_start.load_log", load_and_lose)
    report = pylog.doctor(directory)
    assert codes(report) == []
    assert report.partitions[0].start is None


@pytest.mark.parametrize(
    ("base", "suffix"),
    [
        (10, ".index.cleaned"),
        (10, ".log.deleted"),
        (10, ".log.swap"),
        (10, ".timeindex.swap"),
        (5, ".txnindex"),
        (5, ".snapshot"),
    ],
)
def test_a_file_that_a_broker_removes_once_it_was_listed_keeps_none_from_starting(
    directory: Path, monkeypatch: pytest.MonkeyPatch, base: int, suffix: str
) -> None:
    gone = segment_path(directory, base, suffix)
    gone.touch()

    def list_and_lose(loading: LogLoading) -> UnifiedLog:
        with disk.scandir(str(loading.directory)) as entries:
            assert gone.name in {each.name for each in entries}
        gone.unlink()
        return load_log(loading)

    monkeypatch.setattr("pylog.checks.broker_start.load_log", list_and_lose)
    start = broker_start(pylog.open_directory(directory)["orders", 0], 30)
    assert not gone.exists()
    assert start is None or start.refusal is None


def test_what_a_broker_deletes_meanwhile_is_not_lost_at_its_start(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete_and_load(loading: LogLoading) -> UnifiedLog:
        segment_path(directory, 10).unlink(missing_ok=True)
        return load_log(loading)

    monkeypatch.setattr("pylog.checks.broker_start.load_log", delete_and_load)
    report = doctor(directory)  # once: the directory changes
    assert report.partitions[0].start is None


def test_nothing_is_logged_of_a_start_that_is_only_tried(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    pylog.doctor(directory.parent)
    assert not caplog.records


def test_a_broker_scans_from_the_recovery_point_on(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    checkpoint = directory.parent / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 20\n", "utf-8")
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert (start.scanned_segments, start.cut_path) == (1, None)


def test_bytes_after_an_earlier_segment_cost_a_broker_all_later_ones(directory: Path) -> None:
    with segment_path(directory, 10).open("ab") as file:
        file.write(bytes(100))
    report = pylog.doctor(directory.parent)
    assert codes(report) == [("error", "lost_at_start"), ("warning", "segment_rest")]
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_offset, start.deleted_segments) == (20, 1)
    assert start.loses_records


@pytest.mark.parametrize("beyond", [0, 300], ids=["its torn batch", "beyond the end"])
def test_records_that_a_broker_overlooks_are_lost(directory: Path, beyond: int) -> None:
    """A broker looks for the end of the log from the last index entry on (tried with 4.3.1)."""
    mark_clean_shutdown(directory.parent)
    path = segment_path(directory, 20)
    path.write_bytes(path.read_bytes()[:-10])
    entry = (29, len(THIRD[0].data) + beyond)
    segment_path(directory, 20, ".index").write_bytes(offset_index_bytes([entry], 20))
    report = pylog.doctor(directory.parent)
    start = report.partitions[0].start
    assert start is not None
    assert (start.log_end_offset, start.end_offset, start.loses_records) == (20, 25, True)
    first = next(iter(report.findings))
    assert (first.code, first.path, first.next_offset) == ("lost_at_start", str(path), 20)
    assert first.message.startswith(
        "a broker starts on it, and takes offset 20 for the end of the log, not 25"
    )


def test_a_cut_in_a_segment_that_is_not_the_last_one_costs_what_follows_there(
    directory: Path,
) -> None:
    mark_clean_shutdown(directory.parent)
    segment_path(directory, 10).write_bytes(joined([with_bad_crc(SECOND[0]), SECOND[1]]))
    segment_path(directory, 10, ".index").unlink()
    report = pylog.doctor(directory.parent)
    assert report.verdict.reasons[0].startswith(
        "A broker that starts on this loses 10 records: orders-0: 10 records, offsets 10 to 19, "
    )
    assert report.verdict.would_start
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_position, start.deleted_segments, start.loses_records) == (0, 0, True)
    assert (start.cut_offset, start.end_offset) == (30, 30)
    assert start.describe().endswith("; there are intact batches among them")
    # What no consumer could read is no loss.
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    report = pylog.doctor(directory.parent)
    gone, starts = report.verdict.reasons
    assert starts == "A broker starts, and loses nothing more"
    times = "after 1970-01-01T00:00:01.014Z, before 1970-01-01T00:00:01.020Z"
    assert gone == (f"5 records are lost: orders-0: 5 records, offsets 15 to 19, damaged ({times})")
    assert report.verdict.loses_records == []


@pytest.mark.parametrize("base", [0, 10, 20])
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("what", ["empty", "half", "damaged"])
def test_a_swap_file_that_is_no_whole_segment_takes_the_place_of_one(
    directory: Path, base: int, what: str, *, is_clean: bool
) -> None:
    if is_clean:
        mark_clean_shutdown(directory.parent)
    content = segment_path(directory, base).read_bytes()
    half = content[: len(content) // 3]
    damaged = content[:-1] + bytes([content[-1] ^ 1])
    swap = segment_path(directory, base, ".log.swap")
    swap.write_bytes({"empty": b"", "half": half, "damaged": damaged}[what])
    report = pylog.doctor(directory.parent)
    lost = report.partitions[0].findings[0]
    assert (lost.code, lost.path) == ("lost_at_start", str(swap))
    first = {"empty": base, "half": base, "damaged": base + 5}[what]
    assert (lost.next_offset, lost.end_offset) == (first, base + 10)
    # Recovery cuts the file that has taken the place of another, and deletes all later ones.
    is_cut = not is_clean and what != "empty" and base < 20
    many = f"{base + 10 - first} records"
    loses = f"loses {many}: orders-0: {many}, offsets {first} to {base + 9}, deleted at the start"
    if is_cut:
        loses = f"loses records: orders-0: all records from offset {first} on, deleted at the start"
    loses = f"A broker that starts on this {loses} ("
    assert report.verdict.reasons[0].startswith(loses)
    assert f": a broker puts {swap.name} in the place of " in report.verdict.reasons[0]


def test_a_format_that_does_not_exist_ends_no_broker(directory: Path) -> None:
    mark_clean_shutdown(directory.parent)
    path = segment_path(directory, 20)
    content = bytearray(path.read_bytes())
    content[16] = 7
    path.write_bytes(content)
    verdict = pylog.doctor(directory.parent).verdict
    assert verdict.would_start
    assert verdict.loses_records == []
    assert [each.from_offset for each in verdict.consumers] == [20]


def test_an_index_that_leads_to_no_batch_hides_the_last_segment(directory: Path) -> None:
    mark_clean_shutdown(directory.parent)
    path = segment_path(directory, 20)
    path.write_bytes(b"." * 50 + path.read_bytes())
    report = pylog.doctor(directory.parent)
    # The size of what is there leads behind the end of the file, whatever its format.
    assert report.verdict.would_start
    start = report.partitions[0].start
    assert start is not None
    assert start.log_end_offset == 20


def test_a_compaction_that_a_crash_ended_loses_nothing(directory: Path) -> None:
    mark_clean_shutdown(directory.parent)
    swap = segment_path(directory, 0, ".log.swap")
    swap.write_bytes(joined([FIRST[0], SECOND[1]]))
    report = pylog.doctor(directory.parent)
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_path, start.deleted_segments, start.loses_records) == (None, 0, False)
    assert f"{10:020}.log" not in start.files
    # It was not complete, and is thrown away.
    swap.write_bytes(b"")
    segment_path(directory, 0, ".log.cleaned").write_bytes(b"")
    start = pylog.doctor(directory.parent).partitions[0].start
    assert start is not None
    assert not start.loses_records


def test_a_segment_that_is_split_loses_nothing(tmp_path: Path) -> None:
    far = batch_v2(plain_records(2**32, 5))
    write_partition(tmp_path, {0: [FIRST[0], far]}, with_index=False)
    report = pylog.doctor(tmp_path)
    start = report.partitions[0].start
    assert start is not None
    assert (start.cut_path, start.loses_records) == (None, False)
    assert sum(name.endswith(".log") for name in start.files) == 2
