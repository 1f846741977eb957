"""Of each key the last record stays, and what tombstones and unknown offsets change about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.cleaner.offset_map import OffsetMap
from tests.support.batches import Stored, batch_v2, joined, message, wrapper
from tests.unit.cleaner.dirty_log import DELETE_RETENTION_MS, NOW_MS, DirtyLog, Left
from tests.unit.log.owned_log import batches_in

if TYPE_CHECKING:
    from pathlib import Path

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_record_of_each_key_stays_where_it_was(tmp_path: Path, codec: str) -> None:
    dirty = DirtyLog(tmp_path)
    for round_number in range(4):
        value = b"%d" % round_number
        dirty.put((b"a", value), (b"b" * (round_number + 1), value), codec=codec)
    result = dirty.roll_and_clean()
    assert dirty.left == [Left(0, 1, [1]), Left(2, 3, [3]), Left(4, 5, [5]), Left(6, 7, [6, 7])]
    assert dirty.pairs[-2:] == [(b"a", b"3"), (b"bbbb", b"3")]
    assert result.next_dirty_offset == 8
    for batch in dirty.batches:
        batch.ensure_valid()
        assert batch.header.compression.label == codec


def test_a_batch_that_keeps_all_records_is_copied_and_one_that_loses_some_is_written_anew(
    tmp_path: Path,
) -> None:
    dirty = DirtyLog(tmp_path)
    whole = batch_v2([Stored(0, NOW_MS, b"a", b"1"), Stored(1, NOW_MS + 5, b"b", b"1")])
    before = Stored(2, NOW_MS, b"c", b"1")
    partly = batch_v2([before, Stored(3, NOW_MS + 9, b"d", b"1", (("h", None),))], leader_epoch=3)
    last = batch_v2([Stored(4, NOW_MS, b"c", b"2")], leader_epoch=3)
    dirty.copy(joined([whole, partly, last]))
    dirty.roll_and_clean()
    rebuilt = batch_v2(
        [Stored(3, NOW_MS + 9, b"d", b"1", (("h", None),))], base_offset=2, leader_epoch=3
    )
    content = dirty.log.segments[0].log.read_at(0, 10_000)
    assert content == whole.data + rebuilt.data + last.data


def test_records_without_a_key_go_and_are_counted(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    pairs = ((None, b"1"), (b"k", b"1"), (None, None))
    dirty.copy(batch_v2([Stored(place, NOW_MS, *pair) for place, pair in enumerate(pairs)]).data)
    dirty.put((b"k", b"2"))
    result = dirty.roll_and_clean()
    assert dirty.offsets == [3]
    assert result.stats.invalid_records == 2
    assert (result.stats.records_read, result.stats.records_written) == (4, 1)


def test_the_active_segment_and_what_lies_above_the_bound_are_not_touched(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    dirty.put((b"k", b"1"))
    dirty.put((b"k", b"2"))
    dirty.log.roll()
    dirty.put((b"k", b"3"))
    dirty.log.roll()
    dirty.put((b"k", b"4"))
    assert dirty.clean(end=2).next_dirty_offset == 2
    assert dirty.offsets == [1, 2, 3]
    assert dirty.clean().next_dirty_offset == 3
    assert dirty.offsets == [2, 3]


def test_a_tombstone_stays_until_its_horizon_and_takes_older_values_with_it(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    dirty.put((b"k", b"1"))
    dirty.put((b"k", None), (b"other", b"1"))
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    horizon = NOW_MS + DELETE_RETENTION_MS
    assert dirty.left == [Left(1, 2, [1, 2]), Left(3, 3, [3])]
    assert [header.delete_horizon_ms for header in dirty.headers] == [horizon, None]
    assert [record.timestamp for record in dirty.batches[0].records()] == [NOW_MS, NOW_MS]
    dirty.put((b"end", b"2"))
    dirty.roll_and_clean(now_ms=horizon - 1)
    assert dirty.offsets == [1, 2, 4]
    assert dirty.headers[0].delete_horizon_ms == horizon  # never given another
    dirty.put((b"end", b"3"))
    dirty.roll_and_clean(now_ms=horizon)
    assert dirty.offsets == [2, 5]
    assert dirty.headers[0].delete_horizon_ms == horizon
    assert dirty.pairs[0] == (b"other", b"1")


def test_tombstones_take_two_rounds_even_without_a_retention(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path, delete_retention_ms=0)
    dirty.put((b"k", None))
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.offsets == [0, 1]
    dirty.put((b"end", b"2"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.offsets == [2]


def test_a_horizon_beyond_all_time_is_not_set(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path, delete_retention_ms=2**63 - 1)
    dirty.put((b"k", None))
    dirty.put((b"end", b"1"))
    before = dirty.log.segments[0].log.read_at(0, 10_000)
    dirty.roll_and_clean()
    assert dirty.log.segments[0].log.read_at(0, 10_000) == before


def test_records_above_the_end_of_a_full_map_stay_and_the_next_round_goes_on_there(
    tmp_path: Path,
) -> None:
    """3 slots, of which 75 % may be used: two keys (testBuildPartialOffsetMap)."""
    dirty = DirtyLog(tmp_path)
    dirty.map = OffsetMap(3 * 24, 0.75)
    dirty.put((b"0", b"0"), (b"1", b"1"), (b"2", b"2"), (b"0", b"3"))
    dirty.put((b"1", b"4"))
    result = dirty.roll_and_clean()
    # Full at the third key, in the middle of a batch: all that comes after stays.
    assert result.next_dirty_offset == 2
    assert result.stats.buffer_utilization == pytest.approx(2 / 3)
    assert dirty.offsets == [0, 1, 2, 3, 4]
    result = dirty.clean()
    assert result.next_dirty_offset == 4
    assert dirty.offsets == [1, 2, 3, 4]
    result = dirty.clean()
    assert result.next_dirty_offset == 5
    assert dirty.offsets == [2, 3, 4]


def test_a_full_map_refuses_also_a_key_that_it_has(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    dirty.map = OffsetMap(3 * 24, 0.75)
    for number in range(4):
        dirty.put((b"%d" % (number % 2), b"v"))
    assert dirty.roll_and_clean().next_dirty_offset == 2
    assert dirty.offsets == [0, 1, 2, 3]


def test_a_map_that_is_full_reaches_to_the_end_of_the_batch_before(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    dirty.map = OffsetMap(3 * 24, 0.75)
    dirty.put((b"a", b"1"))
    dirty.copy(batch_v2([Stored(1, NOW_MS, b"b", b"1")], last_offset=5).data)
    dirty.put((b"c", b"1"))
    assert dirty.roll_and_clean().next_dirty_offset == 6


def test_gaps_between_segments_do_not_stop_a_round(tmp_path: Path) -> None:
    """Kafka: testCleaningBeyondMissingOffsets."""
    dirty = DirtyLog(tmp_path)
    dirty.copy(batch_v2([Stored(0, NOW_MS, b"k", b"1")]).data)
    dirty.log.roll(100)
    dirty.copy(batch_v2([Stored(150, NOW_MS, b"k", b"2")]).data)
    dirty.log.roll(200)
    assert dirty.clean().next_dirty_offset == 200
    assert dirty.offsets == [150]


def test_a_gap_in_a_batch_stays_a_gap(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    sparse = batch_v2(
        [Stored(3, NOW_MS, b"a", b"1"), Stored(2**31 - 1, NOW_MS, b"b", b"1")], base_offset=0
    )
    dirty.copy(sparse.data)
    dirty.copy(batch_v2([Stored(2**31, NOW_MS, b"a", b"2")]).data)
    dirty.roll_and_clean()
    assert dirty.left == [Left(0, 2**31 - 1, [2**31 - 1]), Left(2**31, 2**31, [2**31])]


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_times_become_those_of_the_records(tmp_path: Path, codec: str) -> None:
    dirty = DirtyLog(tmp_path)
    records = [Stored(0, 5, b"a", b"1"), Stored(1, 9, b"b", b"1")]
    dirty.copy(batch_v2(records, append_time=NOW_MS, codec=codec).data)
    dirty.copy(batch_v2([Stored(2, 7, b"a", b"2")]).data)
    dirty.roll_and_clean()
    (header, _), (batch, _) = dirty.headers, dirty.batches
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS)
    assert [record.timestamp for record in batch.records()] == [NOW_MS]


def test_the_largest_timestamp_is_that_of_the_records_that_stay(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    records = [Stored(0, 90, b"a", b"1"), Stored(1, 30, b"b", b"1"), Stored(2, 50, b"c", b"1")]
    dirty.copy(batch_v2(records).data)
    dirty.copy(batch_v2([Stored(3, 7, b"a", b"2")]).data)
    dirty.roll_and_clean()
    header = dirty.headers[0]
    assert (header.base_timestamp, header.max_timestamp) == (30, 50)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_v0_and_v1_become_v2(tmp_path: Path, magic: int, codec: str) -> None:
    dirty = DirtyLog(tmp_path)
    stamp = -1 if magic == 0 else NOW_MS
    records = [Stored(place, stamp + place * magic, b"k%d" % place, b"1") for place in range(3)]
    if codec == "none":
        built = [message(record, magic=magic) for record in records]
    else:
        built = [wrapper(records, magic=magic, codec=codec)]
    dirty.copy(joined(built))
    dirty.put((b"k0", b"2"))
    dirty.roll_and_clean()
    assert dirty.offsets == [1, 2, 3]
    first = dirty.headers[0]
    assert (first.magic, first.compression.label, first.producer_id) == (2, codec, -1)
    assert (first.offset, first.partition_leader_epoch) == (1, -1)
    assert next(dirty.batches[0].records()).timestamp == stamp + magic
    assert first.last_offset == (1 if codec == "none" else 2)


def test_a_v1_batch_of_append_time_stays_one(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    records = [Stored(0, 5, b"a", b"1"), Stored(1, 6, b"b", b"1")]
    dirty.copy(wrapper(records, magic=1, codec="gzip", append_time=NOW_MS).data)
    dirty.put((b"a", b"2"))
    dirty.roll_and_clean()
    header = dirty.headers[0]
    assert (header.timestamp_type, header.max_timestamp) == (1, NOW_MS)
    assert [record.timestamp for record in dirty.batches[0].records()] == [NOW_MS]


def test_legacy_tombstones_become_v2_with_a_horizon(tmp_path: Path) -> None:
    dirty = DirtyLog(tmp_path)
    dirty.copy(message(Stored(0, NOW_MS, b"k", None), magic=1).data)
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.offsets == [0, 1]
    assert dirty.headers[0].delete_horizon_ms == NOW_MS + DELETE_RETENTION_MS


def test_legacy_tombstones_go_by_the_time_of_their_file(tmp_path: Path) -> None:
    """The last clean segment is younger than theirs by more than they are kept."""
    dirty = DirtyLog(tmp_path)
    dirty.copy(message(Stored(0, NOW_MS, b"k", None), magic=1).data)
    dirty.log.roll()
    dirty.put((b"a", b"1"))
    dirty.log.roll()
    dirty.put((b"a", b"2"))
    dirty.log.roll()
    first, second, third, _ = dirty.log.segments
    for segment, modified_ms in ((first, 10_000), (second, 12_000), (third, 15_000)):
        segment.set_last_modified(modified_ms)
    dirty.first_dirty_offset = 2
    dirty.clean()
    assert dirty.offsets == [2]
    assert dirty.log.segments[0].last_modified_ms() == 15_000


def test_an_entry_of_v0_that_ends_a_round_leaves_an_empty_batch(tmp_path: Path) -> None:
    """Kafka's cleaner fails here, in this round and all later ones."""
    dirty = DirtyLog(tmp_path)
    dirty.put((b"k", b"1"))
    dirty.copy(message(Stored(1, -1, None, b"1"), magic=0).data)
    dirty.roll_and_clean()
    assert dirty.left == [Left(0, 0, [0]), Left(1, 1, [])]
    content = dirty.log.segments[0].log.read_at(0, 10_000)
    assert [batch.header.magic for batch in batches_in(content)] == [2, 2]
    assert dirty.roll_and_clean().next_dirty_offset == 2


