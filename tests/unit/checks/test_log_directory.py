"""What lies beside the partitions of log directories, and what several say together."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.doctor import doctor
from pylog.errors import LogDirectoryError
from tests.support.log_files import write_partition
from tests.unit.checks.examined import FIRST, codes

if TYPE_CHECKING:
    from pathlib import Path


def write_meta_properties(directory: Path, directory_id: str = "Igo74ZAZCxWJ1lxdTzs-vQ") -> None:
    lines = ["version=0", "broker.id=1", "cluster.id=c", f"directory.id={directory_id}"]
    (directory / "meta.properties").write_text("\n".join(lines) + "\n", "utf-8")


def test_directories_of_one_broker_may_not_hold_the_same_partition(tmp_path: Path) -> None:
    for name, directory_id in (("a", "Igo74ZAZCxWJ1lxdTzs-vQ"), ("b", "jho74ZAZCxWJ1lxdTzs-vQ")):
        write_partition(tmp_path / name, {0: FIRST})
        write_meta_properties(tmp_path / name, directory_id)
    report = pylog.doctor(tmp_path / "a", tmp_path / "b")
    assert codes(report) == [("error", "duplicate_partition")]
    assert report.directories[1].findings[0].path == str(tmp_path / "b" / "orders-0")


def test_a_broker_takes_two_names_with_the_same_number_for_one_partition(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: FIRST}, name="t-0")
    write_partition(tmp_path, {0: FIRST}, name="t-00")
    write_partition(tmp_path, {0: FIRST}, name="t-000")
    write_partition(tmp_path, {0: FIRST}, name="t-1")
    report = pylog.doctor(tmp_path)
    assert [(found.code, found.path) for found in report.findings] == [
        ("duplicate_partition", str(tmp_path / "t-00")),
        ("duplicate_partition", str(tmp_path / "t-000")),
    ]
    first, _ = report.findings
    assert first.severity is pylog.results.Severity.ERROR
    assert first.message == (
        f"directory is partition t-0, as {tmp_path / 't-0'} of the same broker is"
    )
    # Each of the four has been looked at.
    assert [each.path.rpartition("/")[2] for each in report.partitions] == [
        *("t-0", "t-00", "t-000", "t-1")
    ]
    # Alone, it is the partition as a broker has it.
    assert list(pylog.doctor(tmp_path / "t-00").findings) == []
    with pytest.raises(LogDirectoryError, match=r"t-0 lies both in .*/t-0 and in .*/t-00, "):
        pylog.scan(tmp_path)


def test_of_future_replicas_a_partition_may_have_one_and_of_deleted_ones_any_number(
    tmp_path: Path,
) -> None:
    write_partition(tmp_path, {0: FIRST}, name="t-0")
    for number in range(2):
        for state in ("future", "delete", "stray"):
            write_partition(tmp_path, {0: FIRST}, name=f"t-0.{number:032x}-{state}")
    found = [(each.code, each.path) for each in pylog.doctor(tmp_path).findings]
    assert [each for each in found if each[0] == "duplicate_partition"] == [
        ("duplicate_partition", str(tmp_path / f"t-0.{1:032x}-future"))
    ]
    shutil.rmtree(tmp_path / "t-0")
    found = [(each.code, each.path) for each in pylog.doctor(tmp_path).findings]
    assert [each for each in found if each[0] == "duplicate_partition"] == [
        ("duplicate_partition", str(tmp_path / f"t-0.{1:032x}-future"))
    ]


def test_a_copied_log_directory_has_the_directory_id_of_the_other(tmp_path: Path) -> None:
    for name, partition in (("a", "orders-0"), ("b", "orders-1")):
        write_partition(tmp_path / name, {0: FIRST}, name=partition)
        write_meta_properties(tmp_path / name)
    report = pylog.doctor(tmp_path / "a", tmp_path / "b")
    assert codes(report) == [("error", "meta_properties_disagree")]


def test_replicas_of_two_brokers_are_no_duplicates(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_partition(tmp_path / name, {0: FIRST})
    assert codes(pylog.doctor(tmp_path / "a", tmp_path / "b")) == []


def test_a_folder_in_the_place_of_the_marker_of_a_clean_stop_is_one_if_it_is_empty(
    directory: Path,
) -> None:
    marker = directory.parent / ".kafka_cleanshutdown"
    marker.unlink(missing_ok=True)
    marker.mkdir()
    report = pylog.doctor(directory.parent)
    assert [each.is_clean for each in report.directories] == [True]
    assert report.verdict.would_start is not False
    (marker / "something").touch()
    refused = pylog.doctor(directory.parent)
    assert [each.code for each in refused.refusals] == ["misnamed_directory"]


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_partition_on_two_disks_is_no_finding_once_the_broker_has_moved_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_moved: bool
) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk in disks:
        write_partition(disk, {0: FIRST})
        write_meta_properties(disk)

    def take_away(_seconds: float) -> None:
        if is_moved and (disks[0] / "orders-0").exists():
            shutil.rmtree(disks[0] / "orders-0")

    monkeypatch.setattr(time, "sleep", take_away)
    found = [each.code for each in doctor(*disks).findings]
    assert ("duplicate_partition" in found) is not is_moved
