from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from pylog.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from pylog.producers.producer_append_info import ProducerAppendInfo
from pylog.producers.producer_state_entry import (
    BatchMetadata,
    CompletedTransaction,
    ProducerStateEntry,
)
from pylog.record.control_record import EndTransactionMarker
from tests.unit.producers.producers import (
    ABORT,
    CLIENT,
    COMMIT,
    COORDINATOR,
    LARGEST_SEQUENCE,
    NOW_MS,
    PARTITION,
    PRODUCER,
    REPLICATION,
    control,
    data,
)

if TYPE_CHECKING:
    from pylog.model import AppendOrigin
    from pylog.record.batch_header import BatchHeader

LARGEST_EPOCH = 32_767


def known_producer(
    *, epoch: int = 5, last_sequence: int = 9, txn_first_offset: int | None = None
) -> ProducerStateEntry:
    """Return a producer whose last record, at offset 50, had ``last_sequence``."""
    entry = ProducerStateEntry(
        PRODUCER, epoch, coordinator_epoch=2, current_txn_first_offset=txn_first_offset
    )
    entry.batch_metadata.append(BatchMetadata(last_sequence, 50, 0, NOW_MS))
    return entry


def info_of(entry: ProducerStateEntry, origin: AppendOrigin) -> ProducerAppendInfo:
    return ProducerAppendInfo(PARTITION, entry, origin)


ACCEPTED = None
WRONG_EPOCH, WRONG_SEQUENCE = InvalidProducerEpochError, OutOfOrderSequenceError


@pytest.mark.parametrize(
    ("header", "client", "coordinator"),
    [
        (data(51, 10, epoch=5), ACCEPTED, ACCEPTED),
        (data(51, 9, epoch=5), WRONG_SEQUENCE, ACCEPTED),
        (data(51, 11, epoch=5), WRONG_SEQUENCE, ACCEPTED),
        (data(51, 0, epoch=5), WRONG_SEQUENCE, ACCEPTED),
        (data(51, 0, epoch=6), ACCEPTED, ACCEPTED),
        (data(51, 10, epoch=6), WRONG_SEQUENCE, ACCEPTED),
        (data(51, -1, epoch=5), WRONG_SEQUENCE, ACCEPTED),
        (data(51, 10, epoch=4), WRONG_EPOCH, WRONG_EPOCH),
        (data(51, 0, epoch=4), WRONG_EPOCH, WRONG_EPOCH),
    ],
)
def test_how_far_data_is_checked_depends_on_the_origin(
    header: BatchHeader, client: type[Exception] | None, coordinator: type[Exception] | None
) -> None:
    outcomes = {CLIENT: client, COORDINATOR: coordinator, REPLICATION: ACCEPTED}
    for origin, error in outcomes.items():
        info = info_of(known_producer(), origin)
        if error is None:
            info.append_batch(header, None)
            assert info.to_entry().producer_epoch == header.producer_epoch
            assert info.to_entry().last_data_offset == 51
        else:
            with pytest.raises(error):
                info.append_batch(header, None)


@pytest.mark.parametrize(
    ("last_sequence", "sequence", "is_accepted"),
    [
        (LARGEST_SEQUENCE, 0, True),
        (LARGEST_SEQUENCE, 1, False),
        (LARGEST_SEQUENCE - 1, LARGEST_SEQUENCE, True),
        (LARGEST_SEQUENCE - 1, 0, False),
    ],
)
def test_zero_follows_the_largest_sequence(
    last_sequence: int, sequence: int, *, is_accepted: bool
) -> None:
    info = info_of(known_producer(last_sequence=last_sequence), CLIENT)
    if is_accepted:
        info.append_batch(data(51, sequence, epoch=5), None)
        assert info.to_entry().last_sequence == sequence
    else:
        with pytest.raises(OutOfOrderSequenceError):
            info.append_batch(data(51, sequence, epoch=5), None)


