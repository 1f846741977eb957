from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from pylog.producers.producer_append_info import ProducerAppendInfo
from pylog.producers.producer_state_entry import (
    ProducerStateEntry,
    VerificationGuard,
    VerificationStateEntry,
)
from tests.unit.producers.producers import (
    CLIENT,
    EXPIRATION_MS,
    NOW_MS,
    PARTITION,
    PRODUCER,
    Partition,
    control,
    data,
)

if TYPE_CHECKING:
    from pathlib import Path

FIRST = data(0, 0, transactional=True)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(str(tmp_path), verification=True)


def test_transaction_begins_with_the_guard_drawn_before_asking(partition: Partition) -> None:
    verification = partition.manager.transaction_verification
    guard = verification.maybe_start(PRODUCER, 0, 0)
    assert guard is not None
    for wrong in (None, VerificationGuard()):
        with pytest.raises(InvalidTxnStateError, match="no verified transaction in partition test"):
            verification.ensure_verified(FIRST, wrong)
    verification.ensure_verified(FIRST, guard)
    partition.append(FIRST)
    verification.clear(PRODUCER)
    # It is open now: whatever follows needs no guard, and gets none.
    verification.ensure_verified(data(1, 1, transactional=True), None)
    assert verification.maybe_start(PRODUCER, 1, 0) is None
    assert verification.find(PRODUCER) is None


def test_guard_taken_away_in_between_verifies_nothing(partition: Partition) -> None:
    verification = partition.manager.transaction_verification
    guard = verification.maybe_start(PRODUCER, 0, 0)
    verification.clear(PRODUCER)
    with pytest.raises(InvalidTxnStateError):
        verification.ensure_verified(FIRST, guard)
    again = verification.maybe_start(PRODUCER, 0, 0)
    assert again is not guard
    with pytest.raises(InvalidTxnStateError):
        verification.ensure_verified(FIRST, guard)


def test_open_transaction_of_an_older_epoch_is_another_one(partition: Partition) -> None:
    verification = partition.manager.transaction_verification
    partition.append(FIRST)
    with pytest.raises(InvalidTxnStateError):
        verification.ensure_verified(data(1, 0, epoch=1, transactional=True), None)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_older_epoch_is_refused_before_a_guard_is_asked_for(
    tmp_path: Path, *, is_enabled: bool
) -> None:
    partition = Partition(str(tmp_path), verification=is_enabled)
    partition.append(data(0, 0, epoch=4))
    with pytest.raises(InvalidProducerEpochError, match="is 3, expected at least 4"):
        partition.manager.transaction_verification.ensure_verified(
            data(1, 1, epoch=3, transactional=True), None
        )


def test_nothing_but_transactional_data_needs_a_guard(partition: Partition) -> None:
    verification = partition.manager.transaction_verification
    verification.ensure_verified(data(0, 0), None)
    verification.ensure_verified(control(0), None)


def test_no_guard_is_needed_where_verification_is_off(tmp_path: Path) -> None:
    verification = Partition(str(tmp_path)).manager.transaction_verification
    verification.ensure_verified(FIRST, None)


def test_second_verification_of_a_producer_is_the_first(partition: Partition) -> None:
    verification = partition.manager.transaction_verification
    guard = verification.maybe_start(PRODUCER, 1, 0)
    for sequence, epoch, expected in (
        (0, 0, (0, 0)),  # a lower sequence
        (5, 0, (0, 0)),
        (2, 1, (2, 1)),  # a higher epoch
        (0, 0, (2, 1)),  # a lower epoch
    ):
        assert verification.maybe_start(PRODUCER, sequence, epoch) is guard
        entry = verification.find(PRODUCER)
        assert entry is not None
        assert (entry.lowest_sequence, entry.epoch) == expected


@pytest.mark.parametrize("is_enabled", [True, False])
def test_sequence_above_the_one_that_is_verified_is_refused(
    tmp_path: Path, *, is_enabled: bool
) -> None:
    partition = Partition(str(tmp_path), verification=is_enabled)
    partition.manager.transaction_verification.maybe_start(PRODUCER, 0, 0)
    with pytest.raises(OutOfOrderSequenceError, match="is 4, expected at most 0"):
        partition.append(data(0, 4, transactional=True))
    assert partition.manager.transaction_verification.find(PRODUCER) is not None
    partition.append(FIRST)


def test_verification_expires_like_a_producer(partition: Partition) -> None:
    verification = partition.manager.transaction_verification
    verification.maybe_start(PRODUCER, 0, 0)
    partition.clock.sleep(EXPIRATION_MS - 1)
    verification.maybe_start(PRODUCER, 0, 0)  # does not prolong it
    partition.manager.remove_expired_producers(partition.now_ms)
    assert verification.find(PRODUCER) is not None
    partition.clock.sleep(1)
    partition.manager.remove_expired_producers(partition.now_ms)
    assert verification.find(PRODUCER) is None


@pytest.mark.parametrize(
    ("supports_epoch_bump", "sequence", "is_accepted"),
    [(True, 0, True), (True, 5, False), (False, 5, True)],
)
def test_unknown_producer_of_transactions_version_2_begins_with_zero(
    *, supports_epoch_bump: bool, sequence: int, is_accepted: bool
) -> None:
    entry = VerificationStateEntry(NOW_MS, sequence, 0, supports_epoch_bump)
    info = ProducerAppendInfo(PARTITION, ProducerStateEntry(PRODUCER), CLIENT, entry)
    header = data(0, sequence, transactional=True)
    if is_accepted:
        info.append_batch(header, None)
        assert info.to_entry().last_sequence == sequence
    else:
        with pytest.raises(OutOfOrderSequenceError, match="transactions version 2"):
            info.append_batch(header, None)
