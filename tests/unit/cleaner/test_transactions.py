"""Markers outlive the data of their transactions, and active producers keep their sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.cleaner.offset_map import OffsetMap
from pylog.errors import OutOfOrderSequenceError
from tests.support.batches import Stored, batch_v2
from tests.unit.cleaner.dirty_log import (
    ABORT,
    COMMIT,
    DELETE_RETENTION_MS,
    NOW_MS,
    DirtyLog,
    Left,
    Producer,
)

if TYPE_CHECKING:
    from pathlib import Path

HORIZON_MS = NOW_MS + DELETE_RETENTION_MS


def horizons(dirty: DirtyLog) -> list[int | None]:
    return [header.delete_horizon_ms for header in dirty.headers]


@pytest.fixture
def dirty(tmp_path: Path) -> DirtyLog:
    return DirtyLog(tmp_path)


def test_aborted_records_go_and_their_marker_stays_until_its_horizon(dirty: DirtyLog) -> None:
    """Kafka: testAbortMarkerRemoval, testDeletedBatchesWithNoMessagesRead."""
    producer = Producer(dirty, 1)
    producer.put(b"k", b"l")
    producer.end(ABORT)
    producer.put(b"k")
    producer.end(COMMIT)
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    # Data of it have been met in this round: the marker has no horizon yet, and is indexed.
    assert dirty.left == [Left(2, 2, [2]), Left(3, 3, [3]), Left(4, 4, [4]), Left(5, 5, [5])]
    assert horizons(dirty)[0] is None
    assert dirty.aborted() == [(1, 0, 2, 3)]
    dirty.put((b"end", b"2"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.headers[0].delete_horizon_ms == HORIZON_MS
    assert dirty.aborted() == []
    dirty.put((b"end", b"3"))
    dirty.roll_and_clean(now_ms=HORIZON_MS - 1)
    assert dirty.offsets == [2, 3, 4, 7]
    dirty.put((b"end", b"4"))
    dirty.roll_and_clean(now_ms=HORIZON_MS)
    assert dirty.offsets == [3, 4, 8]


def test_a_commit_marker_goes_after_all_its_records_have(dirty: DirtyLog) -> None:
    """Kafka: testCommitMarkerRemoval."""
    producer = Producer(dirty, 1)
    producer.put(b"k")
    producer.end(COMMIT)
    other = Producer(dirty, 2)
    other.put(b"k")
    other.end(COMMIT)
    producer.put(b"end")
    producer.end(COMMIT)
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.offsets == [1, 2, 3, 4, 5]
    assert horizons(dirty)[0] is None
    dirty.roll_and_clean(now_ms=NOW_MS)  # nothing is dirty, but what is clean is read again
    dirty.put((b"more", b"1"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.headers[0].delete_horizon_ms == HORIZON_MS
    dirty.put((b"more", b"2"))
    dirty.roll_and_clean(now_ms=HORIZON_MS)
    assert dirty.offsets == [2, 3, 4, 5, 7]


def test_a_transaction_over_several_segments_is_known_in_each(tmp_path: Path) -> None:
    """Kafka: testAbortedTransactionSpanningSegments, testCommittedTransactionSpanningSegments."""
    dirty = DirtyLog(tmp_path, segment_bytes=100)  # one batch in each
    aborted, committed = Producer(dirty, 1), Producer(dirty, 2)
    aborted.put(b"a")
    committed.put(b"a")
    aborted.put(b"b")
    committed.put(b"b")
    committed.end(COMMIT)
    aborted.end(ABORT)
    dirty.roll_and_clean(now_ms=NOW_MS)
    # Offset 2 is the producer's last data, and stays as a header.
    assert dirty.left == [
        Left(1, 1, [1]),
        Left(2, 2, []),
        Left(3, 3, [3]),
        Left(4, 4, [4]),
        Left(5, 5, [5]),
    ]
    assert dirty.base_offsets[:6] == [0, 1, 2, 3, 4, 5]
    assert dirty.aborted() == [(1, 0, 5, 6)]


def test_an_emptied_batch_keeps_its_markers_and_index_entries(dirty: DirtyLog) -> None:
    """Kafka: testAbortMarkerRetentionWithEmptyBatch, testCommitMarkerRetentionWithEmptyBatch."""
    aborted, committed = Producer(dirty, 1), Producer(dirty, 2)
    aborted.put(b"a")
    aborted.end(ABORT)
    committed.put(b"b")
    committed.end(COMMIT)
    dirty.put((b"b", b"1"), (b"end", b"1"))
    for now_ms in (NOW_MS, HORIZON_MS):
        dirty.roll_and_clean(now_ms=now_ms)
        assert dirty.left[:4] == [Left(0, 0, []), Left(1, 1, [1]), Left(2, 2, []), Left(3, 3, [3])]
        assert {header.delete_horizon_ms for header in dirty.headers} == {None}
        assert dirty.aborted() == [(1, 0, 1, 2)]
        dirty.put((b"end", b"1"))
    # Once the producers have written elsewhere, headers go and markers may follow.
    aborted.put(b"c")
    aborted.end(COMMIT)
    committed.put(b"c")
    committed.end(COMMIT)
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean(now_ms=HORIZON_MS)
    assert [left.records for left in dirty.left[:2]] == [[1], [3]]
    assert dirty.headers[0].delete_horizon_ms is None
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean(now_ms=HORIZON_MS)
    horizons = [header.delete_horizon_ms for header in dirty.headers[:2]]
    assert horizons == [HORIZON_MS + DELETE_RETENTION_MS] * 2


def test_an_emptied_header_says_what_it_said_but_for_its_records(dirty: DirtyLog) -> None:
    producer = Producer(dirty, 7, epoch=3)
    producer.put(b"a", b"b")
    producer.end(COMMIT)
    dirty.put((b"a", b"1"), (b"b", b"1"))
    before = dirty.headers[0]
    dirty.roll_and_clean()
    after = dirty.headers[0]
    assert (after.size_bytes, after.record_count, after.base_timestamp) == (61, 0, -1)
    for name in (
        *("offset", "last_offset", "max_timestamp", "producer_id", "producer_epoch"),
        *("base_sequence", "partition_leader_epoch", "is_transactional", "timestamp_type"),
    ):
        assert getattr(after, name) == getattr(before, name), name


def test_a_compressed_batch_that_is_emptied_has_no_codec_and_no_horizon(dirty: DirtyLog) -> None:
    built = batch_v2(
        [Stored(0, NOW_MS, b"a", None)],
        codec="lz4",
        delete_horizon=NOW_MS + 5,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )
    dirty.copy(built.data)
    dirty.put((b"a", b"1"))
    dirty.roll_and_clean()
    header = dirty.headers[0]
    assert (header.record_count, header.attributes, header.base_timestamp) == (0, 0, -1)
    dirty.batches[0].ensure_valid()


def test_the_last_batch_of_a_round_stays_as_a_header(dirty: DirtyLog) -> None:
    """Kafka: testCleanSegmentsRetainingLastEmptyBatch."""
    dirty.put((b"a", b"1"))
    dirty.copy(batch_v2([Stored(1, NOW_MS, None, b"1")]).data)
    dirty.roll_and_clean()
    assert dirty.left == [Left(0, 0, [0]), Left(1, 1, [])]
    dirty.put((b"a", b"2"))
    dirty.roll_and_clean()
    assert dirty.left == [Left(2, 2, [2])]


def test_an_emptied_control_batch_goes_in_the_next_round(dirty: DirtyLog) -> None:
    """Kafka: testCleanEmptyControlBatch. The marker has its producer's epoch, so it stays."""
    producer = Producer(dirty, 1)
    producer.put(b"k")
    producer.end(COMMIT)
    dirty.copy(
        batch_v2(
            [Stored(2, NOW_MS, b"\0\0\0\1", b"\0\0\0\0\0\0")],
            delete_horizon=NOW_MS,
            producer_id=9,
            producer_epoch=0,
            is_transactional=True,
            control_type=COMMIT,
        ).data
    )
    dirty.put((b"k", b"2"))
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert Left(2, 2, []) in dirty.left


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_producers_sequence_survives_cleaning_and_a_restart(
    dirty: DirtyLog, *, is_transactional: bool
) -> None:
    """Kafka: testLogCleanerRetainsProducerLastSequence, …EvenIfTransactionAborted."""
    producer = Producer(dirty, 1, is_transactional=is_transactional)
    producer.put(b"a", b"b")
    producer.put(b"a")
    if is_transactional:
        producer.end(ABORT)
    dirty.put((b"a", b"1"), (b"b", b"1"))
    dirty.roll_and_clean()
    dirty.reopen_from_batches()
    entry = dirty.log.producer_state.last_entry(1)
    assert entry is not None
    assert entry.last_sequence == 2
    producer.put(b"c")
    producer.sequence += 1
    with pytest.raises(OutOfOrderSequenceError):
        producer.put(b"d")


