"""The aborted transactions of a range, and the batches that READ_COMMITTED drops because of them.

``.txnindex`` files give the aborted ranges of the segments that hold the markers, without reading
the log. Kafka makes the file only when it sees an ABORT, so a segment without one is normal, and
also what a lost file looks like: then, and where damage is skipped, the ranges are taken from the
batch headers and markers themselves, from the range's beginning to where its last transaction is
decided.

Source: TransactionIndex.collectAbortedTxns, ProducerStateManager (Kafka 4.3); KIP-98.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptIndexError, UnreadableFileError
from pylog.files.file_names import TXN_INDEX_FILE_SUFFIX
from pylog.files.transaction_index import read_transaction_index
from pylog.model import AbortedTransaction
from pylog.reading.open_transactions import OpenTransactions
from pylog.reading.transaction_walk import follow_transactions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders


class AbortedTransactions:
    """Tells which batches belong to aborted transactions."""

    def __init__(self, transactions: tuple[AbortedTransaction, ...]) -> None:
        self._ranges: dict[int, tuple[list[int], list[int]]] = {}
        for transaction in sorted(transactions, key=lambda each: each.first_offset):
            firsts, lasts = self._ranges.setdefault(transaction.producer_id, ([], []))
            firsts.append(transaction.first_offset)
            # Ranges overlap after damage: an offset is in one if it is below the farthest end.
            lasts.append(max([transaction.last_offset, *lasts[-1:]]))

    def mask(self, headers: BatchHeaders) -> npt.NDArray[np.bool_]:
        """Return True for every batch that READ_COMMITTED drops; shape (batches,)."""
        dropped = np.zeros(len(headers), dtype=np.bool_)
        if not self._ranges:
            return dropped
        for index in np.flatnonzero(headers.is_transactional & ~headers.is_control).tolist():
            ranges = self._ranges.get(int(headers.producer_ids[index]))
            if ranges is None:
                continue
            offset = int(headers.last_offsets[index])
            place = bisect_right(ranges[0], offset) - 1
            dropped[index] = place >= 0 and offset <= ranges[1][place]
        return dropped


def find_aborted_transactions(
    view: LogView, start_offset: int, end_offset: int
) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that overlap ``[start_offset, end_offset)``.

    Parameters
    ----------
    view
        The log.
    start_offset, end_offset
        The range that will be read; ``end_offset`` is not above the last stable offset.

    Raises
    ------
    CorruptRecordError
        A batch that has to be looked at is damaged.
    """
    if start_offset >= end_offset:
        return ()
    first = view.find_segment(start_offset) or 0
    # Where damage is skipped the markers alone decide: nothing there could raise an error about an
    # index that they contradict, and its lie would be wrong rows in silence.
    transactions = _from_indexes(view, first, end_offset) if view.damage is None else None
    if transactions is None:
        transactions = _from_markers(view, first, end_offset)
    return tuple(
        each
        for each in transactions
        if each.first_offset < end_offset and each.last_offset >= start_offset
    )


def _from_indexes(view: LogView, first: int, end_offset: int) -> list[AbortedTransaction] | None:
    """Return what the ``.txnindex`` files say; None if one is missing or unsound on the way.

    An entry whose last stable offset is at or above ``end_offset`` ends the search: nothing below
    that offset is decided later.
    """
    transactions: list[AbortedTransaction] = []
    for segment in view.segments[first:]:
        if not segment.has_transaction_index:
            return None
        try:
            entries = read_transaction_index(segment.file_path(TXN_INDEX_FILE_SUFFIX))
        except (CorruptIndexError, UnreadableFileError):
            return None
        if not entries:  # made for an ABORT that is not in it: lost in a crash, or truncated away
            return None
        for entry in entries:
            transactions.append(
                AbortedTransaction(entry.producer_id, entry.first_offset, entry.last_offset)
            )
            if entry.last_stable_offset >= end_offset:
                return transactions
    return transactions


def _from_markers(view: LogView, first: int, end_offset: int) -> list[AbortedTransaction]:
    """Return what the batches and markers from segment ``first`` on say.

    A range begins with the producer's first batch since its last marker; batches before the first
    segment looked at are not of interest. The walk ends when every transaction that began below
    ``end_offset`` is decided. One that no marker ends counts as aborted: it has not been committed.
    """
    transactions = OpenTransactions({})
    start = view.segments[first].base_offset
    decided = list(_until_decided(view, transactions, start, end_offset))
    undecided = transactions.first_offsets.items()
    return [
        *decided,
        *(AbortedTransaction(producer_id, since, end_offset) for producer_id, since in undecided),
    ]


def _until_decided(
    view: LogView, transactions: OpenTransactions, start_offset: int, end_offset: int
) -> Iterator[AbortedTransaction]:
    for each in follow_transactions(
        view, transactions, (start_offset, end_offset), below=end_offset
    ):
        if each is not None:
            yield each
    if not transactions:
        return
    for each in follow_transactions(
        view, transactions, (end_offset, view.log_end_offset), below=end_offset
    ):
        if each is not None:
            yield each
        elif not transactions:
            return
