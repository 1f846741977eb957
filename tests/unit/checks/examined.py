"""A directory of three segments, and what doctor says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    import pylog

FIRST = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (10, 15)]
THIRD = [batch_v2(plain_records(o, 5, timestamp=1000 + o)) for o in (20, 25)]


def three_segments(tmp_path: Path) -> Path:
    return write_partition(tmp_path, {0: FIRST, 10: SECOND, 20: THIRD})


def codes(report: pylog.results.DoctorReport) -> list[tuple[str, str]]:
    return [(str(each.severity), each.code) for each in report.findings]


def remove_segment(directory: Path, base: int) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        segment_path(directory, base, suffix).unlink()
