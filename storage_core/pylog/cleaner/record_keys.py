"""The hashes of the keys of a segment's records, as Arrow, for an engine that brings them together.

See `pylog.cleaner.large_cleaning`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.cleaner.batch_retention import discardable_batches
from pylog.cleaner.checked_windows import checked_windows
from pylog.cleaner.cleaner import window_bytes
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.log_snapshot import SnapshotLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
    from pylog.cleaner.cleaning_task import CleaningTask
    from pylog.cleaner.offset_map import HashKey
    from pylog.log.log_segment import LogSegment
    from pylog.record.window import Window

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
        """Yield rows as of `RECORD_KEYS`, one for each record with a key.

        Raises
        ------
        CorruptRecordError, InvalidRecordError
            The segment is damaged.
        KafkaStorageError, SegmentVanishedError
            It cannot be read.
        """
        log = SnapshotLog(self.cleaning.snapshot, self.cleaning.job_token)
        try:
            yield from self._read(log.segment(self.base_offset))
        finally:
            log.close()

    def _read(self, segment: LogSegment) -> Iterator[pa.RecordBatch]:
        size = window_bytes(self.cleaning.config)
        dirty_from = segment.size_bytes
        if self.transactions is not None:
            dirty_from = dirty_position(self.cleaning, segment)
        reader = KeyedRecordReader()
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
