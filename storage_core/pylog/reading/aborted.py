"""What READ_COMMITTED leaves out: aborted transactions, and all from the last stable offset on.

A transactional data batch is decided by the next marker of its producer: COMMIT delivers it, ABORT
drops it, and where no marker follows the transaction is open and the last stable offset (LSO) is
at or below it.

``.txnindex`` files give the aborted ranges of the segments that hold the markers, without reading
the log. Kafka makes the file only when it sees an ABORT, so a segment without one is normal, and
also what a lost file looks like: then, and where damage is skipped, the ranges are taken from the
batch headers and markers themselves, from the range's beginning to where its last transaction is
decided.

The LSO comes from the newest sound producer snapshot, which lists the open transactions, and the
headers after it; without a snapshot, from all headers.

Source: TransactionIndex.collectAbortedTxns, ProducerStateManager (Kafka 4.3); KIP-98.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import (
    CorruptIndexError,
    CorruptSnapshotError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.files.transaction_index import read_transaction_index
from pylog.locations import join
from pylog.model import AbortedTransaction, ControlRecordType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.control_batches import control_types
from pylog.reading.open_transactions import OpenTransactions
from pylog.reading.slicing import open_slice, segment_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders, BatchScan

_END_TYPES = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


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


def _windows(view: LogView, start_offset: int, end_offset: int) -> Iterator[tuple[BatchScan, bool]]:
    """Yield the scans of all windows that hold offsets ``[start_offset, end_offset)``.

    With each comes whether damage was left out before it. Checksums are verified: a marker of
    another producer, or a batch that does not look transactional, would make wrong rows of right
    ones elsewhere.
    """
    damage = view.damage
    gaps = 0 if damage is None else damage.found
    for piece in segment_slices(view, start_offset, end_offset):
        opened = open_slice(piece, damage)
        if opened is None:
            continue
        with opened as source:
            for window in CheckedWindows(source, piece, damage=damage):
                now = 0 if damage is None else damage.found
                yield window.scan, now > gaps
                gaps = now


def _transaction_events(
    scan: BatchScan, from_offset: int
) -> Iterator[tuple[int, int, ControlRecordType | None]]:
    """Yield (producer id, offset, marker type or None for data) of transactional batches."""
    headers = scan.headers
    which = np.flatnonzero(headers.is_transactional & (headers.last_offsets >= from_offset))
    if not which.size:
        return
    kinds = np.full(which.size, -1, dtype=np.int64)
    control = headers.is_control[which]
    kinds[control] = control_types(scan, which[control])
    rows = zip(
        headers.producer_ids[which].tolist(),
        headers.offsets[which].tolist(),
        control.tolist(),
        kinds.tolist(),
        strict=True,
    )
    for producer_id, offset, is_control, kind in rows:
        yield producer_id, offset, ControlRecordType(kind) if is_control else None


def find_last_stable_offset(view: LogView, end_offset: int | None = None) -> int:
    """Return the first offset of the oldest open transaction; the log end offset if none is open.

    Parameters
    ----------
    view
        The log.
    end_offset
        What is asked for lies below. Then what is behind is looked at only while transactions of
        before are open, and the answer is at most this offset.

    Raises
    ------
    CorruptRecordError
        A batch that has to be looked at is damaged.
    """
    since, offset = _newest_snapshot(view)
    transactions = OpenTransactions(since)
    log_end = view.log_end_offset
    limit = log_end if end_offset is None else min(end_offset, log_end)
    for _ in _follow(view, transactions, (offset, limit)):
        pass
    if any(at < limit for at in transactions.decidable):
        for _ in _follow(view, transactions, (max(offset, limit), log_end), below=limit):
            if not transactions:
                break
    return min([limit, *transactions.decidable])


def _follow(
    view: LogView,
    transactions: OpenTransactions,
    offsets: tuple[int, int],
    below: int | None = None,
) -> Iterator[AbortedTransaction | None]:
    """Note what batches of ``[start, end)`` say of transactions; yield each that is aborted.

    With ``below``, only transactions that began below that offset are of interest, and None is
    yielded after every window, for a look at what is still open.
    """
    start, end = offsets
    for scan, is_behind_damage in _windows(view, start, end):
        if is_behind_damage:
            transactions.note_damage()
        for producer_id, offset, kind in _transaction_events(scan, start):
            if kind is None:
                if below is None or offset < below:
                    transactions.note_data(producer_id, offset)
            elif kind in _END_TYPES:
                since = transactions.end(producer_id, kind)
                if since is not None:
                    yield AbortedTransaction(producer_id, since, offset)
        if below is not None:
            yield None


def _newest_snapshot(view: LogView) -> tuple[dict[int, int], int]:
    """Return open transactions (producer id to first offset) and the offset they are known at."""
    for offset in sorted(view.producer_snapshot_offsets, reverse=True):
        if offset > view.log_end_offset:
            continue
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        try:
            entries = read_producer_snapshot(join(view.directory.path, name))
        except (CorruptSnapshotError, SegmentVanishedError, UnreadableFileError):
            continue  # an older one, and more headers, tell the same
        return {
            entry.producer_id: entry.current_txn_first_offset
            for entry in entries
            if entry.current_txn_first_offset >= 0
        }, offset
    return {}, 0


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
    found = _from_indexes(view, first, end_offset) if view.damage is None else None
    if found is None:
        found = _from_markers(view, first, end_offset)
    return tuple(
        each
        for each in found
        if each.first_offset < end_offset and each.last_offset >= start_offset
    )


def _from_indexes(view: LogView, first: int, end_offset: int) -> list[AbortedTransaction] | None:
    """Return what the ``.txnindex`` files say; None if one is missing or unsound on the way.

    An entry whose last stable offset is at or above ``end_offset`` ends the search: nothing below
    that offset is decided later.
    """
    found: list[AbortedTransaction] = []
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
            found.append(
                AbortedTransaction(entry.producer_id, entry.first_offset, entry.last_offset)
            )
            if entry.last_stable_offset >= end_offset:
                return found
    return found


def _from_markers(view: LogView, first: int, end_offset: int) -> list[AbortedTransaction]:
    """Return what the batches and markers from segment ``first`` on tell.

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
    for each in _follow(view, transactions, (start_offset, end_offset), below=end_offset):
        if each is not None:
            yield each
    if not transactions:
        return
    for each in _follow(view, transactions, (end_offset, view.log_end_offset), below=end_offset):
        if each is not None:
            yield each
        elif not transactions:
            return
