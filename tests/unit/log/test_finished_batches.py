"""Batches that come with their offsets: appended as they are, or adopted as a whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import pylog
from pylog.errors import UnexpectedAppendOffsetError
from pylog.record.batch_scan import BatchHeaders, find_batches

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000
PLACE = pylog.TopicPartition("orders", 0)


def batches(base_offset: int, count: int, epoch: int = 0) -> tuple[bytearray, BatchHeaders]:
    """Return batches of two records each, from an offset on."""
    content = bytearray()
    for number in range(count):
        builder = pylog.logs.RecordBatchBuilder(
            base_offset=base_offset + 2 * number, partition_leader_epoch=epoch
        )
        for record in range(2):
            builder.append(NOW_MS + 10 * number + record, b"key", b"value %03d" % number)
        content += builder.build()
    scan = find_batches(np.frombuffer(bytes(content), dtype=np.uint8))
    return content, scan.headers


def manager_of(directory: Path, **properties: int) -> pylog.logs.LogManager:
    return pylog.logs.LogManager([directory], pylog.LogConfig(**properties))  # type: ignore[arg-type]


def values(directory: Path) -> list[str]:
    table = pylog.scan(directory, columns=["value"]).to_table()
    return [each.decode() for each in table["value"].to_pylist()]


def expected(*counts: int) -> list[str]:
    return [f"value {number:03}" for count in counts for number in range(count) for _ in range(2)]


def test_they_are_appended_and_segments_roll_as_at_any_append(tmp_path: Path) -> None:
    with manager_of(tmp_path, segment_bytes=1_000, index_interval_bytes=100) as manager:
        log = manager.get_or_create_log(PLACE)
        content, headers = batches(0, 30, epoch=4)
        log.append_finished(memoryview(content), headers)
        assert (log.log_end_offset, log.high_watermark, log.latest_epoch) == (60, 60, 4)
        assert len(log.segments) > 2
        assert max(each.size_bytes for each in log.segments) <= 1_000
        answer = log.fetch_offset_by_timestamp(NOW_MS + 200)
        assert answer is not None
        assert answer.offset == 40
    assert values(tmp_path) == expected(30)
    assert pylog.read_table(tmp_path, "findings").num_rows == 0


@pytest.mark.parametrize("before", [0, 3])
def test_a_file_of_them_becomes_a_segment(tmp_path: Path, before: int) -> None:
    directory = tmp_path / "logs"
    with manager_of(directory, index_interval_bytes=100) as manager:
        log = manager.get_or_create_log(PLACE)
        if before:
            content, headers = batches(0, before)
            log.append_finished(memoryview(content), headers)
        staged = directory / ".pylog-staged"
        content, headers = batches(2 * before, 20)
        staged.write_bytes(content)
        log.adopt_segment(str(staged), headers)
        assert not staged.exists()
        assert log.log_end_offset == 2 * (before + 20)
        assert [each.base_offset for each in log.segments] == sorted({0, 2 * before})
        assert log.segments[-1].size_bytes == len(content)
        content, headers = batches(log.log_end_offset, 1)
        log.append_finished(memoryview(content), headers)
        answer = log.fetch_offset_by_timestamp(NOW_MS + 150)
        assert answer is not None
        assert answer.offset == 2 * before + 30
    assert values(directory) == expected(before, 20, 1) if before else expected(20, 1)
    assert pylog.read_table(directory, "findings").num_rows == 0
    with manager_of(directory) as manager:
        assert manager.get_log(PLACE).log_end_offset == 2 * (before + 21)


@pytest.mark.parametrize("base_offset", [0, 4, 7])
def test_they_begin_where_the_log_ends_or_are_refused(tmp_path: Path, base_offset: int) -> None:
    directory = tmp_path / "logs"
    with manager_of(directory) as manager:
        log = manager.get_or_create_log(PLACE)
        content, headers = batches(0, 3)
        log.append_finished(memoryview(content), headers)
        content, headers = batches(base_offset, 2)
        with pytest.raises(UnexpectedAppendOffsetError, match=f"offset {base_offset}, expected 6"):
            log.append_finished(memoryview(content), headers)
        staged = directory / ".pylog-staged"
        staged.write_bytes(content)
        with pytest.raises(UnexpectedAppendOffsetError, match=f"offset {base_offset}, expected 6"):
            log.adopt_segment(str(staged), headers)
        assert staged.read_bytes() == content
        assert log.log_end_offset == 6
    assert values(directory) == expected(3)
