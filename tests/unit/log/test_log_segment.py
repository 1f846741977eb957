"""One segment: reading, index entries, cutting, recovery, its files.

The cases are those of Kafka's LogSegmentTest; ``tests/kafka_tests.md`` says which is which.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import LogSegmentOffsetOverflowError, SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import SegmentTarget
from pylog.files.leader_epochs import EpochEntry, LeaderEpochFileCache
from pylog.log.log_segment import LogSegment, RollParams
from pylog.log.segment_recovery import SegmentRecovery
from pylog.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset, TopicPartition
from pylog.producers.producer_state_manager import ProducerStateManager
from pylog.testing import ManualClock
from pylog.validation.log_append_info import batches_of
from tests.support.batches import ABORT, COMMIT, Stored, batch_v2, marker
from tests.unit.log.owned_log import records_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC_PARTITION = TopicPartition("topic", 0)
INT32_MAX = 2**31 - 1

# Sizes of batches: a header of 61 bytes, and 7 bytes around each value.
ONE_LETTER_BYTES = 69
TWO_LETTERS_BYTES = 77
HELLO_BYTES = 73
HELLO_THERE_BYTES = 85

START_MS = 5_000


def batch(offset: int, *values: bytes, timestamp: int | None = None, **fields: int | bool) -> bytes:
    """Return one batch; a record's timestamp is its offset, unless one is given for all."""
    return batch_v2(
        [
            Stored(offset + at, offset + at if timestamp is None else timestamp, None, value)
            for at, value in enumerate(values)
        ],
        **fields,  # type: ignore[arg-type]
    ).data


