"""How old the segments of a read-only view are.

That retention decides over them as over owned ones: ``tests/unit/writing/test_retention.py``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import CorruptRecordError
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.reading.dated_segments import dated_segments
from pylog.reading.log_directory import open_directory
from pylog.testing import ManualClock, ManualScheduler
from tests.unit.log.owned_log import NOW_MS, one_batch

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.dated_segments import DatedSegment

SIZE = len(one_batch(b"value"))
FILE_MS = NOW_MS - 3_600_000
PLACE = TopicPartition("t", 0)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Make segments of five batches and of two, a second apart, closed in order."""
    clock = ManualClock(NOW_MS)
    context = LogContext(clock=clock, scheduler=ManualScheduler(clock))
    config = LogConfig(segment_bytes=5 * SIZE, index_interval_bytes=0)
    with LogManager([tmp_path], config, context=context) as manager:
        log = manager.get_or_create_log(PLACE)
        for number in range(7):
            log.append_as_leader(one_batch(b"value", timestamp=NOW_MS + 1000 * number))
    for path in (tmp_path / "t-0").glob("*.log"):
        os.utime(path, ns=(FILE_MS * 1_000_000,) * 2)
    return tmp_path / "t-0"


def segments(partition: Path) -> list[DatedSegment]:
    return dated_segments(open_directory(partition.parent)[PLACE])


def time_index(partition: Path, base_offset: int) -> Path:
    return partition / f"{base_offset:020}.timeindex"


def test_the_time_index_has_the_largest_timestamp(partition: Path) -> None:
    found = segments(partition)
    assert [(each.base_offset, each.size_bytes) for each in found] == [(0, 5 * SIZE), (5, 2 * SIZE)]
    for each, expected in zip(found, (NOW_MS + 4000, NOW_MS + 6000), strict=True):
        assert each.largest_timestamp == each.read_largest_timestamp() == expected


def test_batches_are_looked_at_that_an_index_has_lost(partition: Path) -> None:
    os.truncate(time_index(partition, 0), 24)
    first = segments(partition)[0]
    assert first.largest_timestamp == NOW_MS + 2000
    assert first.read_largest_timestamp() == NOW_MS + 4000


def test_without_entries_the_time_of_the_file_counts(partition: Path) -> None:
    time_index(partition, 0).unlink()
    os.truncate(time_index(partition, 5), 0)
    for each in segments(partition):
        assert each.largest_timestamp == each.read_largest_timestamp() == FILE_MS


def test_of_what_a_start_recovers_the_batches_count(partition: Path) -> None:
    for path in partition.glob("*.timeindex"):
        os.truncate(path, 0)
    (partition.parent / ".kafka_cleanshutdown").unlink()
    (partition.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 6\n")
    first, last = segments(partition)
    assert (first.largest_timestamp, last.largest_timestamp) == (FILE_MS, NOW_MS + 6000)
    (partition.parent / "recovery-point-offset-checkpoint").write_text("damaged")
    assert [each.largest_timestamp for each in segments(partition)] == [
        NOW_MS + 4000,
        NOW_MS + 6000,
    ]


def test_a_segment_without_an_offset_index_is_recovered_whatever_the_marker_says(
    partition: Path,
) -> None:
    time_index(partition, 0).unlink()
    (partition / f"{0:020}.index").unlink()
    assert segments(partition)[0].largest_timestamp == NOW_MS + 4000


def test_damage_where_batches_have_to_be_looked_at_is_an_error(partition: Path) -> None:
    path = partition / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[4 * SIZE + 8 : 4 * SIZE + 12] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    with pytest.raises(CorruptRecordError):
        segments(partition)[0].read_largest_timestamp()
