"""What start-up makes of a partition directory, after a clean shutdown and after a crash.

The cases are those of Kafka's LogLoaderTest; ``tests/kafka_tests.md`` says which is which.
"""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import KafkaStorageError
from pylog.files.leader_epochs import EpochEntry
from tests.support.batches import COMMIT, Stored, batch_v2, marker, wrapper
from tests.support.crash_replay import Kind
from tests.support.damage import flip
from tests.support.recording_io import Fault, FaultyIO, RecordingIO
from tests.unit.log.loaded_logs import (
    BATCH_BYTES,
    INT32_MAX,
    THREE_BATCHES,
    file_of,
    fill,
    load,
    names,
    owned,
    values,
)
from tests.unit.log.owned_log import ABORT, NOW_MS, OwnedLog, Transactional, one_batch, records_in

if TYPE_CHECKING:
    from pylog.log.log_loader import LogLoading
    from pylog.log.unified_log import UnifiedLog

__all__ = ["owned"]


def recovered(loading: LogLoading) -> list[int]:
    return [int(path.rpartition("/")[2].partition(".")[0]) for path in loading.recovered_segments]


def index_entries(log: UnifiedLog) -> list[tuple[list[object], list[object]]]:
    return [
        (
            [each.offset_index.entry(slot) for slot in range(each.offset_index.entries)],
            [each.time_index.entry(slot) for slot in range(each.time_index.entries)],
        )
        for each in log.segments
    ]


@pytest.fixture
def empty(tmp_path: Path) -> OwnedLog:
    return OwnedLog(tmp_path)


# ---- what is recovered


@pytest.mark.parametrize(
    ("is_clean", "recovery_point", "expected"),
    [
        (True, 0, []),
        (True, 12, []),
        (False, 0, [0, 3, 6, 9]),
        (False, 3, [3, 6, 9]),
        (False, 8, [6, 9]),
        (False, 9, [9]),
        (False, 12, [9]),
        (False, 500, [9]),
    ],
)
def test_segments_from_the_one_with_the_recovery_point_on_are_recovered(
    owned: OwnedLog, *, is_clean: bool, recovery_point: int, expected: list[int]
) -> None:
    owned.log.close()
    loading = load(owned, is_clean=is_clean, recovery_point=recovery_point)
    assert recovered(loading) == expected
    assert owned.log.log_end_offset == 12
    assert owned.log.recovery_point == (12 if is_clean else min(recovery_point, 12))
    assert values(owned) == [b"%02d" % number for number in range(12)]


@pytest.mark.parametrize("recovery_point", [0, 5, 9, 12])
def test_recovery_of_sound_files_changes_no_segment_and_no_index(
    owned: OwnedLog, recovery_point: int
) -> None:
    owned.log.close()
    before = {
        path.name: path.read_bytes()
        for path in owned.directory.iterdir()
        if path.suffix != ".snapshot"
    }
    load(owned, is_clean=False, recovery_point=recovery_point)
    owned.log.close()
    after = {name: (owned.directory / name).read_bytes() for name in before}
    assert after == before
    assert set(names(owned)) - set(before) == set(names(owned, "*.snapshot"))


def test_a_crash_in_the_middle_of_appends_leaves_the_same_indexes(owned: OwnedLog) -> None:
    original = index_entries(owned.log)
    load(owned, is_clean=False)
    assert index_entries(owned.log)[:-1] == original[:-1]
    # Recovery forces the last time entry of every segment, the active one's, too.
    offsets, times = index_entries(owned.log)[-1]
    assert (offsets, times[:-1]) == original[-1] or (offsets, times) == original[-1]


def test_an_empty_active_segment_is_recovered(owned: OwnedLog) -> None:
    owned.log.roll()
    loading = load(owned, is_clean=False, recovery_point=12)
    assert recovered(loading) == [12]
    assert (owned.base_offsets, owned.log.log_end_offset) == ([0, 3, 6, 9, 12], 12)
    fill(owned, [12])
    assert values(owned)[-1] == b"12"


