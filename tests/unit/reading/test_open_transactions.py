"""READ_COMMITTED after damage: what may have been decided in a gap is hidden, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.model import AbortedTransaction, ControlRecordType
from pylog.reading.open_transactions import OpenTransactions, TransactionEvent
from pylog.reading.task_windows import TaskWindows
from pylog.reading.transactions import AbortedTransactions
from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    batch_v2,
    marker,
    plain_records,
    with_bad_crc,
)
from tests.support.log_files import Transactions, segment_path, write_partition
from tests.support.reading import read_skipping_damage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def data(offset: int, producer_id: int = 1) -> Built:
    return batch_v2(plain_records(offset, 1), producer_id=producer_id, is_transactional=True)


def plain_batch(offset: int) -> Built:
    return batch_v2(plain_records(offset, 1))


def commit(offset: int, producer_id: int = 1) -> Built:
    return marker(offset, COMMIT, producer_id=producer_id)


def abort(offset: int, producer_id: int = 1) -> Built:
    return marker(offset, ABORT, producer_id=producer_id)


def committed(directory: Path, batches: list[Built], **options: object) -> list[int]:
    path = write_partition(directory, {0: batches}, with_index=False, with_time_index=False)
    return read_skipping_damage(path, isolation="read_committed", **options)[0]


@pytest.mark.parametrize("lost", [commit, abort])
def test_records_of_a_transaction_whose_marker_is_lost_are_hidden(
    tmp_path: Path, lost: Callable[[int], Built]
) -> None:
    batches = [
        plain_batch(0),
        data(1),
        data(2, 2),
        with_bad_crc(lost(3)),
        commit(4, 2),
        plain_batch(5),
    ]
    # That of producer 2 was open there as well: its marker may be a later transaction's.
    assert committed(tmp_path, batches) == [0, 5]


def test_transactions_before_and_after_the_gap_are_there(tmp_path: Path) -> None:
    batches = [
        *(data(0), commit(1), data(2), with_bad_crc(commit(3)), data(4, 2), commit(5, 2)),
        *(data(6, 3), abort(7, 3), plain_batch(8)),
    ]
    assert committed(tmp_path, batches) == [0, 4, 8]


def test_a_producer_continues_after_its_next_marker(tmp_path: Path) -> None:
    batches = [
        *(data(0), with_bad_crc(commit(1)), data(2), commit(3)),
        *(data(4), commit(5), plain_batch(6)),
    ]
    assert committed(tmp_path, batches) == [4, 6]


def test_a_gap_does_not_hold_back_what_follows_it(tmp_path: Path) -> None:
    batches = [data(0), with_bad_crc(commit(1)), plain_batch(2), data(3, 2), plain_batch(4)]
    # Producer 2's is open beyond doubt.
    assert committed(tmp_path, batches) == [2]


def test_an_open_transaction_before_a_gap_is_hidden_where_indexes_know_the_rest(
    tmp_path: Path,
) -> None:
    batches = [
        data(0),
        plain_batch(1),
        data(2, 2),
        abort(3, 2),
        with_bad_crc(plain_batch(4)),
        plain_batch(5),
    ]
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    entries = Transactions([batches[2], batches[3]]).index_bytes(0, 99)
    segment_path(path, 0, ".txnindex").write_bytes(entries)
    assert read_skipping_damage(path, isolation="read_committed")[0] == [1, 5]


def test_the_index_knows_an_abort_whose_marker_is_lost(tmp_path: Path) -> None:
    sound = [data(0), plain_batch(1), abort(2), plain_batch(3), data(4, 2), commit(5, 2)]
    batches = [*sound[:2], with_bad_crc(sound[2]), *sound[3:]]
    path = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    segment_path(path, 0, ".txnindex").write_bytes(Transactions(sound).index_bytes(0, 99))
    assert read_skipping_damage(path, isolation="read_committed")[0] == [1, 3, 4]


def test_damage_after_the_range_is_not_looked_at(tmp_path: Path) -> None:
    batches = [data(0), commit(1), plain_batch(2), with_bad_crc(plain_batch(3)), plain_batch(4)]
    directory = write_partition(tmp_path, {0: batches}, with_index=False)
    scan = pylog.scan(directory, isolation="read_committed", end=3)
    assert scan.to_table()["offset"].to_pylist() == [0, 2]
    assert committed(tmp_path, batches, end=3) == [0, 2]


DATA, ENDS_BY_ABORT, ENDS_BY_COMMIT = None, ControlRecordType.ABORT, ControlRecordType.COMMIT


@pytest.mark.parametrize(
    ("since", "kind", "aborted", "then"),
    [
        (None, DATA, None, 9),
        (4, DATA, None, 4),
        (None, ENDS_BY_ABORT, None, None),
        (4, ENDS_BY_ABORT, 4, None),
        (None, ENDS_BY_COMMIT, None, None),
        (4, ENDS_BY_COMMIT, None, None),
        (4, ControlRecordType.LEADER_CHANGE, None, 4),
        (4, ControlRecordType.UNKNOWN, None, 4),
    ],
)
def test_data_begin_a_transaction_and_a_marker_ends_it(
    since: int | None, kind: ControlRecordType | None, aborted: int | None, then: int | None
) -> None:
    """As the table at the head of the module has it."""
    transactions = OpenTransactions({} if since is None else {7: since})
    assert transactions.note(TransactionEvent(7, 9, kind)) == aborted
    assert transactions.first_offsets.get(7) == then
    assert bool(transactions) is (then is not None)
    # After damage any marker counts as an ABORT, once.
    transactions = OpenTransactions({} if since is None else {7: since})
    transactions.note_damage()
    is_end = kind in (ENDS_BY_ABORT, ENDS_BY_COMMIT)
    assert transactions.note(TransactionEvent(7, 9, kind)) == (since if is_end else None)
    assert 7 not in transactions.undecidable or not is_end
    transactions.note(TransactionEvent(7, 10, DATA))
    assert transactions.note(TransactionEvent(7, 11, ENDS_BY_COMMIT)) == (
        None if is_end or since is None else since
    )


def test_damage_leaves_undecided_what_was_open() -> None:
    transactions = OpenTransactions({7: 100})
    transactions.note_damage()
    transactions.note(TransactionEvent(9, 130, DATA))
    assert (transactions.decidable, transactions.undecidable) == ([130], {7: 100})


@pytest.mark.parametrize(
    ("still_open", "then", "unseen"),
    [
        ({}, {}, [(7, 4)]),
        ({7: 4}, {7: 4}, []),
        ({7: 6}, {7: 6}, [(7, 4)]),  # a later one
        ({8: 6}, {}, [(7, 4)]),  # of a producer of which nothing was seen
    ],
)
def test_what_a_snapshot_after_a_gap_does_not_have_has_ended(
    still_open: dict[int, int], then: dict[int, int], unseen: list[tuple[int, int]]
) -> None:
    transactions = OpenTransactions({7: 4})
    transactions.end_unseen(still_open)
    assert (transactions.first_offsets, transactions.ended_unseen) == (then, unseen)
    damaged = OpenTransactions({7: 4})
    damaged.note_damage()
    damaged.end_unseen(still_open)
    assert (damaged.first_offsets, damaged.ended_unseen) == ({7: 4}, [])


def test_a_range_within_another_does_not_end_it(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [data(offset) for offset in range(6)]})
    (task,) = pylog.scan(directory).plan()
    ranges = (AbortedTransaction(1, 1, 4), AbortedTransaction(1, 2, 2))
    ((_, window),) = TaskWindows(task)
    mask = AbortedTransactions(ranges).mask(window.headers)
    assert mask.tolist() == [False, True, True, True, True, False]
