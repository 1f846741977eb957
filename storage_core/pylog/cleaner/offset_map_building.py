"""Filling an offset map with the keys of a log's dirty part.

Source: Cleaner.buildOffsetMap, buildOffsetMapForSegment (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.cleaner.aborted_entries import collect_aborted_entries
from pylog.cleaner.batch_retention import discardable_batches
from pylog.cleaner.checked_windows import checked_windows
from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
from pylog.record.append_rules import MAX_INT64

if TYPE_CHECKING:
    from pylog.cleaner.cleaning_round import CleaningRound
    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.cleaner.offset_map import OffsetMap
    from pylog.log.log_segment import LogSegment
    from pylog.record.window import Window


class OffsetMapBuilding:
    """One filling of a map. One thread.

    Parameters
    ----------
    cleaning
        The cleaning that the map is for.
    offset_map
        Empty.
    """

    def __init__(self, cleaning: CleaningRound, offset_map: OffsetMap) -> None:
        self._round = cleaning
        self._map = offset_map
        self._start = cleaning.first_dirty_offset
        self._transactions = CleanedTransactionMetadata()

    def build(self) -> None:
        """Take in the keys of all records from the first dirty offset on, until the map is full.

        Control batches and aborted records are left out. Then ``latest_offset`` says how far that
        came: to the end of the cleaning; or where the map was full, to the last record that was
        put, or the last batch that was read to its end.

        Raises
        ------
        CorruptRecordError, InvalidRecordError
            A segment is damaged.
        """
        cleaning, start, end = self._round, self._start, self._round.end_offset
        segments = cleaning.log.local_log.segments.values(start, end)
        if not segments:
            return
        self._transactions.add_aborted_transactions(
            collect_aborted_entries(cleaning.log, segments[0], end)
        )
        total = sum(segment.size_bytes for segment in segments)
        ends = [*(segment.base_offset for segment in segments[1:]), end]
        for segment, segment_end in zip(segments, ends, strict=True):
            cleaning.check()
            is_put = self._add_segment(segment, total)
            segment.release()  # it cannot become the active one: nobody truncates meanwhile
            if not is_put:
                return
            # In a gap before the next segment no record will ever be.
            self._map.latest_offset = segment_end - 1

    def _add_segment(self, segment: LogSegment, total_bytes: int) -> bool:
        """Return whether all records of a segment could be put."""
        cleaning = self._round
        position = segment.offset_index.lookup(self._start).position
        for window in checked_windows(segment, position, cleaning.window_bytes):
            cleaning.before_window(window.size_bytes)
            if not self._add_window(window):
                return False
            cleaning.stats.map_bytes_read += window.size_bytes
            cleaning.report("map", cleaning.stats.map_bytes_read, total_bytes)
        return True

    def _add_window(self, window: Window) -> bool:
        headers = window.headers
        is_left_out = discardable_batches(window, self._transactions) | headers.is_control
        self._round.stats.map_records_read += int(headers.record_counts[is_left_out].clip(0).sum())
        is_left_out |= headers.last_offsets < self._start
        batches = np.flatnonzero(~is_left_out)
        hashed = range(self._start, MAX_INT64)
        done = 0
        for records in self._round.reader.read(window, batches, self._map.hash_key, hashed):
            if not self._put(window, records):
                return False
            done += records.offsets.size
        self._round.stats.map_records_read += done
        self._reach(int(headers.last_offsets[-1]))
        return True

    def _put(self, window: Window, records: KeyedRecords) -> bool:
        rows = np.flatnonzero(records.has_key & (records.offsets >= self._start))
        count = self._map.put(records.hashes, records.offsets, rows)
        if count == rows.size:
            return True
        self._round.stats.map_records_read += int(rows[count])
        # Batches before that of the first record without room have been read to their end.
        place = int(np.searchsorted(records.batch_ends, rows[count], side="right"))
        batch = int(records.batches[place])
        if batch:
            self._reach(int(window.headers.last_offsets[batch - 1]))
        return False

    def _reach(self, last_offset: int) -> None:
        """Note that a batch was read to its end."""
        if last_offset >= self._start:
            self._map.latest_offset = max(self._map.latest_offset, last_offset)
