from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError, TransactionCoordinatorFencedError
from pylog.files.durable_io import DurableIO
from pylog.producers.producer_state_manager import ProducerSnapshots, ProducerStateManager
from tests.unit.producers.producers import (
    ABORT,
    COMMIT,
    NOW_MS,
    PARTITION,
    PRODUCER,
    REPLICATION,
    Partition,
    control,
    data,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# Producer 1, epoch 2, last sequence 1 at offset 2 (3 after its batch's first), no time,
# coordinator epoch 3, transaction since 100.
GOLDEN_SNAPSHOT = bytes.fromhex(
    "00015b83e057000000010000000000000001000200000001000000000000000200000003"
    "ffffffffffffffff000000030000000000000064"
)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(str(tmp_path))


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}.snapshot"


def offsets_on_disk(directory: Path) -> list[int]:
    return sorted(int(path.name.removesuffix(".snapshot")) for path in directory.iterdir())


def append_and_snapshot(partition: Partition, *, count: int) -> None:
    for offset in range(count):
        partition.append(data(offset, offset))
        partition.manager.take_snapshot()


def test_snapshot_has_the_name_of_the_offset_after_the_last_record(
    partition: Partition, tmp_path: Path
) -> None:
    assert partition.manager.take_snapshot() is None
    partition.append(data(0, 0))
    partition.append(data(1, 1))
    path = partition.manager.take_snapshot()
    assert path == str(snapshot_path(tmp_path, 2))
    assert snapshot_path(tmp_path, 2).stat().st_size == 56


def test_snapshot_of_an_unchanged_offset_is_not_taken(partition: Partition, tmp_path: Path) -> None:
    partition.append(data(0, 0))
    assert partition.manager.take_snapshot() is not None
    assert offsets_on_disk(tmp_path) == [1]
    assert partition.manager.take_snapshot() is None
    assert offsets_on_disk(tmp_path) == [1]


def test_snapshot_has_the_bytes_of_the_format(partition: Partition, tmp_path: Path) -> None:
    snapshot_path(tmp_path, 101).write_bytes(GOLDEN_SNAPSHOT)
    partition = partition.reopened(0, 101, NOW_MS)
    entry = partition.entry()
    assert (entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp) == (2, 3, -1)
    assert list(entry.batch_metadata) == [(1, 2, 3, -1)]
    assert partition.manager.first_unstable_offset == 100
    partition.manager.update_map_end_offset(102)
    assert partition.manager.take_snapshot() == str(snapshot_path(tmp_path, 102))
    assert snapshot_path(tmp_path, 102).read_bytes() == GOLDEN_SNAPSHOT


@pytest.mark.parametrize("sync", [True, False])
def test_snapshot_is_synced_only_when_asked_for(tmp_path: Path, *, sync: bool) -> None:
    asked = []

    class RecordingIO(DurableIO):
        def write_file(self, path: object, data: object, *, sync: bool = False) -> None:
            assert data
            asked.append((Path(str(path)).name, sync))

    manager = ProducerStateManager(PARTITION, str(tmp_path), io=RecordingIO())
    manager.update_map_end_offset(7)
    assert manager.take_snapshot(sync=sync) is not None
    assert asked == [("00000000000000000007.snapshot", sync)]


def test_reloading_removes_snapshots_outside_the_log(partition: Partition, tmp_path: Path) -> None:
    append_and_snapshot(partition, count=5)
    partition.manager.truncate_and_reload(1, 3, NOW_MS)
    assert partition.manager.latest_snapshot_offset == 3
    assert offsets_on_disk(tmp_path) == [2, 3]
    assert partition.manager.map_end_offset == 3
    assert partition.entry().last_sequence == 2


def test_reloading_at_the_same_end_keeps_the_state(partition: Partition, tmp_path: Path) -> None:
    append_and_snapshot(partition, count=3)
    partition.manager.truncate_and_reload(2, 3, NOW_MS)
    assert [each.last_sequence for each in partition.entry().batch_metadata] == [0, 1, 2]
    assert offsets_on_disk(tmp_path) == [3]
    partition.manager.truncate_and_reload(3, 3, NOW_MS)
    assert offsets_on_disk(tmp_path) == []
    assert partition.entry().last_sequence == 2
    assert partition.manager.take_snapshot() is None


