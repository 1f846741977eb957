from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import (
    InvalidProducerEpochError,
    LogLoadingError,
    OutOfOrderSequenceError,
)
from pylog.files.durable_io import DurableIO
from pylog.model import NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition
from pylog.producers.producer_state_entry import CompletedTransaction
from pylog.producers.producer_state_manager import ProducerStateManager
from pylog.record.control_record import EndTransactionMarker
from tests.unit.producers.producers import (
    ABORT,
    CLIENT,
    COMMIT,
    COORDINATOR,
    EXPIRATION_MS,
    LARGEST_SEQUENCE,
    NOW_MS,
    PRODUCER,
    REPLICATION,
    Partition,
    control,
    data,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(str(tmp_path))


def test_marker_alone_makes_a_producer_known_that_has_to_begin_with_zero(
    partition: Partition,
) -> None:
    partition.append_marker(control(27, epoch=2), COMMIT)
    assert (partition.entry().producer_epoch, partition.entry().last_sequence) == (2, NO_SEQUENCE)
    with pytest.raises(InvalidProducerEpochError):
        partition.append(data(39, 0, epoch=0))
    with pytest.raises(OutOfOrderSequenceError):
        partition.append(data(39, 17, epoch=2))
    partition.append(data(39, 0, epoch=2))
    assert (partition.entry().producer_epoch, partition.entry().last_sequence) == (2, 0)


def test_sequence_may_wrap_within_a_batch(partition: Partition) -> None:
    header = data(2000, LARGEST_SEQUENCE - 10, count=21, epoch=15)
    info = partition.manager.prepare_update(PRODUCER, REPLICATION)
    info.append_batch(header, None)
    assert partition.manager.last_entry(PRODUCER) is None
    partition.manager.update(info)
    entry = partition.entry()
    assert (entry.first_sequence, entry.last_sequence) == (LARGEST_SEQUENCE - 10, 9)
    assert (entry.first_data_offset, entry.last_data_offset) == (2000, 2020)


def test_marker_with_a_higher_epoch_forgets_the_batches(partition: Partition) -> None:
    partition.append(data(0, 0))
    partition.append_marker(control(1, epoch=1), ABORT)
    entry = partition.entry()
    assert (entry.producer_epoch, entry.current_txn_first_offset) == (1, None)
    assert (entry.first_sequence, entry.last_sequence) == (NO_SEQUENCE, NO_SEQUENCE)
    partition.append(data(2, 0, epoch=1))
    assert partition.entry().first_sequence == 0


def test_sequence_restarts_after_a_marker_with_a_higher_epoch(partition: Partition) -> None:
    partition.append(data(0, 0, transactional=True))
    partition.append(data(1, 1, transactional=True))
    partition.append_marker(control(2, epoch=1), ABORT)
    with pytest.raises(OutOfOrderSequenceError):
        partition.append(data(3, 2, epoch=1, transactional=True))
    with pytest.raises(OutOfOrderSequenceError):
        partition.append(data(3, 2, epoch=2, transactional=True))
    partition.append(data(3, 0, epoch=1, transactional=True))
    assert (partition.entry().producer_epoch, partition.entry().last_sequence) == (1, 0)


def test_fenced_producer_without_data_stays_known(partition: Partition) -> None:
    partition.append(data(0, 0, transactional=True))
    partition.append_marker(control(1, epoch=1), ABORT)
    entry = partition.entry()
    assert entry.current_txn_first_offset is None
    assert (entry.first_data_offset, entry.last_data_offset) == (-1, -1)
    partition.manager.remove_expired_producers(partition.now_ms)
    assert partition.entry().producer_epoch == 1


def test_nothing_changes_before_an_append_is_taken_over(partition: Partition) -> None:
    manager = partition.manager
    first = manager.prepare_update(PRODUCER, CLIENT)
    first.append_batch(data(15, 0, count=6), None)
    assert manager.last_entry(PRODUCER) is None
    assert manager.is_empty
    manager.update(first)
    second = manager.prepare_update(PRODUCER, CLIENT)
    second.append_batch(data(26, 6, count=5, transactional=True), None)
    entry = partition.entry()
    assert (entry.first_sequence, entry.last_sequence, entry.last_data_offset) == (0, 5, 20)
    assert partition.unstable_offsets() == (None, None, None)
    manager.update(second)
    assert (entry.first_sequence, entry.last_sequence, entry.last_data_offset) == (0, 10, 30)
    assert partition.unstable_offsets() == (26, None, 26)
    assert manager.active_producers


def test_records_without_producer_have_no_state(partition: Partition) -> None:
    info = partition.manager.prepare_update(NO_PRODUCER_ID, CLIENT)
    with pytest.raises(ValueError, match="producer id -1 has no state in partition test-0"):
        partition.manager.update(info)


def test_active_producers_cannot_be_changed_from_outside(partition: Partition) -> None:
    producers = partition.manager.active_producers
    partition.append(data(0, 0))
    assert list(producers) == [PRODUCER]
    with pytest.raises(TypeError):
        del producers[PRODUCER]  # type: ignore[attr-defined]


def test_offset_commits_of_a_coordinator_have_no_sequence(tmp_path: Path) -> None:
    manager = ProducerStateManager(
        TopicPartition("__consumer_offsets", 0),
        str(tmp_path),
        io=DurableIO(),
    )
    for offset in (99, 100):
        info = manager.prepare_update(PRODUCER, COORDINATOR)
        info.append_batch(data(offset, NO_SEQUENCE, transactional=True), None)
        manager.update(info)
    assert manager.first_undecided_offset == 99


def test_unstable_offset_is_that_of_open_and_of_unreplicated_transactions(
    partition: Partition,
) -> None:
    manager = partition.manager
    assert partition.unstable_offsets() == (None, None, None)
    partition.append(data(99, 0, epoch=5, transactional=True))
    assert partition.unstable_offsets() == (99, None, 99)
    partition.append(data(105, 0, producer_id=2, epoch=5, transactional=True))
    assert partition.unstable_offsets() == (99, None, 99)
    partition.append_marker(control(109, epoch=5), COMMIT)
    assert partition.unstable_offsets() == (105, 99, 99)
    manager.on_high_watermark_updated(100)
    assert partition.unstable_offsets() == (105, 99, 99)
    manager.on_high_watermark_updated(109)
    assert partition.unstable_offsets() == (105, 99, 99)
    manager.on_high_watermark_updated(110)
    assert partition.unstable_offsets() == (105, None, 105)
    partition.append_marker(control(112, producer_id=2, epoch=5), ABORT)
    assert partition.unstable_offsets() == (None, 105, 105)
    manager.on_high_watermark_updated(113)
    assert partition.unstable_offsets() == (None, None, None)


def test_last_stable_offset_of_the_index_is_that_of_the_other_open_transactions(
    partition: Partition,
) -> None:
    manager = partition.manager
    for producer_id, first_offset in ((1, 992_342), (2, 992_367), (3, 992_399)):
        partition.append(data(first_offset, 0, producer_id=producer_id, transactional=True))
    for producer_id, first_offset, last_offset, expected, unstable in (
        (1, 992_342, 992_414, 992_367, 992_367),
        (3, 992_399, 992_434, 992_367, 992_367),
        (2, 992_367, 992_512, 992_513, None),
    ):
        completed = CompletedTransaction(producer_id, first_offset, last_offset, is_aborted=False)
        assert manager.last_stable_offset(completed) == expected
        manager.complete_transaction(completed)
        manager.on_high_watermark_updated(last_offset + 1)
        assert manager.first_unstable_offset == unstable


def test_transaction_that_was_not_started_cannot_be_completed(partition: Partition) -> None:
    completed = CompletedTransaction(PRODUCER, 5, 9, is_aborted=True)
    with pytest.raises(LogLoadingError, match="was not started in partition test-0"):
        partition.manager.complete_transaction(completed)


def test_empty_transactions_of_an_append_leave_no_trace(partition: Partition) -> None:
    manager = partition.manager
    partition.append(data(16, 0, count=5, transactional=True))
    manager.on_high_watermark_updated(21)
    assert manager.first_unstable_offset == 16

    info = manager.prepare_update(PRODUCER, CLIENT)
    completed = []
    for header, control_type in (
        (control(21), COMMIT),
        (control(22), COMMIT),
        (control(23), ABORT),
        (data(24, 5, count=4, transactional=True), None),
        (control(28), ABORT),
        (control(29), ABORT),
        (data(30, 9, count=2, transactional=True), None),
    ):
        marker = None if control_type is None else EndTransactionMarker(control_type, 27)
        completed.append(info.append_batch(header, marker))
    first = CompletedTransaction(PRODUCER, 16, 21, is_aborted=False)
    second = CompletedTransaction(PRODUCER, 24, 28, is_aborted=True)
    assert completed == [first, None, None, None, second, None, None]
    assert info.started_transactions == ((PRODUCER, 24, None), (PRODUCER, 30, None))

    manager.update(info)
    manager.complete_transaction(first)
    manager.complete_transaction(second)
    manager.on_high_watermark_updated(32)
    assert manager.first_unstable_offset == 30


def test_producer_is_forgotten_when_it_has_been_idle_for_long_enough(partition: Partition) -> None:
    partition.append(data(1, 0, epoch=5))
    partition.clock.sleep(EXPIRATION_MS - 1)
    partition.manager.remove_expired_producers(partition.now_ms)
    assert list(partition.manager.active_producers) == [PRODUCER]
    partition.clock.sleep(1)
    partition.manager.remove_expired_producers(partition.now_ms)
    assert partition.manager.is_empty
    partition.append(data(2, 1, epoch=5))
    assert partition.entry().last_sequence == 1
    assert partition.manager.map_end_offset == 3


def test_producer_with_an_open_transaction_does_not_expire(partition: Partition) -> None:
    partition.append(data(99, 0, epoch=5, transactional=True))
    partition.clock.sleep(EXPIRATION_MS + 1)
    partition.manager.remove_expired_producers(partition.now_ms)
    assert partition.entry().current_txn_first_offset == 99
    assert partition.manager.first_undecided_offset == 99


def test_log_start_takes_unreplicated_transactions_and_leaves_producers(
    partition: Partition,
) -> None:
    partition.append(data(10, 0, transactional=True))
    partition.append_marker(control(11), COMMIT)
    partition.append(data(12, 1, transactional=True))
    partition.append_marker(control(13), COMMIT)
    partition.manager.on_log_start_offset_incremented(13)
    assert partition.unstable_offsets() == (None, 12, 12)
    assert partition.manager.map_end_offset == 14
    partition.manager.on_log_start_offset_incremented(20)
    assert partition.unstable_offsets() == (None, None, None)
    assert partition.manager.map_end_offset == 20
    assert partition.entry().last_data_offset == 12


def test_truncation_lets_go_of_unreplicated_transactions(partition: Partition) -> None:
    manager = partition.manager
    partition.append(data(10, 0, transactional=True))
    partition.append_marker(control(11), COMMIT)
    manager.truncate_and_reload(11, 12, NOW_MS)
    assert partition.unstable_offsets() == (None, 10, 10)
    manager.truncate_and_reload(12, 12, NOW_MS)
    assert partition.unstable_offsets() == (None, None, None)

    partition.append(data(12, 1, transactional=True))
    partition.append_marker(control(13), COMMIT)
    manager.truncate_and_reload(0, 5, NOW_MS)
    assert partition.unstable_offsets() == (None, None, None)
    assert manager.is_empty


def test_snapshot_may_be_taken_where_the_log_starts_above_the_newest(partition: Partition) -> None:
    partition.append(data(0, 0))
    assert partition.manager.take_snapshot() is not None
    partition.manager.on_log_start_offset_incremented(5)
    path = partition.manager.take_snapshot()
    assert path is not None
    assert path.endswith("/00000000000000000005.snapshot")
