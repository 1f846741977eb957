"""When a log begins a new segment, what that leaves on disk, and what a flush forces there.

The cases are those of Kafka's UnifiedLogTest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import InvalidTxnStateError
from tests.support.batches import Stored, batch_v2
from tests.unit.log.owned_log import (
    NO_TIMESTAMP,
    NOW_MS,
    OwnedLog,
    Transactional,
    batches_in,
    of_magic,
    one_batch,
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000
LARGEST_DELTA = 2**31 - 1


def append_at(owned: OwnedLog, timestamp: int) -> int:
    """Append one record with a timestamp; return how many segments there are then."""
    owned.log.append_as_leader(one_batch(b"test", timestamp=timestamp))
    return len(owned.log.segments)


# ---- by time


def test_a_segment_rolls_by_time_as_its_first_timestamp_says(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_ms=HOUR_MS))
    # Without timestamps the wall clock counts, from the segment's creation on.
    owned.clock.sleep(HOUR_MS + 1)
    assert append_at(owned, NO_TIMESTAMP) == 1, "an empty segment never rolls for time"
    assert append_at(owned, NO_TIMESTAMP) == 2
    for count in (3, 4):
        owned.clock.sleep(HOUR_MS + 1)
        assert append_at(owned, NO_TIMESTAMP) == count

    # A timestamp in a segment that began without one changes nothing.
    timestamp = owned.clock.milliseconds() + HOUR_MS
    assert append_at(owned, timestamp) == 4
    owned.clock.sleep(HOUR_MS + 1)
    assert append_at(owned, timestamp) == 5
    # From here on the segment has timestamps, and the wall clock does not count.
    owned.clock.sleep(HOUR_MS + 1)
    assert append_at(owned, timestamp) == 5
    assert append_at(owned, timestamp + HOUR_MS) == 5, "just the time that is allowed"
    assert append_at(owned, timestamp + HOUR_MS + 1) == 6
    assert append_at(owned, timestamp - 100 * HOUR_MS) == 6, "an old timestamp rolls nothing"

    owned.clock.sleep(2 * HOUR_MS)
    assert owned.log.append_as_leader(b"").valid_bytes == 0
    assert len(owned.log.segments) == 6, "no records roll nothing"


def test_jitter_lets_a_segment_roll_early(tmp_path: Path) -> None:
    jitter = 20 * 60_000
    owned = OwnedLog(tmp_path, LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=jitter))
    drawn = owned.log.segments[0].roll_jitter_ms
    assert 0 < drawn < jitter
    assert append_at(owned, NOW_MS) == 1
    owned.clock.sleep(HOUR_MS - jitter)
    assert append_at(owned, owned.clock.milliseconds()) == 1
    owned.clock.sleep(jitter - drawn + 1)
    assert append_at(owned, owned.clock.milliseconds()) == 2


def test_a_reopened_segment_takes_the_time_from_its_first_batch(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_ms=HOUR_MS))
    append_at(owned, NOW_MS)
    owned.log.flush()
    owned.log.close()
    owned.open(recovery_point=1)
    owned.clock.sleep(10)
    assert append_at(owned, NOW_MS + HOUR_MS) == 1
    assert append_at(owned, NOW_MS + HOUR_MS + 1) == 2


def test_the_time_counts_from_the_first_batch_of_the_first_append(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_ms=1000))
    first, later = (
        one_batch(b"v", base_offset=offset, timestamp=NOW_MS + offset * 900) for offset in (0, 1)
    )
    owned.log.append_as_follower(first + later)
    owned.log.append_as_follower(one_batch(b"v", base_offset=2, timestamp=NOW_MS + 1000))
    assert owned.base_offsets == [0]
    owned.log.append_as_follower(one_batch(b"v", base_offset=3, timestamp=NOW_MS + 1001))
    assert owned.base_offsets == [0, 3]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_the_time_counts_from_a_batchs_largest_timestamp(
    tmp_path: Path, *, is_reopened: bool
) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_ms=1000))
    records = [Stored(at, NOW_MS + 500 * at, None, b"v") for at in range(2)]
    owned.log.append_as_follower(batch_v2(records).data)
    if is_reopened:
        owned.log.close()
        owned.open(recovery_point=2)
    owned.log.append_as_follower(one_batch(b"v", base_offset=2, timestamp=NOW_MS + 1500))
    assert owned.base_offsets == [0]
    owned.log.append_as_follower(one_batch(b"v", base_offset=3, timestamp=NOW_MS + 1501))
    assert owned.base_offsets == [0, 3]


# ---- by size, index and offset


@pytest.mark.parametrize(("spare_bytes", "segments"), [(0, 1), (-1, 2)])
def test_a_segment_may_be_filled_exactly(tmp_path: Path, spare_bytes: int, segments: int) -> None:
    size = len(one_batch(b"test"))
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=10 * size + spare_bytes))
    for _ in range(10):
        owned.append(b"test")
    assert len(owned.log.segments) == segments


@pytest.mark.parametrize("index_bytes", [24, 36])  # of the offset index, of the time index
def test_a_full_index_ends_the_segment(tmp_path: Path, index_bytes: int) -> None:
    config = LogConfig(segment_index_bytes=index_bytes, index_interval_bytes=0)
    owned = OwnedLog(tmp_path, config)
    for _ in range(8):
        owned.clock.sleep(1)
        owned.append(b"test")
    # 24 bytes: 3 offset entries, and 2 time entries of which one slot is kept, so 1 entry: 2
    # batches. 36 bytes: 4 and 3, of which 2 are used: 3 batches.
    count = {24: 2, 36: 3}[index_bytes]
    assert owned.base_offsets == list(range(0, 8, count))


def test_a_jump_of_offsets_beyond_32_bits_begins_a_segment_at_the_first_offset(
    owned: OwnedLog,
) -> None:
    owned.append(b"a")
    far = LARGEST_DELTA + 5
    owned.log.append_as_follower(one_batch(b"b", b"c", base_offset=far))
    assert owned.base_offsets == [0, far]
    owned.log.append_as_follower(one_batch(b"d", base_offset=far + LARGEST_DELTA))
    assert owned.base_offsets == [0, far], "the last offset that fits"


def test_only_the_last_offset_of_an_old_wrapper_is_known(owned: OwnedLog) -> None:
    owned.log.append_as_follower(of_magic(1, stored(b"a", base_offset=0), "gzip"))
    last = LARGEST_DELTA + 9
    owned.log.append_as_follower(of_magic(1, stored(b"b", b"c", base_offset=last - 1), "gzip"))
    assert owned.base_offsets == [0, 9]


# ---- an append that is refused after its roll
LARGE = bytes(200)


def refuse_at(owned: OwnedLog, offset: int) -> None:
    """Append to an open transaction's producer what is none of the transaction."""
    data = one_batch(LARGE, base_offset=offset, producer_id=7, producer_epoch=0, base_sequence=1)
    with pytest.raises(InvalidTxnStateError):
        owned.log.append_as_follower(data)