def test_a_transaction_whose_marker_lies_below_the_log_start_is_taken_for_committed(
    dirty: DirtyLog,
) -> None:
    """As in Kafka, which looks transactions up by the log start, not by where it reads."""
    producer = Producer(dirty, 1)
    producer.put(b"k")
    producer.end(ABORT)
    dirty.put((b"end", b"1"))
    dirty.log.maybe_increment_log_start_offset(2)
    dirty.first_dirty_offset = 2
    dirty.roll_and_clean(now_ms=NOW_MS)
    assert dirty.offsets == [0, 1, 2]
    assert dirty.aborted() == []


def test_a_producer_that_is_no_longer_active_keeps_nothing(dirty: DirtyLog) -> None:
    producer = Producer(dirty, 1, is_transactional=False)
    producer.put(b"k")
    dirty.put((b"k", b"2"))
    dirty.clock.sleep(2 * 86_400_000)
    dirty.log.remove_expired_producers()
    dirty.roll_and_clean()
    assert dirty.left == [Left(1, 1, [1])]


def test_markers_of_a_transaction_that_spans_rounds(dirty: DirtyLog) -> None:
    """Kafka: testMultiPassSegmentCleaningWithAbortedTransactions."""
    dirty.map = OffsetMap(3 * 24, 0.75)  # of which two may be used: each round does a part
    first, second = Producer(dirty, 1), Producer(dirty, 2)
    first.put(b"1")
    second.put(b"2", b"3")
    second.end(ABORT)
    first.put(b"2", b"4")
    first.end(ABORT)
    for key in (b"5", b"6", b"7"):
        dirty.put((key, b"1"))
    dirty.roll_and_clean()
    markers = [batch.header.offset for batch in dirty.batches if batch.header.is_control_batch]
    assert markers == [3, 6]
    assert dirty.aborted() == [(2, 1, 3, 0), (1, 0, 6, 7)]
    assert [pair for pair in dirty.pairs if pair[1] == b"v"] == []


