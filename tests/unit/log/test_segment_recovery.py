"""Recovery of one segment: checks every batch, cuts the file, makes the indexes again."""

from __future__ import annotations

import random

import pytest

from pylog.errors import LogSegmentOffsetOverflowError
from pylog.files.leader_epochs import EpochEntry
from pylog.model import OffsetPosition, TimestampOffset
from tests.support.batches import ABORT, COMMIT, marker
from tests.unit.log.made_segment import (
    HELLO_BYTES,
    INT32_MAX,
    ONE_LETTER_BYTES,
    START_MS,
    Fixture,
    all_offsets,
    append,
    batch,
    made,
    offset_entries,
    time_entries,
)
from tests.unit.log.owned_log import records_in

__all__ = ["made"]


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


def test_after_recovery_the_bytes_between_entries_are_counted_from_the_end(made: Fixture) -> None:
    """As a broker does after it has opened a segment."""
    segment = made.segment(0)
    for offset in range(3):
        append(segment, batch(offset, b"hello"))
    segment.close()
    again = made.segment(0, is_new=False)
    made.recover(again)
    again.create_indexes()  # those of the active segment have room again
    for offset in (3, 4):
        append(again, batch(offset, b"hello"))
    assert [each.offset for each in offset_entries(again)] == [1, 2, 4]


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