def test_map_starts_at_the_log_start_without_a_snapshot(partition: Partition) -> None:
    partition.append(data(0, 0))
    partition.manager.truncate_and_reload(7, 20, NOW_MS)
    assert partition.manager.map_end_offset == 7
    assert partition.manager.is_empty
    assert partition.manager.take_snapshot() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[: len(content) // 2],
        lambda content: bytes(37) + content[37:],
        lambda content: content[:-1] + b"\x01",
    ],
    ids=["empty", "cut", "zeros", "flipped"],
)
def test_older_snapshot_is_loaded_where_the_newest_is_corrupt(
    partition: Partition,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    append_and_snapshot(partition, count=2)
    newest = snapshot_path(tmp_path, 2)
    newest.write_bytes(damage(newest.read_bytes()))
    reopened = partition.reopened(0, 20, NOW_MS)
    assert offsets_on_disk(tmp_path) == [1]
    assert reopened.entry().last_data_offset == 0
    assert reopened.manager.map_end_offset == 1
    assert str(newest) in caplog.text


def test_open_transaction_is_open_after_a_restart(partition: Partition) -> None:
    partition.append(data(0, 0, transactional=True))
    partition.append(data(1, 1, transactional=True))
    partition.manager.take_snapshot()
    reopened = partition.reopened(0, 3, NOW_MS)
    entry = reopened.entry()
    # Only the newest batch survives.
    assert (entry.first_data_offset, entry.first_sequence) == (1, 1)
    assert (entry.last_data_offset, entry.last_sequence) == (1, 1)
    assert entry.current_txn_first_offset == 0
    assert reopened.manager.first_undecided_offset == 0
    reopened.append(data(2, 2, transactional=True))


def test_finished_transaction_is_finished_after_a_restart(partition: Partition) -> None:
    partition.append(data(0, 0, transactional=True))
    partition.append(data(1, 1, transactional=True))
    partition.append_marker(control(2), ABORT)
    partition.manager.take_snapshot()
    reopened = partition.reopened(0, 3, NOW_MS)
    entry = reopened.entry()
    assert (entry.first_data_offset, entry.first_sequence) == (1, 1)
    assert (entry.last_data_offset, entry.last_sequence) == (1, 1)
    assert entry.current_txn_first_offset is None
    assert reopened.manager.first_unstable_offset is None


def test_producer_of_an_empty_transaction_is_known_after_a_restart(partition: Partition) -> None:
    partition.append_marker(control(0), ABORT)
    partition.manager.take_snapshot()
    entry = partition.reopened(0, 1, NOW_MS).entry()
    assert (entry.last_timestamp, entry.current_txn_first_offset) == (NOW_MS, None)
    assert entry.is_empty


def test_expired_producers_are_not_loaded(partition: Partition) -> None:
    partition.append(data(0, 0, timestamp=0))
    partition.append(data(1, 1, timestamp=1))
    partition.append(data(2, 0, producer_id=2, timestamp=2))
    partition.append(data(3, 0, producer_id=3, timestamp=0, transactional=True))
    partition.manager.take_snapshot()
    reopened = partition.reopened(0, 4, 86_400_001)
    assert sorted(reopened.manager.active_producers) == [2, 3]
    # Unknown now, so it may go on with any sequence.
    reopened.append(data(4, 2, timestamp=86_400_002))
    assert reopened.entry().last_sequence == 2
    assert reopened.manager.map_end_offset == 5


def test_producers_below_the_log_start_are_loaded(partition: Partition) -> None:
    partition.append(data(0, 0, producer_id=1))
    partition.append(data(1, 0, producer_id=2))
    partition.manager.take_snapshot()
    reopened = partition.reopened(1, 2, NOW_MS)
    assert [reopened.entry(each).last_data_offset for each in (1, 2)] == [0, 1]


def test_replica_takes_any_sequence_of_a_producer_it_does_not_know(partition: Partition) -> None:
    append_and_snapshot(partition, count=2)
    reopened = partition.reopened(0, 0, NOW_MS)
    assert not reopened.manager.active_producers
    reopened.append(data(2, 2), REPLICATION)
    entry = reopened.entry()
    assert (entry.producer_epoch, entry.first_sequence, entry.last_sequence) == (0, 2, 2)


def test_replaced_coordinator_is_refused_after_a_restart(partition: Partition) -> None:
    partition.append(data(99, 0, transactional=True))
    partition.append_marker(control(100), COMMIT, coordinator_epoch=1)
    partition.manager.take_snapshot()
    reopened = partition.reopened(0, 101, NOW_MS)
    with pytest.raises(TransactionCoordinatorFencedError):
        reopened.append_marker(control(101), COMMIT, coordinator_epoch=0)


def test_unstable_offset_goes_back_with_the_log(partition: Partition) -> None:
    manager = partition.manager
    partition.append(data(99, 0, transactional=True))
    assert partition.unstable_offsets() == (99, None, 99)
    manager.take_snapshot()
    partition.append_marker(control(105), COMMIT)
    manager.on_high_watermark_updated(106)
    assert partition.unstable_offsets() == (None, None, None)
    manager.take_snapshot()
    partition.append(data(106, 1))
    manager.truncate_and_reload(0, 106, NOW_MS)
    assert partition.unstable_offsets() == (None, None, None)
    manager.truncate_and_reload(0, 100, NOW_MS)
    assert partition.unstable_offsets() == (99, None, 99)


def test_full_truncation_deletes_all_snapshots(partition: Partition, tmp_path: Path) -> None:
    append_and_snapshot(partition, count=3)
    partition.manager.truncate_fully_and_start_at(0)
    assert offsets_on_disk(tmp_path) == []
    assert partition.manager.is_empty
    assert partition.manager.map_end_offset == 0
    partition.append(data(0, 0))
    partition.manager.take_snapshot()
    assert offsets_on_disk(tmp_path) == [1]


@pytest.mark.parametrize(
    ("on_disk", "base_offsets", "expected"),
    [
        ([2, 5, 42], [5], [5, 42]),  # 42 is of a clean shutdown
        ([2, 5, 42], [42], [42]),
        ([1, 2, 3, 4], [1, 2], [1, 2, 4]),
        ([2, 5], [], [5]),
        ([5], [5], [5]),
        ([3], [5], []),
        ([], [0], []),
    ],
)
def test_snapshots_without_segment_are_strays_but_that_of_a_clean_shutdown(
    partition: Partition,
    tmp_path: Path,
    on_disk: list[int],
    base_offsets: list[int],
    expected: list[int],
) -> None:
    for offset in on_disk:
        snapshot_path(tmp_path, offset).touch()
    partition.manager.remove_stray_snapshots(base_offsets)
    assert offsets_on_disk(tmp_path) == expected
    assert partition.manager.latest_snapshot_offset == (expected[-1] if expected else None)


def test_snapshot_to_be_deleted_is_renamed_and_no_longer_known(tmp_path: Path) -> None:
    snapshot_path(tmp_path, 5).touch()
    manager = Partition(str(tmp_path)).manager
    path = manager.remove_and_mark_snapshot_for_deletion(5)
    assert path == f"{snapshot_path(tmp_path, 5)}.deleted"
    assert [each.name for each in tmp_path.iterdir()] == [Path(path).name]
    assert manager.latest_snapshot_offset is None
    assert manager.remove_and_mark_snapshot_for_deletion(5) is None


def test_snapshot_that_is_gone_already_needs_no_renaming(tmp_path: Path) -> None:
    snapshot_path(tmp_path, 5).touch()
    manager = Partition(str(tmp_path)).manager
    snapshot_path(tmp_path, 5).unlink()
    assert manager.remove_and_mark_snapshot_for_deletion(5) is None
    assert manager.latest_snapshot_offset is None


def test_snapshot_that_cannot_be_renamed_stays_known(tmp_path: Path) -> None:
    snapshot_path(tmp_path, 5).touch()

    class BrokenIO(DurableIO):
        def rename(self, source: str, target: str) -> None:
            raise PermissionError(errno.EACCES, f"from {source} to {target}")

    snapshots = ProducerSnapshots(str(tmp_path), BrokenIO())
    with pytest.raises(KafkaStorageError):
        snapshots.mark_for_deletion(5)
    assert snapshots.offsets == [5]


def test_only_files_named_as_snapshots_are_snapshots(tmp_path: Path) -> None:
    snapshot_path(tmp_path, 3).mkdir()
    for name in ("00000000000000000004.snapshot.deleted", "00000000000000000004.log", "notes"):
        (tmp_path / name).touch()
    assert ProducerSnapshots(str(tmp_path), DurableIO()).offsets == []


def test_directory_that_does_not_exist_yet_has_no_snapshots(tmp_path: Path) -> None:
    assert ProducerSnapshots(str(tmp_path / "later"), DurableIO()).offsets == []
    (tmp_path / "file").touch()
    with pytest.raises(KafkaStorageError, match="listing the directory") as caught:
        _ = ProducerSnapshots(str(tmp_path / "file"), DurableIO()).offsets
    assert caught.value.errno == errno.ENOTDIR


def test_snapshot_taken_and_loaded_are_logged(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pylog")
    partition.append(data(0, 0))
    path = partition.manager.take_snapshot()
    assert caplog.messages == [f"wrote producer snapshot of 1 producers to {path}"]
    assert PRODUCER in partition.manager.active_producers
