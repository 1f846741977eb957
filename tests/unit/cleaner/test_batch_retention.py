"""What a task reports of a segment's transactions has the same effect as all its batches."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING

import pytest

from pylog.cleaner.batch_retention import CleanedTransactionMetadata, TransactionBatch
from pylog.cleaner.cleaning_task import events_of
from pylog.files.transaction_index import TransactionIndexEntry
from pylog.model import ControlRecordType

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKERS = (
    *(ControlRecordType.COMMIT, ControlRecordType.ABORT, ControlRecordType.ABORT),
    *(ControlRecordType.LEADER_CHANGE, None),
)


def draw_batches(source: random.Random) -> list[TransactionBatch]:
    """Return batches of few producers, many of them data."""
    batches = []
    offset = source.randrange(5)
    for index in range(source.randrange(1, 40)):
        offset += source.randrange(1, 4)
        is_marker = source.random() < 0.3
        kind = source.choice(MARKERS) if is_marker else None
        batches.append(TransactionBatch(index, source.randrange(3), offset, is_marker, kind))
    return batches


def draw_aborted(source: random.Random, end: int) -> list[TransactionIndexEntry]:
    """Return what indexes might say; much of it does not agree with the batches."""
    entries = []
    for _ in range(source.randrange(8)):
        first = source.randrange(end + 2)
        last = first + source.randrange(10)
        entries.append(TransactionIndexEntry(0, source.randrange(3), first, last, last))
    return entries


def show(
    batches: Sequence[TransactionBatch], transactions: CleanedTransactionMetadata
) -> list[bool]:
    return [
        transactions.on_control_batch_read(each.producer_id, each.last_offset, each.control_type)
        if each.is_marker
        else transactions.on_batch_read(each.producer_id, each.last_offset)
        for each in batches
    ]


@pytest.mark.parametrize("first", range(0, 2_000, 500))
def test_whoever_is_told_the_events_knows_what_all_batches_show(first: int) -> None:
    fewer = 0
    for seed in range(first, first + 500):
        source = random.Random(seed)
        batches = draw_batches(source)
        transactions = CleanedTransactionMetadata()
        transactions.add_aborted_transactions(draw_aborted(source, batches[-1].last_offset))
        cut = source.randrange(len(batches) + 1)
        replayed = copy.deepcopy(transactions)
        show(batches[:cut], transactions)
        events = events_of(batches[:cut])
        events.show_to(replayed)
        assert len(events.kinds) <= cut
        fewer += len(events.kinds) < cut
        again = draw_aborted(source, batches[-1].last_offset)  # as at the next segment
        transactions.add_aborted_transactions(again)
        replayed.add_aborted_transactions(again)
        assert show(batches[cut:], replayed) == show(batches[cut:], transactions), seed
    assert fewer > 100


def test_of_much_data_of_a_transaction_two_batches_are_told() -> None:
    data = TransactionBatch(0, 7, 0, is_marker=False, control_type=None)
    batches = [data._replace(place=number, last_offset=number) for number in range(1_000)]
    commit = ControlRecordType.COMMIT
    batches.append(TransactionBatch(1_000, 7, 1_000, is_marker=True, control_type=commit))
    assert events_of(batches).last_offsets.tolist() == [0, 999, 1_000]
