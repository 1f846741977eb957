"""Which records of a log are still needed, by their keys: what a cleaning of the whole log keeps.

Read twice: first every key's last offset goes into an offset map, then each record is held against
it. Where the map has no room for all keys, that is done for a share of the keys at a time, chosen
by their hash, so that memory is bounded whatever the log holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.offset_map import HashKey, OffsetMap
from pylog.inspect.header_windows import SegmentHeaders
from pylog.reading.transactions import (
    AbortedTransactions,
    find_aborted_transactions,
    find_last_stable_offset,
)
from pylog.record.batch_header import UNKNOWN_RECORD_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.reading.log_view import LogView
    from pylog.record.window import Window

_MAP_BYTES = 128 << 20
"""As much as a broker's ``log.cleaner.dedupe.buffer.size``: room for five million keys."""
_LOAD_FACTOR = 0.9


@dataclass(slots=True)
class LiveRecords:
    """What of one segment is live; None where headers and records do not tell.

    Attributes
    ----------
    records
        All records, control records too.
    live_records
        Those of them that are live.
    live_bytes
        What these take of the file; a batch's bytes are shared by its records.
    """

    records: int | None = 0
    live_records: int | None = 0
    live_bytes: float = 0.0

    def add_batches(
        self, sizes_bytes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], *, are_live: bool
    ) -> None:
        """Add whole batches by their headers."""
        count = None if (counts == UNKNOWN_RECORD_COUNT).any() else int(counts.sum())
        self.records = _sum(self.records, count)
        if are_live:
            self.live_records = _sum(self.live_records, count)
            self.live_bytes += int(sizes_bytes.sum())


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def find_live_records(view: LogView, *, map_bytes: int = _MAP_BYTES) -> list[LiveRecords]:
    """Return for every segment what is live in it.

    Live is what consumers get, or will once it is decided, and a cleaning would keep: the last
    record of each key among those below the last stable offset that are not aborted, everything
    from there on, control batches, and batches without records, which stand for a producer.

    Parameters
    ----------
    view
        The log.
    map_bytes
        Memory of the offset map.

    Raises
    ------
    CorruptRecordError, InvalidRecordError
        The log is damaged.
    """
    search = _Search(view, map_bytes)
    shares = 1
    while (found := search.run(shares)) is None:
        shares *= 2
    return found


class _Search:
    """One look at all keys of a log; one thread."""

    def __init__(self, view: LogView, map_bytes: int) -> None:
        self._view = view
        self._map = OffsetMap(map_bytes, _LOAD_FACTOR)
        self._start = view.log_start_offset
        self._end = find_last_stable_offset(view)
        aborted = find_aborted_transactions(view, self._start, self._end)
        self._aborted = AbortedTransactions(aborted)
        self._reader = KeyedRecordReader()

    def run(self, shares: int) -> list[LiveRecords] | None:
        """Return what is live; None if the map has no room for a share of the keys."""
        found = [LiveRecords() for _ in self._view.segments]
        # One hash key for the whole run: the hash says which share a key belongs to.
        hash_key = HashKey.random()
        for share in range(shares):
            self._map.clear()
            if not self._fill(hash_key, share, shares):
                return None
            self._judge(found, hash_key, share, shares)
        return found

    def _fill(self, hash_key: HashKey, share: int, shares: int) -> bool:
        for index in range(len(self._view.segments)):
            for window, batches in self._windows(index, None):
                for records in self._read(window, batches, hash_key):
                    rows = self._rows(records, share, shares)
                    if self._map.put(records.hashes, records.offsets, rows) < rows.size:
                        return False
        return True

    def _judge(self, found: list[LiveRecords], hash_key: HashKey, share: int, shares: int) -> None:
        for index, live in enumerate(found):
            whole = live if share == 0 else None
            for window, batches in self._windows(index, whole):
                for records in self._read(window, batches, hash_key):
                    rows = self._rows(records, share, shares)
                    last = self._map.find(records.hashes, rows)
                    kept = rows[last == records.offsets[rows]]
                    live.live_bytes += float(_shares_of_bytes(records)[kept].sum())
                    live.live_records = _sum(live.live_records, kept.size)
                    if share == 0:
                        live.records = _sum(live.records, records.offsets.size)

    def _windows(
        self, index: int, whole: LiveRecords | None
    ) -> Iterator[tuple[Window, npt.NDArray[np.int64]]]:
        """Yield the windows of a segment, and which of their batches have records to judge.

        The other batches are added to ``whole``: they are live or not as headers say.
        """
        for window in SegmentHeaders(self._view, index, verifies_checksums=True):
            headers = window.headers
            is_gone = (headers.last_offsets < self._start) | self._aborted.mask(headers)
            is_kept = (
                headers.is_control
                | (headers.last_offsets >= self._end)
                | (headers.record_counts == 0)
            ) & ~is_gone
            if whole is not None:
                for mask, are_live in ((is_gone, False), (is_kept, True)):
                    sizes, counts = headers.sizes_bytes[mask], headers.record_counts[mask]
                    whole.add_batches(sizes, counts, are_live=are_live)
            yield window, np.flatnonzero(~is_gone & ~is_kept)

    def _read(
        self, window: Window, batches: npt.NDArray[np.int64], hash_key: HashKey
    ) -> Iterator[KeyedRecords]:
        return self._reader.read(window, batches, hash_key, range(self._start, self._end))

    def _rows(self, records: KeyedRecords, share: int, shares: int) -> npt.NDArray[np.int64]:
        """Return the rows of records that are served and whose keys are of a share."""
        chosen = records.has_key & (records.offsets >= self._start)
        if shares > 1:
            chosen &= records.hashes[:, 1].view(np.uint64) % np.uint64(shares) == share
        return np.flatnonzero(chosen)


def _shares_of_bytes(records: KeyedRecords) -> npt.NDArray[np.float64]:
    """Return what each record takes of its batch's bytes."""
    sizes = records.sizes_bytes
    starts, ends = records.batch_starts, records.batch_ends
    sums = np.concatenate([[0], np.cumsum(sizes)])
    shares = records.headers.sizes_bytes / np.maximum(1, sums[ends] - sums[starts])
    result: npt.NDArray[np.float64] = sizes * np.repeat(shares, ends - starts)
    return result
