"""What is wrong with producers: sequences in batches, and snapshots of their state."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import (
    CorruptCheckpointError,
    CorruptSnapshotError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import PRODUCER_SNAPSHOT_FILE_SUFFIX, file_name_prefix
from pylog.files.looks import live_pauses
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.findings import kinds
from pylog.findings.finding import Finding, Severity
from pylog.locations import join
from pylog.model import INTERNAL_TOPICS, NO_PRODUCER_ID, NO_SEQUENCE
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.producer_snapshot import ProducerSnapshotEntry
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window

    Int64Array = npt.NDArray[np.int64]


# Findings about sequence numbers: the batches of an idempotent producer follow each other.
#
# A leader accepts a batch of a producer that it knows only if its first sequence number is one more
# than the last one, or 0 in a new epoch. So in a log there is no gap, unless
#
# * the batches in between have left the log, by compaction, damage or the loss of a file: then
#   offsets are missing, too, at least as many, and `pylog.checks.offsets` has them;
# * the broker had forgotten the producer: after ``producer.id.expiration.ms`` (a day by default)
#   without a record of it, by the records' timestamps, or, before Kafka 2.4, once retention had
#   removed all of its records. It then accepts any number.
#
# Whatever is before the first batch of a producer that is left is not judged. Nor are Kafka's own
# topics: what a coordinator writes for a producer always has 0.
#
# Source: ProducerAppendInfo.checkSequence, ProducerStateManager.isProducerExpired (Kafka 4.3).


_EXPIRATION_MS = 86_400_000
_HIGHEST_SEQUENCE = 0x7FFFFFFF
_MOST_AHEAD = 1 << 30
"""Numbers wrap around: what is further ahead than this has gone back."""
_MOST_PRODUCERS = 1 << 17
"""Of how many the last batch is remembered: those that wrote last."""
_MOST_LISTED = 100

_EPOCH, _BASE, _LAST, _OFFSET, _END, _MISSING, _TIMESTAMP, _LATEST = range(8)


class _Batch(NamedTuple):
    """A batch of a producer, and what the log has been like up to it."""

    # As its header says
    epoch: int
    base_sequence: int
    last_sequence: int
    # Its offsets; the end is exclusive
    offset: int
    end_offset: int
    missing: int  # how many offsets before it no batch has
    # The largest in it, and in the log up to it
    timestamp: int
    latest_timestamp: int


class SequenceFindings:
    """Follows the sequence numbers of a log's producers, window by window. One thread."""

    def __init__(self, view: LogView) -> None:
        self._path = view.directory.path
        self._is_judged = view.topic not in INTERNAL_TOPICS
        self._last: dict[int, _Batch] = {}
        self._next_offset = view.local_log_start_offset
        self._missing = 0
        self._latest_timestamp = -1
        self._log_start_offset = _log_start_offset(view)
        self._count = 0

    def add(self, segment: LogSegmentView, window: Window) -> Iterator[Finding]:
        """Yield what is wrong with the sequence numbers of these batches."""
        if not self._is_judged:
            return
        headers = window.headers
        missing, latest = self._account(window)
        which = np.flatnonzero(
            headers.is_v2
            & ~headers.is_control
            & (headers.producer_ids > NO_PRODUCER_ID)
            & (headers.base_sequences > NO_SEQUENCE)
        )
        if not which.size:
            return
        producers = headers.producer_ids[which]
        order = np.argsort(producers, kind="stable")
        which, producers = which[order], producers[order]
        bases = headers.base_sequences[which]
        deltas = headers.last_offsets[which] - headers.offsets[which]
        table = np.empty((which.size, len(_Batch._fields)), dtype=np.int64)
        table[:, _EPOCH] = headers.producer_epochs[which]
        table[:, _BASE] = bases
        table[:, _LAST] = (bases + deltas) & _HIGHEST_SEQUENCE
        table[:, _OFFSET] = headers.offsets[which]
        table[:, _END] = headers.last_offsets[which] + 1
        table[:, _MISSING] = missing[which]
        table[:, _TIMESTAMP] = headers.max_timestamps[which]
        table[:, _LATEST] = latest[which]
        for row in np.flatnonzero(_is_doubtful(producers, table)).tolist():
            producer = int(producers[row])
            batch = _Batch(*table[row].tolist())
            is_first = row == 0 or producers[row - 1] != producer
            before = self._last.get(producer) if is_first else _Batch(*table[row - 1].tolist())
            if before is None:
                continue
            place = int(which[row])
            position = window.position_of(place)
            end_position = position + int(headers.sizes_bytes[place])
            found = self._judged(producer, before, batch)
            if found is not None:
                yield found.finding(segment.file_path(), position, end_position)
        is_last = np.append(producers[1:] != producers[:-1], [True])
        self._remember(producers[is_last].tolist(), table[is_last].tolist())

    def findings(self) -> Iterator[Finding]:
        """Yield how many more there are than were listed, once all windows have been added."""
        more = self._count - _MOST_LISTED
        if more > 0:
            message = f"sequence numbers of producers skip some, or go back, {more} more times"
            yield kinds.SEQUENCE_GAP.found(self._path, message, severity=Severity.INFO)

    def _account(self, window: Window) -> tuple[Int64Array, Int64Array]:
        """Return how many offsets are missing before each batch; the latest timestamp up to it."""
        headers = window.headers
        ends = headers.last_offsets + 1
        before = np.concatenate(([self._next_offset], ends[:-1]))
        # Where a compressed message of v0 or v1 begins, its header does not say.
        gaps = np.where(headers.is_v2, np.maximum(headers.offsets - before, 0), 0)
        missing = self._missing + np.cumsum(gaps)
        latest = np.maximum.accumulate(np.maximum(headers.max_timestamps, self._latest_timestamp))
        self._next_offset = int(ends[-1])
        self._missing = int(missing[-1])
        self._latest_timestamp = int(latest[-1])
        return missing, latest

    def _remember(self, producers: list[int], rows: list[list[int]]) -> None:
        for producer, row in zip(producers, rows, strict=True):
            self._last.pop(producer, None)
            self._last[producer] = _Batch(*row)
        too_many = max(0, len(self._last) - _MOST_PRODUCERS)
        for producer in list(islice(self._last, too_many)):
            del self._last[producer]

    def _judged(self, producer: int, before: _Batch, batch: _Batch) -> _Break | None:
        if batch.epoch < before.epoch:
            return None  # a broker that knows the producer refuses that whatever the number is
        is_new_epoch = batch.epoch > before.epoch
        expected = 0 if is_new_epoch else (before.last_sequence + 1) & _HIGHEST_SEQUENCE
        ahead = (batch.base_sequence - expected) & _HIGHEST_SEQUENCE
        is_gap = is_new_epoch or ahead < _MOST_AHEAD
        if not ahead or (is_gap and ahead <= batch.missing - before.missing):
            return None
        self._count += 1
        if self._count > _MOST_LISTED:
            return None
        may_be_forgotten = (
            batch.latest_timestamp - before.timestamp >= _EXPIRATION_MS
            or before.end_offset <= self._log_start_offset
        )
        return _Break(producer, before, batch, ahead if is_gap else None, may_be_forgotten)


