"""First unstable offset, last stable offset, markers, and the index of aborted transactions.

The cases are those of Kafka's UnifiedLogTest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaStorageError,
    TransactionCoordinatorFencedError,
)
from pylog.model import AbortedTransaction
from tests.support.batches import marker
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.log.owned_log import (
    ABORT,
    COMMIT,
    LARGEST_LENGTH,
    NOW_MS,
    TXN_COMMITTED,
    OwnedLog,
    Transactional,
    one_batch,
)

if TYPE_CHECKING:
    from pathlib import Path


def append_plain(owned: OwnedLog, count: int) -> None:
    """Append one batch of records that belong to no transaction."""
    owned.append(*[b"%d" % number for number in range(count)])


# ---- unstable and stable offsets


def test_without_transactions_nothing_is_unstable(owned: OwnedLog) -> None:
    append_plain(owned, 3)
    assert owned.first_unstable_offset() is None


def test_a_transaction_is_unstable_until_its_marker_is_replicated(owned: OwnedLog) -> None:
    producer = Transactional(owned, 137, epoch=5)
    producer.append(3)
    assert owned.first_unstable_offset() == 0
    producer.append(1)
    assert owned.first_unstable_offset() == 0
    committed = producer.end(COMMIT)
    assert (committed.first_offset, committed.last_offset) == (4, 4)
    assert owned.first_unstable_offset() == 0
    owned.log.update_high_watermark(4)
    assert owned.first_unstable_offset() == 0, "the marker itself is not replicated"
    owned.log.update_high_watermark(5)
    assert owned.first_unstable_offset() is None


def test_the_oldest_of_several_transactions_counts(owned: OwnedLog) -> None:
    first, second = Transactional(owned, 137, epoch=5), Transactional(owned, 983, epoch=5)
    first.append(3)
    assert owned.first_unstable_offset() == 0
    append_plain(owned, 3)
    second.append(3)
    assert owned.first_unstable_offset() == 0
    aborted = first.end(ABORT)
    owned.log.update_high_watermark(aborted.last_offset + 1)
    assert owned.first_unstable_offset() == 6
    assert owned.log.last_stable_offset == 6
    committed = second.end(COMMIT)
    owned.log.update_high_watermark(committed.last_offset + 1)
    assert owned.first_unstable_offset() is None
    assert owned.log.last_stable_offset == 11


@pytest.mark.parametrize(("start_offset", "unstable"), [(5, 5), (8, 8)])
def test_nothing_below_the_log_start_is_unstable(
    owned: OwnedLog, start_offset: int, unstable: int
) -> None:
    producer = Transactional(owned, 1)
    producer.append(5)
    append_plain(owned, 3)
    owned.log.roll()
    producer.append(5)
    assert owned.first_unstable_offset() == 0
    owned.raise_high_watermark()
    owned.log.maybe_increment_log_start_offset(start_offset)
    assert owned.first_unstable_offset() == unstable
    assert owned.log.last_stable_offset == unstable


def test_the_last_stable_offset_is_never_above_the_high_watermark(owned: OwnedLog) -> None:
    append_plain(owned, 3)
    Transactional(owned, 1).append(2)
    owned.log.update_high_watermark(1)
    assert (owned.log.last_stable_offset, owned.first_unstable_offset()) == (1, 3)


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_aborted_transaction_is_not_open_after_a_restart(
    owned: OwnedLog, *, is_clean: bool
) -> None:
    producer = Transactional(owned, 137, epoch=5)
    producer.append(3)
    end = producer.end(ABORT).last_offset + 1
    owned.log.update_high_watermark(end)
    assert owned.first_unstable_offset() is None
    owned.log.close()
    reopened = owned.open(is_clean=is_clean)
    reopened.update_high_watermark(end)
    assert owned.first_unstable_offset() is None
    assert owned.aborted() == [(137, 0, 3, 4)]


def test_other_data_of_a_producer_waits_for_the_end_of_its_transaction(owned: OwnedLog) -> None:
    Transactional(owned, 1).append(2)
    with pytest.raises(InvalidTxnStateError):
        owned.log.append_as_leader(
            one_batch(b"v", producer_id=1, producer_epoch=0, base_sequence=2)
        )
    assert owned.log.log_end_offset == 2


# ---- the index of aborted transactions

# Producer 0 stands for data outside of transactions; a marker is counted as one record.
MIXED_HISTORY: list[tuple[int, int | str]] = [
    (1, 5),
    (0, 3),
    (2, 2),
    (1, 4),
    (3, 3),
    (0, 2),
    (1, 10),
    (1, "abort"),  # at 29
    (2, 6),
    (4, 3),
    (0, 10),
    (3, 9),
    (3, "commit"),  # at 58
    (4, 8),
    (2, 7),
    (2, "abort"),  # at 74
    (0, 10),
    (4, 4),
    (4, "commit"),  # at 89
]


def assert_index_of_mixed_history(owned: OwnedLog) -> None:
    assert owned.log.log_end_offset == 90
    assert owned.aborted() == [(1, 0, 29, 8), (2, 8, 74, 36)]
    owned.log.update_high_watermark(30)
    assert owned.first_unstable_offset() == 8
    owned.log.update_high_watermark(75)
    assert owned.first_unstable_offset() == 36
    owned.raise_high_watermark()
    assert owned.first_unstable_offset() is None


def test_a_leader_indexes_aborted_transactions(owned: OwnedLog) -> None:
    producers = {number: Transactional(owned, number) for number in (1, 2, 3, 4)}
    for producer_id, what in MIXED_HISTORY:
        if isinstance(what, str):
            producers[producer_id].end(ABORT if what == "abort" else COMMIT)
        elif producer_id:
            producers[producer_id].append(what)
        else:
            append_plain(owned, what)
    assert_index_of_mixed_history(owned)


def replicated_history() -> bytes:
    data = bytearray()
    sequences = dict.fromkeys(range(5), 0)
    offset = 0
    for producer_id, what in MIXED_HISTORY:
        if isinstance(what, str):
            control_type = ABORT if what == "abort" else COMMIT
            data += marker(offset, control_type, producer_id=producer_id, timestamp=NOW_MS).data
            offset += 1
            continue
        data += one_batch(
            *[b"v"] * what,
            base_offset=offset,
            producer_id=producer_id or -1,
            producer_epoch=0 if producer_id else -1,
            base_sequence=sequences[producer_id] if producer_id else -1,
            is_transactional=producer_id > 0,
        )
        sequences[producer_id] += what
        offset += what
    return bytes(data)


def test_a_follower_indexes_aborted_transactions_of_one_append(owned: OwnedLog) -> None:
    owned.log.append_as_follower(replicated_history())
    assert_index_of_mixed_history(owned)


def test_a_read_reports_an_abort_in_a_later_segment(tmp_path: Path) -> None:
    size = len(one_batch(b"0", b"1", b"2"))
    owned = OwnedLog(tmp_path, LogConfig(segment_bytes=size))
    producer = Transactional(owned, 137, epoch=5)
    producer.append(3)
    assert owned.first_unstable_offset() == 0
    producer.append(3)
    assert owned.base_offsets == [0, 3]
    assert owned.first_unstable_offset() == 0
    aborted = producer.end(ABORT)
    owned.log.update_high_watermark(aborted.last_offset + 1)
    assert owned.base_offsets == [0, 3, 6]
    assert owned.first_unstable_offset() is None
    info = owned.log.read(0, 2048, TXN_COMMITTED)
    assert info.aborted_transactions == [AbortedTransaction(137, 0, 6)]
    assert owned.log.read(0, 2048).aborted_transactions is None


def test_a_committed_read_reports_only_aborts_that_touch_it(owned: OwnedLog) -> None:
    producer = Transactional(owned, 1)
    for _ in range(2):
        producer.append(2)
        producer.end(ABORT)
    append_plain(owned, 2)
    owned.raise_high_watermark()
    both = [AbortedTransaction(1, 0, 2), AbortedTransaction(1, 3, 5)]
    found = {
        offset: owned.log.read(offset, LARGEST_LENGTH, TXN_COMMITTED).aborted_transactions
        for offset in (0, 2, 3, 5, 6, 8)
    }
    assert found == {0: both, 2: both, 3: both[1:], 5: both[1:], 6: [], 8: []}


def test_a_marker_without_data_leaves_no_trace_in_the_index(owned: OwnedLog) -> None:
    Transactional(owned, 1).end(ABORT)
    assert owned.log.log_end_offset == 1
    assert owned.aborted() == []
    assert not list(owned.directory.glob("*.txnindex"))


# ---- who may end a transaction


def test_the_marker_of_a_replaced_coordinator_is_refused(owned: OwnedLog) -> None:
    producer = Transactional(owned, 1)
    producer.append(10)
    producer.end(ABORT, coordinator_epoch=1)
    producer.append(5)
    producer.end(COMMIT, coordinator_epoch=2)
    with pytest.raises(TransactionCoordinatorFencedError):
        producer.end(ABORT, coordinator_epoch=1)
    assert owned.log.log_end_offset == 17


def test_the_marker_of_a_replaced_coordinator_is_refused_without_data_too(
    owned: OwnedLog,
) -> None:
    data = one_batch(
        *[b"v"] * 10,
        leader_epoch=1,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    owned.log.append_as_follower(data + marker(10, COMMIT, leader_epoch=1).data)
    producer = Transactional(owned, 1)
    for _ in range(2):
        producer.end(ABORT, coordinator_epoch=2, leader_epoch=1)
    with pytest.raises(TransactionCoordinatorFencedError):
        producer.end(ABORT, coordinator_epoch=1, leader_epoch=1)


def test_a_marker_of_an_old_producer_epoch_is_refused(owned: OwnedLog) -> None:
    Transactional(owned, 1, epoch=5).end(ABORT, coordinator_epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        Transactional(owned, 1, epoch=4).end(ABORT, coordinator_epoch=1)


# ---- a disk that fails


def test_a_marker_whose_index_entry_cannot_be_written_is_taken_back(tmp_path: Path) -> None:
    io = FaultyIO()
    owned = OwnedLog(tmp_path, io=io)
    producer = Transactional(owned, 1)
    producer.append(10)
    io.faults.append(
        Fault(kinds=frozenset({Kind.CREATE, Kind.WRITE}), path_end=".txnindex", forever=True)
    )
    # Kafka keeps the marker, and finds out at the next start that it has no entry.
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            producer.end(ABORT, coordinator_epoch=1)
        assert (owned.log.log_end_offset, owned.log.last_stable_offset) == (10, 0)
    owned.log.update_high_watermark(12)
    assert owned.log.last_stable_offset == 0
    with pytest.raises(KafkaStorageError):
        owned.log.close()
    owned.log.close_handlers()

    io.faults.clear()
    reopened = owned.open(is_clean=False)
    assert (reopened.log_end_offset, owned.aborted()) == (10, [])
    assert owned.first_unstable_offset() == 0
    producer.end(ABORT, coordinator_epoch=1)
    owned.raise_high_watermark()
    assert owned.aborted() == [(1, 0, 10, 11)]
    assert owned.first_unstable_offset() is None


def test_recovery_rewrites_the_index_entry_of_a_marker(owned: OwnedLog) -> None:
    producer = Transactional(owned, 1)
    producer.append(10)
    producer.end(ABORT)
    owned.log.close_handlers()
    (index,) = owned.directory.glob("*.txnindex")
    index.unlink()
    owned.open(is_clean=False)
    assert owned.aborted() == [(1, 0, 10, 11)]
