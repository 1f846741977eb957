"""Directories that are not live: a broker loads their logs, too."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.doctor import doctor
from pylog.checks.partition import check_partition
from pylog.results import Severity
from tests.support.batches import batch_v2, joined, plain_records, with_bad_crc
from tests.support.log_files import (
    mark_clean_shutdown,
    segment_path,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.checks.partition_check import PartitionCheck
    from pylog.results import DoctorReport

FIRST = [batch_v2(plain_records(o, 5)) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5)) for o in (10, 15)]
STATES = ("stray", "delete", "future")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give a directory that was shut down cleanly."""
    write_partition(tmp_path, {0: FIRST, 10: SECOND})
    mark_clean_shutdown(tmp_path)
    return tmp_path


def set_aside(logs: Path, state: str, *, is_alone: bool = False) -> Path:
    """Copy the live partition, or rename it."""
    place = logs / f"orders-0.{1:032x}-{state}"
    if is_alone:
        write_partition(logs, {0: FIRST}, name="clicks-0")
        (logs / "orders-0").rename(place)
    else:
        shutil.copytree(logs / "orders-0", place)
    return place


def errors(report: DoctorReport) -> list[str]:
    return [each.code for each in report.findings if each.severity is Severity.ERROR]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("is_alone", [True, False])
def test_nothing_is_wrong_with_intact_ones(logs: Path, state: str, *, is_alone: bool) -> None:
    set_aside(logs, state, is_alone=is_alone)
    report = pylog.doctor(logs)
    assert errors(report) == []
    assert len(report.partitions) == 1


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("partition.metadata", b"nonsense"),
        ("leader-epoch-checkpoint", bytes(60)),
        ("copy.log", b""),
        (f"{10:020}.log", joined(SECOND) + bytes(5000)),
    ],
    ids=["partition.metadata", "leader epochs", "copy.log", "zeros after the last batch"],
)
def test_what_ends_a_broker_ends_it_there_too(
    logs: Path, state: str, name: str, content: bytes
) -> None:
    place = set_aside(logs, state)
    (place / name).write_bytes(content)
    report = pylog.doctor(logs)
    if state == "delete" and name == f"{10:020}.log":  # where the log ends, it does not look
        assert report.refusals == []
        return
    assert report.refusals
    assert {each.path for each in report.refusals} == {str(place / name)}
    assert report.verdict.reasons[0].startswith("A broker does not start on this: ")


def test_the_log_start_of_the_live_partition_empties_a_stray(logs: Path) -> None:
    place = set_aside(logs, "stray")
    segment_path(place, 10).unlink()
    write_log_start_offsets(logs, {("orders", 0): 15})
    report = pylog.doctor(logs)
    assert errors(report) == ["lost_at_start"]
    [sentence] = report.verdict.reasons
    loses = "A broker that starts on this loses 10 records:"
    assert sentence.startswith(f"{loses} orders-0.{1:032x}-stray: 10 records, offsets 0 to 9, ")


def test_a_future_replica_that_is_behind_is_copied_again(logs: Path) -> None:
    place = set_aside(logs, "future")
    segment_path(place, 10).unlink()
    write_log_start_offsets(logs, {("orders", 0): 15})
    assert errors(pylog.doctor(logs)) == []


@pytest.mark.parametrize(("state", "expected"), [("stray", 1), ("future", 1), ("delete", 0)])
def test_batches_of_what_may_be_served_are_verified(logs: Path, state: str, expected: int) -> None:
    place = set_aside(logs, state, is_alone=True)
    segment_path(place, 0).write_bytes(joined([with_bad_crc(FIRST[0]), FIRST[1]]))
    assert errors(pylog.doctor(logs)) == ["damaged_batches"] * expected


def test_offsets_of_the_live_partition_are_held_against_no_other(logs: Path) -> None:
    place = set_aside(logs, "stray")
    segment_path(place, 0).unlink()
    write_log_start_offsets(logs, {("orders", 0): 5})
    assert errors(pylog.doctor(logs)) == []


def test_the_choice_of_topics_holds_for_them(logs: Path) -> None:
    place = set_aside(logs, "stray", is_alone=True)
    segment_path(place, 0).write_bytes(joined([with_bad_crc(FIRST[0]), FIRST[1]]))
    assert errors(pylog.doctor(logs, topics=["clicks"])) == []


def test_one_that_a_broker_removes_meanwhile_is_no_finding(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = set_aside(logs, "stray")
    segment_path(place, 0).write_bytes(joined([with_bad_crc(FIRST[0]), FIRST[1]]))

    def checked_and_removed(view: pylog.results.LogView, **_: object) -> PartitionCheck:
        found = check_partition(view)
        shutil.rmtree(place)
        return found

    monkeypatch.setattr("pylog.checks.not_live.check_partition", checked_and_removed)
    assert errors(doctor(logs)) == []  # once: the directory changes