def after_a_refused_roll(tmp_path: Path) -> OwnedLog:
    """Return a log of one record, with an open transaction and an empty segment at 10."""
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=400, file_delete_delay_ms=1000))
    data = one_batch(LARGE, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    owned.log.append_as_follower(data)
    refuse_at(owned, 10)
    assert (owned.base_offsets, owned.log.log_end_offset) == ([0, 10], 1)
    assert owned.snapshot_offsets == [10]
    return owned


@pytest.mark.parametrize("as_leader", [False, True])
@pytest.mark.parametrize("is_flushed", [False, True])
def test_records_below_the_segment_of_a_refused_append_are_appended(
    tmp_path: Path, *, as_leader: bool, is_flushed: bool
) -> None:
    owned = after_a_refused_roll(tmp_path)
    if is_flushed:
        owned.scheduler.tick()
        owned.log.flush()
    if as_leader:
        owned.append(b"next")
    else:
        owned.log.append_as_follower(one_batch(b"next", base_offset=1))
    assert owned.base_offsets == [0, 1]
    assert owned.first_read(1).value == b"next"
    owned.log.append_as_follower(one_batch(b"later", base_offset=12))
    assert owned.base_offsets == [0, 1]
    owned.clock.sleep(1000)
    owned.scheduler.tick()
    assert sorted(path.name for path in owned.directory.glob("*.log*")) == [
        f"{base:020d}.log" for base in (0, 1)
    ]
    owned.open(is_clean=False)
    assert owned.base_offsets == [0, 1]
    assert [record.offset for record in owned.all_records()] == [0, 1, 12]


def test_records_that_reach_into_the_segment_of_a_refused_append_begin_one_of_their_own(
    tmp_path: Path,
) -> None:
    owned = after_a_refused_roll(tmp_path)
    data = [one_batch(b"v", base_offset=offset) for offset in (8, 9, 10)]
    owned.log.append_as_follower(b"".join(data))
    assert owned.base_offsets == [0, 8]
    assert [owned.first_read(offset).offset for offset in (1, 9, 10)] == [8, 9, 10]


def test_an_old_wrapper_is_not_put_into_the_segment_of_a_refused_append(tmp_path: Path) -> None:
    owned = after_a_refused_roll(tmp_path)
    # Of these its last offset alone is known: the first ones would lie below the segment's base.
    records = of_magic(1, stored(b"a", b"b", b"c", base_offset=8), "gzip")
    owned.log.append_as_follower(records)
    assert owned.base_offsets == [0, 1]
    assert [owned.first_read(offset).offset for offset in (1, 10)] == [8, 8]


def test_records_from_the_base_of_a_refused_appends_segment_on_go_into_it(tmp_path: Path) -> None:
    owned = after_a_refused_roll(tmp_path)
    owned.log.append_as_follower(one_batch(b"v", base_offset=10))
    assert owned.base_offsets == [0, 10]
    assert owned.first_read(1).offset == 10


def test_several_refused_appends_leave_segments_that_go_together(tmp_path: Path) -> None:
    owned = after_a_refused_roll(tmp_path)
    refuse_at(owned, 11 + LARGEST_DELTA)
    assert owned.base_offsets == [0, 10, 11 + LARGEST_DELTA]
    owned.append(b"next")
    assert owned.base_offsets == [0, 1]
    assert owned.snapshot_offsets == [1]


def test_the_snapshot_of_a_refused_appends_roll_goes_with_its_segment(tmp_path: Path) -> None:
    owned = after_a_refused_roll(tmp_path)
    data = one_batch(b"v", base_offset=1, producer_id=8, producer_epoch=0, base_sequence=0)
    owned.log.append_as_follower(data)
    owned.log.append_as_follower(one_batch(b"v", base_offset=12))
    # It was taken at 10, of a log that ended at 1: producer 8 would be forgotten.
    assert owned.snapshot_offsets == [1]
    assert owned.log.producer_state.map_end_offset == 13
    owned.open(is_clean=False, recovery_point=13)
    assert set(owned.log.producer_state.active_producers) == {7, 8}
    assert owned.first_unstable_offset() == 0


# ---- the new segment


def test_rolling_an_empty_segment_replaces_it(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_ms=HOUR_MS))
    owned.log.roll(0)
    assert owned.base_offsets == [0]
    owned.log.append_as_follower(one_batch(b"v1", key=b"k1"))
    assert owned.base_offsets == [0]
    owned.log.append_as_follower(one_batch(b"v2", key=b"k2", base_offset=1))
    assert owned.log.log_end_offset == 2
    assert [owned.first_read(offset, 1).value for offset in (0, 1)] == [b"v1", b"v2"]

    owned.log.roll()
    assert owned.base_offsets == [0, 2]
    # With no room in its index the empty segment rolls at the next append.
    owned.log.segments[-1].offset_index.resize(0)
    owned.log.append_as_follower(one_batch(b"v3", key=b"k3", base_offset=2))
    assert owned.log.segments[-1].offset_index.max_entries > 1
    assert owned.first_read(2, 1).value == b"v3"
    assert owned.base_offsets == [0, 2]