def test_offsets_far_apart_are_put_into_one_map(tmp_path: Path) -> None:
    """Kafka: testBuildOffsetMapFakeLarge."""
    dirty = DirtyLog(tmp_path)
    for offset in (0, 2**31 - 4, 2**40):
        if offset == 2**40:
            dirty.log.roll(offset)
        dirty.copy(batch_v2([Stored(offset, NOW_MS, b"k", b"%d" % offset)]).data)
    dirty.copy(batch_v2([Stored(2**40 + 2**30, NOW_MS, b"other", b"1")]).data)
    assert dirty.roll_and_clean().next_dirty_offset == 2**40 + 2**30 + 1
    assert dirty.offsets == [2**40, 2**40 + 2**30]
    assert dirty.base_offsets == [0, 2**40, 2**40 + 2**30 + 1]


def test_v1_wrappers_around_v0_messages_are_rewritten(tmp_path: Path) -> None:
    """Kafka: testCleanCorruptMessageSet, testClientHandlingOfCorruptMessageSet (KAFKA-4298)."""
    dirty = DirtyLog(tmp_path)
    records = [Stored(place, -1, b"k%d" % (place % 3), b"%d" % place) for place in range(5)]
    dirty.copy(wrapper(records, magic=1, inner_magic=0, codec="gzip").data)
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean()
    assert dirty.left[0] == Left(2, 4, [2, 3, 4])
    assert dirty.pairs[:3] == [(b"k2", b"2"), (b"k0", b"3"), (b"k1", b"4")]
    assert {header.magic for header in dirty.headers} == {2}


def test_what_is_read_and_written_is_counted(tmp_path: Path) -> None:
    """Kafka: testLogCleanerStats."""
    dirty = DirtyLog(tmp_path)
    for number in range(4):
        dirty.put((b"k", b"%d" % number), (b"l", b"1"))
    size = dirty.log.size_bytes
    stats = dirty.roll_and_clean().stats
    assert (stats.map_records_read, stats.records_read, stats.records_written) == (8, 8, 2)
    assert (stats.map_bytes_read, stats.bytes_read) == (size, size)
    assert stats.bytes_written == dirty.log.size_bytes
    assert stats.invalid_records == 0
