"""What becomes of whole batches, before their records are looked at.

A batch that may be *discarded* holds data of an aborted transaction, or is the marker of one whose
data are gone. Then:

=================================== ============================ ===================================
batch                               discarded data, or a marker  any other
                                    whose delete horizon is past
=================================== ============================ ===================================
last of an active producer, or of   its header stays             its header stays, if no record does
the cleaning
any other                           goes                         goes, if no record stays
=================================== ============================ ===================================

A marker that may be discarded and has no delete horizon gets one, and stays until it is past.

* *Last of an active producer*: it holds the producer's last data offset, and with it the last
  sequence number; or, where the producer has written no data, a control batch with its epoch.
* *Last of the cleaning*: it ends where the cleaning ends, so that the offset is not lost.
  Differs from Kafka 4.4, where only a batch that ends at the high watermark is kept for that.

Source: Cleaner.cleanInto, shouldDiscardBatch (Kafka 4.3; KAFKA-17076).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import InvalidRecordError
from pylog.model import ControlRecordType
from pylog.record.header_sums import has_horizon
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.cleaner.offset_map import LatestRecords
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.producers.producer_state_entry import LastRecord
    from pylog.record.batch_scan import BatchHeaders, Window

    BoolArray = npt.NDArray[np.bool_]
    Int64Array = npt.NDArray[np.int64]


# Which transactions a cleaning has met, batch by batch, and which of their markers may go.
#
# A marker outlives the data of its transaction: a reader that finds data without their marker would
# take the transaction for open, or aborted data for committed.
#
# Source: CleanedTransactionMetadata (Kafka 4.3).


class CleanedTransactionMetadata:
    """The transactions that are open at a batch, as those before it show. One thread."""

    def __init__(self) -> None:
        self.keep_aborted: Callable[[TransactionIndexEntry], object] | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, TransactionIndexEntry] = {}
        self._with_data: set[int] = set()
        self._coming: list[tuple[int, int, TransactionIndexEntry]] = []  # a heap by first offset
        self._added = 0

    def add_aborted_transactions(self, entries: Iterable[TransactionIndexEntry]) -> None:
        """Note transactions that were aborted; one may be noted again while it is open."""
        for entry in entries:
            self._added += 1
            heapq.heappush(self._coming, (entry.first_offset, self._added, entry))

    def on_batch_read(self, producer_id: int, last_offset: int) -> bool:
        """Return whether a transactional data batch was aborted."""
        self._begin_aborted(last_offset)
        if producer_id in self._aborted:
            self._with_data.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_control_batch_read(
        self, producer_id: int, last_offset: int, control_type: ControlRecordType | None
    ) -> bool:
        """Return whether a control batch may go; ``control_type`` is None for an empty one."""
        self._begin_aborted(last_offset)
        if control_type is None:
            return True  # emptied by an earlier cleaning
        if control_type is ControlRecordType.ABORT:
            entry = self._aborted.pop(producer_id, None)
            if entry is None or producer_id not in self._with_data:
                return True
            self._with_data.remove(producer_id)
            if self.keep_aborted is not None:
                self.keep_aborted(entry)
            return False
        if control_type is ControlRecordType.COMMIT:
            has_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_data
        return False

    def _begin_aborted(self, offset: int) -> None:
        """Take the aborted transactions that begin up to ``offset`` for open."""
        while self._coming and self._coming[0][0] <= offset:
            entry = heapq.heappop(self._coming)[2]
            self._aborted.setdefault(entry.producer_id, entry)


_NO_DATA = -1


class BatchRetention(NamedTuple):
    """What becomes of the batches of a window; masks with a bit a batch."""

    drops_records: BoolArray
    keeps_header: BoolArray
    needs_horizon: BoolArray


class TransactionBatch(NamedTuple):
    """A batch of a window that has to do with a transaction."""

    place: int
    producer_id: int
    last_offset: int
    is_marker: bool
    control_type: ControlRecordType | None


def transaction_batches(window: Window) -> Iterator[TransactionBatch]:
    """Yield the control batches of a window, and those with data of transactions, in order.

    Also control batches of no transaction, and emptied ones, which `transaction_events` has not.
    """
    headers = window.headers
    is_control = headers.is_control
    of_transactions = np.flatnonzero(is_control | headers.is_transactional)
    rows = zip(
        of_transactions.tolist(),
        headers.producer_ids[of_transactions].tolist(),
        headers.last_offsets[of_transactions].tolist(),
        is_control[of_transactions].tolist(),
        strict=True,
    )
    for place, producer_id, last_offset, is_marker in rows:
        control_type = _control_type(window, place) if is_marker else None
        yield TransactionBatch(place, producer_id, last_offset, is_marker, control_type)


def _control_type(window: Window, place: int) -> ControlRecordType | None:
    try:
        return RecordBatch(window.bytes_of(place)).control_type()
    except InvalidRecordError as error:
        raise InvalidRecordError(error.reason, window.path, window.position_of(place)) from error


def discardable_batches(window: Window, transactions: CleanedTransactionMetadata) -> BoolArray:
    """Return which batches may be discarded, and show all of them to ``transactions``."""
    may_go = np.zeros(len(window.headers), dtype=np.bool_)
    for place, producer_id, last_offset, is_marker, control_type in transaction_batches(window):
        if is_marker:
            may_go[place] = transactions.on_control_batch_read(
                producer_id, last_offset, control_type
            )
        else:
            may_go[place] = transactions.on_batch_read(producer_id, last_offset)
    return may_go


class BatchRetentionRules:
    """The rules of one cleaning."""

    def __init__(
        self, last_records: Mapping[int, LastRecord], end_offset: int, now_ms: int
    ) -> None:
        ordered = sorted(last_records.items())
        self._producer_ids = np.array([each for each, _ in ordered], dtype=np.int64)
        self._data_offsets = np.array(
            [_NO_DATA if each.data_offset is None else each.data_offset for _, each in ordered],
            dtype=np.int64,
        )
        self._epochs = np.array([each.producer_epoch for _, each in ordered], dtype=np.int64)
        self._end_offset = end_offset
        self._now_ms = now_ms

    def retention_of(self, headers: BatchHeaders, may_go: BoolArray) -> BatchRetention:
        """Return what becomes of batches of which it is known which may be discarded."""
        is_control = headers.is_control
        is_past = has_horizon(headers) & (headers.base_timestamps <= self._now_ms)
        return BatchRetention(
            drops_records=may_go & (~is_control | is_past),
            keeps_header=self._is_last_of_producer(headers)
            | (headers.last_offsets + 1 == self._end_offset),
            needs_horizon=may_go & is_control,
        )

    def _is_last_of_producer(self, headers: BatchHeaders) -> BoolArray:
        ids = headers.producer_ids
        if self._producer_ids.size == 0 or not (ids >= 0).any():
            return np.zeros(len(headers), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._producer_ids, ids), self._producer_ids.size - 1)
        is_active = (self._producer_ids[places] == ids) & (ids >= 0)
        data_offsets = self._data_offsets[places]
        is_last = np.where(
            data_offsets != _NO_DATA,
            headers.last_offsets == data_offsets,
            headers.is_control & (headers.producer_epochs == self._epochs[places]),
        )
        kept: BoolArray = is_active & is_last
        return kept


# Which records of a batch stay.
#
# ========================================= ========================================================
# record                                    stays
# ========================================= ========================================================
# of a batch that drops its records         never
# of a control batch                        always
# above the offset map's end                always: there may be later ones of its key, unknown
# without a key                             never
# that the map has a later one for          never
# with a value                              always
# without a value (a tombstone)             until the batch's delete horizon, if it has one; in v0
#                                           and v1, unless the segment is older than its time
# ========================================= ========================================================
#
# Source: Cleaner.shouldRetainRecord (Kafka 4.3; KAFKA-8522).


class RetainedRecords(NamedTuple):
    """Which records of a group stay, and how many had no key where one is needed."""

    kept: BoolArray
    invalid_count: int


def retained_records(
    records: KeyedRecords,
    retention: BatchRetention,
    latest: LatestRecords,
    now_ms: int,
    *,
    keeps_legacy_tombstones: bool,
) -> RetainedRecords:
    """Return which records stay."""
    headers, has_key = records.headers, records.has_key
    by_rule = records.offsets <= latest.latest_offset
    # By batch, then by record.
    drops = retention.drops_records[records.batches]
    keeps = headers.is_control & ~drops
    keeps_tombstones = np.where(
        headers.is_v2,
        ~has_horizon(headers) | (now_ms < headers.base_timestamps),
        keeps_legacy_tombstones,
    )
    counts = records.batch_ends - records.batch_starts
    if (drops | keeps).any():
        by_rule &= ~np.repeat(drops | keeps, counts)
    kept = ~by_rule
    looked_up = np.flatnonzero(by_rule & has_key)
    is_latest = latest.are_latest(records.offsets, records.hashes, looked_up)
    if keeps_tombstones.all():
        kept[looked_up] = is_latest
    else:
        may_be_null = np.repeat(keeps_tombstones, counts)
        kept[looked_up] = is_latest & (records.has_value | may_be_null)[looked_up]
    if drops.any():
        kept &= ~np.repeat(drops, counts)
    return RetainedRecords(kept, int((by_rule & ~has_key).sum()))
