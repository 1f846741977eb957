"""What the batches of a segment do to transactions, as a task tells it to who plans a cleaning.

See `pylog.cleaner.large_cleaning`. Which transactions are open where a segment begins depends on
all segments before it. Tasks read the segments side by side, and the planner, who reads none, goes
through what they have found in the log's order.
"""

from __future__ import annotations

import itertools
from array import array
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.cleaner.batch_retention import transaction_batches
from pylog.cleaner.checked_windows import checked_windows
from pylog.cleaner.cleaner import window_bytes
from pylog.cleaner.log_snapshot import SnapshotLog
from pylog.cleaner.record_keys import dirty_position
from pylog.errors import KafkaStorageError, LogStorageError, SegmentVanishedError
from pylog.model import ControlRecordType

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from pylog.cleaner.batch_retention import TransactionBatch
    from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
    from pylog.cleaner.cleaning_task import CleaningTask
    from pylog.log.log_segment import LogSegment

    Int64Array = npt.NDArray[np.int64]

_DATA = -3
_EMPTY_MARKER = -2
"""Kinds of batches beside the values of `ControlRecordType`."""


class TransactionEvents(NamedTuple):
    """The batches of a part of a segment that change what is known of transactions, in order.

    Attributes
    ----------
    producer_ids, last_offsets
        int64: of each batch.
    kinds
        int64: what it is.
    """

    producer_ids: Int64Array
    last_offsets: Int64Array
    kinds: Int64Array

    def show_to(self, transactions: CleanedTransactionMetadata) -> None:
        """Have ``transactions`` know what it would if it had been shown all batches of the part."""
        columns = (column.tolist() for column in self)
        for producer_id, last_offset, kind in zip(*columns, strict=True):
            if kind == _DATA:
                transactions.on_batch_read(producer_id, last_offset)
                continue
            control_type = None if kind == _EMPTY_MARKER else ControlRecordType(kind)
            transactions.on_control_batch_read(producer_id, last_offset, control_type)


def events_of(batches: Iterable[TransactionBatch]) -> TransactionEvents:
    """Return the events of some neighbouring batches.

    Of the data batches of a producer between two of its markers only the first and the last one
    are kept. Which transaction is open changes once in between at most, from none or a committed
    one to an aborted one, so that those two tell whether there are data of either.
    """
    rows = array("q")
    newest_data: dict[int, int | None] = {}  # None: the first batch, which is among the rows

    def end_data(producer_id: int) -> None:
        newest = newest_data.pop(producer_id, None)
        if newest is not None:
            rows.extend((producer_id, newest, _DATA))

    for batch in batches:
        producer_id, last_offset = batch.producer_id, batch.last_offset
        if batch.is_marker:
            end_data(producer_id)
            kind = _EMPTY_MARKER if batch.control_type is None else int(batch.control_type)
            rows.extend((producer_id, last_offset, kind))
        elif producer_id in newest_data:
            newest_data[producer_id] = last_offset
        else:
            newest_data[producer_id] = None
            rows.extend((producer_id, last_offset, _DATA))
    for producer_id in list(newest_data):
        end_data(producer_id)
    table = np.array(rows, dtype=np.int64).reshape(-1, len(TransactionEvents._fields))
    in_order = table[np.argsort(table[:, 1], kind="stable")]
    return TransactionEvents(*np.ascontiguousarray(in_order.T))


class SegmentTransactions(NamedTuple):
    """What a task has found in a segment.

    Attributes
    ----------
    base_offset
        Of the segment.
    clean, dirty
        Before and from the byte on that is read for the keys of the dirty part.
    failure
        Why the segment cannot be cleaned; None if it can.
    """

    base_offset: int
    clean: TransactionEvents
    dirty: TransactionEvents
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTransactionsTask:
    """Reads the headers and markers of one segment; pickled on its way to where it runs.

    Attributes
    ----------
    cleaning
        What is to be done to the log.
    base_offset
        Of the segment.
    is_dirty
        Whether some of it is in the dirty part.
    """

    cleaning: CleaningTask
    base_offset: int
    is_dirty: bool

    def run(self) -> SegmentTransactions:
        """Return what the segment does to transactions.

        Raises
        ------
        KafkaStorageError, SegmentVanishedError
            It cannot be read.
        """
        log = SnapshotLog(self.cleaning.snapshot, self.cleaning.job_token)
        try:
            segment = log.segment(self.base_offset)
            start = dirty_position(self.cleaning, segment) if self.is_dirty else segment.size_bytes
            return self._read(segment, start)
        except (KafkaStorageError, SegmentVanishedError):
            raise
        except LogStorageError as error:  # the other partitions can be cleaned
            return SegmentTransactions(
                self.base_offset, events_of(()), events_of(()), failure=str(error)
            )
        finally:
            log.close()

    def _read(self, segment: LogSegment, dirty_from: int) -> SegmentTransactions:
        size = window_bytes(self.cleaning.config)
        batches = (
            (window.position_of(batch.place) >= dirty_from, batch)
            for window in checked_windows(segment, 0, size)
            for batch in transaction_batches(window)
        )
        parts = {
            is_dirty: events_of(batch for _, batch in part)
            for is_dirty, part in itertools.groupby(batches, key=itemgetter(0))
        }
        clean, dirty = (parts.get(is_dirty, events_of(())) for is_dirty in (False, True))
        return SegmentTransactions(self.base_offset, clean, dirty)
