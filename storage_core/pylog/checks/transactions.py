"""Findings about transactions: indexes that are not what the markers say, and what is undecided.

A broker tells consumers of committed records which transactions were aborted by the indexes alone,
and up to where all are decided by its producers' state, which it reads from a snapshot.

Source: TransactionIndex.collectAbortedTxns, ProducerStateManager.firstUnstableOffset (Kafka 4.3).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptIndexError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import TXN_INDEX_FILE_SUFFIX
from pylog.files.looks import live_pauses
from pylog.files.transaction_index import read_transaction_index
from pylog.findings import kinds
from pylog.findings.finding import Effect, FindingKind
from pylog.reading.producer_transactions import TransactionsInOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.findings.finding import Finding
    from pylog.reading.log_view import LogView
    from pylog.reading.producer_transactions import Transaction
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window

    Aborted = dict[tuple[int, int], int | None]
    Entries = dict[tuple[int, int], TransactionIndexEntry]


class TransactionFindings:
    """Holds the transaction indexes of a log against the markers in it. One thread."""

    def __init__(self, view: LogView) -> None:
        self._view = view
        self._transactions = TransactionsInOrder(view)
        self._stable_offsets = StableOffsets(self._transactions)
        self._indexes = [_read_index(segment) for segment in view.segments]
        self._aborted: Aborted = {}
        self._markers: set[tuple[int, int]] = set()
        self._seen_end = 0

    def add(self, window: Window) -> None:
        """Note the transactions that end in a window."""
        self._seen_end = int(window.headers.last_offsets[-1]) + 1
        for each in self._transactions.add(window):
            self._stable_offsets.note(each)
            if each.marker_offset is None or each.state == "committed":
                continue
            self._markers.add((each.producer_id, each.marker_offset))
            if each.state == "aborted" and each.batches:
                self._aborted[each.producer_id, each.marker_offset] = each.first_offset

    def findings(
        self, *, is_intact: bool, is_compacted: bool, is_whole: Callable[[int, int], bool]
    ) -> Iterator[Finding]:
        """Yield what is wrong, once all windows have been added.

        ``is_intact`` tells whether no batch is damaged, ``is_whole`` whether no offset is missing
        in a range.
        """
        view = self._view
        log_start = view.segments[0].base_offset if view.segments else 0
        bases = [segment.base_offset for segment in view.segments]
        by_segment: dict[int, Aborted] = {}
        for (producer_id, marker), first in self._aborted.items():
            expected = by_segment.setdefault(bisect_right(bases, marker) - 1, {})
            expected[producer_id, marker] = first
        for index, segment in enumerate(view.segments):
            expected = by_segment.get(index, {})
            path = segment.file_path(TXN_INDEX_FILE_SUFFIX)
            entries = self._indexes[index]
            if index == len(view.segments) - 1:
                entries = _with_late_entries(path, entries, expected)
            if isinstance(entries, str):
                base, end = segment.base_offset, view.next_base_offset(index)
                yield _wrong(kinds.DAMAGED_TRANSACTION_INDEX, path, entries, base, end)
                continue
            stored = {_key(each): each for each in entries}
            yield from _missing_entries(path, expected, stored, log_start)
            yield from _late_entries(path, expected, stored, is_whole)
            if is_compacted:
                continue
            judged = {
                key: entry
                for key, entry in stored.items()
                if is_intact
                or (
                    entry.last_offset < self._seen_end
                    and is_whole(entry.first_offset, entry.last_offset + 1)
                )
            }
            yield from _extra_entries(path, judged, self._markers, view.next_offset)
            if is_intact:
                yield from self._wrong_stable_offsets(path, expected, stored)

    def _wrong_stable_offsets(
        self, path: str, expected: Aborted, stored: Entries
    ) -> Iterator[Finding]:
        """Yield what readers of the index would stop at too early, or what nothing explains."""
        log_start, log_end = self._view.local_log_start_offset, self._view.next_offset
        for key in _by_marker(expected.keys() & stored.keys()):
            lowest, highest = self._stable_offsets.range_after(key, log_end)
            stable = stored[key].last_stable_offset
            if stable > highest or log_start <= stable < lowest:
                message = (
                    f"entry of producer {key[0]}, aborted at offset {key[1]}, has last stable "
                    f"offset {stable}, expected {lowest}"
                )
                first = stored[key].first_offset
                yield _wrong(kinds.WRONG_TRANSACTION_INDEX, path, message, first, key[1] + 1)

    def undecided(self) -> tuple[int | None, int | None]:
        """Return where the first transaction begins that is open, once all windows were added.

        At the earliest and, as its first batch shows, at the latest; None without one.
        """
        start = self._view.local_log_start_offset
        still_open = list(self._transactions.still_open())
        earliest = (
            start
            if each.begins_before_log_start is not False or each.first_offset is None
            else each.first_offset
            for each in still_open
        )
        latest = (start if each.first_offset is None else each.first_offset for each in still_open)
        return min(earliest, default=None), min(latest, default=None)


class Undecided(NamedTuple):
    """From which offset on transactions are open; None where none is."""

    in_log: int | None  # as batches show it
    # The same if those of which it is not known have not begun before the log's start: a part of a
    # log has no snapshot from before it.
    in_log_at_most: int | None
    in_snapshots: int | None  # as the producers' state has it after a broker's start

    def finding(self, path: str, end_offset: int, *, is_whole: bool) -> Finding | None:
        """Return what consumers of committed records get wrong by it, if anything.

        ``is_whole`` tells whether the log has all that was written from there on.
        """
        shown, latest, stored = self
        if stored is not None and (shown is None or stored < shown or not is_whole):
            why = "the log does not show it" if is_whole else "its end may be what is missing"
            message = (
                f"a transaction is open since offset {stored} by producer snapshots, and {why}: "
                "consumers of committed records wait there until it is aborted"
            )
            return _wrong(kinds.WRONG_STABLE_OFFSET, path, message, stored, end_offset)
        if is_whole and latest is not None and (stored is None or stored > latest):
            message = (
                f"a transaction is open since offset {latest}, and producer snapshots do not have "
                "it: consumers of committed records get its records"
            )
            end = end_offset if stored is None else stored
            return _wrong(kinds.WRONG_STABLE_OFFSET, path, message, latest, end)
        return None

    @property
    def first(self) -> int | None:
        """The first of both."""
        return min((each for each in self if each is not None), default=None)


class StableOffsets:
    """Knows up to where all transactions were decided after each that was aborted. One thread."""

    def __init__(self, transactions: TransactionsInOrder) -> None:
        self._transactions = transactions
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        self._undecided: dict[tuple[int, int], int] = {}
        """Of those after which nothing was open, and no other producer has begun anything yet."""

    def note(self, ended: Transaction) -> None:
        """Note a transaction that has just ended."""
        if self._undecided:
            producer_id = next(iter(self._undecided))[0]  # the same in all of them
            begun = self._transactions.first_open_offset(other_than=producer_id)
            if ended.producer_id != producer_id and ended.first_offset is not None:
                begun = ended.first_offset if begun is None else min(begun, ended.first_offset)
            self._decide(begun)
        if ended.state != "aborted" or not ended.batches or ended.marker_offset is None:
            return
        key = ended.producer_id, ended.marker_offset
        first = self._transactions.first_open_offset(other_than=ended.producer_id)
        if first is None:
            self._undecided[key] = ended.marker_offset + 1
        else:
            self._ranges[key] = first, first

    def _decide(self, begun: int | None) -> None:
        if begun is not None:
            for key, lowest in self._undecided.items():
                self._ranges[key] = lowest, max(lowest, begun)
            self._undecided.clear()

    def range_after(self, key: tuple[int, int], log_end: int) -> tuple[int, int]:
        """Return the lowest and the highest that may be written of a producer's marker."""
        if self._undecided:
            producer_id = next(iter(self._undecided))[0]
            begun = self._transactions.first_open_offset(other_than=producer_id)
            self._decide(log_end if begun is None else begun)
        return self._ranges[key]


