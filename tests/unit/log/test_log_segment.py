"""One segment: reading, index entries, cutting, recovery, its files.

The cases are those of Kafka's LogSegmentTest; ``tests/kafka_tests.md`` says which is which.
"""

from __future__ import annotations

import pytest

from pylog.errors import LogSegmentOffsetOverflowError, SegmentVanishedError
from pylog.log.log_segment import RollParams
from pylog.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset
from tests.unit.log.made_segment import (
    HELLO_BYTES,
    HELLO_THERE_BYTES,
    INT32_MAX,
    ONE_LETTER_BYTES,
    START_MS,
    Fixture,
    all_offsets,
    append,
    batch,
    made,
    offset_entries,
    offsets_read,
    time_entries,
)
from tests.unit.log.owned_log import records_in

__all__ = ["made"]


TWO_LETTERS_BYTES = 77


# ---- reading


def test_nothing_is_read_from_an_empty_segment(made: Fixture) -> None:
    assert made.segment().read(40, 300) is None


def test_what_lies_below_the_first_offset_is_read_from_the_first_batch_on(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(50, b"hello", b"there", b"little", b"bee"))
    assert offsets_read(segment, 41, 300) == [50, 51, 52, 53]


def test_nothing_is_read_after_the_last_offset(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(50, b"hello", b"there"))
    assert segment.read(52, 200) is None
    assert offsets_read(segment, 51, 200) == [50, 51]


def test_in_a_gap_the_next_batch_is_read(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(50, b"hello", b"there"))
    append(segment, batch(60, b"alpha", b"beta"))
    assert offsets_read(segment, 55, 200) == [60, 61]


@pytest.mark.parametrize(
    ("minimum", "max_position", "length"),
    [(True, 0, 0), (True, 1, 1), (True, HELLO_THERE_BYTES, HELLO_THERE_BYTES)]
    + [(False, max_position, 0) for max_position in (0, 1, HELLO_THERE_BYTES)],
)
def test_a_read_of_no_bytes_gives_one_batch_if_one_is_asked_for(
    made: Fixture, max_position: int, length: int, *, minimum: bool
) -> None:
    segment = made.segment()
    append(segment, batch(50, b"hello", b"there"))
    found = segment.read(50, 0, max_position=max_position, min_one_message=minimum)
    assert found is not None
    assert len(found.records) == length
    assert found.fetch_offset_metadata.relative_position_in_segment == 0


def test_a_read_ends_before_the_position_that_bounds_it(made: Fixture) -> None:
    segment = made.segment()
    for offset in (50, 51, 52):
        append(segment, batch(offset, b"hello"))
    found = segment.read(50, 10_000, max_position=2 * HELLO_BYTES)
    assert found is not None
    assert [record.offset for record in records_in(found.records)] == [50, 51]
    with pytest.raises(ValueError, match="-1"):
        segment.read(50, -1)


def test_the_next_offset_is_after_the_last_batch(made: Fixture) -> None:
    segment = made.segment()
    assert segment.read_next_offset() == 40
    append(segment, batch(50, b"hello", b"there", b"you"))
    assert segment.read_next_offset() == 53


# ---- index entries


def test_an_entry_is_made_for_each_batch_with_more_than_the_interval_before_it(
    made: Fixture,
) -> None:
    for base_offset, interval, step in ((0, 146, 3), (100, 145, 2), (200, 0, 1)):
        segment = made.segment(base_offset, index_interval_bytes=interval)
        for offset in range(8):
            append(segment, batch(base_offset + offset, b"hello"))
        assert offset_entries(segment) == [
            OffsetPosition(base_offset + offset, offset * HELLO_BYTES)
            for offset in range(step, 8, step)
        ]


def test_all_batches_of_one_append_are_indexed(made: Fixture) -> None:
    segment = made.segment(0, index_interval_bytes=1)
    append(segment, batch(0, b"a", b"b", timestamp=1) + batch(2, b"c", timestamp=2))
    append(segment, batch(3, b"d", timestamp=3) + batch(4, b"e", timestamp=4))
    assert offset_entries(segment) == [
        OffsetPosition(2, TWO_LETTERS_BYTES),
        OffsetPosition(3, TWO_LETTERS_BYTES + ONE_LETTER_BYTES),
        OffsetPosition(4, TWO_LETTERS_BYTES + 2 * ONE_LETTER_BYTES),
    ]
    assert time_entries(segment) == [
        TimestampOffset(2, 2),
        TimestampOffset(3, 3),
        TimestampOffset(4, 4),
    ]


def test_timestamps_that_go_back_in_one_append_get_no_entry(made: Fixture) -> None:
    segment = made.segment(0, index_interval_bytes=1)
    append(
        segment,
        b"".join(
            batch(offset, b"x", timestamp=timestamp)
            for offset, timestamp in enumerate([1, 3, 2, 4, 4])
        ),
    )
    assert [entry.offset for entry in offset_entries(segment)] == [1, 2, 3, 4]
    assert time_entries(segment) == [TimestampOffset(3, 1), TimestampOffset(4, 3)]
    assert segment.max_timestamp_so_far == TimestampOffset(4, 3)


def test_a_rolled_segment_has_the_largest_timestamp_as_its_last_entry(made: Fixture) -> None:
    segment = made.segment(0, index_interval_bytes=10_000)
    append(segment, batch(0, b"a", timestamp=7))
    append(segment, batch(1, b"b", timestamp=9))
    append(segment, batch(2, b"c", timestamp=8))
    assert time_entries(segment) == []
    segment.on_become_inactive_segment()
    assert time_entries(segment) == [TimestampOffset(9, 1)]
    lengths = [
        (made.directory / f"{0:020d}{each}").stat().st_size for each in (".index", ".timeindex")
    ]
    assert lengths == [0, 12]