def test_a_directory_without_segments_begins_at_the_checkpointed_start(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path)
    owned.log.close()
    shutil.rmtree(owned.directory)
    owned.directory.mkdir()
    for is_clean in (True, False):
        load(owned, is_clean=is_clean, log_start_offset=500)
        log = owned.log
        assert (log.log_start_offset, log.log_end_offset, owned.base_offsets) == (500, 500, [500])


def test_a_log_that_ends_below_its_start_starts_again_there(owned: OwnedLog) -> None:
    owned.log.close()
    for base_offset in (6, 9):
        for path in owned.directory.glob(f"{base_offset:020d}.*"):
            path.unlink()
    loading = load(owned, is_clean=False, recovery_point=12, log_start_offset=8)
    log = owned.log
    assert (log.log_start_offset, log.log_end_offset, owned.base_offsets) == (8, 8, [8])
    assert log.leader_epochs.entries == ()
    assert loading.truncated_bytes == 0
    fill(owned, [8])
    assert values(owned) == [b"08"]


def test_a_log_ends_where_its_files_do_though_the_checkpoint_says_more(owned: OwnedLog) -> None:
    owned.log.close()
    for path in owned.directory.glob(f"{9:020d}.*"):
        path.unlink()
    load(owned, is_clean=False, recovery_point=12)
    assert (owned.log.log_end_offset, owned.log.recovery_point) == (9, 9)


def test_a_reopened_log_can_be_truncated(owned: OwnedLog) -> None:
    owned.log.close()
    load(owned, is_clean=True, recovery_point=12)
    owned.log.truncate_to(3)
    assert (owned.base_offsets, owned.log.log_end_offset) == ([0, 3], 3)
    owned.log.truncate_to(2)
    assert (owned.base_offsets, values(owned)) == ([0], [b"00", b"01"])


# ---- damage


@pytest.mark.parametrize("place", [0, 8, 20, 60, 69])
@pytest.mark.parametrize("batch", [0, 1, 5, 8, 11])
def test_the_first_bad_batch_and_all_after_it_are_removed(
    owned: OwnedLog, batch: int, place: int
) -> None:
    owned.log.close()
    path = file_of(owned, batch - batch % 3, ".log")
    flip(path, (batch % 3) * BATCH_BYTES + place, 0x80)
    load(owned, is_clean=False)
    assert values(owned) == [b"%02d" % number for number in range(batch)]
    assert owned.log.log_end_offset == batch
    fill(owned, [batch])
    assert owned.first_read(batch).value == b"%02d" % batch


def test_bytes_at_random_leave_a_prefix_that_can_be_appended_to(tmp_path: Path) -> None:
    rng = random.Random(5)
    for number in range(30):
        directory = tmp_path / str(number)
        directory.mkdir()
        owned = OwnedLog(directory, THREE_BATCHES)
        fill(owned, range(10))
        owned.log.close()
        path = file_of(owned, rng.choice([0, 3, 6, 9]), ".log")
        data = path.read_bytes()
        cut = rng.randrange(len(data) + 1)
        path.write_bytes(data[:cut] + rng.randbytes(rng.randrange(1, 100)))
        load(owned, is_clean=False)
        kept = int(path.stem) + cut // BATCH_BYTES
        assert values(owned) == [b"%02d" % each for each in range(kept)]
        fill(owned, [kept])
        load(owned, is_clean=True)
        assert values(owned) == [b"%02d" % each for each in range(kept + 1)]


def test_segments_after_a_cut_are_deleted_with_their_snapshots(owned: OwnedLog) -> None:
    owned.log.close()
    assert owned.snapshot_offsets == [3, 6, 9, 12]
    path = file_of(owned, 3, ".log")
    path.write_bytes(path.read_bytes()[:-1])
    load(owned, is_clean=False, recovery_point=3)
    assert owned.base_offsets == [0, 3]
    assert owned.log.log_end_offset == 5
    assert owned.snapshot_offsets == [3, 5]
    assert f"{6:020d}.log.deleted" in names(owned)
    owned.clock.sleep(owned.config.file_delete_delay_ms)
    owned.scheduler.tick()
    assert names(owned, "*.deleted") == []


