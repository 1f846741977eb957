"""The cleaning of one log as tasks, in other processes than the log's owner, perhaps elsewhere.

A `CleaningTask` takes no lock and changes no file of the log (`pylog.cleaner.log_snapshot`): it
cleans as `pylog.cleaner.cleaner` does, and says what it has staged. Where the keys do not fit into
one map, other tasks read keys and transactions of single segments (`pylog.cleaner.large_cleaning`).
"""

from __future__ import annotations

import copy
import itertools
from array import array
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.cleaner.batch_retention import discardable_batches, transaction_batches
from pylog.cleaner.cleaned_segments import CleanedSegments, CountedSegments
from pylog.cleaner.cleaner import Cleaner, window_bytes
from pylog.cleaner.intact_windows import checked_windows
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.log_snapshot import SnapshotLog, StagedCleaning
from pylog.cleaner.offset_map import OffsetMap
from pylog.cleaner.throttler import Throttler
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaStorageError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.model import ControlRecordType
from pylog.scheduling.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from pylog.cleaner.batch_retention import CleanedTransactionMetadata, TransactionBatch
    from pylog.cleaner.cleaned_segments import Destination
    from pylog.cleaner.log_snapshot import CleanableLog, LogSnapshot
    from pylog.cleaner.offset_map import HashKey
    from pylog.config import CleanerConfig
    from pylog.files.durable_io import DurableIO
    from pylog.log.log_segment import LogSegment
    from pylog.record.batch_scan import Window

    Int64Array = npt.NDArray[np.int64]


_OF_THE_DISK = (KafkaStorageError, SegmentVanishedError)


