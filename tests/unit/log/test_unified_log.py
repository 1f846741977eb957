"""What a read of a log gives: how far, how much, and from where.

The cases are those of Kafka's UnifiedLogTest and LogConcurrencyTest.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pylog.config import LogConfig
from pylog.errors import KafkaStorageError, OffsetOutOfRangeError
from pylog.log.log_segment import LogOffsetMetadata, LogSegment
from tests.unit.log.owned_log import (
    ABORT,
    COMMIT,
    HIGH_WATERMARK,
    LARGEST_LENGTH,
    LOG_END,
    NO_TIMESTAMP,
    TXN_COMMITTED,
    OwnedLog,
    Transactional,
    batches_in,
    one_batch,
    records_in,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.log_segment import FetchDataInfo, FetchIsolation

SPARSE_OFFSETS = [*range(50), *range(50, 200, 7)]


@pytest.fixture
def sparse(tmp_path: Path) -> OwnedLog:
    """Return a log with gaps between its offsets, one record a segment."""
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=72))
    for offset in SPARSE_OFFSETS:
        owned.log.append_as_follower(
            one_batch(b"%d" % offset, base_offset=offset, timestamp=NO_TIMESTAMP)
        )
    return owned


def bound_of(owned: OwnedLog, isolation: FetchIsolation) -> int:
    log = owned.log
    bounds = {HIGH_WATERMARK: log.high_watermark, TXN_COMMITTED: log.last_stable_offset}
    return bounds.get(isolation, log.log_end_offset)


def assert_reads_end_at(owned: OwnedLog, isolation: FetchIsolation, bound: int) -> None:
    """Check that reads below ``bound`` give records below it, and others nothing."""
    assert bound_of(owned, isolation) == bound
    for offset in range(owned.log.log_start_offset, owned.log.log_end_offset + 1):
        info = owned.log.read(offset, LARGEST_LENGTH, isolation)
        assert not info.first_entry_incomplete
        assert info.fetch_offset_metadata.message_offset == offset
        offsets = [record.offset for record in records_in(info.records)]
        if offset < bound:
            assert offsets
            assert max(offsets) < bound
            assert_located(owned, info.fetch_offset_metadata)
        else:
            assert info.records == b""


def assert_located(owned: OwnedLog, place: LogOffsetMetadata) -> None:
    """Check that the position is that of the batch which holds the offset."""
    segment = owned.log.local_log.segments.get(place.segment_base_offset)
    assert segment is not None
    at = place.relative_position_in_segment
    header = batches_in(segment.log.read_at(at, segment.size_bytes - at))[0].header
    assert header.offset <= place.message_offset <= header.last_offset


# ---- how far


def test_reads_of_the_owner_go_to_the_end(owned: OwnedLog) -> None:
    owned.append(b"0", b"1", b"2")
    owned.append(b"3", b"4")
    assert_reads_end_at(owned, LOG_END, 5)


def test_consumers_see_what_is_below_the_high_watermark(owned: OwnedLog) -> None:
    owned.append(b"0", b"1", b"2")
    owned.append(b"3", b"4")
    assert_reads_end_at(owned, HIGH_WATERMARK, 0)
    owned.log.update_high_watermark(3)
    assert_reads_end_at(owned, HIGH_WATERMARK, 3)
    owned.log.update_high_watermark(5)
    assert_reads_end_at(owned, HIGH_WATERMARK, 5)


def test_a_batch_that_straddles_the_high_watermark_is_left_out(owned: OwnedLog) -> None:
    owned.append(b"0", b"1", b"2")
    owned.append(b"3", b"4")
    owned.log.update_high_watermark(4)
    found = owned.log.read(0, LARGEST_LENGTH, HIGH_WATERMARK)
    assert [record.offset for record in records_in(found.records)] == [0, 1, 2]
    assert owned.log.read(3, LARGEST_LENGTH, HIGH_WATERMARK).records == b""


def test_consumers_of_committed_data_stop_at_the_first_open_transaction(owned: OwnedLog) -> None:
    first, second = Transactional(owned, 1), Transactional(owned, 2)
    first.append(5)
    owned.append(b"a", b"b", b"c")
    second.append(2)
    first.append(4)
    owned.append(b"a", b"b")
    first.append(10)
    assert_reads_end_at(owned, TXN_COMMITTED, 0)
    owned.raise_high_watermark()
    assert_reads_end_at(owned, TXN_COMMITTED, 0)

    first.end(COMMIT)
    assert owned.log.last_stable_offset == 0
    owned.raise_high_watermark()
    assert_reads_end_at(owned, TXN_COMMITTED, 8)

    second.end(ABORT)
    assert owned.log.last_stable_offset == 8
    owned.raise_high_watermark()
    assert_reads_end_at(owned, TXN_COMMITTED, 28)
    assert owned.log.log_end_offset == 28


def test_a_new_segment_does_not_move_what_consumers_see(owned: OwnedLog) -> None:
    def offsets_read_at(offset: int) -> list[int]:
        info = owned.log.read(offset, 2048, HIGH_WATERMARK, min_one_message=False)
        return [record.offset for record in records_in(info.records)]

    owned.append(b"a", b"b", b"c")
    assert offsets_read_at(0) == []
    owned.log.maybe_increment_high_watermark(3)
    assert offsets_read_at(0) == [0, 1, 2]
    owned.log.roll()
    assert offsets_read_at(0) == [0, 1, 2]
    owned.append(b"a", b"b", b"c")
    assert offsets_read_at(3) == []
    assert offsets_read_at(0) == [0, 1, 2]


def test_the_high_watermark_stays_between_start_and_end(owned: OwnedLog) -> None:
    log = owned.log
    assert log.high_watermark == 0
    owned.append(b"a", b"b", b"c")
    assert log.high_watermark == 0
    assert (log.maybe_increment_high_watermark(1), log.high_watermark) == (0, 1)
    assert log.maybe_increment_high_watermark(1) is None
    assert log.update_high_watermark(5) == 3
    log.append_as_follower(one_batch(b"a", b"b", b"c", base_offset=3))
    assert log.update_high_watermark(6) == 6
    with pytest.raises(ValueError, match="would pass the log's end 6"):
        log.maybe_increment_high_watermark(7)

    assert log.maybe_increment_log_start_offset(2)
    assert log.update_high_watermark(-1) == 2
    assert log.update_high_watermark(6) == 6
    log.truncate_to(3)
    assert log.high_watermark == 3
    owned.append(b"a", b"b", b"c")
    assert (log.high_watermark, log.log_end_offset, log.log_start_offset) == (3, 6, 2)
    log.truncate_fully_and_start_at(4)
    assert (log.high_watermark, log.log_end_offset, log.log_start_offset) == (4, 4, 4)


def test_a_log_without_replicas_shows_every_append_at_once(owned: OwnedLog) -> None:
    owned.log.follows_end = True
    owned.append(b"a", b"b")
    assert owned.log.high_watermark == 2


# ---- how much, and from where


def test_records_are_read_one_by_one_at_their_offsets(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=71))
    wanted = [b"%d" % number for number in range(0, 100, 2)]
    for value in wanted:
        owned.append(value)
    assert len(owned.base_offsets) == 50
    for offset, value in enumerate(wanted):
        record = owned.first_read(offset, 1)
        assert (record.offset, record.key, record.value) == (offset, None, value)
    assert owned.read(50, 100).records == b""


@pytest.mark.parametrize("max_length", [1, 100, 100_000])
def test_a_read_in_a_gap_gives_the_next_record_whole(sparse: OwnedLog, max_length: int) -> None:
    for offset in range(50, max(SPARSE_OFFSETS)):
        following = min(each for each in SPARSE_OFFSETS if each >= offset)
        record = sparse.first_read(offset, max_length)
        assert (record.offset, record.value) == (following, b"%d" % following)


def test_without_one_whole_message_a_read_may_give_less(sparse: OwnedLog) -> None:
    for offset in range(50, max(SPARSE_OFFSETS)):
        assert sparse.read(offset, 0, min_one_message=False).records == b""
        cut = sparse.read(offset, 1, min_one_message=False)
        assert (len(cut.records), cut.first_entry_incomplete) == (1, True)


def test_a_gap_at_the_end_of_a_segment_is_read_from_the_next_one(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=300))
    while len(owned.base_offsets) == 1:
        owned.append(b"42")
    owned.log.segments[0].truncate_to(1)
    assert owned.first_read(1, 200).offset == owned.log.log_end_offset - 1 == 4


def test_reads_outside_the_log_are_refused(tmp_path: Path) -> None:
    partition = tmp_path / "topic-0"
    partition.mkdir()
    (partition / "00000000000000001024.log").touch()
    (partition / "00000000000000001024.index").touch()
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=1024))
    owned.append(b"42")
    assert owned.read(1025, 1000).records == b""
    for offset in (0, 1023, 1026):
        with pytest.raises(OffsetOutOfRangeError):
            owned.read(offset, 1000)
    with pytest.raises(ValueError, match="max_length is -1"):
        owned.read(1024, -1)


def test_reads_below_the_log_start_are_refused_though_records_are_there(owned: OwnedLog) -> None:
    owned.append(b"a", b"b", b"c")
    owned.raise_high_watermark()
    owned.log.delete_records(2)
    with pytest.raises(OffsetOutOfRangeError):
        owned.read(1, 1000)
    assert owned.first_read(2).offset == 0  # of the batch that holds it


def test_a_segment_that_is_replaced_while_it_is_read_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=100, file_delete_delay_ms=0))
    for value in (b"old 0", b"old 1", b"old 2"):
        owned.append(value)
    read_segment = LogSegment.read

    def read_too_late(segment: LogSegment, *given: Any, **more: Any) -> FetchDataInfo | None:  # noqa: ANN401 - of what it stands for
        monkeypatch.undo()
        owned.log.truncate_to(1)
        owned.append(b"new 1")
        owned.append(b"new 2")
        owned.clock.sleep(1)
        owned.scheduler.tick()  # the files are gone
        return read_segment(segment, *given, **more)

    monkeypatch.setattr(LogSegment, "read", read_too_late)
    assert owned.first_read(2).value == b"new 2"


def test_a_log_that_is_closed_says_so_to_its_readers(owned: OwnedLog) -> None:
    owned.append(b"a")
    owned.log.close()
    with pytest.raises(KafkaStorageError, match="log of topic-0 is closed"):
        owned.read(0, 1000)


def test_a_read_inside_a_compressed_batch_begins_with_the_batch(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=110))
    owned.log.append_as_leader(one_batch(b"hello", b"there", codec="gzip"))
    owned.log.append_as_leader(one_batch(b"alpha", b"beta", codec="gzip"))
    assert owned.base_offsets == [0, 2]
    assert [owned.first_read(offset).offset for offset in range(4)] == [0, 0, 2, 2]


def test_a_read_never_goes_beyond_its_segment(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=200))
    owned.append_numbers(6)
    assert owned.base_offsets == [0, 2, 4]
    offsets = [record.offset for record in records_in(owned.read(1, 10_000).records)]
    assert offsets == [1]


def test_a_read_reports_where_its_bytes_begin(owned: OwnedLog) -> None:
    size = len(one_batch(b"a", b"b", b"c"))
    owned.append(b"a", b"b", b"c")
    owned.append(b"a", b"b", b"c")
    owned.log.roll()
    owned.append(b"a", b"b", b"c")
    places = [owned.read(offset, 1000).fetch_offset_metadata for offset in (1, 3, 8)]
    assert places == [
        LogOffsetMetadata(1, 0, 0),
        LogOffsetMetadata(3, 0, size),
        LogOffsetMetadata(8, 6, 0),
    ]


def test_the_segments_of_a_range_of_offsets(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=10 * len(one_batch(b"test"))))
    for _ in range(22):
        owned.append(b"test")
    segments = owned.log.local_log.segments

    def bases(start: int, end: int) -> list[int]:
        return [segment.base_offset for segment in segments.values(start, end)]

    assert owned.base_offsets == [0, 10, 20]
    assert bases(0, 21) == [0, 10, 20]
    assert bases(1, 5) == [0]
    assert bases(13, 21) == [10, 20]
    assert bases(13, 17) == [10]
    assert bases(10, 10) == []
    with pytest.raises(ValueError, match="before it begins"):
        segments.values(10, 0)


# ---- while others append


def test_committed_reads_never_show_a_transaction_that_is_open(owned: OwnedLog) -> None:
    producer = Transactional(owned, 15)
    done = threading.Event()

    def follow() -> None:
        while not done.wait(0.0001):
            owned.raise_high_watermark()

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        while owned.log.log_end_offset < 50:
            end = owned.log.log_end_offset
            producer.append(1)
            info = owned.log.read(end, LARGEST_LENGTH, TXN_COMMITTED, min_one_message=False)
            assert info.records == b""
            producer.end(ABORT)
    finally:
        done.set()
        follower.join()


@pytest.mark.parametrize("segment_bytes", [1 << 30, 237])
def test_what_was_consumed_is_never_changed_by_a_change_of_leaders(
    tmp_path: Path, segment_bytes: int
) -> None:
    last_offset = 3000
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=segment_bytes))
    log = owned.log
    consumed: list[tuple[int, int]] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def consume() -> None:
        offset = 0
        try:
            while not done.wait(0.0001):  # a thread that never rests keeps the other from running
                for batch in batches_in(log.read(offset, 1, HIGH_WATERMARK).records):
                    header = batch.header
                    consumed.append((header.offset, header.partition_leader_epoch))
                    offset = header.next_offset
        except BaseException as error:  # noqa: BLE001 - raised by the thread that asserts
            failures.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    try:
        lead_and_follow(owned, last_offset)
    finally:
        done.set()
        consumer.join()
    assert failures == []
    written = [
        (batch.header.offset, batch.header.partition_leader_epoch)
        for segment in log.segments
        for batch in batches_in(segment.log.read_at(0, segment.size_bytes))
    ]
    log.close()  # it has a thousand open files
    assert consumed
    assert consumed == written[: len(consumed)]


def lead_and_follow(owned: OwnedLog, last_offset: int) -> None:
    """Append as leader and as follower by turns; a new follower cuts to the high watermark."""
    choose = random.Random(7)
    leader_epoch, is_leader = 1, True
    log = owned.log
    while log.high_watermark < last_offset:
        if choose.random() < 0.5:
            is_leader = not is_leader
            leader_epoch += 1
            if not is_leader:
                log.truncate_to(log.high_watermark)
            continue
        end = log.log_end_offset
        values = [b"%d" % number for number in range(choose.randint(2, 10))]
        if is_leader:
            log.append_as_leader(one_batch(*values, timestamp=NO_TIMESTAMP), leader_epoch)
            log.maybe_increment_high_watermark(end)
        else:
            data = one_batch(
                *values, base_offset=end, timestamp=NO_TIMESTAMP, leader_epoch=leader_epoch
            )
            log.append_as_follower(data)
            log.update_high_watermark(end)