def _read_index(segment: LogSegmentView) -> list[TransactionIndexEntry] | str:
    if not segment.has_transaction_index:
        return []
    return _read_entries(segment.file_path(TXN_INDEX_FILE_SUFFIX))


def _with_late_entries(
    path: str, entries: list[TransactionIndexEntry] | str, expected: Aborted
) -> list[TransactionIndexEntry] | str:
    """Return the entries of the last index, once those are there which a broker writes after."""
    for pause in live_pauses(path):
        if isinstance(entries, str) or expected.keys() <= set(map(_key, entries)):
            break
        time.sleep(pause)  # the marker is in the log before its entry is in the index
        now = _read_entries(path)
        if isinstance(now, str):
            return now
        # What has come besides is about batches after those that were looked at.
        seen = set(entries)
        entries = [each for each in now if each in seen or _key(each) in expected]
    return entries


def _key(entry: TransactionIndexEntry) -> tuple[int, int]:
    return entry.producer_id, entry.last_offset


def _read_entries(path: str) -> list[TransactionIndexEntry] | str:
    try:
        return read_transaction_index(path)
    except (CorruptIndexError, UnreadableFileError) as error:
        return str(error.reason)
    except SegmentVanishedError:
        return []  # deleted since the directory was listed


def _missing_entries(
    path: str, expected: Aborted, stored: Entries, log_start: int
) -> Iterator[Finding]:
    for key in _by_marker(expected.keys() - stored.keys()):
        first = expected[key]
        # One that began before the log may have had no record in this partition.
        if first is not None and first >= log_start:
            message = f"no entry for producer {key[0]}, aborted at offset {key[1]}"
            yield _wrong(kinds.WRONG_TRANSACTION_INDEX, path, message, first, key[1] + 1)


