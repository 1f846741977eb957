"""A range of offsets has the times of the records around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import ABORT, batch_v2, joined, marker, plain_records, with_bad_crc
from tests.support.log_files import segment_path, write_high_watermarks, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built


def batches(*offsets: int) -> list[Built]:
    """Return batches of two records, whose times are 1000 times their offsets."""
    return [
        batch_v2(
            [each._replace(timestamp=each.offset * 1_000) for each in plain_records(offset, 2)]
        )
        for offset in offsets
    ]


def times(directory: Path, code: str) -> tuple[int | None, int | None]:
    [finding] = [each for each in pylog.doctor(directory).findings if each.code == code]
    return finding.from_time, finding.to_time


def test_a_segment_that_is_gone(tmp_path: Path) -> None:
    directory = write_partition(
        tmp_path, {0: batches(0, 2, 4), 6: batches(6, 8), 10: batches(10, 12)}
    )
    for suffix in (".log", ".index", ".timeindex"):
        segment_path(directory, 6, suffix).unlink()
    assert times(tmp_path, "missing_segment") == (5_000, 10_000)


def test_time_indexes_of_lost_logs_tell_when_they_were_written(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: batches(0, 2), 4: batches(4, 6, 8)})
    write_high_watermarks(tmp_path, {("orders", 0): 10})
    segment_path(directory, 4).unlink()
    assert times(tmp_path, "high_watermark_above_log_end") == (3_000, 9_001)


def test_a_batch_that_is_damaged(tmp_path: Path) -> None:
    built = batches(0, 2, 4, 6)
    directory = write_partition(tmp_path, {0: built})
    segment_path(directory, 0).write_bytes(joined([*built[:2], with_bad_crc(built[2]), built[3]]))
    assert times(tmp_path, "damaged_batches") == (3_000, 6_000)
    segment_path(directory, 0).write_bytes(joined([*built[:3], with_bad_crc(built[3])]))
    assert times(tmp_path, "damaged_batches") == (5_000, None)
    segment_path(directory, 0).write_bytes(joined([with_bad_crc(built[0]), *built[1:]]))
    assert times(tmp_path, "damaged_batches") == (None, 2_000)


def test_the_time_of_a_marker_is_no_records(tmp_path: Path) -> None:
    end = marker(4, ABORT, producer_id=7, timestamp=99_000)
    write_partition(tmp_path, {0: [*batches(0, 2), end], 9: batches(9)}, with_time_index=False)
    assert times(tmp_path, "missing_segment") == (3_000, 9_000)


def test_what_a_start_removes_has_times_too(tmp_path: Path) -> None:
    built = batches(0, 2, 4)
    directory = write_partition(tmp_path, {0: built})
    segment_path(directory, 0).write_bytes(joined([built[0], with_bad_crc(built[1]), built[2]]))
    [lost] = pylog.doctor(tmp_path).verdict.loses_records
    assert (lost.from_offset, lost.from_time, lost.to_time) == (2, 1_000, 5_001)
    times = "after 1970-01-01T00:00:01.000Z, before 1970-01-01T00:00:05.001Z"
    assert lost.text == f"orders-0 offsets from 2 on ({times})"
