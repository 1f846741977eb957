"""Compaction of one log: of each key only the last record stays.

A round has two phases:

1. the *dirty* part of the log, what no round has seen, is read, and a map is filled with the last
   offset of each key in it (`pylog.cleaner.offset_map_building`);
2. all segments up to the end of the map, also those that are clean, are copied in groups without
   the records that the map has a later one for, and the copies take their place
   (`pylog.cleaner.group_cleaning`).

Offsets do not change, nor does the order of records. What stays for how long:
`pylog.cleaner.batch_retention`, `pylog.cleaner.record_retention`; as which bytes:
`pylog.cleaner.batch_rebuilding`.

Source: Cleaner (Kafka 4.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pylog.cleaner.cleaned_segments import CleanedSegments
from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
from pylog.cleaner.cleaner_stats import CleanerStats
from pylog.cleaner.cleaning_round import CleaningRound
from pylog.cleaner.group_cleaning import GroupCleaning
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.offset_map import OffsetMap
from pylog.cleaner.offset_map_building import OffsetMapBuilding
from pylog.cleaner.segment_grouping import group_segments_by_size
from pylog.scheduling.clock import monotonic_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.cleaner.cleanable_log import CleanableLog, LogWithBounds
    from pylog.cleaner.cleaner_stats import CleanerProgress
    from pylog.cleaner.cleaning_round import Destination
    from pylog.config import CleanerConfig
    from pylog.model import TopicPartition
    from pylog.scheduling.clock import Clock

_LOGGER = logging.getLogger(__name__)
_LEAST_WINDOW_BYTES = 1 << 21
"""What a window costs beside its bytes is lost in so many of them."""


def window_bytes(config: CleanerConfig) -> int:
    """Return how much a thread reads at once."""
    return max(_LEAST_WINDOW_BYTES, config.io_buffer_size // config.threads // 2)


class CleanerResult(NamedTuple):
    """What a round of cleaning came to.

    Attributes
    ----------
    next_dirty_offset
        Where the next round begins: the new checkpoint.
    stats
        What was read and written.
    """

    next_dirty_offset: int
    stats: CleanerStats


def _nothing(_argument: object) -> None:
    """Neither abort nor wait."""


class Cleaner:
    """Cleans one log after the other. One thread, but for the callables that it is given.

    Parameters
    ----------
    config
        Memory for the map and for windows, of which each thread has its share.
    clock
        What time it is where a round is not told.
    check_done
        Called with the partition often during a round; raises to abort it.
    throttle
        Called with a number of bytes that are to be read or have been written; may wait.
    progress
        Called with how far a round is.
    offset_map
        Used in the place of one of the configured size.
    begin_segments
        Makes the destination of a group of segments: `CleanedSegments`, or what only counts.

    Raises
    ------
    ValueError
        The map has no room for a key.
    """

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
        self._map = offset_map or OffsetMap(
            config.dedupe_buffer_size // config.threads, config.dedupe_buffer_load_factor
        )
        self._window_bytes = window_bytes(config)
        self._reader = KeyedRecordReader()

    def clean(self, log_to_clean: LogWithBounds, now_ms: int | None = None) -> CleanerResult:
        """Clean a log from its first dirty offset on, as far as the map has room for keys.

        Parameters
        ----------
        log_to_clean
            The log, which is neither truncated nor deleted, and of which no segment below
            `LogToClean.first_uncleanable_offset` is deleted, until this returns. Others may append
            to it and read it.
        now_ms
            What time it is for delete horizons; the clock's if None.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, CorruptIndexError
            A segment is damaged. The groups of segments before have been cleaned; what comes after
            is as it was, as after any error.
        KafkaStorageError
            The disk failed.
        """
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
            reader=self._reader,
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
        total_bytes = sum(segment.size_bytes for segment in segments)
        transactions = CleanedTransactionMetadata()
        group_cleaning = GroupCleaning(cleaning, transactions, horizon_ms, total_bytes)
        groups = group_segments_by_size(
            segments, config.segment_bytes, config.segment_index_bytes, cleaning.end_offset
        )
        for group in groups:
            group_cleaning.clean(group)


def legacy_horizon_ms(log: CleanableLog, first_dirty_offset: int) -> int:
    """Return up to when a segment's tombstones of v0 and v1 are old enough to go.

    They have no delete horizon: the time counts at which the last segment that begins below the
    first dirty offset was changed last.
    """
    clean = log.local_log.segments.values(-1, first_dirty_offset)
    if not clean:
        return 0
    return clean[-1].last_modified_ms() - log.config.delete_retention_ms