def test_unknown_producer_may_begin_with_any_sequence() -> None:
    info = info_of(ProducerStateEntry(PRODUCER), CLIENT)
    info.append_batch(data(0, 4711, epoch=3), None)
    assert info.to_entry().last_sequence == 4711


def test_batches_of_one_append_are_checked_against_each_other() -> None:
    info = info_of(known_producer(), CLIENT)
    info.append_batch(data(51, 10, count=3, epoch=5), None)
    info.append_batch(data(54, 13, epoch=5), None)
    with pytest.raises(OutOfOrderSequenceError):
        info.append_batch(data(55, 13, epoch=5), None)
    assert [each.last_sequence for each in info.to_entry().batch_metadata] == [12, 13]


def test_errors_name_producer_offset_partition_and_both_values() -> None:
    info = info_of(known_producer(txn_first_offset=40), CLIENT)
    cases = {
        "producer epoch of producer 1 at offset 51 is 4, expected at least 5 "
        "(transaction version 0) in partition test-0": data(51, 10, epoch=4),
        "first sequence of producer 1 at offset 51 is 12, expected the one after 9 "
        "in partition test-0": data(51, 12, epoch=5),
        "first sequence of producer 1 at offset 51 is 3, expected 0 in a new epoch, 7 "
        "in partition test-0": data(51, 3, epoch=7),
        "expected a transactional batch from producer 1 at offset 51: its transaction that began "
        "at offset 40 is open in partition test-0": data(51, 10, epoch=5),
    }
    for text, header in cases.items():
        with pytest.raises(
            (InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTxnStateError)
        ) as caught:
            info.append_batch(header, None)
        assert str(caught.value) == text


@pytest.mark.parametrize("origin", [CLIENT, COORDINATOR, REPLICATION])
def test_other_data_is_refused_in_an_open_transaction(origin: AppendOrigin) -> None:
    entry = known_producer(txn_first_offset=40)
    info = info_of(entry, origin)
    with pytest.raises(InvalidTxnStateError):
        info.append_batch(data(51, 10, epoch=5), None)
    info = info_of(entry, origin)
    info.append_batch(data(51, 10, epoch=5, transactional=True), None)
    assert info.to_entry().current_txn_first_offset == 40
    assert info.started_transactions == ()


def test_transaction_begins_with_its_first_data_and_ends_with_its_marker() -> None:
    entry = ProducerStateEntry(PRODUCER, 0)
    entry.batch_metadata.append(BatchMetadata(0, 9, 0, NOW_MS))
    info = info_of(entry, CLIENT)
    info.append_batch(data(16, 1, count=5, transactional=True), None)
    state = info.to_entry()
    assert (state.first_sequence, state.last_sequence) == (1, 5)
    assert (state.first_data_offset, state.last_data_offset) == (16, 20)
    assert (state.current_txn_first_offset, state.coordinator_epoch) == (16, -1)
    assert info.started_transactions == ((PRODUCER, 16, None),)

    info.append_batch(data(26, 6, count=5, transactional=True), None)
    assert (state.first_sequence, state.last_sequence) == (1, 10)
    assert (state.first_data_offset, state.last_data_offset) == (16, 30)
    assert info.started_transactions == ((PRODUCER, 16, None),)

    marker = EndTransactionMarker(COMMIT, 15)
    completed = info.append_batch(control(40, timestamp=NOW_MS + 9), marker)
    assert completed == CompletedTransaction(PRODUCER, 16, 40, is_aborted=False)
    assert (state.first_sequence, state.last_sequence) == (1, 10)
    assert (state.first_data_offset, state.last_data_offset) == (16, 30)
    assert (state.current_txn_first_offset, state.coordinator_epoch) == (None, 15)
    assert state.last_timestamp == NOW_MS + 9
    assert entry.current_txn_first_offset is None
    assert list(entry.batch_metadata) == [(0, 9, 0, NOW_MS)]