def _late_entries(
    path: str, expected: Aborted, stored: Entries, is_whole: Callable[[int, int], bool]
) -> Iterator[Finding]:
    for key in _by_marker(expected.keys() & stored.keys()):
        first = expected[key]
        if first is None or stored[key].first_offset <= first:
            continue
        # In what is missing, an earlier transaction may have ended.
        if is_whole(first, stored[key].first_offset):
            message = (
                f"entry of producer {key[0]}, aborted at offset {key[1]}, begins at "
                f"{stored[key].first_offset}, its first batch at {first}"
            )
            end = stored[key].first_offset
            yield _wrong(kinds.WRONG_TRANSACTION_INDEX, path, message, first, end)


def _extra_entries(
    path: str, stored: Entries, markers: set[tuple[int, int]], end_offset: int
) -> Iterator[Finding]:
    for producer_id, marker in _by_marker(stored.keys() - markers):
        what = "no such marker is in the log"
        if marker >= end_offset:
            what = f"the log ends at offset {end_offset}"
        message = f"entry of producer {producer_id}, aborted at offset {marker}, but {what}"
        first = stored[producer_id, marker].first_offset
        # A consumer leaves out all of the producer's records up to a marker of an abort.
        ends = [at for producer, at in markers if producer == producer_id and at >= first]
        end = min(ends, default=end_offset - 1) + 1
        yield _wrong(kinds.WRONG_TRANSACTION_INDEX, path, message, first, end)


def _wrong(kind: FindingKind, path: str, message: str, start: int, end: int | None) -> Finding:
    """Return a warning that consumers of committed records get wrong answers about offsets."""
    return kind.found(path, message, next_offset=start, end_offset=end, own_effect=Effect.CONSUMERS)


def _by_marker(keys: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(keys, key=lambda key: key[1])