def test_the_leader_epochs_after_a_cut_are_removed(empty: OwnedLog) -> None:
    for epoch in (0, 1, 2):
        empty.append(b"a", leader_epoch=epoch)
    path = file_of(empty, 0, ".log")
    path.write_bytes(path.read_bytes()[:-1])
    load(empty, is_clean=False)
    assert empty.log.leader_epochs.entries == (EpochEntry(0, 0), EpochEntry(1, 1))


def test_a_torn_tail_of_a_flushed_segment_is_not_looked_at(owned: OwnedLog) -> None:
    owned.log.close()
    path = file_of(owned, 3, ".log")
    path.write_bytes(path.read_bytes() + b"torn")
    load(owned, is_clean=False, recovery_point=9)
    assert owned.log.log_end_offset == 12
    assert path.stat().st_size == 3 * BATCH_BYTES + 4


# ---- indexes


def test_an_offset_index_that_is_missing_is_made_again_even_after_a_clean_stop(
    owned: OwnedLog,
) -> None:
    owned.log.close()
    kept = {path: path.read_bytes() for path in owned.directory.glob("*index")}
    for path in kept:
        path.unlink()
    loading = load(owned, is_clean=True, recovery_point=12)
    assert recovered(loading) == [0, 3, 6, 9]
    owned.log.close()
    assert {path: path.read_bytes() for path in kept} == kept


def test_rebuilt_indexes_find_every_offset_and_every_timestamp(owned: OwnedLog) -> None:
    owned.log.close()
    for path in owned.directory.glob("*index"):
        path.unlink()
    load(owned, is_clean=False)
    for number in range(12):
        assert owned.first_read(number, BATCH_BYTES).offset == number
        found = owned.log.fetch_offset_by_timestamp(NOW_MS + (number + 1) * 1000)
        assert found is not None
        assert (found.offset, found.timestamp) == (number, NOW_MS + (number + 1) * 1000)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_time_index_that_is_missing_stays_empty_below_the_recovery_point(
    owned: OwnedLog, *, is_clean: bool
) -> None:
    owned.log.close()
    for path in owned.directory.glob("*.timeindex"):
        path.unlink()
    loading = load(owned, is_clean=is_clean, recovery_point=12)
    assert recovered(loading) == ([] if is_clean else [9])
    assert [file_of(owned, base, ".timeindex").stat().st_size for base in (0, 3, 6)] == [0, 0, 0]


def test_indexes_full_of_garbage_are_made_again_by_a_recovery(owned: OwnedLog) -> None:
    owned.log.close()
    original = {path: path.read_bytes() for path in owned.directory.glob("*index")}
    for path in original:
        path.write_bytes(b"garbage, and not index entries"[: 24 if "time" in path.name else 30])
    load(owned, is_clean=False)
    assert values(owned) == [b"%02d" % number for number in range(12)]
    owned.log.close()
    assert {path: path.read_bytes() for path in original} == original


def test_a_transaction_index_with_an_impossible_entry_is_made_again(
    empty: OwnedLog, caplog: pytest.LogCaptureFixture
) -> None:
    empty.append(b"a")
    empty.log.roll()
    producer = Transactional(empty, 7)
    producer.append(2)
    producer.end(ABORT)
    assert empty.aborted() == [(7, 1, 3, 4)]
    empty.log.close()
    path = file_of(empty, 1, ".txnindex")
    path.write_bytes(path.read_bytes()[:18] + bytes(16))
    loading = load(empty, is_clean=True, recovery_point=4)
    assert recovered(loading) == [1]
    assert empty.aborted() == [(7, 1, 3, 4)]
    assert f"recovering segment {file_of(empty, 1, '.log')}: " in caplog.text


# ---- leftovers


def small_time_index(tmp_path: Path, *timestamps: int) -> OwnedLog:
    """Append a batch for each timestamp; five time entries fit, the last one reserved.

    From the second batch on each one is due to be indexed.
    """
    config = LogConfig(segment_index_bytes=60, index_interval_bytes=0)
    owned = OwnedLog(tmp_path, config)
    for offset, timestamp in enumerate(timestamps):
        data = one_batch(b"v", base_offset=offset, timestamp=timestamp)
        owned.log.append_as_follower(data)
    return owned