@pytest.mark.parametrize(
    ("base_offset", "offset"),
    [(0, INT32_MAX + 1), (0, 2**40), (100, 99), (100, 0), (2**31, 2**32)],
)
def test_an_offset_that_does_not_fit_is_refused_and_nothing_written(
    made: Fixture, base_offset: int, offset: int
) -> None:
    segment = made.segment(base_offset)
    with pytest.raises(LogSegmentOffsetOverflowError, match=str(offset)):
        append(segment, batch(offset, b"hello"))
    assert segment.size_bytes == 0
    append(segment, batch(base_offset + INT32_MAX, b"hello"))
    assert segment.read_next_offset() == base_offset + INT32_MAX + 1


# ---- cutting


def test_a_cut_takes_the_batch_that_holds_the_offset(made: Fixture) -> None:
    for base_offset, target in enumerate((51, 52)):
        segment = made.segment(base_offset)
        append(segment, batch(50, b"hello", b"there"))
        append(segment, batch(52, b"hello"))
        segment.truncate_to(target)
        assert all_offsets(segment) == ([] if target == 51 else [50, 51])


@pytest.mark.parametrize("count", range(1, 30))
def test_a_segment_that_is_cut_and_appended_to_again_reads_the_same(
    made: Fixture, count: int
) -> None:
    segment = made.segment()
    for offset in range(40, 40 + count):
        append(segment, batch(offset, b"hello"))
    append(segment, batch(40 + count, b"there"))
    assert segment.truncate_to(40 + count) == HELLO_BYTES
    assert all_offsets(segment) == list(range(40, 40 + count))
    assert segment.offset_index.last_offset < 40 + count
    append(segment, batch(40 + count, b"again"))
    assert offsets_read(segment, 40 + count) == [40 + count]


def params(now_ms: int, max_offset: int, *, max_ms: int = 100) -> RollParams:
    return RollParams(max_ms, 100_000, NO_TIMESTAMP, max_offset, 100, now_ms)


def test_an_empty_segment_is_never_rolled_by_time_but_by_an_offset_that_does_not_fit(
    made: Fixture,
) -> None:
    segment = made.segment(0)
    now_ms = START_MS + 200
    append(segment, batch(0, b"hello", timestamp=NO_TIMESTAMP))
    assert segment.should_roll(params(now_ms, 1))
    made.clock.sleep(500)
    segment.truncate_to(0)
    assert segment.size_bytes == 0
    assert segment.time_waited_for_roll(made.clock.milliseconds(), NO_TIMESTAMP) == 0
    assert not segment.should_roll(params(now_ms, 1))
    assert segment.should_roll(params(now_ms, INT32_MAX + 1))
    assert not segment.offset_index.is_full
    assert not segment.time_index.is_full


def test_a_segment_that_is_cut_to_its_base_can_be_filled_with_other_offsets(made: Fixture) -> None:
    segment = made.segment(0)
    append(segment, batch(0, b"hello", b"there"))
    made.clock.sleep(500)
    assert segment.time_waited_for_roll(made.clock.milliseconds(), 500) == 499
    segment.truncate_to(0)
    assert segment.time_waited_for_roll(made.clock.milliseconds(), 500) == 0
    assert segment.read(0, 1024) is None
    append(segment, batch(10, b"hello", b"there"))
    assert all_offsets(segment) == [10, 11]


def test_a_cut_in_a_gap_removes_what_follows_the_gap(made: Fixture) -> None:
    segment = made.segment(0)
    append(segment, batch(0, b"a"))
    append(segment, batch(1, b"b"))
    append(segment, batch(5, b"c"))
    assert segment.truncate_to(3) == ONE_LETTER_BYTES
    assert all_offsets(segment) == [0, 1]
    assert segment.truncate_to(3) == 0


def test_after_a_cut_the_largest_timestamp_is_that_of_what_is_left(made: Fixture) -> None:
    segment = made.segment(40, index_interval_bytes=2 * HELLO_BYTES - 1)
    for offset in range(40, 70):
        append(segment, batch(offset, b"hello", timestamp=offset * 10))
    assert segment.largest_timestamp == 690
    for end in (65, 61, 60, 47):
        segment.truncate_to(end)
        assert segment.read_next_offset() == end
        assert segment.max_timestamp_so_far == TimestampOffset((end - 1) * 10, end - 1)


def test_a_segment_rolls_when_an_index_is_full_by_size_or_by_time(made: Fixture) -> None:
    segment = made.segment(0, index_interval_bytes=1)
    maximum = 82  # 1000 bytes are 83 entries of 12; the last one is kept for the roll
    for offset in range(maximum + 1):
        assert not segment.should_roll(params(START_MS, offset))
        append(segment, batch(offset, b"x"))
    assert segment.time_index.entries == maximum
    assert segment.should_roll(params(START_MS, maximum + 1))


def test_the_time_until_a_roll_counts_from_the_first_batchs_timestamp(made: Fixture) -> None:
    segment = made.segment(0)
    assert segment.first_batch_timestamp() is None
    append(segment, batch(0, b"a", timestamp=1000))
    append(segment, batch(1, b"b", timestamp=2000))
    assert segment.first_batch_timestamp() == 1000
    segment.close()
    again = made.segment(0, is_new=False)
    assert again.first_batch_timestamp() == 1000


# ---- files


def test_a_segment_that_is_not_there_cannot_be_opened(made: Fixture) -> None:
    with pytest.raises(SegmentVanishedError, match="gone") as caught:
        made.segment(is_new=False)
    assert f"{40:020d}.log" in str(caught.value)
