"""What goes when a log is cut at its end, emptied, or begins to serve later offsets.

The cases are those of Kafka's UnifiedLogTest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import OffsetInsideBatchError, OffsetOutOfRangeError, PolicyViolationError
from pylog.files.leader_epochs import EpochEntry
from tests.support.batches import Stored, batch_v2, empty_batch_v2
from tests.unit.log.owned_log import NOW_MS, OwnedLog, Transactional, one_batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog

MESSAGE = b"test"
SIZE = len(one_batch(MESSAGE))
PER_SEGMENT = 10


def append_messages(owned: OwnedLog, count: int) -> None:
    for _ in range(count):
        owned.append(MESSAGE)


def idempotent(sequence: int, *, producer_id: int = 1) -> bytes:
    return one_batch(MESSAGE, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


# ---- records


def test_truncation_keeps_what_lies_below(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=PER_SEGMENT * SIZE))
    log = owned.log
    append_messages(owned, PER_SEGMENT)
    full = log.size_bytes
    assert (len(log.segments), log.log_end_offset, full) == (1, PER_SEGMENT, PER_SEGMENT * SIZE)
    for offset in (10, 11):
        assert not log.truncate_to(offset)
        assert (log.log_end_offset, log.size_bytes) == (10, full)
    assert log.truncate_to(5)
    assert (log.log_end_offset, log.size_bytes) == (5, 5 * SIZE)
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)

    append_messages(owned, PER_SEGMENT)
    assert (log.log_end_offset, log.size_bytes) == (10, full)
    log.truncate_fully_and_start_at(1)
    assert (log.log_end_offset, log.log_start_offset, log.size_bytes) == (1, 1, 0)
    append_messages(owned, PER_SEGMENT)
    assert (log.log_end_offset, log.size_bytes) == (11, full)
    assert log.truncate_to(0), "below the first segment"
    assert (log.log_end_offset, log.log_start_offset, log.size_bytes) == (0, 0, 0)
    with pytest.raises(ValueError, match="negative offset -1"):
        log.truncate_to(-1)


def test_truncation_goes_through_several_segments(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=PER_SEGMENT * SIZE))
    append_messages(owned, 35)
    assert owned.base_offsets == [0, 10, 20, 30]
    owned.log.truncate_to(20)
    assert owned.base_offsets == [0, 10, 20]
    assert [segment.size_bytes for segment in owned.log.segments] == [10 * SIZE, 10 * SIZE, 0]
    append_messages(owned, 1)
    assert owned.first_read(20).offset == 20
    owned.clock.sleep(60_000)
    owned.scheduler.tick()
    assert sorted(path.name for path in owned.directory.glob("*.log*")) == [
        f"{base:020}.log" for base in (0, 10, 20)
    ]


def test_a_batch_goes_as_a_whole_and_leaves_a_hole(owned: OwnedLog) -> None:
    owned.append(b"0", b"1", b"2")
    owned.append(b"3", b"4", b"5")
    owned.log.truncate_to(4)
    assert owned.log.log_end_offset == 4
    assert [record.offset for record in owned.all_records()] == [0, 1, 2]
    assert owned.read(3, 1000).records == b""
    owned.append(b"new")
    assert [record.offset for record in owned.all_records()] == [0, 1, 2, 4]
    assert owned.first_read(3).offset == 4


def test_the_indexes_have_room_again_after_a_truncation(tmp_path: Path) -> None:
    config = LogConfig(
        segment_bytes=PER_SEGMENT * SIZE,
        index_interval_bytes=SIZE - 1,
        segment_index_bytes=1000,
    )
    owned = OwnedLog(tmp_path, config)
    for _ in range(2 * PER_SEGMENT):
        owned.clock.sleep(1)
        owned.append(MESSAGE)
    first = owned.log.segments[0]
    assert owned.base_offsets == [0, 10]
    assert first.offset_index.max_entries == PER_SEGMENT - 1
    assert first.time_index.max_entries == PER_SEGMENT - 1  # the last is the forced one

    owned.log.truncate_to(0)
    assert owned.base_offsets == [0]
    first = owned.log.segments[0]
    assert (first.offset_index.max_entries, first.time_index.max_entries) == (125, 83)
    assert (first.offset_index.entries, first.time_index.entries) == (0, 0)
    for _ in range(PER_SEGMENT):
        owned.clock.sleep(1)
        owned.append(MESSAGE)
    assert owned.base_offsets == [0]


def test_recovery_point_and_high_watermark_go_back_with_the_end(owned: OwnedLog) -> None:
    append_messages(owned, 6)
    owned.raise_high_watermark()
    owned.log.flush()
    owned.log.truncate_to(3)
    assert (owned.log.recovery_point, owned.log.high_watermark) == (3, 3)


# ---- at a batch's boundary


def test_an_offset_inside_a_batch_is_refused_and_the_nearest_boundaries_are_named(
    owned: OwnedLog,
) -> None:
    owned.append(b"a", b"b", b"c")
    owned.append(b"d", b"e")
    with pytest.raises(OffsetInsideBatchError) as refused:
        owned.log.truncate_at_boundary(4)
    assert (refused.value.requested, refused.value.first, refused.value.following) == (4, 3, 5)
    assert (owned.log.log_end_offset, len(owned.all_records())) == (5, 5)


def test_a_batch_around_the_offset_goes_as_a_whole_if_it_may(owned: OwnedLog) -> None:
    owned.append(b"a", b"b", b"c")
    owned.append(b"d", b"e")
    owned.log.truncate_at_boundary(4, takes_whole_batch=True)
    assert (owned.log.log_end_offset, len(owned.all_records())) == (3, 3)


@pytest.mark.parametrize(("offset", "end"), [(3, 3), (5, 5), (9, 5)])
def test_at_a_boundary_and_after_the_end_nothing_is_refused(
    owned: OwnedLog, offset: int, end: int
) -> None:
    owned.append(b"a", b"b", b"c")
    owned.append(b"d", b"e")
    owned.log.truncate_at_boundary(offset)
    assert owned.log.log_end_offset == end


# ---- leader epochs


def test_truncation_at_or_above_the_end_drops_an_epoch_without_records(owned: OwnedLog) -> None:
    data = one_batch(b"a", b"b", base_offset=27, leader_epoch=19)
    owned.log.append_as_follower(data)
    epochs = owned.log.leader_epochs
    assert (epochs.latest_entry, owned.log.log_end_offset) == (EpochEntry(19, 27), 29)
    for epoch, offset in ((20, 29), (24, 30)):
        epochs.assign(epoch, 29)
        assert epochs.latest_entry == EpochEntry(epoch, 29)
        owned.log.truncate_to(offset)
        assert (epochs.latest_entry, owned.log.log_end_offset) == (EpochEntry(19, 27), 29)


def test_truncation_drops_the_epochs_of_what_goes(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=PER_SEGMENT * SIZE))
    for epoch, offsets in ((0, range(10)), (1, range(10, 16)), (2, range(16, 20))):
        for offset in offsets:
            data = one_batch(MESSAGE, base_offset=offset, leader_epoch=epoch)
            owned.log.append_as_follower(data)
    assert (owned.base_offsets, owned.log.log_end_offset) == ([0, 10], 20)
    left = []
    for offset in (20, 11, 10, 0):
        owned.log.truncate_to(offset)
        left.append(len(owned.log.leader_epochs.entries))
    assert left == [3, 2, 1, 0]
    assert (owned.directory / "leader-epoch-checkpoint").read_text() == "0\n0\n"


# ---- producers


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(lambda log: log.truncate_to(0), id="to"),
        pytest.param(lambda log: log.truncate_fully_and_start_at(0), id="fully"),
    ],
)
def test_a_reopened_log_is_cut_below_its_first_open_transaction(
    owned: OwnedLog, cut: Callable[[UnifiedLog], None]
) -> None:
    owned.append(b"0", b"1", b"2")
    Transactional(owned, 17, epoch=10).append(2)
    assert owned.first_unstable_offset() == 3
    owned.log.close()
    reopened = owned.open()
    assert owned.first_unstable_offset() == 3
    cut(reopened)
    assert owned.first_unstable_offset() is None
    assert reopened.producer_state.active_producers == {}


def test_producer_state_goes_back_with_the_log(owned: OwnedLog) -> None:
    append_messages(owned, 2)
    owned.log.producer_state.take_snapshot()
    append_messages(owned, 1)
    owned.log.producer_state.take_snapshot()
    for offset, latest in ((2, 2), (1, 1), (0, None)):
        owned.log.truncate_to(offset)
        assert owned.latest_snapshot_offset() == latest
        assert owned.log.producer_state.map_end_offset == offset


def test_producers_are_read_from_the_log_where_there_is_no_snapshot(owned: OwnedLog) -> None:
    owned.log.append_as_leader(idempotent(0))
    owned.log.append_as_leader(idempotent(1))
    for path in owned.directory.glob("*.snapshot"):
        path.unlink()
    owned.log.truncate_to(1)
    assert {
        producer_id: entry.last_sequence
        for producer_id, entry in owned.log.producer_state.active_producers.items()
    } == {1: 0}


def test_emptying_the_log_forgets_producers_and_snapshots(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=SIZE))
    append_messages(owned, 1)
    owned.log.producer_state.take_snapshot()
    append_messages(owned, 2)
    owned.log.producer_state.take_snapshot()
    assert owned.base_offsets == [0, 1, 2]
    assert owned.log.producer_state.map_end_offset == 3
    assert owned.latest_snapshot_offset() == 3
    owned.log.truncate_fully_and_start_at(29)
    assert owned.base_offsets == [29]
    assert owned.latest_snapshot_offset() is None
    assert owned.log.producer_state.map_end_offset == 29


@pytest.mark.parametrize(("new_offset", "recovery_point"), [(29, 2), (2, 2), (1, 1)])
def test_emptying_the_log_never_raises_the_recovery_point(
    owned: OwnedLog, new_offset: int, recovery_point: int
) -> None:
    append_messages(owned, 3)
    owned.log.flush(2)
    owned.log.truncate_fully_and_start_at(new_offset)
    assert owned.log.recovery_point == recovery_point
    owned.log.flush()
    append_messages(owned, 1)
    owned.log.flush()
    assert owned.log.recovery_point == new_offset + 1


def test_an_emptied_log_takes_no_snapshot_before_it_has_records(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=SIZE))
    append_messages(owned, 3)
    assert owned.snapshot_offsets == [1, 2]
    owned.log.truncate_fully_and_start_at(29)
    assert list(owned.directory.glob("*.snapshot*")) == [], "at once, not renamed"
    owned.log.roll()
    assert owned.snapshot_offsets == []
    append_messages(owned, 1)
    owned.log.close()
    assert owned.snapshot_offsets == [30]


def test_an_emptied_log_that_serves_earlier_offsets_has_a_snapshot_where_it_continues(
    owned: OwnedLog,
) -> None:
    append_messages(owned, 3)
    owned.log.truncate_fully_and_start_at(29, 27)
    assert (owned.log.log_start_offset, owned.snapshot_offsets) == (27, [29])


def compacted_batch() -> bytes:
    """Four records, 23 to 26, of which compaction left the first and the third."""
    left = [Stored(23, NOW_MS, None, b"a"), Stored(25, NOW_MS, None, b"c")]
    return batch_v2(
        left, base_offset=23, last_offset=26, producer_id=1, producer_epoch=0, base_sequence=0
    ).data


def test_a_compacted_batch_counts_with_its_whole_range(owned: OwnedLog) -> None:
    owned.log.append_as_follower(compacted_batch())
    entry = owned.log.producer_state.active_producers[1]
    assert (entry.last_sequence, entry.first_data_offset, entry.last_data_offset) == (3, 23, 26)
    assert owned.log.log_end_offset == 27


def test_producers_of_compacted_batches_are_rebuilt_by_a_truncation(owned: OwnedLog) -> None:
    owned.log.append_as_follower(compacted_batch())
    owned.log.append_as_follower(one_batch(b"e", b"f", base_offset=27))
    owned.log.truncate_to(27)
    assert owned.log.producer_state.active_producers[1].last_sequence == 3


def test_producers_of_batches_without_records_are_rebuilt_by_a_truncation(
    owned: OwnedLog,
) -> None:
    # Its base sequence is 5, its offsets 23 and 24.
    owned.log.append_as_follower(empty_batch_v2(23, 24, producer_id=1).data)
    owned.log.append_as_follower(one_batch(b"e", b"f", base_offset=25))
    owned.log.truncate_to(25)
    assert owned.log.producer_state.active_producers[1].last_sequence == 6


# ---- log start offset


def test_deleting_records_moves_the_start_and_touches_no_file(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=5 * SIZE))
    append_messages(owned, 15)
    owned.raise_high_watermark()
    before = {path.name: path.read_bytes() for path in owned.directory.glob("*.log")}
    for offset in (1, 6, 15):
        assert owned.log.delete_records(offset) == offset
        assert owned.log.log_start_offset == offset
    assert owned.log.delete_records(3) == 15, "never back"
    assert owned.base_offsets == [0, 5, 10]
    assert {path.name: path.read_bytes() for path in owned.directory.glob("*.log")} == before
    assert owned.log.recovery_point == 15


def test_records_are_deleted_up_to_the_high_watermark_at_most(owned: OwnedLog) -> None:
    append_messages(owned, 100)
    owned.log.update_high_watermark(25)
    for offset in (26, -1):
        with pytest.raises(OffsetOutOfRangeError):
            owned.log.delete_records(offset)
    with pytest.raises(OffsetOutOfRangeError):
        owned.log.maybe_increment_log_start_offset(26)
    assert owned.log.log_start_offset == 0
    assert owned.log.delete_records() == 25


@pytest.mark.parametrize(
    ("policy", "is_allowed"),
    [({"delete"}, True), ({"compact", "delete"}, True), (set(), True), ({"compact"}, False)],
)
def test_only_a_policy_with_delete_or_none_allows_to_delete_records(
    tmp_path: Path, policy: set[str], *, is_allowed: bool
) -> None:
    owned = OwnedLog(tmp_path, LogConfig(cleanup_policy=frozenset(policy)))
    owned.log.append_as_leader(one_batch(b"v", key=b"k"))
    owned.raise_high_watermark()
    if is_allowed:
        assert owned.log.delete_records(1) == 1
    else:
        with pytest.raises(PolicyViolationError, match="does not contain delete"):
            owned.log.delete_records(1)


def test_deleting_records_keeps_producers_and_cuts_epochs(owned: OwnedLog) -> None:
    owned.log.append_as_leader(idempotent(0), 3)
    owned.log.append_as_leader(idempotent(0, producer_id=2), 4)
    owned.append(MESSAGE, leader_epoch=5)
    owned.raise_high_watermark()
    owned.log.delete_records(2)
    assert set(owned.log.producer_state.active_producers) == {1, 2}
    assert owned.log.leader_epochs.entries == (EpochEntry(5, 2),)


def test_a_truncation_below_the_start_lowers_it(owned: OwnedLog) -> None:
    append_messages(owned, 10)
    owned.raise_high_watermark()
    owned.log.delete_records(8)
    owned.log.truncate_to(5)
    assert (owned.log.log_start_offset, owned.log.log_end_offset) == (5, 5)
