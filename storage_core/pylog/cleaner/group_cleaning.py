"""Cleaning a group of segments into what takes their place.

Source: Cleaner.cleanSegments, cleanInto (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.cleaner.aborted_entries import collect_aborted_entries
from pylog.cleaner.batch_rebuilding import BatchRebuilder
from pylog.cleaner.batch_retention import BatchRetentionRules, discardable_batches
from pylog.cleaner.checked_windows import checked_windows
from pylog.cleaner.record_retention import retained_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
    from pylog.cleaner.cleaning_round import CleaningRound, Destination
    from pylog.log.log_segment import LogSegment
    from pylog.record.window import Window


class GroupCleaning:
    """Cleans the groups of one round, one after the other. One thread.

    Parameters
    ----------
    cleaning
        The round; its map is complete.
    transactions
        Knows of the batches of all groups before.
    legacy_horizon_ms
        Tombstones of formats v0 and v1 stay in segments that were changed last after it.
    total_bytes
        Of the segments of all groups.
    """

    def __init__(
        self,
        cleaning: CleaningRound,
        transactions: CleanedTransactionMetadata,
        legacy_horizon_ms: int,
        total_bytes: int,
    ) -> None:
        self._round = cleaning
        self._transactions = transactions
        self._legacy_horizon_ms = legacy_horizon_ms
        self._total_bytes = total_bytes
        config = cleaning.log.config
        self._rebuilder = BatchRebuilder(cleaning.now_ms, config.delete_retention_ms)

    def clean(self, segments: Sequence[LogSegment]) -> None:
        """Put what is to stay of some neighbouring segments in their place.

        Raises
        ------
        CorruptRecordError, InvalidRecordError
            A segment is damaged. After any error the segments are as they were, and no new files
            are left, as far as the disk lets.
        KafkaStorageError
            The disk failed.
        """
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
        """Append what is to stay of a segment to new ones."""
        cleaning = self._round
        keeps_tombstones = segment.last_modified_ms() > self._legacy_horizon_ms
        for window in checked_windows(segment, 0, cleaning.window_bytes):
            cleaning.before_window(window.size_bytes)
            self._copy_window(window, cleaned, rules, keeps_legacy_tombstones=keeps_tombstones)
            cleaning.stats.bytes_read += window.size_bytes
            cleaning.report("copy", cleaning.stats.bytes_read, self._total_bytes)

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
            written = self._rebuilder.rebuild(window, records, retention, retained)
            size_bytes = cleaned.append(written.data)
            if size_bytes:
                cleaning.throttle(size_bytes)
            stats.records_read += records.offsets.size
            stats.records_written += written.record_count
            stats.bytes_written += size_bytes
            stats.invalid_records += retained.invalid_count
