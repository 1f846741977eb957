"""One round of cleaning: its bounds, its map, its counts, and whom it asks and tells.

Source: Cleaner.doClean (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pylog.cleaner.batch_retention import CleanedTransactionMetadata, discardable_batches
from pylog.cleaner.cleanable_log import checked_windows
from pylog.files.transaction_index import collect_entries
from pylog.record.batch_writer import MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.cleaner.batch_retention import LatestRecords
    from pylog.cleaner.cleanable_log import CleanableLog
    from pylog.cleaner.keyed_records import KeyedRecordReader, KeyedRecords
    from pylog.cleaner.log_snapshot import CleanerStats
    from pylog.cleaner.offset_map import OffsetMap
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.log.log_segment import LogSegment
    from pylog.model import TopicPartition
    from pylog.record.batch_scan import Window


# What a cleaning has read and written, and how long it took.
#
# Source: CleanerStats (Kafka 4.3), where records are called messages.


class CleanerProgress(NamedTuple):
    """How far a cleaning is: of two phases, first the map is built and then segments are copied."""

    phase: str
    bytes_done: int
    bytes_total: int


class Destination(Protocol):
    """Where what stays of a group goes: `pylog.cleaner.cleaned_segments`, or a count."""

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        ...

    def append(self, data: list[memoryview]) -> int:
        """Append whole batches, which lie in pieces; return how many bytes they have."""
        ...

    def add_aborted(self, entry: TransactionIndexEntry) -> None:
        """Have an aborted transaction indexed in the segment that its marker will be in."""
        ...

    def finish(self, modified_ms: int) -> None:
        """Force everything to disk, with the time of the last old segment."""
        ...

    def discard(self) -> None:
        """Remove everything."""
        ...

    def replace(self, old: Sequence[LogSegment]) -> None:
        """Take the place of the old segments."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRound:
    """What the parts of one round share."""

    log: CleanableLog
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    latest: LatestRecords
    reader: KeyedRecordReader
    window_bytes: int
    stats: CleanerStats
    check_done: Callable[[TopicPartition], object]
    throttle: Callable[[int], object]
    progress: Callable[[CleanerProgress], object] | None
    begin_segments: Callable[[CleanableLog, int], Destination]

    def check(self) -> None:
        """Raise if the round is to be aborted."""
        self.check_done(self.log.topic_partition)

    def before_window(self, size_bytes: int) -> None:
        """Raise if the round is to be aborted; wait if it reads too fast."""
        self.check()
        self.throttle(size_bytes)

    def report(self, phase: str, bytes_done: int, bytes_total: int) -> None:
        """Tell how far a phase is."""
        if self.progress is not None:
            self.progress(CleanerProgress(phase, bytes_done, bytes_total))


# The aborted transactions that a cleaning needs to know of.
#
# Source: UnifiedLog.collectAbortedTransactions, LocalLog.collectAbortedTransactions (Kafka 4.3).


def collect_aborted_entries(
    log: CleanableLog, segment: LogSegment, end_offset: int
) -> list[TransactionIndexEntry]:
    """Return what the transaction indexes from ``segment`` on say of offsets below ``end_offset``.

    A transaction whose marker lies below the log's start is left out, as in Kafka: then its data,
    which nobody is served, are kept and dropped like all others.
    """
    collected: list[TransactionIndexEntry] = []
    following: LogSegment | None = segment
    while following is not None:
        entries, is_complete = collect_entries(
            following.transaction_index.entries(), log.log_start_offset, end_offset
        )
        collected += entries
        if is_complete:
            break
        following = log.local_log.segments.higher_segment(following.base_offset)
    return collected


# Filling an offset map with the keys of a log's dirty part.
#
# Source: Cleaner.buildOffsetMap, buildOffsetMapForSegment (Kafka 4.3).


class OffsetMapBuilding:
    """One filling of a map. One thread."""

    def __init__(self, cleaning: CleaningRound, offset_map: OffsetMap) -> None:
        self._round = cleaning
        self._map = offset_map
        self._start = cleaning.first_dirty_offset
        self._transactions = CleanedTransactionMetadata()

    def build(self) -> None:
        """Take in the keys of all records from the first dirty offset on, until the map is full."""
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