def time_entries(owned: OwnedLog, base_offset: int) -> list[tuple[int, int]]:
    """Return timestamp and relative offset of each time entry that is in the file."""
    content = file_of(owned, base_offset, ".timeindex").read_bytes().rstrip(bytes(1))
    content += bytes(-len(content) % 12)
    return list(struct.iter_unpack(">qi", content))


def test_recovery_leaves_room_for_time_entries_that_matter(tmp_path: Path) -> None:
    # No record between the second and the sixth has a larger timestamp: nothing to be written.
    owned = small_time_index(tmp_path, 10, 20, 5, 5, 5, 30, 40)
    written = [(20, 1), (30, 5), (40, 6)]
    assert time_entries(owned, 0) == written
    load(owned, is_clean=False)
    assert time_entries(owned, 0) == written


def test_a_segment_that_ended_with_a_full_time_index_is_recovered(tmp_path: Path) -> None:
    owned = small_time_index(tmp_path, 10, 20, 30, 40, 50, 60)
    assert owned.base_offsets == [0, 5], "one slot is kept for the entry forced at the roll"
    written = [(20, 1), (30, 2), (40, 3), (50, 4)]
    assert time_entries(owned, 0) == written
    load(owned, is_clean=False)
    assert owned.base_offsets == [0, 5]
    assert time_entries(owned, 0) == written
    assert [record.offset for record in owned.all_records()] == list(range(6))


def test_a_segment_that_was_written_with_larger_indexes_is_recovered(tmp_path: Path) -> None:
    owned = OwnedLog(tmp_path, LogConfig(index_interval_bytes=0))
    for offset in range(9):
        owned.log.append_as_follower(one_batch(b"v", base_offset=offset, timestamp=offset))
    owned.log.roll()
    assert len(time_entries(owned, 0)) == 8
    owned.config = LogConfig(segment_index_bytes=60, index_interval_bytes=0)
    load(owned, is_clean=False)
    # Four, and the one that tells the segment's largest timestamp.
    assert time_entries(owned, 0) == [(1, 1), (2, 2), (3, 3), (4, 4), (8, 8)]
    assert [record.offset for record in owned.all_records()] == list(range(9))


def test_the_forced_entry_of_a_segment_that_is_recovered_takes_the_reserved_slot(
    tmp_path: Path,
) -> None:
    # Each small batch after a large one is indexed. The last one comes with a batch that is not,
    # and that has the largest timestamp.
    config = LogConfig(segment_index_bytes=60, index_interval_bytes=300)
    owned = OwnedLog(tmp_path, config)
    batches = [
        one_batch(bytes(400 if offset in (0, 2, 4, 6) else 1), base_offset=offset, timestamp=offset)
        for offset in range(9)
    ]
    for data in (*batches[:7], batches[7] + batches[8]):
        owned.log.append_as_follower(data)
    written = [(1, 1), (3, 3), (5, 5), (7, 7)]
    assert time_entries(owned, 0) == written
    owned.log.roll()
    assert time_entries(owned, 0) == [*written, (8, 8)]
    load(owned, is_clean=False)
    assert owned.base_offsets == [0, 9]
    assert time_entries(owned, 0) == [*written, (8, 8)]


# ---- offsets that no segment can hold


def test_offsets_too_far_apart_for_one_segment_roll(empty: OwnedLog) -> None:
    offsets = [0, INT32_MAX, INT32_MAX + 1, 2 * INT32_MAX + 1, 2 * INT32_MAX + 2]
    for offset in offsets:
        empty.log.append_as_follower(one_batch(b"x", base_offset=offset))
    assert empty.base_offsets == [0, INT32_MAX + 1, 2 * INT32_MAX + 2]
    load(empty, is_clean=False)
    assert empty.base_offsets == [0, INT32_MAX + 1, 2 * INT32_MAX + 2]
    assert [record.offset for record in empty.all_records()] == offsets


