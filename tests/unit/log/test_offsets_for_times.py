"""Offsets by timestamp, and the time index that they are found by.

The cases are those of Kafka's UnifiedLogTest and LogOffsetTest.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.log.offsets_for_times import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    OffsetForTime,
)
from pylog.model import NO_TIMESTAMP
from tests.unit.log.owned_log import NOW_MS, OwnedLog, of_magic, one_batch, stored
from tests.unit.log.timed_logs import append_at, look_up, look_up_largest

if TYPE_CHECKING:
    from pathlib import Path

MINUTE_MS = 60_000


@pytest.fixture
def owned(tmp_path: Path) -> OwnedLog:
    """Return a log of two batches a segment, of which the second is indexed."""
    return OwnedLog(tmp_path, LogConfig(segment_bytes=200, index_interval_bytes=1))


# ---- the index


def test_every_append_of_a_follower_but_the_first_is_indexed(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=10_000, index_interval_bytes=1))
    for number in range(100):
        data = one_batch(b"%d" % number, base_offset=100 + number, timestamp=NOW_MS + number)
        owned.log.append_as_follower(data)
    indexes = [segment.time_index for segment in owned.log.segments]
    assert sum(index.entries for index in indexes) == 99
    assert indexes[-1].last_entry == (NOW_MS + 99, 199)


def test_a_whole_append_is_indexed_batch_by_batch(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(index_interval_bytes=1))
    data = b"".join(
        one_batch(b"v", base_offset=offset, timestamp=NOW_MS + offset) for offset in range(5)
    )
    owned.log.append_as_follower(data)
    assert owned.log.segments[0].offset_index.entries == 4
    assert owned.log.segments[0].time_index.entries == 4


# ---- times


def test_an_answer_names_the_leader_epoch(owned: OwnedLog) -> None:
    log = owned.log
    assert log.fetch_offset_by_timestamp(NOW_MS) is None
    append_at(owned, 0, leader_epoch=0)
    append_at(owned, 1, leader_epoch=1)
    assert log.fetch_offset_by_timestamp(NOW_MS) == OffsetForTime(NOW_MS, 0, 0)
    assert log.fetch_offset_by_timestamp(NOW_MS + 1) == OffsetForTime(NOW_MS + 1, 1, 1)
    for special in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        assert log.fetch_offset_by_timestamp(special) == OffsetForTime(NO_TIMESTAMP, 0, 0)
    latest = log.fetch_offset_by_timestamp(LATEST_TIMESTAMP)
    assert latest == OffsetForTime(NO_TIMESTAMP, 2, 1)
    log.leader_epochs.assign(2, 2)  # a new leader, before its first append
    latest = log.fetch_offset_by_timestamp(LATEST_TIMESTAMP)
    assert latest == OffsetForTime(NO_TIMESTAMP, 2, 2)
    assert log.fetch_offset_by_timestamp(LATEST_TIERED_TIMESTAMP) is None
    with pytest.raises(ValueError, match="-6 is neither"):
        log.fetch_offset_by_timestamp(-6)


def test_the_leader_epoch_of_a_record_is_its_batchs(owned: OwnedLog) -> None:
    append_at(owned, 0, leader_epoch=3)
    owned.log.append_as_follower(of_magic(1, stored(b"v", base_offset=1, timestamp=NOW_MS + 1)))
    assert owned.log.leader_epochs.entries == (), "a format without epochs has cleared them"
    assert owned.log.fetch_offset_by_timestamp(NOW_MS) == OffsetForTime(NOW_MS, 0, 3)
    newest = OffsetForTime(NOW_MS + 1, 1, None)
    assert owned.log.fetch_offset_by_timestamp(NOW_MS + 1) == newest
    assert owned.log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == newest


def test_the_lowest_offset_with_that_time_or_a_later_one_is_found(owned: OwnedLog) -> None:
    append_at(owned, 0, 10, 5, 20, 15, 30)
    assert owned.base_offsets == [0, 2, 4]
    answers = {timestamp: look_up(owned, timestamp) for timestamp in (-5, 0, 1, 6, 11, 16, 21, 31)}
    assert answers == {
        -5: (0, 0),
        0: (0, 0),
        1: (10, 1),
        6: (10, 1),
        11: (20, 3),
        16: (20, 3),
        21: (30, 5),
        31: None,
    }


def test_what_was_deleted_is_not_found_any_more(owned: OwnedLog) -> None:
    append_at(owned, *range(20))
    owned.raise_high_watermark()
    owned.log.delete_records(3)
    # The first segment ends with time 1; later segments are not tried in its place.
    assert [look_up(owned, time) for time in (0, 1, 2, 3)] == [None, None, (3, 3), (3, 3)]
    earliest = owned.log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP)
    assert earliest is not None
    assert (earliest.timestamp, earliest.offset) == (NO_TIMESTAMP, 3)


def test_a_log_start_inside_a_segment_hides_the_records_below(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(index_interval_bytes=1))
    append_at(owned, *range(10))
    owned.raise_high_watermark()
    owned.log.delete_records(3)
    assert [look_up(owned, time) for time in (0, 2, 3, 9)] == [(3, 3), (3, 3), (3, 3), (9, 9)]


def test_an_empty_log_knows_its_ends_alone(owned: OwnedLog) -> None:
    assert owned.log.fetch_offset_by_timestamp(0) is None
    for special in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
        answer = owned.log.fetch_offset_by_timestamp(special)
        assert answer == OffsetForTime(NO_TIMESTAMP, 0, None)
    assert look_up_largest(owned) is None


def test_after_a_truncation_the_start_is_the_earliest_offset(owned: OwnedLog) -> None:
    append_at(owned, *range(4))
    owned.log.truncate_fully_and_start_at(7)
    for special in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
        answer = owned.log.fetch_offset_by_timestamp(special)
        assert answer == OffsetForTime(NO_TIMESTAMP, 7, None)


# ---- the largest time


def test_the_largest_time_need_not_be_the_last(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=200))
    append_at(owned, 0, 1, 2, 3, 4, 6, 5)
    assert look_up_largest(owned) == (6, 5)


def test_the_first_of_two_segments_with_the_same_largest_time_counts(owned: OwnedLog) -> None:
    append_at(owned, 0, 9, 9, 1)
    assert owned.base_offsets == [0, 2]
    assert look_up_largest(owned) == (9, 1)


def test_a_truncated_log_has_no_largest_time(owned: OwnedLog) -> None:
    append_at(owned, *range(7))
    owned.log.truncate_to(0)
    assert look_up_largest(owned) is None


def test_the_largest_time_survives_a_restart(owned: OwnedLog) -> None:
    append_at(owned, 0, 1, 6, 5)
    owned.log.flush()
    owned.log.close()
    owned.open(recovery_point=4)
    assert look_up_largest(owned) == (6, 2)
    assert look_up(owned, 2) == (6, 2)


@pytest.mark.parametrize(
    ("magic", "expected"),
    [
        (0, None),  # a format that knows no times
        (1, OffsetForTime(NO_TIMESTAMP, 0, None)),
        (2, OffsetForTime(NO_TIMESTAMP, 0, 0)),
    ],
)
def test_where_no_record_has_a_time_the_first_one_is_that_of_the_largest(
    owned: OwnedLog, magic: int, expected: OffsetForTime | None
) -> None:
    assert owned.log.fetch_offset_by_timestamp(MAX_TIMESTAMP) is None
    for offset in range(2):
        data = of_magic(magic, stored(b"v", base_offset=offset, timestamp=NO_TIMESTAMP))
        owned.log.append_as_follower(data)
    assert owned.log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == expected
    assert owned.log.fetch_offset_by_timestamp(0) is None


# ---- formats without times


def test_segments_without_times_are_judged_by_when_their_file_changed(owned: OwnedLog) -> None:
    owned.log.append_as_follower(of_magic(0, stored(b"a", base_offset=0)))
    append = one_batch(b"b", base_offset=1, timestamp=NOW_MS)
    owned.log.roll()
    owned.log.append_as_follower(append)
    old = owned.directory / "00000000000000000000.log"
    os.utime(old, ns=(0, (NOW_MS - MINUTE_MS) * 1_000_000))
    assert look_up(owned, 0) == (0, 1)
    # The first segment is young enough, holds no such record, and later ones are not tried.
    os.utime(old, ns=(0, (NOW_MS + MINUTE_MS) * 1_000_000))
    assert look_up(owned, 0) is None
    assert look_up_largest(owned) == (0, 1)
