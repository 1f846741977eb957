"""What checkpoints say that a log had: its end, and where it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    write_high_watermarks,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from pathlib import Path

HIGH_WATERMARK, RECOVERY_POINT = "high_watermark_above_log_end", "recovery_point_above_log_end"


def write(directory: Path, *, name: str = "orders-0") -> Path:
    mark_clean_shutdown(directory)
    return write_partition(directory, {0: [batch_v2(plain_records(0, 10))]}, name=name)


def write_recovery_point(directory: Path, offset: int) -> None:
    (directory / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")


@pytest.mark.parametrize(
    ("high_watermark", "recovery_point", "snapshot", "is_clean", "lost"),
    [
        (20, 20, None, True, (10, 20)),
        (15, 20, None, True, (10, 20)),  # a follower's is behind
        (None, 20, 20, True, (10, 20)),
        # One file alone may be another log's.
        (20, 10, None, True, None),
        (10, 20, None, True, None),
        (None, 20, None, True, None),
        # After a crash the high watermark is all that there is.
        (20, 10, None, False, (10, 20)),
        (20, None, None, False, (10, 20)),
    ],
)
def test_an_end_that_more_than_one_file_bears_out_is_gone(
    tmp_path: Path,
    high_watermark: int | None,
    recovery_point: int | None,
    snapshot: int | None,
    lost: tuple[int, int] | None,
    *,
    is_clean: bool,
) -> None:
    directory = write(tmp_path)
    if not is_clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    if high_watermark is not None:
        write_high_watermarks(tmp_path, {("orders", 0): high_watermark})
    if recovery_point is not None:
        write_recovery_point(tmp_path, recovery_point)
    if snapshot is not None:
        (directory / f"{snapshot:020d}.snapshot").write_bytes(
            bytes.fromhex("00014874bc5c00000000")  # of no producer
        )
    report = pylog.doctor(tmp_path)
    about = [each for each in report.findings if each.code in (HIGH_WATERMARK, RECOVERY_POINT)]
    assert {str(each.severity) for each in about} == {"error" if lost else "warning"}
    gone = {(each.from_offset, each.to_offset) for each in report.verdict.lost_already}
    assert (lost in gone) if lost else not gone
    is_sound = report.verdict.reasons == ["A broker starts, and loses nothing"]
    assert is_sound == (lost is None)


def two_disks(directory: Path) -> tuple[Path, Path]:
    disks = directory / "one", directory / "two"
    for disk in disks:
        disk.mkdir()
        (disk / "meta.properties").write_text("version=0\nbroker.id=1\n")
    return disks


def test_a_log_start_that_stayed_on_the_old_disk(tmp_path: Path) -> None:
    old, new = two_disks(tmp_path)
    write(new)
    write(old, name="others-0")
    write_log_start_offsets(old, {("orders", 0): 4})
    report = pylog.doctor(old, new)
    [finding] = [each for each in report.findings if each.code == "log_start_offset_elsewhere"]
    assert finding.path == str(old / "log-start-offset-checkpoint")
    assert "records come back that were deleted" in finding.message
    [affected] = report.verdict.consumers
    assert (affected.name, affected.from_offset, affected.to_offset) == ("orders-0", 0, 4)
    write_log_start_offsets(new, {("orders", 0): 4})
    assert list(pylog.doctor(old, new).findings) == []


def test_a_log_start_of_a_copy_that_is_on_its_way_is_its_own(tmp_path: Path) -> None:
    old, new = two_disks(tmp_path)
    write(new)
    write(old, name=f"orders-0.{'a' * 32}-future")
    write_log_start_offsets(old, {("orders", 0): 4})
    codes = [each.code for each in pylog.doctor(old, new).findings]
    assert "log_start_offset_elsewhere" not in codes