def test_a_rolled_segment_is_cut_to_what_it_holds_and_gets_a_last_time_entry(
    tmp_path: Path,
) -> None:
    config = LogConfig(preallocate=True, segment_bytes=10_000)
    owned = OwnedLog(tmp_path, config)
    log_file = owned.directory / "00000000000000000000.log"
    owned.append(b"a")
    size = len(one_batch(b"a"))
    assert log_file.stat().st_size >= size
    owned.log.roll()
    assert log_file.stat().st_size == size
    assert log_file.with_suffix(".index").stat().st_size == 0
    stored_entry = log_file.with_suffix(".timeindex").read_bytes()
    assert stored_entry == NOW_MS.to_bytes(8, "big") + bytes(4)
    new = owned.directory / "00000000000000000001.log"
    assert (new.stat().st_size, owned.log.segments[-1].size_bytes) == (10_000, 0)


def test_reads_go_through_a_hundred_small_segments(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=100))
    owned.append_numbers(100)
    owned.log.flush()
    assert owned.base_offsets == list(range(100))
    offset = 0
    while offset < 100:
        batch = batches_in(owned.read(offset, 1 << 20).records)[0]
        record = next(batch.records())
        assert batch.header.last_offset == offset
        assert (record.key, record.value, record.timestamp) == (None, b"%d" % offset, NOW_MS)
        offset = batch.header.next_offset
    assert owned.read(100, 1 << 20).records == b""
    owned.log.close()  # it has three hundred open files


# ---- snapshots and flushes


def test_a_roll_takes_a_producer_snapshot(owned: OwnedLog) -> None:
    assert owned.snapshot_offsets == []
    for offset in (1, 2, 3):
        owned.append(b"a")
        owned.log.roll(offset)
        owned.scheduler.tick()
        assert owned.latest_snapshot_offset() == offset
        assert owned.snapshot_offsets == [*range(1, offset + 1)]
    owned.append(b"a")
    owned.log.flush(4)
    assert owned.snapshot_offsets == [1, 2, 3]


def test_a_roll_by_an_append_takes_a_snapshot_that_can_be_loaded(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=1024))
    producer = Transactional(owned, 1)
    for sequence in (0, 1):
        data = one_batch(bytes(512), producer_id=1, producer_epoch=0, base_sequence=sequence)
        owned.log.append_as_leader(data)
    assert owned.base_offsets == [0, 1]
    assert owned.latest_snapshot_offset() == 1

    owned.log.truncate_to(1)
    assert owned.base_offsets == [0, 1]
    assert owned.log.segments[-1].size_bytes == 0
    assert owned.latest_snapshot_offset() == 1
    entry = owned.log.producer_state.last_entry(producer.producer_id)
    assert entry is not None
    assert (entry.first_data_offset, entry.last_data_offset) == (0, 0)


def test_a_snapshot_counts_records_without_producer(owned: OwnedLog) -> None:
    owned.append(b"value")
    owned.log.producer_state.take_snapshot()
    assert owned.latest_snapshot_offset() == 1


def test_a_snapshot_beyond_the_end_is_removed_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "topic-0").mkdir()
    (tmp_path / "topic-0" / "00000000000000000042.snapshot").touch()
    assert OwnedLog(tmp_path).snapshot_offsets == []