def test_a_batch_too_far_ahead_begins_a_segment_at_its_first_offset(empty: OwnedLog) -> None:
    empty.log.append_as_follower(one_batch(b"x", base_offset=0))
    first = 2 * INT32_MAX
    empty.log.append_as_follower(one_batch(b"x", b"y", b"z", base_offset=first))
    assert empty.base_offsets == [0, first]
    load(empty, is_clean=False)
    assert empty.base_offsets == [0, first]
    assert empty.log.log_end_offset == first + 3


def test_a_wrapper_too_far_ahead_begins_a_segment_as_low_as_its_last_offset_allows(
    empty: OwnedLog,
) -> None:
    empty.log.append_as_follower(one_batch(b"x", base_offset=0))
    first = 2 * INT32_MAX
    records = [Stored(first + each, NOW_MS, None, b"x") for each in range(3)]
    empty.log.append_as_follower(wrapper(records, magic=1, codec="gzip").data)
    expected = [0, first + 2 - INT32_MAX]
    assert empty.base_offsets == expected
    load(empty, is_clean=False)
    assert empty.base_offsets == expected
    assert [record.offset for record in empty.all_records()] == [0, first, first + 1, first + 2]


def test_a_clean_start_does_not_take_the_active_segments_base_for_the_end_if_it_has_records(
    owned: OwnedLog,
) -> None:
    owned.log.close()
    for snapshot in owned.directory.glob("*.snapshot"):
        if int(snapshot.stem) > 9:
            snapshot.unlink()
    assert file_of(owned, 9, ".snapshot").exists()
    load(owned, is_clean=True, recovery_point=9)
    assert owned.log.log_end_offset == 12
    owned.append(b"12")
    assert [record.offset for record in owned.all_records()] == list(range(13))


# ---- transactions and producers


def with_transactions(owned: OwnedLog) -> list[tuple[int, int, int, int]]:
    """Append transactions over several segments; return the aborted ones as they are to be."""
    first, second, third = (Transactional(owned, each) for each in (1, 2, 3))
    first.append(2)  # 0, 1
    second.append(1)  # 2
    owned.log.roll()
    third.append(1)  # 3
    first.append(1)  # 4
    second.end(ABORT)  # 5
    owned.log.roll()
    first.end(ABORT)  # 6
    third.end(COMMIT)  # 7
    second.append(3)  # 8, 9, 10
    owned.append(b"between")  # 11
    second.end(ABORT)  # 12
    third.append(1)  # 13
    return [(2, 2, 5, 0), (1, 0, 6, 3), (2, 8, 12, 13)]


@pytest.mark.parametrize("recovery_point", [0, 3, 6, 14])
@pytest.mark.parametrize("has_snapshots", [True, False])
def test_the_transaction_index_is_recovered(
    empty: OwnedLog, recovery_point: int, *, has_snapshots: bool
) -> None:
    aborted = with_transactions(empty)
    assert empty.aborted() == aborted
    if not has_snapshots:
        for path in empty.directory.glob("*.snapshot"):
            path.unlink()
    for path in empty.directory.glob("*.txnindex"):
        if int(path.stem) >= recovery_point:
            path.unlink()
    load(empty, is_clean=False, recovery_point=recovery_point)
    assert empty.aborted() == aborted
    entry = empty.log.producer_state.last_entry(3)
    assert entry is not None
    assert entry.current_txn_first_offset == 13


@pytest.mark.parametrize("damaged", [".index", ".txnindex"])
def test_a_recovery_below_the_recovery_point_that_a_crash_stops_is_begun_again(
    empty: OwnedLog, tmp_path: Path, damaged: str
) -> None:
    aborted = with_transactions(empty)
    empty.log.close()
    file_of(empty, 3, ".index").unlink()
    if damaged == ".txnindex":
        file_of(empty, 3, ".index").write_bytes(b"")
        file_of(empty, 3, damaged).write_bytes(b"\xff" * 34)
    kept = tmp_path / "kept"
    shutil.copytree(empty.directory, kept)
    kinds = frozenset({Kind.CREATE, Kind.WRITE, Kind.TRUNCATE, Kind.REPLACE, Kind.REMOVE})
    number, has_failed = 0, True
    while has_failed:
        number += 1
        shutil.rmtree(empty.directory)
        shutil.copytree(kept, empty.directory)
        io = FaultyIO(Fault(kinds=kinds, at=number, forever=True))
        try:
            load(empty, is_clean=True, recovery_point=14, io=io)
            has_failed = False
        except KafkaStorageError:
            load(empty, is_clean=False, recovery_point=14)
        assert empty.aborted() == aborted, number
        assert names(empty, "*.cleaned") == []
    assert number > 5