def test_a_repeated_batch_is_recognised_after_cleaning(dirty: DirtyLog) -> None:
    """Kafka: testDuplicateCheckAfterCleaning."""
    producers = [Producer(dirty, number, is_transactional=False) for number in (1, 2)]
    for producer in producers:
        producer.put(b"a", b"b")
    dirty.put((b"end", b"1"))
    dirty.roll_and_clean()
    assert dirty.left[:2] == [Left(0, 1, []), Left(2, 3, [2, 3])]
    dirty.reopen_from_batches()
    for producer, offset in zip(producers, (0, 2), strict=True):
        producer.sequence = 0
        assert producer.put(b"a", b"b") == offset
    assert dirty.log.log_end_offset == 5


def test_only_the_batch_with_a_producers_last_data_stays_empty(dirty: DirtyLog) -> None:
    """Kafka: testEmptyBatchRemovalWithSequenceReuse: two epochs may use a sequence twice."""
    producer = Producer(dirty, 1, is_transactional=False)
    producer.put(b"1")
    newer = Producer(dirty, 1, epoch=1, is_transactional=False)
    newer.put(b"1")
    dirty.put((b"1", b"1"), (b"end", b"1"))
    dirty.roll_and_clean()
    assert dirty.left[0] == Left(1, 1, [])
    newer.put(b"1")
    dirty.put((b"1", b"1"), (b"end", b"1"))
    dirty.roll_and_clean()
    assert [left for left in dirty.left if not left.records] == [Left(4, 4, [])]
