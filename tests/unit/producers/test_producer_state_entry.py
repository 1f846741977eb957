from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.files.producer_snapshot import ProducerSnapshotEntry
from pylog.model import NO_SEQUENCE, NO_TIMESTAMP
from pylog.producers.producer_state_entry import (
    BatchMetadata,
    ProducerStateEntry,
    TransactionsByFirstOffset,
    TxnMetadata,
)
from tests.unit.producers.producers import LARGEST_SEQUENCE, data


def entry_with(*last_sequences: int, epoch: int = 3) -> ProducerStateEntry:
    """Return a producer that wrote batches of two records with these last sequences."""
    entry = ProducerStateEntry(1)
    for last_sequence in last_sequences:
        batch = BatchMetadata(last_sequence, 100 + last_sequence, 1, 1000 + last_sequence)
        entry.add_batch(epoch, batch)
    return entry


def test_producer_without_any_batch_has_sentinels_only() -> None:
    entry = ProducerStateEntry(1)
    assert entry.is_empty
    assert (entry.first_sequence, entry.last_sequence) == (NO_SEQUENCE, NO_SEQUENCE)
    assert (entry.first_data_offset, entry.last_data_offset) == (-1, -1)
    assert (entry.producer_epoch, entry.coordinator_epoch) == (-1, -1)
    assert (entry.last_offset_delta, entry.last_timestamp) == (0, NO_TIMESTAMP)
    assert entry.current_txn_first_offset is None


def test_newest_five_batches_are_remembered() -> None:
    entry = entry_with(1, 3, 5, 7, 9, 11)
    assert [each.last_sequence for each in entry.batch_metadata] == [3, 5, 7, 9, 11]
    assert (entry.first_sequence, entry.last_sequence) == (2, 11)
    assert (entry.first_data_offset, entry.last_data_offset) == (102, 111)
    assert (entry.last_offset_delta, entry.last_timestamp) == (1, 1011)


def test_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    entry = entry_with(1, 3)
    entry.add_batch(4, BatchMetadata(0, 200, 0, 5))
    assert list(entry.batch_metadata) == [(0, 200, 0, 5)]
    assert entry.producer_epoch == 4
    entry.update_producer_epoch(4)
    assert not entry.is_empty
    entry.update_producer_epoch(5)
    assert entry.is_empty


@pytest.mark.parametrize(
    ("sequence", "count", "epoch", "expected"),
    [
        (8, 2, 3, (9, 109, 1, 1009)),
        (2, 2, 3, (3, 103, 1, 1003)),
        (0, 2, 3, None),  # pushed out
        (8, 2, 2, None),  # another epoch
        (8, 1, 3, None),  # only its beginning
        (9, 1, 3, None),  # only its end
        (7, 3, 3, None),  # more
        (10, 2, 3, (11, 111, 1, 1011)),
        (12, 2, 3, None),  # new
    ],
)
def test_duplicate_spans_exactly_the_sequences_of_a_remembered_batch(
    sequence: int, count: int, epoch: int, expected: tuple[int, ...] | None
) -> None:
    entry = entry_with(1, 3, 5, 7, 9, 11)
    assert entry.find_duplicate_batch(data(500, sequence, count=count, epoch=epoch)) == expected


def test_batch_whose_sequences_wrap_is_recognised() -> None:
    entry = ProducerStateEntry(1)
    entry.add_batch(0, BatchMetadata(9, 2020, 20, 7))
    assert entry.first_sequence == LARGEST_SEQUENCE - 10
    repetition = data(3000, LARGEST_SEQUENCE - 10, count=21)
    assert entry.find_duplicate_batch(repetition) == (9, 2020, 20, 7)


def test_update_adds_newer_batches_to_those_remembered() -> None:
    entry = entry_with(1, 3, 5, 7)
    newer = entry.without_batches()
    assert newer.is_empty
    newer.add_batch(3, BatchMetadata(8, 400, 0, 30))
    newer.add_batch(3, BatchMetadata(9, 401, 0, 20))
    newer.current_txn_first_offset = 400
    entry.update(newer)
    assert [each.last_sequence for each in entry.batch_metadata] == [3, 5, 7, 8, 9]
    assert (entry.current_txn_first_offset, entry.last_timestamp) == (400, 20)


@pytest.mark.parametrize(
    "stored",
    [
        ProducerSnapshotEntry(1, 2, 1, 2, 3, NO_TIMESTAMP, 3, 100),
        ProducerSnapshotEntry(11, 12, -1, -1, 0, 123_456, 13, -1),
        ProducerSnapshotEntry(7, 0, 4, 28, 1, 1_713_115_209_673, -1, 0),
    ],
)
def test_state_read_from_a_snapshot_is_written_as_it_was(stored: ProducerSnapshotEntry) -> None:
    assert ProducerStateEntry.from_stored(stored).to_stored() == stored


def test_snapshot_keeps_the_newest_batch_alone() -> None:
    entry = entry_with(1, 3, 5)
    entry.current_txn_first_offset = 101
    entry.coordinator_epoch = 8
    assert entry.to_stored() == (1, 3, 5, 105, 1, 1005, 8, 101)
    assert list(ProducerStateEntry.from_stored(entry.to_stored()).batch_metadata) == [
        (5, 105, 1, 1005)
    ]


OFFSETS = st.integers(0, 12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), OFFSETS, st.none() | OFFSETS),
        st.tuples(st.just("pop"), OFFSETS, st.none()),
        st.tuples(st.just("remove"), OFFSETS, st.none()),
    ),
    max_size=30,
)


@given(STEPS)
def test_transactions_are_what_a_sorted_dictionary_holds(
    steps: list[tuple[str, int, int | None]],
) -> None:
    ours = TransactionsByFirstOffset()
    model: dict[int, TxnMetadata] = {}
    for producer_id, (what, offset, last_offset) in enumerate(steps):
        if what == "put":
            model[offset] = TxnMetadata(producer_id, offset, last_offset)
            ours.put(model[offset])
        elif what == "pop":
            assert ours.pop(offset) == model.pop(offset, None)
        else:
            ours.remove_completed_before(offset)
            model = {
                first: each
                for first, each in model.items()
                if each.last_offset is None or each.last_offset >= offset
            }
        in_order = [model[first] for first in sorted(model)]
        assert list(ours) == in_order
        assert len(ours) == len(in_order)
        assert ours.first == (in_order[0] if in_order else None)


def test_none_is_left_after_clearing() -> None:
    transactions = TransactionsByFirstOffset()
    transactions.put(TxnMetadata(1, 5))
    transactions.clear()
    assert (len(transactions), transactions.first) == (0, None)