class Fixture:
    """Segments in one directory, all of which end with the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = ManualClock(START_MS)
        self.io = DurableIO()
        self._segments: list[LogSegment] = []

    def segment(
        self,
        base_offset: int = 40,
        *,
        is_new: bool = True,
        index_interval_bytes: int = 10,
        preallocate: bool = False,
    ) -> LogSegment:
        config = LogConfig(
            segment_bytes=100_000,
            segment_index_bytes=1000,
            index_interval_bytes=index_interval_bytes,
            preallocate=preallocate,
        )
        target = SegmentTarget(str(self.directory), base_offset)
        segment = LogSegment(target, config, io=self.io, clock=self.clock, is_new=is_new)
        self._segments.append(segment)
        return segment

    def producers(self) -> ProducerStateManager:
        return ProducerStateManager(
            TOPIC_PARTITION,
            str(self.directory),
            io=self.io,
            producer_id_expiration_ms=86_400_000,
        )

    def epochs(self) -> LeaderEpochFileCache:
        path = str(self.directory / "leader-epoch-checkpoint")
        return LeaderEpochFileCache(TOPIC_PARTITION, path, io=self.io)

    def recover(
        self,
        segment: LogSegment,
        producers: ProducerStateManager | None = None,
        epochs: LeaderEpochFileCache | None = None,
    ) -> int:
        return SegmentRecovery(
            segment, producers or self.producers(), epochs, lambda _: None
        ).recover()

    def close(self) -> None:
        for segment in self._segments:
            segment.close_handlers()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fixture]:
    made = Fixture(tmp_path)
    yield made
    made.close()


def append(segment: LogSegment, data: bytes) -> None:
    segment.append(data, batches_of(memoryview(data)))


def offsets_read(segment: LogSegment, start: int, size: int = 10_000) -> list[int] | None:
    found = segment.read(start, size)
    return None if found is None else [record.offset for record in records_in(found.records)]


def all_offsets(segment: LogSegment) -> list[int]:
    return [record.offset for record in records_in(segment.log.read_at(0, segment.size_bytes))]


def offset_entries(segment: LogSegment) -> list[OffsetPosition]:
    return [segment.offset_index.entry(slot) for slot in range(segment.offset_index.entries)]


def time_entries(segment: LogSegment) -> list[TimestampOffset]:
    return [segment.time_index.entry(slot) for slot in range(segment.time_index.entries)]


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


def test_all_files_are_renamed_together_and_stay_open(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(40, b"hello"))
    segment.create_indexes()
    segment.change_file_suffixes("", ".deleted")
    found = sorted(path.name for path in made.directory.iterdir())
    assert found == [f"{40:020d}{each}.deleted" for each in (".index", ".log", ".timeindex")]
    assert all_offsets(segment) == [40]
    with pytest.raises(ValueError, match=r"'\.deleted', expected ''"):
        segment.change_file_suffixes("", ".swap")
    segment.delete_if_exists()
    assert list(made.directory.iterdir()) == []
    segment.delete_if_exists()


def test_files_whose_directory_is_gone_are_gone(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(40, b"hello"))
    segment.create_indexes()
    moved = made.directory.parent / "moved"
    made.directory.rename(moved)
    segment.delete_if_exists()
    moved.rename(made.directory)
    assert len(list(made.directory.iterdir())) == 3


def test_a_preallocated_file_is_written_from_its_beginning(made: Fixture) -> None:
    segment = made.segment(preallocate=True)
    path = made.directory / f"{40:020d}.log"
    assert path.stat().st_size == 100_000
    append(segment, batch(50, b"hello", b"there"))
    append(segment, batch(52, b"alpha", b"beta"))
    assert offsets_read(segment, 52) == [52, 53]
    assert path.stat().st_size == 100_000


def test_a_preallocated_file_is_trimmed_when_it_is_closed(made: Fixture) -> None:
    segment = made.segment(preallocate=True)
    append(segment, batch(50, b"hello", b"there"))
    segment.close()
    assert (made.directory / f"{40:020d}.log").stat().st_size == HELLO_THERE_BYTES
    again = made.segment(is_new=False, preallocate=True)
    append(again, batch(52, b"alpha"))
    assert all_offsets(again) == [50, 51, 52]


def test_indexes_that_do_not_exist_are_not_made_by_closing(made: Fixture) -> None:
    segment = made.segment()
    segment.close()
    assert [path.name for path in made.directory.iterdir()] == [f"{40:020d}.log"]


def test_a_segment_that_is_not_there_cannot_be_opened(made: Fixture) -> None:
    with pytest.raises(SegmentVanishedError, match="gone") as caught:
        made.segment(is_new=False)
    assert f"{40:020d}.log" in str(caught.value)


# ---- recovery


def test_recovery_mends_an_offset_index(made: Fixture) -> None:
    segment = made.segment(0)
    for offset in range(80):
        append(segment, batch(offset, b"hello"))
    segment.close()
    (made.directory / f"{0:020d}.index").write_bytes(random.Random(1).randbytes(800))
    again = made.segment(0, is_new=False)
    assert made.recover(again) == 0
    assert offset_entries(again) == [
        OffsetPosition(offset, offset * HELLO_BYTES) for offset in range(1, 80)
    ]
    for offset in range(80):
        found = again.read(offset, 1, min_one_message=True)
        assert found is not None
        assert records_in(found.records)[0].offset == offset


def test_recovery_indexes_a_segment_that_is_longer_than_what_is_read_at_once(
    made: Fixture,
) -> None:
    segment = made.segment(0)
    data = [batch(offset, bytes(1_000_000)) for offset in range(9)]
    for each in data:
        append(segment, each)
    segment.close()
    (made.directory / f"{0:020d}.index").unlink()
    again = made.segment(0, is_new=False)
    assert made.recover(again) == 0
    assert {len(each) for each in data} == {1_000_072}
    assert offset_entries(again) == [
        OffsetPosition(offset, offset * 1_000_072) for offset in range(1, 9)
    ]


def test_recovery_mends_a_time_index(made: Fixture) -> None:
    segment = made.segment(0)
    for offset in range(80):
        append(segment, batch(offset, b"hello", timestamp=offset * 10))
    segment.on_become_inactive_segment()
    segment.close()
    (made.directory / f"{0:020d}.timeindex").write_bytes(random.Random(1).randbytes(120))
    again = made.segment(0, is_new=False)
    made.recover(again)
    assert time_entries(again) == [TimestampOffset(10 * offset, offset) for offset in range(1, 80)]
    assert again.time_index.lookup(795) == TimestampOffset(790, 79)


def test_recovery_rebuilds_the_leader_epochs(made: Fixture) -> None:
    segment = made.segment(0)
    for offset, epoch in ((100, 0), (101, 0), (102, 1), (103, 1), (104, 3)):
        append(segment, batch(offset, b"x", leader_epoch=epoch))
    epochs = made.epochs()
    made.recover(segment, epochs=epochs)
    assert epochs.entries == (EpochEntry(0, 100), EpochEntry(1, 102), EpochEntry(3, 104))


def transactional(offset: int, producer_id: int, sequence: int) -> bytes:
    return batch(
        offset,
        b"a",
        b"b",
        timestamp=START_MS,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def end_marker(offset: int, producer_id: int, control_type: int) -> bytes:
    return marker(offset, control_type, producer_id=producer_id, timestamp=START_MS).data


def test_recovery_rebuilds_the_transaction_index(made: Fixture) -> None:
    segment = made.segment(100)
    for data in (
        transactional(100, 1, 0),
        transactional(102, 2, 0),
        batch(104, b"c", b"d"),
        end_marker(106, 2, ABORT),
        end_marker(107, 1, COMMIT),
    ):
        append(segment, data)
    producers = made.producers()
    producers.update_map_end_offset(100)
    made.recover(segment, producers)
    assert producers.map_end_offset == 108
    (entry,) = segment.transaction_index.entries()
    assert (entry.producer_id, entry.first_offset, entry.last_offset) == (2, 102, 106)
    assert entry.last_stable_offset == 100


def test_recovery_knows_a_transaction_that_an_earlier_segment_has_begun(made: Fixture) -> None:
    earlier = made.segment(90)
    append(earlier, transactional(90, 2, 0))
    producers = made.producers()
    made.recover(earlier, producers)
    segment = made.segment(100)
    for data in (
        transactional(100, 1, 0),
        transactional(102, 2, 2),
        end_marker(106, 2, ABORT),
        end_marker(107, 1, COMMIT),
    ):
        append(segment, data)
    made.recover(segment, producers)
    (entry,) = segment.transaction_index.entries()
    assert (entry.producer_id, entry.first_offset, entry.last_offset) == (2, 90, 106)
    assert entry.last_stable_offset == 100


def test_recovery_cuts_at_a_random_place_of_garbage(made: Fixture) -> None:
    rng = random.Random(3)
    for base_offset in range(0, 1000, 50):
        segment = made.segment(base_offset)
        for offset in range(base_offset, base_offset + 20):
            append(segment, batch(offset, b"hello"))
        segment.close()
        path = made.directory / f"{base_offset:020d}.log"
        data = bytearray(path.read_bytes())
        bad = rng.randrange(20)
        # After the base offset, which no checksum covers.
        start = bad * HELLO_BYTES + rng.randrange(8, 60)
        garbage = rng.randbytes(max(1, rng.randrange(len(data) - start)))
        data[start : start + len(garbage)] = garbage
        path.write_bytes(data)
        again = made.segment(base_offset, is_new=False)
        removed = made.recover(again)
        assert all_offsets(again) == list(range(base_offset, base_offset + bad))
        assert removed == (20 - bad) * HELLO_BYTES
        assert path.stat().st_size == bad * HELLO_BYTES


def test_recovery_cuts_where_offsets_lie_below_the_segment(made: Fixture) -> None:
    segment = made.segment(100)
    append(segment, batch(100, b"a"))
    append(segment, batch(101, b"b"))
    segment.close()
    path = made.directory / f"{100:020d}.log"
    data = bytearray(path.read_bytes())
    data[ONE_LETTER_BYTES : ONE_LETTER_BYTES + 8] = (99).to_bytes(8, "big")
    path.write_bytes(data)
    again = made.segment(100, is_new=False)
    assert made.recover(again) == ONE_LETTER_BYTES
    assert all_offsets(again) == [100]


@pytest.mark.parametrize("magic", [3, 92, 127])
def test_recovery_cuts_where_the_format_is_unknown(made: Fixture, magic: int) -> None:
    segment = made.segment(0)
    append(segment, batch(0, b"hello"))
    append(segment, batch(1, b"hello"))
    segment.close()
    path = made.directory / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[HELLO_BYTES + 16] = magic  # outside of what the checksum covers
    path.write_bytes(data)
    again = made.segment(0, is_new=False)
    assert made.recover(again) == HELLO_BYTES
    assert all_offsets(again) == [0]


def test_recovery_leaves_a_segment_whose_offsets_overflow_to_be_split(made: Fixture) -> None:
    (made.directory / f"{0:020d}.log").write_bytes(batch(0, b"a") + batch(INT32_MAX + 1, b"b"))
    segment = made.segment(0, is_new=False)
    with pytest.raises(LogSegmentOffsetOverflowError):
        made.recover(segment)
