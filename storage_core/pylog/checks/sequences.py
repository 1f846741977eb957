"""Findings about sequence numbers: the batches of an idempotent producer follow each other.

A leader accepts a batch of a producer that it knows only if its first sequence number is one more
than the last one, or 0 in a new epoch. So in a log there is no gap, unless

* the batches in between have left the log, by compaction, damage or the loss of a file: then
  offsets are missing, too, at least as many, and `pylog.checks.offsets` has them;
* the broker had forgotten the producer: after ``producer.id.expiration.ms`` (a day by default)
  without a record of it, by the records' timestamps, or, before Kafka 2.4, once retention had
  removed all of its records. It then accepts any number.

Whatever is before the first batch of a producer that is left is not judged. Nor are Kafka's own
topics: what a coordinator writes for a producer always has 0.

Source: ProducerAppendInfo.checkSequence, ProducerStateManager.isProducerExpired (Kafka 4.3).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.checks.report import Finding, Severity
from pylog.errors import CorruptCheckpointError, UnreadableFileError
from pylog.model import INTERNAL_TOPICS, NO_PRODUCER_ID, NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window

    Int64Array = npt.NDArray[np.int64]


SEQUENCE_GAP = "sequence_gap"
REPEATED_SEQUENCE = "repeated_sequence"

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
            yield Finding(Severity.INFO, SEQUENCE_GAP, self._path, message)

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
            code = REPEATED_SEQUENCE
            message += ", so records may be in the log twice"
        else:
            code = SEQUENCE_GAP
            message += f", so the producer sent {self.skipped} records that are not in the log"
        severity = Severity.WARNING
        if self.may_be_forgotten:
            severity = Severity.INFO
            message += "; or else the broker had forgotten the producer, and took any number"
        end_offset = batch.end_offset
        return Finding(
            severity, code, path, message, position, end_position, batch.offset, end_offset
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