def test_a_recovery_below_the_recovery_point_is_on_the_disk_as_begun_and_as_ended(
    empty: OwnedLog,
) -> None:
    with_transactions(empty)
    empty.log.close()
    file_of(empty, 3, ".index").write_bytes(b"")
    file_of(empty, 3, ".txnindex").write_bytes(b"\xff" * 34)
    io = RecordingIO(empty.directory.parent)
    load(empty, is_clean=True, recovery_point=14, io=io)
    kinds = [operation.kind for operation in io.operations]
    renames = [at for at, kind in enumerate(kinds) if kind is Kind.REPLACE]
    targets = [Path(io.operations[at].target).name for at in renames]
    assert targets == [f"{3:020}.index.cleaned", f"{3:020}.index"]
    assert [kinds[at + 1] for at in renames] == [Kind.SYNC_DIRECTORY] * 2
    rewritten = {Path(each.path).name for each in io.operations[renames[0] : renames[1]]}
    assert f"{3:020}.txnindex" in rewritten


def test_a_marker_of_an_older_coordinator_does_not_stop_a_recovery(empty: OwnedLog) -> None:
    for coordinator_epoch in (1, 0):
        end = empty.log.log_end_offset
        data = batch_v2(
            [Stored(end, NOW_MS, None, b"x")],
            producer_id=1,
            producer_epoch=0,
            base_sequence=coordinator_epoch,
            is_transactional=True,
        ).data
        ending = marker(
            end + 1, COMMIT, producer_id=1, timestamp=NOW_MS, coordinator_epoch=coordinator_epoch
        ).data
        empty.log.append_as_follower(data)
        empty.log.append_as_follower(ending)
    for _ in range(2):
        load(empty, is_clean=False)
        assert (empty.log.log_end_offset, empty.log.first_unstable_offset) == (4, None)
        assert empty.log.producer_state.last_entry(1) is not None