class _Break(NamedTuple):
    """A batch whose sequence number does not follow; ``skipped`` is None where it goes back."""

    producer_id: int
    before: _Batch
    batch: _Batch
    skipped: int | None
    may_be_forgotten: bool

    def finding(self, path: str, position: int, end_position: int) -> Finding:
        """Return what is said of it; the bytes are those of the batch."""
        batch = self.batch
        message = f"producer {self.producer_id}, epoch {batch.epoch}: "
        if batch.epoch != self.before.epoch:
            message += f"the epoch begins with sequence number {batch.base_sequence}"
        else:
            message += (
                f"sequence number {batch.base_sequence} comes after {self.before.last_sequence}"
            )
        if self.skipped is None:
            kind = kinds.REPEATED_SEQUENCE
            message += ", so records may be in the log twice"
        else:
            kind = kinds.SEQUENCE_GAP
            skipped = counted(self.skipped, "record that is", "records that are")
            message += f", so the producer sent {skipped} not in the log"
        severity = Severity.WARNING
        if self.may_be_forgotten:
            severity = Severity.INFO
            message += "; or else the broker had forgotten the producer, and took any number"
        return kind.found(
            *(path, message, position, end_position),
            *(batch.offset, batch.end_offset),
            severity=severity,
        )


def _is_doubtful(producers: Int64Array, table: Int64Array) -> npt.NDArray[np.bool_]:
    """Return which batches need a look; sorted by producer, and then as they are in the log."""
    expected = np.where(
        table[1:, _EPOCH] == table[:-1, _EPOCH], (table[:-1, _LAST] + 1) & _HIGHEST_SEQUENCE, 0
    )
    is_doubtful = np.ones(producers.size, dtype=np.bool_)
    is_doubtful[1:] = (producers[1:] != producers[:-1]) | (table[1:, _BASE] != expected)
    return is_doubtful


