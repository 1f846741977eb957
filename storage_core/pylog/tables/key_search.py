"""The records of a log that have keys, and the last offset of each key, in bounded memory.

Every key's last offset goes into an offset map. Where that has no room for all keys, it is done for
a share of the keys at a time, chosen by their hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.offset_map import HashKey, OffsetMap
from pylog.reading.headers import SegmentHeaders
from pylog.reading.transactions import AbortedTransactions, find_aborted_transactions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import BatchHeaders, Window

MAP_BYTES = 128 << 20
"""As much as a broker's ``log.cleaner.dedupe.buffer.size``: room for five million keys."""
_LOAD_FACTOR = 0.9


class KeySearch:
    """One look at all keys of a log between two offsets; one thread."""

    def __init__(self, view: LogView, start: int, end: int, map_bytes: int = MAP_BYTES) -> None:
        self.map = OffsetMap(map_bytes, _LOAD_FACTOR)
        self._view = view
        self._start, self._end = start, end
        self._aborted = AbortedTransactions(find_aborted_transactions(view, start, end))
        self._reader = KeyedRecordReader()
        # One hash key for all shares: the hash says which share a key belongs to.
        self._hash_key = HashKey.random()

    def fill(self, share: int, shares: int) -> bool:
        """Have the map hold the last offset of each key of a share; False if it has no room."""
        self.map.clear(max(1, self._end - self._start))
        for index in range(len(self._view.segments)):
            for window in self.windows(index):
                for records in self.read(window, self._candidates(window.headers)):
                    rows = self.rows(records, share, shares)
                    if self.map.put(records.hashes, records.offsets, rows) < rows.size:
                        return False
                if len(window.headers) and int(window.headers.last_offsets[-1]) >= self._end:
                    return True
        return True

    def windows(self, index: int) -> Iterator[Window]:
        """Yield the windows of a segment."""
        yield from SegmentHeaders(self._view, index, verifies_checksums=True)

    def are_gone(self, headers: BatchHeaders) -> npt.NDArray[np.bool_]:
        """Return which batches no consumer gets."""
        gone: npt.NDArray[np.bool_] = headers.last_offsets < self._start
        return gone | self._aborted.mask(headers)

    def _candidates(self, headers: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the batches that may have records with keys before the end."""
        # A batch of v0 or v1 does not say its first offset.
        before = np.concatenate([[-1], headers.last_offsets[:-1]])
        is_none = headers.is_control | (headers.record_counts == 0) | (before >= self._end - 1)
        return np.flatnonzero(~is_none & ~self.are_gone(headers))

    def read(self, window: Window, batches: npt.NDArray[np.int64]) -> Iterator[KeyedRecords]:
        """Yield the records of some batches of a window."""
        return self._reader.read(window, batches, self._hash_key, range(self._start, self._end))

    def rows(self, records: KeyedRecords, share: int, shares: int) -> npt.NDArray[np.int64]:
        """Return the rows of records that are served and whose keys are of a share."""
        chosen = records.has_key & (records.offsets >= self._start)
        chosen &= records.offsets < self._end
        if shares > 1:
            chosen &= records.hashes[:, 1].view(np.uint64) % np.uint64(shares) == share
        return np.flatnonzero(chosen)
