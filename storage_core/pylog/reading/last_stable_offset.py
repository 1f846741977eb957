"""The last stable offset (LSO): below it every transaction is decided.

It is the first offset of the oldest open transaction, or the log end offset. The newest sound
producer snapshot lists the transactions that are open at its offset, and the headers after it give
the rest; without a snapshot all headers are read.

Source: ProducerStateManager.firstUnstableOffset (Kafka 4.3); KIP-98.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptSnapshotError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import PRODUCER_SNAPSHOT_FILE_SUFFIX, file_name_prefix
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.locations import join
from pylog.reading.open_transactions import OpenTransactions
from pylog.reading.transaction_walk import follow_transactions

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView


def find_last_stable_offset(view: LogView, end_offset: int | None = None) -> int:
    """Return the first offset of the oldest open transaction; the log end offset if none is open.

    Parameters
    ----------
    view
        The log.
    end_offset
        What is asked for lies below. Then what follows it is looked at only while transactions
        that began before it are open, and the answer is at most this offset.

    Raises
    ------
    CorruptRecordError
        A batch that has to be looked at is damaged.
    """
    log_end = view.log_end_offset
    limit = log_end if end_offset is None else min(end_offset, log_end)
    if view.known_last_stable_offset is not None:
        return min(limit, view.known_last_stable_offset)
    since, offset = _newest_snapshot(view)
    transactions = OpenTransactions(since)
    for _ in follow_transactions(view, transactions, (offset, limit)):
        pass
    if any(at < limit for at in transactions.decidable):
        for _ in follow_transactions(
            view, transactions, (max(offset, limit), log_end), below=limit
        ):
            if not transactions:
                break
    return min([limit, *transactions.decidable])


class FollowedTransactions:
    """The transactions that are open at the end of a log, kept up to date while it grows.

    What was looked at once is not looked at again.
    """

    def __init__(self) -> None:
        self._open: OpenTransactions | None = None
        self._offset = 0

    def last_stable_offset(self, view: LogView) -> int:
        """Return what `find_last_stable_offset` does, of a log whose known part is what it was.

        Raises
        ------
        CorruptRecordError
            A batch that has to be looked at is damaged.
        """
        # After an error in the middle of the walk, the next one begins anew.
        transactions, self._open = self._open, None
        log_end = view.log_end_offset
        if transactions is None or log_end < self._offset:
            since, self._offset = _newest_snapshot(view)
            transactions = OpenTransactions(since)
        for _ in follow_transactions(view, transactions, (self._offset, log_end)):
            pass
        self._open, self._offset = transactions, log_end
        # Of a transaction that began before the log does now, what is left is undecided.
        return max(view.log_start_offset, min([log_end, *transactions.decidable]))


def _newest_snapshot(view: LogView) -> tuple[dict[int, int], int]:
    """Return open transactions (producer id to first offset) and the offset they are known at."""
    for offset in sorted(view.producer_snapshot_offsets, reverse=True):
        if offset > view.log_end_offset:
            continue
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        try:
            entries = read_producer_snapshot(join(view.directory.path, name))
        except (CorruptSnapshotError, SegmentVanishedError, UnreadableFileError):
            continue  # an older one, and more headers, say the same
        return {
            entry.producer_id: entry.current_txn_first_offset
            for entry in entries
            if entry.current_txn_first_offset >= 0
        }, offset
    return {}, 0
