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

Source: Cleaner.cleanInto, shouldDiscardBatch (Kafka 4.3; KAFKA-17076).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import InvalidRecordError
from pylog.record.batch_layout import DELETE_HORIZON_FLAG_MASK
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
    from pylog.model import ControlRecordType
    from pylog.producers.producer_state_entry import LastRecord
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.window import Window

    BoolArray = npt.NDArray[np.bool_]

_NO_DATA = -1


class BatchRetention(NamedTuple):
    """What becomes of the batches of a window; masks with a bit a batch.

    Attributes
    ----------
    drops_records
        None of its records stays.
    keeps_header
        If no record stays, its header does.
    needs_horizon
        A marker that may be discarded.
    """

    drops_records: BoolArray
    keeps_header: BoolArray
    needs_horizon: BoolArray


class TransactionBatch(NamedTuple):
    """A batch of a window that has to do with a transaction.

    Attributes
    ----------
    place
        Which batch of the window.
    producer_id, last_offset
        Of the batch.
    is_marker
        Whether it is a control batch, and no data batch.
    control_type
        Of a control batch; None for one that an earlier cleaning has emptied, and for data.
    """

    place: int
    producer_id: int
    last_offset: int
    is_marker: bool
    control_type: ControlRecordType | None


def transaction_batches(window: Window) -> Iterator[TransactionBatch]:
    """Yield the control batches of a window, and those with data of transactions, in order.

    Raises
    ------
    InvalidRecordError
        A control batch cannot be read.
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
    """Return which batches may be discarded, and show all of them to ``transactions``.

    Raises
    ------
    InvalidRecordError
        A control batch cannot be read.
    """
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
    """The rules of one cleaning.

    Parameters
    ----------
    last_records
        Of the active producers, by producer id.
    end_offset
        Where the cleaning ends, exclusive.
    now_ms
        When it began.
    """

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


def has_horizon(headers: BatchHeaders) -> BoolArray:
    """Return which batches have a delete horizon, in the place of their base timestamp."""
    mask: BoolArray = headers.is_v2 & (headers.attributes & DELETE_HORIZON_FLAG_MASK != 0)
    return mask
