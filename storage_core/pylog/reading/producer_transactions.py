"""The transactions of a log: what each producer wrote between two of its markers.

From batch headers and markers; transaction indexes and producer snapshots only say what retention
has deleted. In the order of decisions: by marker, then what is open by first offset, so that memory
is bounded by what is open at once.

Where the first batches of a log belong to a transaction, it may have begun before them. It has not
if the producer counts from sequence 0 there; the snapshot that the broker took when it began this
segment says so; and so does the transaction index if it was aborted. Otherwise it cannot be known.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    CorruptIndexError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    TXN_INDEX_FILE_SUFFIX,
)
from pylog.files.transaction_index import read_transaction_index
from pylog.model import NO_TIMESTAMP, ControlRecordType
from pylog.reading.checked_windows import transactional_batches
from pylog.reading.headers import header_windows
from pylog.reading.transactions import open_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window


_STATES: dict[int, str] = {
    ControlRecordType.COMMIT: "committed",
    ControlRecordType.ABORT: "aborted",
}


class Transaction(NamedTuple):
    """One transaction as far as a log shows it; the values of a row of table ``transactions``."""

    producer_id: int  # whose it is
    producer_epoch: int  # of its data; of the marker where no data is left
    # of its first batch, also of one that retention has deleted; None where that is not known
    first_offset: int | None
    last_offset: int | None  # of its last data batch; None where no data is left
    # ``committed``, ``aborted``, ``open`` (no marker follows), or ``unknown``: damage was left out
    # inside it, and a marker may have been there
    state: str
    marker_offset: int | None  # none while it is open
    # Of its data batches that are there
    size_bytes: int
    batches: int
    records: int
    # whether its first offset lies below the log start offset; None where that is not known
    begins_before_log_start: bool | None
    # the largest timestamp of its first batch that is there, in ms; None where none is left, or the
    # batch has no timestamps
    first_timestamp: int | None
    marker_timestamp: int | None  # in ms; None while it is open


def find_transactions(view: LogView) -> Iterator[Transaction]:
    """Yield the transactions of one partition, after a look at all headers."""
    transactions = TransactionsInOrder(view)
    for segment_window in header_windows(view):
        yield from transactions.add(segment_window.window)
    yield from transactions.still_open()


class TransactionsInOrder:
    """Follows the transactions of a log, window by window. One thread."""

    def __init__(self, view: LogView) -> None:
        self._view = view
        self._past = _Past(view)
        self._log_start_offset = _log_start_offset(view)
        self._open: OrderedDict[int, _OpenTransaction] = OrderedDict()
        self._damage_count = _damage_count(view)

    def add(self, window: Window) -> Iterator[Transaction]:
        """Yield the transactions that end in a window."""
        for event in _events(window):
            self._note_damage()
            transaction = self._open.get(event.producer_id)
            if transaction is None:
                transaction = self._past.begin(event)
                self._open[event.producer_id] = transaction
            if event.state is None:
                transaction.add(event)
                continue
            del self._open[event.producer_id]
            self._past.complete(transaction, event)
            yield transaction.ended(event.state, event, self._log_start_offset)

    def still_open(self) -> Iterator[Transaction]:
        """Yield what no marker has ended, once all windows have been added."""
        self._note_damage()
        still_open = sorted(self._open.values(), key=lambda each: each.first_offset or 0)
        for transaction in still_open:
            yield transaction.ended("open", None, self._log_start_offset)

    def first_open_offset(self, *, other_than: int) -> int | None:
        """Return where the first transaction that is open begins, of all producers but one."""
        others = (each for each in self._open.values() if each.producer_id != other_than)
        first = next(others, None)
        return None if first is None else first.first_offset

    def _note_damage(self) -> None:
        """Mark what is open if damage was left out since the last look."""
        now = _damage_count(self._view)
        if now > self._damage_count:
            for transaction in self._open.values():
                transaction.is_damaged = True
        self._damage_count = now


class _Event(NamedTuple):
    """A batch of a transaction: data, or a marker."""

    state: str | None  # of the transaction that the marker ends; None for data
    producer_id: int
    producer_epoch: int
    base_offset: int
    last_offset: int
    base_sequence: int
    size_bytes: int
    record_count: int
    max_timestamp: int


@dataclass(slots=True)
class _OpenTransaction:
    """What has been seen of a transaction so far; offsets are None without data."""

    producer_id: int
    producer_epoch: int
    first_offset: int | None
    began_before: bool | None = False
    last_offset: int | None = None
    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    first_timestamp: int | None = None
    is_damaged: bool = False

    def add(self, event: _Event) -> None:
        if not self.batches and event.max_timestamp != NO_TIMESTAMP:
            self.first_timestamp = event.max_timestamp
        self.last_offset = event.last_offset
        self.size_bytes += event.size_bytes
        self.batches += 1
        self.records += event.record_count

    def ended(self, state: str, marker: _Event | None, log_start_offset: int | None) -> Transaction:
        began_before = self.began_before
        if log_start_offset is None:
            began_before = began_before or None
        elif self.first_offset is not None and self.first_offset < log_start_offset:
            began_before = True
        return Transaction(
            self.producer_id,
            self.producer_epoch,
            self.first_offset,
            self.last_offset,
            "unknown" if self.is_damaged else state,
            None if marker is None else marker.base_offset,
            self.size_bytes,
            self.batches,
            self.records,
            began_before,
            self.first_timestamp,
            None if marker is None else marker.max_timestamp,
        )


def _log_start_offset(view: LogView) -> int | None:
    """Return the log start offset, None where its checkpoint cannot be read."""
    try:
        return view.log_start_offset
    except (CorruptCheckpointError, UnreadableFileError):
        return None


def _damage_count(view: LogView) -> int:
    return 0 if view.damage is None else view.damage.skip_count


def _events(window: Window) -> Iterator[_Event]:
    """Yield what `transaction_events` has, with all fields that a row is summed up from."""
    headers = window.headers
    # A marker is transactional, too; control batches of other kinds are not.
    which, is_control, kinds = transactional_batches(window)
    columns = (
        headers.producer_ids,
        headers.producer_epochs,
        headers.offsets,
        headers.last_offsets,
        headers.base_sequences,
        headers.sizes_bytes,
        headers.record_counts,
        headers.max_timestamps,
    )
    rows = zip(*(column[which].tolist() for column in columns), strict=True)
    for fields, control, kind in zip(rows, is_control.tolist(), kinds.tolist(), strict=True):
        if not control:
            yield _Event(None, *fields)
        elif kind in _STATES:
            yield _Event(_STATES[kind], *fields)


class _Past:
    """What is known of transactions that began before the first batch of the log."""

    def __init__(self, view: LogView) -> None:
        self._base_offset = view.segments[0].base_offset if view.segments else 0
        self._open_at_base = _open_at(view, self._base_offset)
        self._aborted = _aborted_from_before(view, self._base_offset)
        self._seen: set[int] = set()

    def begin(self, event: _Event) -> _OpenTransaction:
        """Return the transaction of a producer's first batch, or marker, since its last marker."""
        first_offset = event.base_offset if event.state is None else None
        began_before: bool | None = False
        if event.producer_id not in self._seen:
            self._seen.add(event.producer_id)
            open_since = (self._open_at_base or {}).get(event.producer_id)
            if open_since is not None:
                first_offset, began_before = open_since, True
            elif self._open_at_base is None and event.base_sequence != 0:
                began_before = None
        return _OpenTransaction(event.producer_id, event.producer_epoch, first_offset, began_before)

    def complete(self, transaction: _OpenTransaction, marker: _Event) -> None:
        """Let the transaction index say where an aborted transaction began, if not here."""
        first_offset = self._aborted.get((marker.producer_id, marker.base_offset))
        if first_offset is not None and transaction.began_before is None:
            transaction.first_offset, transaction.began_before = first_offset, True


def _open_at(view: LogView, offset: int) -> dict[int, int] | None:
    """Return producer id to first offset of what was open at the log's first segment.

    None where no sound snapshot says it. The snapshot of that offset goes with its segment; a
    broker deletes it at a restart once the log start offset has reached it.
    """
    if offset == 0:
        return {}
    return open_at(view, offset)


def _aborted_from_before(view: LogView, offset: int) -> dict[tuple[int, int], int]:
    """Return (producer id, marker offset) to first offset of what was aborted and began before."""
    first_offsets = {}
    for segment in view.segments:
        if offset == 0 or not segment.has_transaction_index:
            continue
        try:
            entries = read_transaction_index(segment.file_path(TXN_INDEX_FILE_SUFFIX))
        except (CorruptIndexError, SegmentVanishedError, UnreadableFileError):
            continue
        for entry in entries:
            if entry.first_offset < offset:
                first_offsets[entry.producer_id, entry.last_offset] = entry.first_offset
    return first_offsets