def idempotent(owned: OwnedLog, producer_id: int, sequence: int = 0) -> None:
    data = one_batch(
        b"x",
        timestamp=owned.clock.milliseconds(),
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    owned.log.append_as_leader(data)


@pytest.mark.parametrize(
    ("start", "whole_segments", "after_a_crash"),
    [(1, [], [1, 2]), (2, [0], [2])],
    ids=["mid segment", "on a segment"],
)
def test_producers_below_the_log_start_are_loaded_where_a_snapshot_has_them(
    empty: OwnedLog, start: int, whole_segments: list[int], after_a_crash: list[int]
) -> None:
    idempotent(empty, 1)
    idempotent(empty, 2)
    empty.log.roll()
    idempotent(empty, 2, 1)
    empty.raise_high_watermark()
    empty.log.delete_records(start)
    empty.log.close()
    for base_offset in whole_segments:
        for path in empty.directory.glob(f"{base_offset:020d}.*"):
            path.unlink()
    load(empty, is_clean=True, recovery_point=3, log_start_offset=start)
    assert sorted(empty.log.producer_state.active_producers) == [1, 2]
    # What the last segment holds is counted again, and snapshots up to the start are gone.
    load(empty, is_clean=False, recovery_point=3, log_start_offset=start)
    assert sorted(empty.log.producer_state.active_producers) == after_a_crash


def test_the_newest_stray_snapshot_stays_if_no_segment_is_newer(empty: OwnedLog) -> None:
    for producer_id in (1, 2, 3, 4):
        idempotent(empty, producer_id)
        if producer_id in (1, 2):
            empty.log.roll()
        else:
            empty.log.producer_state.take_snapshot()
    assert empty.snapshot_offsets == [1, 2, 3, 4]
    load(empty, is_clean=True, recovery_point=4)
    assert empty.base_offsets == [0, 1, 2]
    assert empty.snapshot_offsets == [1, 2, 4]
    assert sorted(empty.log.producer_state.active_producers) == [1, 2, 3, 4]


@pytest.mark.parametrize(("recovery_point", "expected"), [(0, [3, 6, 9, 12]), (9, [3, 6, 9, 12])])
def test_snapshots_are_there_again_after_a_crash(
    owned: OwnedLog, recovery_point: int, expected: list[int]
) -> None:
    load(owned, is_clean=False, recovery_point=recovery_point)
    assert owned.snapshot_offsets == expected
    for path in owned.directory.glob("*.snapshot"):
        path.unlink()
    load(owned, is_clean=False, recovery_point=recovery_point)
    assert owned.snapshot_offsets == ([3, 6, 9, 12] if recovery_point == 0 else [6, 9, 12])


def test_producers_are_read_from_the_log_where_recovery_cuts_at_a_segments_end(
    tmp_path: Path,
) -> None:
    data = [
        one_batch(b"v", base_offset=offset, producer_id=1, producer_epoch=0, base_sequence=offset)
        for offset in range(4)
    ]
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=3 * len(data[0])))
    for batch in data:
        owned.log.append_as_follower(batch)
    assert (owned.base_offsets, owned.snapshot_offsets) == ([0, 3], [3])
    with file_of(owned, 0, ".log").open("ab") as file:
        file.write(bytes(5))
    load(owned, is_clean=False)
    assert (owned.base_offsets, owned.log.log_end_offset) == ([0], 3)
    # The snapshot would have known only the last one.
    known = owned.log.producer_state.active_producers[1].batch_metadata
    assert [batch.last_offset for batch in known] == [0, 1, 2]


def test_snapshots_of_the_segments_that_stay_survive_a_cut(owned: OwnedLog) -> None:
    owned.log.close()
    path = file_of(owned, 9, ".log")
    path.write_bytes(path.read_bytes()[:BATCH_BYTES] + b"garbage")
    load(owned, is_clean=False, recovery_point=0)
    assert owned.snapshot_offsets == [3, 6, 9, 10]
    owned.clock.sleep(owned.config.file_delete_delay_ms)
    owned.scheduler.tick()
    assert owned.snapshot_offsets == [3, 6, 9, 10]


def test_a_clean_start_without_snapshots_assumes_that_there_are_no_producers(
    owned: OwnedLog,
) -> None:
    owned.log.close()
    for path in owned.directory.glob("*.snapshot"):
        path.unlink()
    load(owned, is_clean=True, recovery_point=12)
    assert owned.log.producer_state.is_empty
    assert owned.snapshot_offsets == [6, 9, 12]


def test_a_start_after_a_crash_reads_producers_from_the_log(empty: OwnedLog) -> None:
    idempotent(empty, 0)  # the first id that a cluster gives
    empty.log.roll()
    idempotent(empty, 1)
    for path in empty.directory.glob("*.snapshot"):
        path.unlink()
    load(empty, is_clean=False, recovery_point=2)
    assert sorted(empty.log.producer_state.active_producers) == [0, 1]


def test_a_clean_start_reads_only_the_last_segment_from_its_last_index_entry_on(
    owned: OwnedLog,
) -> None:
    owned.log.close()
    *flushed, active = sorted(owned.directory.glob("*.log"))
    for path in flushed:
        path.write_bytes(b"\xff" * path.stat().st_size)
    data = active.read_bytes()
    [*_, (_, last_entry)] = struct.iter_unpack(">ii", active.with_suffix(".index").read_bytes())
    active.write_bytes(b"\xff" * last_entry + data[last_entry:])
    load(owned, is_clean=True, recovery_point=12)
    assert (owned.log.log_end_offset, owned.base_offsets) == (12, [0, 3, 6, 9])


def test_a_read_returns_what_is_left(owned: OwnedLog) -> None:
    load(owned, is_clean=False)
    found = owned.read(4, 10_000)
    assert [record.value for record in records_in(found.records)] == [b"04", b"05"]
