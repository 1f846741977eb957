"""Compaction of one log: of each key only the last record stays.

A round has two phases:

1. the *dirty* part of the log, what no round has seen, is read, and a map is filled with the last
   offset of each key in it;
2. all segments up to the end of the map, also those that are clean, are copied in groups without
   the records that the map has a later one for, and the copies take their place.

Offsets do not change, nor does the order of records. What stays for how long:
`pylog.cleaner.batch_retention`; as which bytes: `pylog.cleaner.batch_rebuilding`.

Source: Cleaner (Kafka 4.3).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.cleaner.batch_rebuilding import BatchRebuilder
from pylog.cleaner.batch_retention import (
    BatchRetentionRules,
    CleanedTransactionMetadata,
    discardable_batches,
    retained_records,
)
from pylog.cleaner.cleaned_segments import CleanedSegments, group_segments_by_size
from pylog.cleaner.intact_windows import checked_windows
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.log_snapshot import CleanerStats
from pylog.cleaner.offset_map import OffsetMap
from pylog.files.transaction_index import collect_entries
from pylog.locations import printable_location
from pylog.record.batch_writer import MAX_INT64
from pylog.scheduling.clock import monotonic_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.cleaner.batch_retention import RetainedRecords
    from pylog.cleaner.cleaned_segments import Destination
    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.cleaner.log_snapshot import CleanableLog, LogWithBounds
    from pylog.cleaner.offset_map import LatestRecords
    from pylog.config import CleanerConfig
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.log.log_segment import LogSegment
    from pylog.model import TopicPartition
    from pylog.record.batch_scan import Window
    from pylog.scheduling.clock import Clock


class CleanerProgress(NamedTuple):
    """How far a cleaning is: of two phases, first the map is built and then segments are copied."""

    phase: str
    bytes_done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRound:
    """The log, the range and the settings of one round, for the parts of it."""

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

    def report(self, phase: str, bytes_done: int) -> None:
        """Tell how far a phase is."""
        if self.progress is not None:
            self.progress(CleanerProgress(phase, bytes_done))


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
        ends = [*(segment.base_offset for segment in segments[1:]), end]
        for segment, segment_end in zip(segments, ends, strict=True):
            cleaning.check()
            is_put = self._add_segment(segment)
            segment.release()  # it cannot become the active one: nobody truncates meanwhile
            if not is_put:
                return
            # In a gap before the next segment no record will ever be.
            self._map.latest_offset = segment_end - 1

    def _add_segment(self, segment: LogSegment) -> bool:
        cleaning = self._round
        position = segment.offset_index.lookup(self._start).position
        for window in checked_windows(segment, position, cleaning.window_bytes):
            cleaning.before_window(window.size_bytes)
            if not self._add_window(window):
                return False
            cleaning.stats.map_bytes_read += window.size_bytes
            cleaning.report("map", cleaning.stats.map_bytes_read)
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


_LOGGER = logging.getLogger(__name__)


# Cleaning a group of segments into what takes their place.
#
# Source: Cleaner.cleanSegments, cleanInto (Kafka 4.3).


class GroupCleaning:
    """Cleans the groups of one round, one after the other. One thread."""

    def __init__(
        self,
        cleaning: CleaningRound,
        transactions: CleanedTransactionMetadata,
        legacy_horizon_ms: int,
    ) -> None:
        self._round = cleaning
        self._transactions = transactions
        self._legacy_horizon_ms = legacy_horizon_ms
        config = cleaning.log.config
        self._rebuilder = BatchRebuilder(cleaning.now_ms, config.delete_retention_ms)

    def clean(self, segments: Sequence[LogSegment]) -> None:
        """Put what is to stay of some neighbouring segments in their place."""
        cleaning = self._round
        log, stats = cleaning.log, cleaning.stats
        cleaned = cleaning.begin_segments(log, segments[0].base_offset)
        try:
            self._transactions.keep_aborted = cleaned.add_aborted
            rules = BatchRetentionRules(
                log.last_records_of_active_producers(), cleaning.end_offset, cleaning.now_ms
            )
            ends = [segment.base_offset for segment in segments[1:]]
            ends.append(segments[-1].read_next_offset())
            for segment, end in zip(segments, ends, strict=True):
                self._transactions.add_aborted_transactions(
                    collect_aborted_entries(log, segment, end)
                )
                self._copy(segment, cleaned, rules)
            cleaned.finish(segments[-1].last_modified_ms())
        except BaseException:
            cleaned.discard()
            raise
        cleaned.replace(segments)
        stats.segments_read += len(segments)
        stats.segments_written += cleaned.segment_count

    def _copy(self, segment: LogSegment, cleaned: Destination, rules: BatchRetentionRules) -> None:
        cleaning = self._round
        keeps_tombstones = segment.last_modified_ms() > self._legacy_horizon_ms
        for window in checked_windows(segment, 0, cleaning.window_bytes):
            cleaning.before_window(window.size_bytes)
            self._copy_window(window, cleaned, rules, keeps_legacy_tombstones=keeps_tombstones)
            cleaning.stats.bytes_read += window.size_bytes
            cleaning.report("copy", cleaning.stats.bytes_read)

    def _copy_window(
        self,
        window: Window,
        cleaned: Destination,
        rules: BatchRetentionRules,
        *,
        keeps_legacy_tombstones: bool,
    ) -> None:
        cleaning = self._round
        stats, latest = cleaning.stats, cleaning.latest
        retention = rules.retention_of(
            window.headers, discardable_batches(window, self._transactions)
        )
        batches = np.flatnonzero(~retention.drops_records | retention.keeps_header)
        dropped = np.delete(window.headers.record_counts, batches)
        stats.records_read += int(np.maximum(dropped, 0).sum())
        hashed = range(latest.latest_offset + 1)
        for records in cleaning.reader.read(window, batches, latest.hash_key, hashed):
            retained = retained_records(
                records,
                retention,
                latest,
                cleaning.now_ms,
                keeps_legacy_tombstones=keeps_legacy_tombstones,
            )
            self._note_damage(window, records, retained)
            written = self._rebuilder.rebuild(window, records, retention, retained)
            size_bytes = cleaned.append(written.data)
            if size_bytes:
                cleaning.throttle(size_bytes)
            stats.records_read += records.offsets.size
            stats.records_written += written.record_count
            stats.bytes_written += size_bytes
            stats.invalid_records += retained.invalid_count

    def _note_damage(
        self, window: Window, records: KeyedRecords, retained: RetainedRecords
    ) -> None:
        """Count the records that stay and had a wrong checksum, which they get a right one for.

        Kafka's cleaner does not look at the checksums of messages in wrappers either, and computes
        those that it writes.
        """
        stats = self._round.stats
        for wrong in records.wrong_checksums():
            if not retained.kept[wrong.row]:
                continue
            stats.damaged_records += 1
            if stats.first_damage is None:
                offset, position = records.offsets[wrong.row], window.position_of(wrong.batch)
                path = printable_location(window.path)
                stats.first_damage = f"offset {offset}, {path} at byte {position}: {wrong.reason}"


_LEAST_WINDOW_BYTES = 1 << 21
"""What a window costs beside its bytes is lost in so many of them."""


def window_bytes(config: CleanerConfig) -> int:
    """Return how much a thread reads at once."""
    return max(_LEAST_WINDOW_BYTES, config.io_buffer_size // config.threads // 2)


class CleanerResult(NamedTuple):
    """The result of a round: where the next one begins, and its statistics."""

    next_dirty_offset: int
    stats: CleanerStats


def _nothing(_argument: object) -> None:
    """Do nothing: the default of both callbacks."""


class Cleaner:
    """Cleans one log after the other. One thread, but for the callables that it is given."""

    def __init__(  # noqa: PLR0913 - whom it asks and tells
        self,
        config: CleanerConfig,
        clock: Clock,
        *,
        check_done: Callable[[TopicPartition], object] = _nothing,
        throttle: Callable[[int], object] = _nothing,
        progress: Callable[[CleanerProgress], object] | None = None,
        offset_map: OffsetMap | None = None,
        begin_segments: Callable[[CleanableLog, int], Destination] = CleanedSegments,
    ) -> None:
        self._clock = clock
        self._check_done = check_done
        self._throttle = throttle
        self._progress = progress
        self._begin_segments = begin_segments
        self._map = offset_map or OffsetMap.of(config)
        self._window_bytes = window_bytes(config)

    def clean(self, log_to_clean: LogWithBounds, now_ms: int | None = None) -> CleanerResult:
        """Clean a log from its first dirty offset on, as far as the map has room for keys."""
        log = log_to_clean.log
        now_ms = self._clock.milliseconds() if now_ms is None else now_ms
        # At most one key an offset.
        first, end = log_to_clean.first_dirty_offset, log_to_clean.first_uncleanable_offset
        self._map.clear(max(0, end - first))
        cleaning = CleaningRound(
            log=log,
            first_dirty_offset=first,
            end_offset=end,
            now_ms=now_ms,
            latest=self._map,
            reader=KeyedRecordReader(log.config.max_decompressed_message_bytes),
            window_bytes=self._window_bytes,
            stats=CleanerStats(),
            check_done=self._check_done,
            throttle=self._throttle,
            progress=self._progress,
            begin_segments=self._begin_segments,
        )
        horizon_ms = legacy_horizon_ms(log, first)
        began = monotonic_milliseconds()
        OffsetMapBuilding(cleaning, self._map).build()
        mapped = monotonic_milliseconds()
        next_dirty_offset = max(self._map.latest_offset + 1, cleaning.first_dirty_offset)
        if self._map.latest_offset >= 0:
            self._clean_segments(cleaning, horizon_ms, next_dirty_offset)
        stats = cleaning.stats
        stats.buffer_utilization = self._map.utilization
        stats.map_milliseconds = mapped - began
        stats.copy_milliseconds = monotonic_milliseconds() - mapped
        _LOGGER.info(
            "cleaned %s from offset %d to %d: %s",
            *(log.topic_partition, cleaning.first_dirty_offset, next_dirty_offset, stats),
        )
        return CleanerResult(next_dirty_offset, stats)

    def _clean_segments(
        self, cleaning: CleaningRound, horizon_ms: int, next_dirty_offset: int
    ) -> None:
        log, config = cleaning.log, cleaning.log.config
        segments = log.local_log.segments.values(-1, next_dirty_offset)
        transactions = CleanedTransactionMetadata()
        group_cleaning = GroupCleaning(cleaning, transactions, horizon_ms)
        groups = group_segments_by_size(
            segments, config.segment_bytes, config.segment_index_bytes, cleaning.end_offset
        )
        for group in groups:
            group_cleaning.clean(group)


def legacy_horizon_ms(log: CleanableLog, first_dirty_offset: int) -> int:
    """Return up to when a segment's tombstones of v0 and v1 are old enough to go."""
    clean = log.local_log.segments.values(-1, first_dirty_offset)
    if not clean:
        return 0
    return clean[-1].last_modified_ms() - log.config.delete_retention_ms