def test_marker_without_data_completes_no_transaction() -> None:
    info = info_of(known_producer(), COORDINATOR)
    assert info.append_batch(control(51, epoch=5), EndTransactionMarker(ABORT, 2)) is None
    assert info.started_transactions == ()


def test_control_batch_emptied_by_the_cleaner_changes_nothing() -> None:
    entry = known_producer(epoch=5, txn_first_offset=40)
    info = info_of(entry, CLIENT)
    assert info.append_batch(control(51, epoch=9, count=0), None) is None
    assert info.to_entry().current_txn_first_offset == 40
    assert info.to_entry().producer_epoch == 5


@pytest.mark.parametrize(
    ("version", "known_epoch", "epoch", "is_open", "is_accepted"),
    [
        (0, 5, 5, True, True),
        (1, 5, 6, True, True),
        (1, 5, 4, True, False),
        (2, 5, 6, True, True),
        (2, 5, 5, True, False),
        (2, 5, 5, False, True),  # a second try of a marker that was written
        (2, 5, 4, False, False),
        (2, LARGEST_EPOCH, LARGEST_EPOCH, True, True),  # it cannot rise any more
    ],
)
def test_marker_of_transactions_version_2_raises_the_epoch(
    version: int, known_epoch: int, epoch: int, *, is_open: bool, is_accepted: bool
) -> None:
    entry = known_producer(epoch=known_epoch, txn_first_offset=40 if is_open else None)
    marker = EndTransactionMarker(COMMIT, 2)
    header = control(51, epoch=epoch)
    if is_accepted:
        completed = info_of(entry, COORDINATOR).append_batch(
            header, marker, transaction_version=version
        )
        assert (completed is not None) is is_open
    else:
        with pytest.raises(InvalidProducerEpochError, match=f"transaction version {version}"):
            info_of(entry, COORDINATOR).append_batch(header, marker, transaction_version=version)
    replica = info_of(entry, REPLICATION)
    replica.append_batch(header, marker, transaction_version=version)
    assert replica.to_entry().producer_epoch == epoch


@pytest.mark.parametrize("origin", [CLIENT, COORDINATOR])
def test_marker_of_a_replaced_coordinator_is_refused(origin: AppendOrigin) -> None:
    info = info_of(known_producer(), origin)
    with pytest.raises(TransactionCoordinatorFencedError) as caught:
        info.append_batch(control(51, epoch=5), EndTransactionMarker(COMMIT, 1))
    assert str(caught.value) == (
        "coordinator epoch of a marker for producer 1 at offset 51 is 1, expected at least 2 "
        "in partition test-0"
    )
    info.append_batch(control(51, epoch=5), EndTransactionMarker(COMMIT, 2))
    info.append_batch(control(52, epoch=5), EndTransactionMarker(COMMIT, 3))
    assert info.to_entry().coordinator_epoch == 3


def test_replica_takes_what_its_leader_took_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pylog")
    info = info_of(known_producer(txn_first_offset=40), REPLICATION)
    completed = info.append_batch(control(51, epoch=3), EndTransactionMarker(ABORT, 1))
    assert completed == (PRODUCER, 40, 51, True)
    assert (info.to_entry().producer_epoch, info.to_entry().coordinator_epoch) == (3, 1)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert all("in partition test-0; taken" in each for each in caplog.messages)


def test_sequence_begins_with_zero_after_a_marker_of_the_same_append_raised_the_epoch() -> None:
    info = info_of(known_producer(), CLIENT)
    info.append_batch(control(51, epoch=6), EndTransactionMarker(ABORT, 2))
    with pytest.raises(OutOfOrderSequenceError, match="is 10, expected the one after -1"):
        info.append_batch(data(52, 10, epoch=6), None)
    info.append_batch(data(52, 0, epoch=6), None)
    assert info.to_entry().last_sequence == 0