class _KeysDoNotFitError(Exception):
    """The map is full, and nothing has been written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningTask:
    """One log that is to be cleaned in one round; pickled on its way to where it runs.

    Attributes
    ----------
    snapshot
        The log.
    config
        Memory and speed.
    now_ms
        What time it is for delete horizons.
    job_token
        Of the job.
    is_dry_run
        Whether it only counts.
    size_bytes
        How much it reads.
    """

    snapshot: LogSnapshot
    config: CleanerConfig
    now_ms: int
    job_token: str
    is_dry_run: bool
    size_bytes: int

    def run(self, io: DurableIO | None = None) -> StagedCleaning:
        """Clean the log into staged files; any number of attempts may, at the same time.

        Raises
        ------
        KafkaStorageError, SegmentVanishedError
            The disk failed, or is not the one that the log's owner has. Nothing is left.
        """
        snapshot, config = self.snapshot, self.config
        offset_map = OffsetMap.of(config)

        def begin_segments(log: CleanableLog, base_offset: int) -> Destination:
            # Called for the first time when the map is complete, or full.
            if offset_map.latest_offset + 1 < snapshot.first_uncleanable_offset:
                raise _KeysDoNotFitError
            return destination(log, base_offset)

        destination = CountedSegments if self.is_dry_run else CleanedSegments
        cleaner = Cleaner(
            config,
            SystemClock(),
            throttle=Throttler(config.io_max_bytes_per_second).throttle,
            offset_map=offset_map,
            begin_segments=begin_segments,
        )
        log = SnapshotLog(snapshot, self.job_token, io)
        try:
            result = cleaner.clean(log, self.now_ms)
        except _KeysDoNotFitError:
            return self.nothing_staged(keys_fit=False)
        except BaseException as error:
            log.discard()
            if not isinstance(error, LogStorageError) or isinstance(error, _OF_THE_DISK):
                raise
            return self.nothing_staged(failure=str(error))
        finally:
            log.close()
        return StagedCleaning(
            topic_partition=snapshot.topic_partition,
            groups=tuple(log.staged),
            stats=result.stats,
            next_dirty_offset=result.next_dirty_offset,
        )

    def nothing_staged(
        self, *, keys_fit: bool = True, failure: str | None = None
    ) -> StagedCleaning:
        """Return what says that the log is to stay as it is, and why."""
        return StagedCleaning(
            topic_partition=self.snapshot.topic_partition,
            next_dirty_offset=self.snapshot.first_dirty_offset,
            keys_fit=keys_fit,
            failure=failure,
        )


# The hashes of the keys of a segment's records, as Arrow, for an engine that brings them together.


RECORD_KEYS = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("hash_0", pa.int64()),
            ("hash_1", pa.int64()),
            ("offset", pa.int64()),
            ("group", pa.int32()),
            ("is_mapped", pa.bool_()),
        )
    ]
)
"""Both halves of the key's hash; the record; the group that its segment is in; whether it is in the
dirty part and not aborted, so that it supersedes others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeysTask:
    """Reads the keys of one segment's records.

    Attributes
    ----------
    cleaning
        What is to be done to the log.
    hash_key
        The same for all tasks of a log.
    base_offset
        Of the segment.
    group
        The number of the group that it is in.
    transactions
        Those that are open where the segment's dirty part begins; None if nothing in it is dirty.
    """

    cleaning: CleaningTask
    hash_key: HashKey
    base_offset: int
    group: int
    transactions: CleanedTransactionMetadata | None

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield rows as of `RECORD_KEYS`, one for each record with a key, up to the first damage.

        Raises
        ------
        KafkaStorageError, SegmentVanishedError
            It cannot be read.
        """
        log = SnapshotLog(self.cleaning.snapshot, self.cleaning.job_token)
        try:
            yield from self._read(log.segment(self.base_offset))
        except (CorruptRecordError, InvalidRecordError):
            # The task of its group meets it, too, and says that the log cannot be cleaned: an
            # error here would end the cleaning of all other logs.
            return
        finally:
            log.close()

    def _read(self, segment: LogSegment) -> Iterator[pa.RecordBatch]:
        size = window_bytes(self.cleaning.config)
        dirty_from = segment.size_bytes
        if self.transactions is not None:
            dirty_from = dirty_position(self.cleaning, segment)
        config = self.cleaning.snapshot.config
        reader = KeyedRecordReader(config.max_decompressed_message_bytes)
        if dirty_from > 0:
            for window in checked_windows(segment, 0, size):
                is_before = window.file_position + window.headers.positions < dirty_from
                yield from self._rows(reader, window, is_before, np.zeros_like(is_before))
                if not is_before.all():
                    break
        if self.transactions is None:
            return
        transactions = copy.deepcopy(self.transactions)
        for window in checked_windows(segment, dirty_from, size):
            is_live = ~discardable_batches(window, transactions)
            yield from self._rows(reader, window, np.ones_like(is_live), is_live)

    def _rows(
        self,
        reader: KeyedRecordReader,
        window: Window,
        is_chosen: npt.NDArray[np.bool_],
        is_live: npt.NDArray[np.bool_],
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of some of a window's batches; of ``is_live`` ones they may be mapped."""
        snapshot = self.cleaning.snapshot
        batches = np.flatnonzero(is_chosen & ~window.headers.is_control)
        hashed = range(snapshot.first_uncleanable_offset)
        for records in reader.read(window, batches, self.hash_key, hashed):
            counts = records.batch_ends - records.batch_starts
            is_mapped = np.repeat(is_live[records.batches], counts)
            is_mapped &= records.offsets >= snapshot.first_dirty_offset
            rows = np.flatnonzero(records.has_key)
            hashes = records.hashes[rows]
            columns = [
                np.ascontiguousarray(hashes[:, 0]),
                np.ascontiguousarray(hashes[:, 1]),
                records.offsets[rows],
                np.full(rows.size, self.group, dtype=np.int32),
                is_mapped[rows],
            ]
            arrays = [pa.array(each) for each in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=RECORD_KEYS)


def dirty_position(cleaning: CleaningTask, segment: LogSegment) -> int:
    """Return the byte of a segment from which on it is read for the keys of the dirty part."""
    return segment.offset_index.lookup(cleaning.snapshot.first_dirty_offset).position


# What the batches of a segment do to transactions, as a task tells it to who plans a cleaning.
#
# Which transactions are open where a segment begins depends
# on all segments before it. Tasks read the segments side by side, and the planner, who reads
# none, goes through what they have found in the log's order.


_DATA = -3
_EMPTY_MARKER = -2
"""Kinds of batches beside the values of `ControlRecordType`."""


class TransactionEvents(NamedTuple):
    """The batches of a part of a segment that change what is known of transactions, in order."""

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
    """The transactions that a task has found in a segment.

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
        """Return the transactions that begin and end in the segment.

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