def _log_start_offset(view: LogView) -> int:
    try:
        return view.log_start_offset
    except (CorruptCheckpointError, UnreadableFileError):
        return view.local_log_start_offset  # a finding by itself


_MOST_CLAIMS = 1 << 18
"""How many entries of snapshots are held against the log, the oldest first."""


class _Claim(NamedTuple):
    """What one snapshot says of one producer: which batch was its last."""

    path: str
    entry: ProducerSnapshotEntry


class SnapshotFindings:
    """Holds producer snapshots against the headers of batches, window by window. One thread."""

    def __init__(self, view: LogView) -> None:
        self._found: list[Finding] = []
        self._snapshots: list[tuple[int, str]] = []
        self._claims: list[_Claim] = []
        self._contradicted: dict[str, str] = {}
        newest = max(view.producer_snapshot_offsets, default=None)
        for offset in sorted(view.producer_snapshot_offsets):
            name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
            self._read(offset, join(view.directory.path, name), is_newest=offset == newest)
        self._claims.sort(key=lambda claim: claim.entry.last_offset)
        self._offsets = np.array(
            [claim.entry.last_offset for claim in self._claims], dtype=np.int64
        )

    def _read(self, offset: int, path: str, *, is_newest: bool) -> None:
        try:
            entries = _read_once_written(path) if is_newest else read_producer_snapshot(path)
        except (CorruptSnapshotError, UnreadableFileError) as error:
            self._found.append(kinds.DAMAGED_SNAPSHOT.found(path, str(error.reason)))
            return
        except SegmentVanishedError:
            return  # a broker deletes old ones
        self._snapshots.append((offset, path))
        for entry in entries:
            if entry.last_offset >= offset or entry.current_txn_first_offset >= offset:
                message = (
                    f"producer {entry.producer_id} has last offset {entry.last_offset} and a "
                    f"transaction from {entry.current_txn_first_offset} on (-1: none), expected "
                    f"both below {offset}, the offset of the snapshot"
                )
                self._contradicted.setdefault(path, message)
            elif entry.last_offset >= 0 and len(self._claims) < _MOST_CLAIMS:
                self._claims.append(_Claim(path, entry))

    def add(self, window: Window) -> None:
        """Hold what is said of these batches against them."""
        if not self._offsets.size:
            return
        headers = window.headers
        lasts = headers.last_offsets
        first, end = np.searchsorted(self._offsets, (headers.offsets[0], lasts[-1] + 1)).tolist()
        if first == end:
            return
        places = np.searchsorted(lasts, self._offsets[first:end])
        is_there = lasts[places] == self._offsets[first:end]
        for claim, place, there in zip(
            self._claims[first:end], places.tolist(), is_there.tolist(), strict=True
        ):
            if not there:
                continue
            entry = claim.entry
            stored = (entry.producer_id, entry.producer_epoch)
            held = (int(headers.producer_ids[place]), int(headers.producer_epochs[place]))
            if stored != held:
                message = (
                    f"the batch that ends at offset {entry.last_offset} is the last one of "
                    f"producer {stored[0]}, epoch {stored[1]}, according to the snapshot, but it "
                    f"has producer {held[0]}, epoch {held[1]}"
                )
                self._contradicted.setdefault(claim.path, message)

    def findings(self, end_offset: int | None) -> Iterator[Finding]:
        """Yield what is wrong, once all windows have been added; the log's end may be unknown."""
        yield from self._found
        for offset, path in self._snapshots:
            if path in self._contradicted:
                yield kinds.WRONG_SNAPSHOT.found(path, self._contradicted[path])
            elif end_offset is not None and offset > end_offset:
                message = f"the log ends at offset {end_offset}, before that of the snapshot"
                yield kinds.SNAPSHOT_ABOVE_LOG_END.found(path, message)


def _read_once_written(path: str) -> list[ProducerSnapshotEntry]:
    """Return what a snapshot holds; of one that a broker is just writing, once it is whole.

    A broker makes the file and writes into it then.
    """
    for pause in live_pauses(path):
        try:
            return read_producer_snapshot(path)
        except CorruptSnapshotError:
            time.sleep(pause)
    return read_producer_snapshot(path)
