"""What READ_COMMITTED leaves out, and where it ends.

A transactional data batch is decided by the next marker of its producer: COMMIT delivers it, ABORT
drops it, and where no marker follows the transaction is open. The last stable offset (LSO) is the
first offset of the oldest open transaction, or the log end offset. The newest intact producer
snapshot lists the transactions that are open at its offset, and the headers after it give the rest;
without a snapshot all headers are read.

``.txnindex`` files give the aborted ranges of the segments that hold the markers, without reading
the log. Kafka makes the file only when it sees an ABORT, so a segment without one is normal, and
also what a lost file looks like: then, and where damage is skipped, the ranges are taken from the
batch headers and markers themselves, from the range's beginning to where its last transaction is
decided.

A ``.txnindex`` has no checksum: one that was cut between two entries looks intact, and one that
lists a committed transaction, too. Both show at the next marker of the producer, in the range that
is read or after it (`AbortWatch`, for FAILFAST), but only where offsets have no gap in between:
compaction removes COMMIT markers, and what was committed by one may then precede another
transaction's ABORT.

Source: ProducerStateManager (firstUnstableOffset), ProducerAppendInfo,
TransactionIndex.collectAbortedTxns (Kafka 4.3); KIP-98.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import (
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.files.transaction_index import read_transaction_index
from pylog.locations import join
from pylog.model import AbortedTransaction, ControlRecordType
from pylog.reading.checked_windows import CheckedWindows, transactional_batches
from pylog.reading.log_view import LogView, view_of
from pylog.reading.open_transactions import END_TYPES, OpenTransactions, transaction_events
from pylog.reading.slicing import open_slice, segment_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from pylog.files.producer_snapshot import ProducerSnapshotEntry
    from pylog.reading.task_range import SegmentSlice, TaskRange
    from pylog.record.batch_scan import BatchHeaders, Window


_LOGGER = logging.getLogger(__name__)


def follow_transactions(
    view: LogView,
    transactions: OpenTransactions,
    offsets: tuple[int, int],
    below: int | None = None,
) -> Iterator[AbortedTransaction | None]:
    """Note what the batches of a range say of transactions; yield each that is aborted.

    None follows each window, so that the caller can stop.
    """
    start, end = offsets
    gaps = _FileGaps(view, transactions)
    for scan, segment_slice, is_behind_damage in _windows(view, start, end):
        if is_behind_damage:
            transactions.note_damage()
        gaps.look(scan, segment_slice)
        for event in transaction_events(scan, start, end):
            producer_id, offset, kind = event
            if kind is None and below is not None and offset >= below:
                continue
            since = transactions.note(event)
            if since is not None:
                first = gaps.first_of_aborted(producer_id, since, offset)
                yield AbortedTransaction(producer_id, first, offset)
        yield None


class _FileGaps:
    """Notices offsets that are in no file, where a marker may have been."""

    def __init__(self, view: LogView, transactions: OpenTransactions) -> None:
        self._view = view
        self._transactions = transactions
        self._path = ""
        self._gap = self._next_offset = -1

    def look(self, scan: Window, segment_slice: SegmentSlice) -> None:
        """Note the next batches; what has ended before them by a marker that is gone has ended."""
        is_next_file = segment_slice.path != self._path and self._path
        if is_next_file and segment_slice.base_offset > self._next_offset:
            self._gap = self._next_offset
            still_open = open_at(self._view, segment_slice.base_offset)
            if still_open is not None:
                self._transactions.end_unseen(still_open)
        self._path, self._next_offset = segment_slice.path, int(scan.headers.last_offsets[-1]) + 1

    def first_of_aborted(self, producer_id: int, since: int, marker_offset: int) -> int:
        """Return where a transaction begins that was aborted, whose producer is known so long."""
        if since >= self._gap:
            return since
        first = _indexed_first_offset(self._view, self._path, producer_id, marker_offset)
        if first > since:
            self._transactions.ended_unseen.append((producer_id, since))
        return max(first, since)


def _indexed_first_offset(view: LogView, path: str, producer_id: int, marker_offset: int) -> int:
    """Return where the transaction begins that an ABORT ends, as its index says; -1 if not."""
    if not view.access.use_indexes:
        return -1
    try:
        entries = read_transaction_index(path.replace(LOG_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX))
    except (CorruptIndexError, SegmentVanishedError, UnreadableFileError):
        return -1
    ended = (producer_id, marker_offset)
    found = (each.first_offset for each in entries if (each.producer_id, each.last_offset) == ended)
    return next(found, -1)


def _windows(
    view: LogView, start_offset: int, end_offset: int
) -> Iterator[tuple[Window, SegmentSlice, bool]]:
    """Yield the scans of all windows that hold offsets ``[start_offset, end_offset)``."""
    # Other threads skip damage meanwhile, which says nothing of these transactions.
    damage = None if view.damage is None else view.damage.for_one_walk()
    gaps = 0
    for segment_slice in segment_slices(view, start_offset, end_offset):
        opened = open_slice(segment_slice, damage)
        if opened is None:
            continue
        with opened as source:
            for window in CheckedWindows(source, segment_slice, damage=damage):
                now = 0 if damage is None else damage.skip_count
                yield window, segment_slice, now > gaps
                gaps = now


def find_last_stable_offset(view: LogView, end_offset: int | None = None) -> int:
    """Return the first offset of the oldest transaction without a marker; the end if all have one.

    A marker counts wherever the log has it: nobody truncates what is read. At a high watermark, a
    later one does not, as `FollowedTransactions` has it. At the log's end both are the same.
    """
    log_end, end = view.log_end_offset, _end_in(view, end_offset)
    if view.known_last_stable_offset is not None:
        return min(end, view.known_last_stable_offset)
    transactions, offset = _newest_known(view, log_end)
    for _ in follow_transactions(view, transactions, (offset, end)):
        pass
    if any(at < end for at in transactions.decidable):
        for _ in _decided_after(view, transactions, max(offset, end), end):
            pass
    return _first_undecided(view, transactions, end)


class FollowedTransactions:
    """The transactions that are open at the end of a log, kept up to date while it grows.

    ``ensure_wanted`` is called again and again, and raises an error to end a walk over the log.
    """

    def __init__(self, ensure_wanted: Callable[[], None] = lambda: None) -> None:
        self._ensure_wanted = ensure_wanted
        self._open: OpenTransactions | None = None
        self._offset = 0

    def last_stable_offset(self, view: LogView, end_offset: int | None = None) -> int:
        """Return the first offset of the oldest transaction that is open at an offset.

        That is the log's end, or ``end_offset``; the offset itself if none is open. What is known
        of the log must be as it was, but for what retention and compaction have removed.
        """
        # After an error in the middle of the walk, the next one begins anew.
        transactions, self._open = self._open, None
        end = _end_in(view, end_offset)
        if transactions is None or self._may_have_missed_markers(view, end):
            transactions, self._offset = _newest_known(view, end)
        for _ in follow_transactions(view, transactions, (self._offset, end)):
            self._ensure_wanted()
        self._open, self._offset = transactions, end
        return _first_undecided(view, transactions, end)

    def _may_have_missed_markers(self, view: LogView, end: int) -> bool:
        """Whether markers may have come and gone since: with a segment, or by compaction.

        A broker compacts only segments that are followed by another one, of which it takes a
        producer snapshot.
        """
        return (
            end < self._offset
            or self._offset < view.local_log_start_offset
            or any(self._offset < each <= end for each in view.producer_snapshot_offsets)
        )


def find_producer_snapshot(view: LogView, offset: int) -> list[ProducerSnapshotEntry] | None:
    """Return what the producer snapshot of an offset holds; None if it is damaged, or not there."""
    name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
    try:
        return read_producer_snapshot(join(view.directory.path, name))
    except (CorruptSnapshotError, SegmentVanishedError, UnreadableFileError):
        return None


def open_at(view: LogView, offset: int) -> dict[int, int] | None:
    """Return producer id to first offset of what was open at an offset; None if nothing says it."""
    if offset not in view.producer_snapshot_offsets:
        return None
    entries = find_producer_snapshot(view, offset)
    if entries is None:
        return None
    return {
        entry.producer_id: entry.current_txn_first_offset
        for entry in entries
        if entry.current_txn_first_offset >= 0
    }


def _newest_known(view: LogView, end_offset: int) -> tuple[OpenTransactions, int]:
    """Return what the newest snapshot has as open, and the offset at which that is so."""
    for offset in sorted(view.producer_snapshot_offsets, reverse=True):
        since = open_at(view, offset) if offset <= end_offset else None
        if since is not None:  # else an older one, and more headers, say the same
            return OpenTransactions(since), offset
    return OpenTransactions({}), 0


def _end_in(view: LogView, end_offset: int | None) -> int:
    log_end = view.log_end_offset
    return log_end if end_offset is None else min(end_offset, log_end)


def _first_undecided(view: LogView, transactions: OpenTransactions, end_offset: int) -> int:
    """Return the first offset of the oldest open transaction, ``end_offset`` if none is open.

    Of a transaction that began before the log does now, what is left is undecided. Source:
    UnifiedLog.maybeIncrementFirstUnstableOffset (Kafka 4.3).
    """
    first = min(transactions.decidable, default=end_offset)
    return min(end_offset, max(view.log_start_offset, first))


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
    view: LogView, start_offset: int, end_offset: int, *, origin: int | None = None
) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that overlap ``[start_offset, end_offset)``.

    ``origin`` is where the read begins of which the range is a part; see `segment_slices`.
    """
    if start_offset >= end_offset:
        return ()
    consumed = view.consumed_segments(start_offset if origin is None else origin)
    first = 0
    for index, _ in consumed:
        first = index
        limit = view.limit_offset(index)
        if limit is None or limit > start_offset:
            break
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
    """Return what the ``.txnindex`` files say; None if one is missing or unsound on the way."""
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
    ``end_offset`` is decided. One that damage keeps from being decided counts as aborted. All that
    is read is below the last stable offset: so one that no marker ends, and that no damage is near,
    has been ended by a marker in a file that is gone. A consumer gets its records.
    """
    transactions = OpenTransactions({})
    start = view.segments[first].base_offset
    decided = list(_until_decided(view, transactions, start, end_offset))
    undecidable = transactions.undecidable
    lost = [each for each in transactions.first_offsets.items() if each[0] not in undecidable]
    for producer_id, since in [*transactions.ended_unseen, *lost]:
        _LOGGER.warning(
            "%s: the marker that ended the transaction of producer %d from offset %d on is in no "
            "file; its records are given, as to a consumer",
            *(view.topic_partition, producer_id, since),
        )
    return [
        *decided,
        *(AbortedTransaction(each, since, end_offset) for each, since in undecidable.items()),
    ]


def _until_decided(
    view: LogView, transactions: OpenTransactions, start_offset: int, end_offset: int
) -> Iterator[AbortedTransaction]:
    for each in follow_transactions(
        view, transactions, (start_offset, end_offset), below=end_offset
    ):
        if each is not None:
            yield each
    yield from _decided_after(view, transactions, end_offset, end_offset)


def _decided_after(
    view: LogView, transactions: OpenTransactions, start_offset: int, below: int
) -> Iterator[AbortedTransaction]:
    """Yield what is aborted from ``start_offset`` on, until all that began below is decided."""
    if not transactions:
        return
    for each in follow_transactions(
        view, transactions, (start_offset, view.log_end_offset), below=below
    ):
        if each is not None:
            yield each
        elif not transactions:
            return


_FIRST_WINDOW_BYTES = 1 << 14  # a transaction's marker is seldom far away
_WAY_OUT = (
    "read without index files, then the markers decide (pylog.scan: use_indexes=False; Spark: "
    "useIndexes=false; pylog cat: --ignore-indexes)"
)


class AbortWatch:
    """Watches the batches that one pass over a task reads, in order.

    Not what is open, but what was given or left out of each transaction is held against its marker.
    """

    def __init__(self, task: TaskRange) -> None:
        self._task = task
        # Producer ids whose records in the range were given, or left out as aborted, since their
        # last marker, to how many gaps there were before.
        self._given: dict[int, int] = {}
        self._left_out: dict[int, int] = {}
        self._gaps = 0
        self._next_offset = 0

    def look(self, scan: Window, wanted: npt.NDArray[np.bool_] | None, path: str) -> None:
        """Note the batches of a window."""
        headers = scan.headers
        follows = np.append(self._next_offset, headers.last_offsets[:-1] + 1)
        gaps = self._gaps + np.cumsum(headers.offsets != follows)
        self._gaps, self._next_offset = int(gaps[-1]), int(headers.last_offsets[-1]) + 1
        which, control, kinds = transactional_batches(scan)
        if not which.size:
            return
        in_range = ~control & (headers.last_offsets[which] >= self._task.start_offset)
        in_range &= headers.offsets[which] < self._task.end_offset
        given = in_range if wanted is None else in_range & wanted[which]
        placed = headers.producer_ids[which], headers.offsets[which]
        columns = *placed, kinds, in_range, given, gaps[which]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for producer_id, offset, kind, is_in_range, is_given, gaps_before in rows:
            if is_in_range and is_given:
                self._given[producer_id] = gaps_before
            elif is_in_range:
                self._left_out[producer_id] = gaps_before
            elif kind in END_TYPES:
                self._end(producer_id, ControlRecordType(kind), gaps_before, (offset, path))

    def look_on(self) -> None:
        """Look at what comes after the range, up to the markers of transactions that it cuts."""
        try:
            for scan, path in self._windows_after():
                self.look(scan, np.zeros(len(scan.headers), dtype=np.bool_), path)
                if not self._is_waiting():
                    return
        except (CorruptRecordError, SegmentVanishedError):
            return

    def _end(
        self, producer_id: int, kind: ControlRecordType, gaps: int, place: tuple[int, str]
    ) -> None:
        offset, path = place
        given, left_out = self._given.pop(producer_id, -1), self._left_out.pop(producer_id, -1)
        reason = None
        if kind is ControlRecordType.ABORT and given == gaps:
            reason = (
                f"transaction index lacks the transaction of producer {producer_id} that is "
                f"aborted at offset {offset}, and its records were taken for committed"
            )
        if kind is ControlRecordType.COMMIT and left_out == gaps:
            reason = (
                f"transaction index lists the transaction of producer {producer_id} that is "
                f"committed at offset {offset}, and its records were taken for aborted"
            )
        if reason is not None:
            index = path.replace(LOG_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX)
            raise CorruptIndexError(f"{reason}; {_WAY_OUT}", index)

    def _is_waiting(self) -> bool:
        """Whether a later marker could still show that a transaction was judged wrongly."""
        return any(gaps == self._gaps for gaps in (*self._given.values(), *self._left_out.values()))

    def _windows_after(self) -> Iterator[tuple[Window, str]]:
        if not self._is_waiting():
            return
        view = view_of(self._task.directory, partial(LogView, access=self._task.access))
        for segment_slice in segment_slices(view, self._next_offset, view.log_end_offset):
            with segment_slice.open() as source:
                windows = CheckedWindows(
                    source, segment_slice, first_window_bytes=_FIRST_WINDOW_BYTES
                )
                for window in windows:
                    yield window, segment_slice.path
