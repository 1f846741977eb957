"""Replicas of one compacted partition, put together by record: which of them the result has.

Where the last leader's replica says nothing, batches of the others fill it, and some of their
records stay out. What decides is the last record of a key that any replica has, of those that are
committed:

=========================================== ======================================================
the last record that is known of a key      then
=========================================== ======================================================
is in the result, and no replica that says  all records of the key stay: readers take the last one
what is at its offset lacks it
is a tombstone in the result                the same: a cleaner may have removed it elsewhere
is not in the result, since the replica     no record of the key stays. A later one was there, and
that is copied there has cleaned it         is lost, or the key was deleted: an earlier value would
                                            come back
is in the result, is a value, and another   the same
replica has cleaned it
fills a hole, and may have been deleted:    no record of the key stays, unless the last leader's
who has it says nothing of later offsets    replica has an earlier one (it would have cleaned that,
that another one has cleaned, or a later    too); they are reported as held back
record's transaction is not known
=========================================== ======================================================

Of records that fill holes those of aborted transactions stay out, and those whose transaction's
marker is not in the result, or is not known for sure. Control records stay, as do records without a
key: no cleaner has decided about those yet.

Between two files of the last leader's replica nothing is filled, unless a last value is there.

Source: Cleaner.shouldRetainRecord, CleanedTransactionMetadata (Kafka 4.3).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.offset_map import BYTES_PER_ENTRY, HashKey, OffsetMap
from pylog.model import ControlRecordType
from pylog.reading.checked_windows import transactional_batches
from pylog.reading.open_transactions import END_TYPES
from pylog.record.batch_writer import MAX_INT64
from pylog.recovery.compacted_replicas import (
    copied_first,
    copied_replica,
    coverages_of,
    held_of,
    intersect,
    joined,
    subtract,
)
from pylog.recovery.merged_log import windows_of
from pylog.recovery.retained_batches import BatchSelection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import LogLineage, Taken
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.record.batch_scan import Window
    from pylog.recovery.compacted_replicas import Span

    BoolArray = npt.NDArray[np.bool_]
    Int64Array = npt.NDArray[np.int64]

_MOST_ROWS = 4_000_000
"""Records of other batches than all replicas have are looked at so many at a time, by their keys'
hashes: some 100 bytes each."""
_ALL_OFFSETS = range(MAX_INT64)
_COUNTS, _LACKS_MARKER, _ABORTED, _UNKNOWN = range(4)
_NO_OFFSET = -1
_ADVICE = "; the replicas cannot be put together by record"


class CompactedLog(NamedTuple):
    """What the result has of a compacted log.

    Attributes
    ----------
    taken
        Its batches.
    left_out
        The offsets of those of their records that stay out, ascending.
    held_back
        Those of them that may be the last values of keys, or of transactions that were committed.
    known
        The offsets of which any replica says what is there.
    """

    taken: list[Taken]
    left_out: Int64Array
    held_back: Int64Array
    known: list[Span]


class _Rows(NamedTuple):
    """Records with keys, a row each."""

    hashes: Int64Array
    offsets: Int64Array
    stretches: Int64Array
    states: Int64Array
    has_value: BoolArray
    has_key: BoolArray

    def select(self, which: BoolArray | Int64Array) -> _Rows:
        return _Rows._make(each[which] for each in self)


_NONE = np.empty(0, dtype=np.int64)
_NO_ROWS = _Rows(
    _NONE.reshape(0, 2), _NONE, _NONE, _NONE, _NONE.astype(np.bool_), _NONE.astype(np.bool_)
)


class _Records(NamedTuple):
    """Such records, each once: who has it, and whether a batch that is taken has it."""

    hashes: Int64Array
    offsets: Int64Array
    has_value: BoolArray
    holders: Int64Array
    is_here: BoolArray
    states: Int64Array

    def select(self, which: BoolArray | Int64Array) -> _Records:
        return _Records._make(each[which] for each in self)


class _Doubts(NamedTuple):
    """Last records that fill holes, and what stays out if they may have been deleted."""

    last: _Records
    silent: Int64Array  # replicas that say nothing at their offsets
    rows: Int64Array  # offsets
    of: Int64Array  # by offset, with which of the records it stays out


class CompactedReplicas:
    """One partition; used once, one thread."""

    def __init__(self, replicas: Sequence[ReplicaLog], lineage: LogLineage) -> None:
        self._replicas = replicas
        self._root = copied_replica(lineage)
        self._coverages = coverages_of(replicas, lineage)
        said = self._coverages[self._root].spans
        self._taken = [
            each
            for each in copied_first(lineage)
            if self._root in each.stretch.places
            or subtract([(each.stretch.start_offset, each.stretch.end_offset)], said)
        ]
        # What is taken comes first.
        self._held = [each.stretch for each in self._taken]
        known = set(map(id, self._held))
        self._held += [each for each in held_of(lineage) if id(each) not in known]
        masks = [sum(1 << at for at in each.places) for each in self._held]
        self._masks = np.array(masks, dtype=np.int64)
        self._is_taken = np.arange(len(masks)) < len(self._taken)
        self._is_filler = self._is_taken & (self._masks & (1 << self._root) == 0)
        self._everybody = int(np.bitwise_or.reduce(self._masks))
        self._taken_spans = joined(
            (each.stretch.start_offset, each.stretch.end_offset) for each in self._taken
        )
        self._whole = joined(
            (each.start_offset, each.end_offset) for each in self._held if not each.is_cleaned
        )
        self._markers: dict[int, list[tuple[int, int]]] = {}
        self._holders: dict[int, int] = {}  # by base offset: who has a version of a batch
        self._own_data: dict[int, array[int]] = {}  # of the last leader's replica, by producer
        self._said: dict[int, list[Span]] = {}
        self._reader = KeyedRecordReader(advice=_ADVICE)
        self._hash_key = HashKey.random()
        self._left_out: list[Int64Array] = []
        self._unknown: list[Int64Array] = []
        self._doubts: list[_Doubts] = []
        self._between = [each.between_files for each in self._coverages]
        self._lost: list[set[Span]] = [set() for _ in replicas]

    def put_together(self, *, fills: bool) -> CompactedLog:
        """Return what the result has: of the last leader's replica alone, or with fillers."""
        known = joined(span for each in self._coverages for span in each.spans)
        if not fills:
            return CompactedLog(self._taken, _NONE, _NONE, known)
        self._find_markers()
        differing = int(sum(self._held[at].records for at in self._differing()))
        parts = -(-differing // _MOST_ROWS)
        for part in range(parts):
            self._decide(self._rows(part, parts))
        held_back = [self._held_back(each) for each in self._doubts]
        taken = [each for each in self._taken if not self._is_cleaned_there(each.stretch)]
        left_out = [_NONE, *self._left_out, *(each for _, each in held_back)]
        doubtful = [_NONE, *self._unknown, *(each for each, _ in held_back)]
        return CompactedLog(
            taken, np.unique(np.concatenate(left_out)), np.unique(np.concatenate(doubtful)), known
        )

    def _differing(self) -> list[int]:
        return np.flatnonzero(self._masks != self._everybody).tolist()

    # ---- transactions

    def _find_markers(self) -> None:
        for each, mask in zip(self._held, self._masks.tolist(), strict=True):
            for window in windows_of(self._replicas, each):
                which, is_control, kinds = transactional_batches(window)
                data = which[~is_control & (window.headers.record_counts[which] > 0)]
                self._note_data(window, data, mask)
                which, kinds = which[is_control], kinds[is_control]
                producers = window.headers.producer_ids[which].tolist()
                offsets = window.headers.offsets[which].tolist()
                for producer, offset, kind in zip(producers, offsets, kinds.tolist(), strict=True):
                    if ControlRecordType(kind) in END_TYPES:
                        self._markers.setdefault(producer, []).append((offset, kind))
        for found in self._markers.values():
            found[:] = sorted(set(found))
        self._note_lost_markers()

    def _note_data(self, window: Window, which: Int64Array, mask: int) -> None:
        if mask != self._everybody:
            for base in window.headers.offsets[which].tolist():
                self._holders[base] = self._holders.get(base, 0) | mask
        if mask & (1 << self._root):
            producers = window.headers.producer_ids[which].tolist()
            for producer, last in zip(
                producers, window.headers.last_offsets[which].tolist(), strict=True
            ):
                self._own_data.setdefault(producer, array("q")).append(last)

    def _note_lost_markers(self) -> None:
        """Note between which files the last leader's has lost markers: it has the data of them."""
        for producer, data in self._own_data.items():
            found = self._markers.get(producer, ())
            for last in data:
                at = bisect_right(found, (last, MAX_INT64))
                if at < len(found):
                    offset, _ = found[at]
                    self._lost[self._root] |= {
                        (start, end)
                        for start, end in self._between[self._root]
                        if start <= offset < end
                    }

    def _states(self, window: Window, stretch: BatchStretch) -> Int64Array:
        """Return by batch whether its records count."""
        headers = window.headers
        states = np.full(len(headers), _COUNTS, dtype=np.int64)
        for at in np.flatnonzero(headers.is_transactional & ~headers.is_control).tolist():
            base, last = int(headers.offsets[at]), int(headers.last_offsets[at])
            holders = self._holders.get(base, 0) | sum(1 << each for each in stretch.places)
            states[at] = self._state(int(headers.producer_ids[at]), last, holders)
        return states

    def _state(self, producer_id: int, last_offset: int, holders: int) -> int:
        found = self._markers.get(producer_id, ())
        at = bisect_right(found, (last_offset, MAX_INT64))
        if at == len(found):
            return _UNKNOWN
        offset, kind = found[at]
        # Who has records of a transaction has its marker, unless that is where it says nothing.
        # Where any replica has all records, there is no other one.
        if subtract([(last_offset, offset + 1)], self._said_by(holders)):
            return _UNKNOWN
        if kind != ControlRecordType.COMMIT:
            return _ABORTED
        is_there = intersect([(offset, offset + 1)], self._taken_spans)
        return _COUNTS if is_there else _LACKS_MARKER

    def _said_by(self, holders: int) -> list[Span]:
        """Return of which offsets any of some replicas says what is there."""
        if holders not in self._said:
            self._said[holders] = joined(
                span
                for at, each in enumerate(self._coverages)
                if holders & (1 << at)
                for span in (*each.spans, *each.between_files)
            )
            self._said[holders] = joined([*self._said[holders], *self._whole])
        return self._said[holders]

    # ---- records

    def _records(self, stretch: BatchStretch) -> Iterator[tuple[KeyedRecords, Int64Array]]:
        """Yield the records of a stretch, and of each the state of its batch."""
        for window in windows_of(self._replicas, stretch):
            headers = window.headers
            data = np.flatnonzero(~headers.is_control & (headers.record_counts > 0))
            if not data.size:
                continue
            window.read_batches()
            states = self._states(window, stretch)
            for found in self._reader.read(window, data, self._hash_key, _ALL_OFFSETS):
                counts = found.batch_ends - found.batch_starts
                yield found, np.repeat(states[found.batches], counts)

    def _rows(self, part: int, parts: int) -> _Rows:
        """Return the records of one part of the keys that not all replicas have."""
        pieces = [_NO_ROWS]
        for number in self._differing():
            for found, states in self._records(self._held[number]):
                rows = _Rows(
                    found.hashes,
                    found.offsets,
                    np.full(found.offsets.size, number, dtype=np.int64),
                    states,
                    found.has_value,
                    found.has_key,
                )
                pieces.append(rows.select(found.hashes[:, 0] % parts == part))
        return _Rows._make(map(np.concatenate, zip(*pieces, strict=True)))

    def _last_in_all(self, found: _Records, firsts: Int64Array) -> Int64Array:
        """Return by key the last offset that it has in batches of all replicas, -1 without one."""
        last = np.full(firsts.size, _NO_OFFSET, dtype=np.int64)
        numbers = OffsetMap(BYTES_PER_ENTRY * (4 * firsts.size + 16), 1)
        numbers.put(found.hashes[firsts], np.arange(firsts.size), np.arange(firsts.size))
        for number in np.flatnonzero(self._masks == self._everybody).tolist():
            for records, states in self._records(self._held[number]):
                counted = np.flatnonzero(records.has_key & (states == _COUNTS))
                known = numbers.find(records.hashes, counted)
                is_known = known >= 0
                np.maximum.at(last, known[is_known], records.offsets[counted[is_known]])
        return last

    def _decide(self, rows: _Rows) -> None:
        without_key = rows.select(~rows.has_key & (rows.states != _COUNTS))
        self._left_out.append(without_key.offsets[self._is_filler[without_key.stretches]])
        rows = rows.select(rows.has_key)
        if not rows.offsets.size:
            return
        rows = rows.select(np.lexsort([rows.offsets, rows.hashes[:, 1], rows.hashes[:, 0]]))
        is_new = np.ones(rows.offsets.size, dtype=np.bool_)
        is_new[1:] = rows.offsets[1:] != rows.offsets[:-1]
        is_new[1:] |= (rows.hashes[1:] != rows.hashes[:-1]).any(axis=1)
        starts = np.flatnonzero(is_new)
        found = _Records(
            rows.hashes[starts],
            rows.offsets[starts],
            rows.has_value[starts],
            np.bitwise_or.reduceat(self._masks[rows.stretches], starts),
            np.logical_or.reduceat(self._is_taken[rows.stretches], starts),
            np.minimum.reduceat(rows.states, starts),
        )
        self._decide_by_state(found)
        self._decide_by_key(found)

    def _decide_by_state(self, found: _Records) -> None:
        """Leave out what does not count, or is not known to, and the last leader's has not."""
        is_filler = found.is_here & (found.holders & (1 << self._root) == 0)
        self._left_out.append(found.offsets[is_filler & (found.states != _COUNTS)])
        self._unknown.append(found.offsets[is_filler & (found.states == _UNKNOWN)])
        unknown = found.select(found.is_here & (found.states == _UNKNOWN))
        _, cleaned = self._who_lacks(unknown)
        self._left_out.append(unknown.offsets[cleaned != 0])

    def _decide_by_key(self, found: _Records) -> None:
        is_first = np.ones(found.offsets.size, dtype=np.bool_)
        is_first[1:] = (found.hashes[1:] != found.hashes[:-1]).any(axis=1)
        keys = np.cumsum(is_first) - 1
        undecided = np.full(int(keys[-1]) + 1, _NO_OFFSET, dtype=np.int64)
        is_unknown = found.states == _UNKNOWN
        np.maximum.at(undecided, keys[is_unknown], found.offsets[is_unknown])
        counted = found.states <= _LACKS_MARKER
        found, keys = found.select(counted), keys[counted]
        if not keys.size:
            return
        is_first = np.diff(keys, prepend=-1) > 0
        undecided = undecided[keys[is_first]]
        keys = np.cumsum(is_first) - 1
        lasts = np.append(np.flatnonzero(is_first)[1:] - 1, keys.size - 1)
        in_all = self._last_in_all(found, np.flatnonzero(is_first))
        last = found.select(lasts)
        silent, cleaned = self._who_lacks(last)
        is_here = found.is_here & (found.states == _COUNTS)
        is_last = last.offsets > in_all
        is_gone = is_last & (in_all < 0) & (~is_here[lasts] | (last.has_value & (cleaned != 0)))
        self._left_out.append(found.offsets[is_gone[keys] & is_here])
        is_roots = found.holders & (1 << self._root) != 0
        is_kept_back = is_last & ~is_gone & last.has_value & (in_all < 0)
        is_kept_back[keys[is_roots]] = False  # it has an earlier one, or this one
        has_more = (in_all >= 0) | (np.bincount(keys[is_here], minlength=lasts.size) > 1)
        self._note_losses(last, cleaned, is_last & (last.has_value | has_more))
        is_unsure = is_kept_back & (undecided > last.offsets)
        self._left_out.append(found.offsets[is_unsure[keys] & is_here])
        self._unknown.append(last.offsets[is_unsure])
        which = np.flatnonzero(is_kept_back & ~is_unsure)
        numbers = np.full(lasts.size, -1, dtype=np.int64)
        numbers[which] = np.arange(which.size)
        of = numbers[keys]
        rows = np.flatnonzero((of >= 0) & is_here)
        doubts = _Doubts(last.select(which), silent[which], found.offsets[rows], of[rows])
        self._doubts.append(doubts)

    def _who_lacks(self, found: _Records) -> tuple[Int64Array, Int64Array]:
        """Return which replicas say nothing of some records, and which have cleaned them."""
        silent, cleaned = np.zeros_like(found.offsets), np.zeros_like(found.offsets)
        for at, each in enumerate(self._coverages):
            lacks, says = found.holders & (1 << at) == 0, each.has(found.offsets)
            silent |= np.where(lacks & ~says, 1 << at, 0)
            cleaned |= np.where(lacks & says, 1 << at, 0)
        return silent, cleaned

    # ---- what is doubtful

    def _note_losses(self, last: _Records, cleaned: Int64Array, is_needed: BoolArray) -> None:
        """Note between which files replicas have lost what no cleaner removes."""
        needed = last.select(is_needed & (cleaned == 0))
        needed = needed.select(np.argsort(needed.offsets, kind="stable"))
        for at, between in enumerate(self._between):
            lacking = needed.offsets[needed.holders & (1 << at) == 0]
            for start, end in between:
                first = int(np.searchsorted(lacking, start))
                if first < lacking.size and lacking[first] < end:
                    self._lost[at].add((start, end))

    def _held_back(self, doubts: _Doubts) -> tuple[Int64Array, Int64Array]:
        """Return the last records that may have been deleted, and all that stays out with them."""
        offsets, holders = doubts.last.offsets, doubts.last.holders
        may_be_deleted = np.ones(offsets.size, dtype=np.bool_)
        for holder in range(len(self._replicas)):
            is_deleted_for = np.zeros(offsets.size, dtype=np.bool_)
            for cleaner in range(len(self._replicas)):
                if holder != cleaner:
                    is_silent = doubts.silent & (1 << cleaner) != 0
                    is_deleted_for |= is_silent & (offsets < self._unseen(holder, cleaner))
            may_be_deleted &= is_deleted_for | (holders & (1 << holder) == 0)
        return offsets[may_be_deleted], doubts.rows[may_be_deleted[doubts.of]]

    def _unseen(self, holder: int, cleaner: int) -> int:
        """Return the end of the offsets that one replica says nothing of, and another has cleaned.

        A tombstone may have been there.
        """
        own, other = self._coverages[holder], self._coverages[cleaner]
        if not own.spans:
            return 0
        end = max(each.end_offset for each in self._held)
        unknown = joined([*own.damaged, *self._lost[holder]])
        if own.spans[-1][1] < end:
            unknown.append((own.spans[-1][1], end))
        found = subtract(intersect(unknown, other.spans), self._whole)
        return found[-1][1] if found else 0

    def _is_cleaned_there(self, stretch: BatchStretch) -> bool:
        """Whether a stretch fills what was only cleaned, between files of the last leader's."""
        return self._root not in stretch.places and any(
            start <= stretch.start_offset and stretch.end_offset <= end
            for start, end in self._between[self._root]
            if (start, end) not in self._lost[self._root]
        )


class LeftOutRecords:
    """Rewrites the batches that have some records, without them; one log, one thread."""

    def __init__(self, offsets: Int64Array) -> None:
        self._offsets = offsets
        self._selection = BatchSelection(None, None, self)

    def batches(self, window: Window) -> BoolArray:
        """Return in which batches of a window there may be one."""
        headers = window.headers
        firsts = np.searchsorted(self._offsets, headers.offsets)
        ends = np.searchsorted(self._offsets, headers.last_offsets, side="right")
        found: BoolArray = (firsts < ends) & ~headers.is_control & (headers.record_counts != 0)
        return found

    def records(self, records: KeyedRecords) -> BoolArray:
        """Return which records of such batches are left out."""
        return np.isin(records.offsets, self._offsets)

    def is_due(self, window: Window) -> bool:
        """Return whether any batch of a window is to be another one."""
        return bool(self.batches(window).any())

    def rewrite(self, window: Window) -> Iterator[memoryview]:
        """Yield the batches that a window is to have."""
        for part in self._selection.select(window):
            if part.data:
                yield part.data
