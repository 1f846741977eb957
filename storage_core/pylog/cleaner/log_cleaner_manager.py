"""Which log is cleaned next, how far each one is clean, and which ones are left alone.

A log is a candidate if its ``cleanup.policy`` contains ``compact``, nobody is at work on it or
keeps it away, no cleaning of it has failed, and its log directory is online. Of the candidates the
one with the largest dirty ratio is cleaned whose ratio is above ``min.cleanable.dirty.ratio``, or
for which ``max.compaction.lag.ms`` has passed.

Source: LogCleanerManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pylog.cleaner.cleanable_offsets import (
    CleanableBytes,
    CleanableOffsets,
    CleanableParams,
    LogToClean,
    NotCleaned,
    non_active_segments_from,
)
from pylog.cleaner.cleaning_states import CleaningAbortedError, CleaningStates
from pylog.errors import KafkaStorageError, LogStorageError
from pylog.locations import printable_location
from pylog.scheduling.clock import monotonic_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pylog.files.cleaner_checkpoint import CleanerCheckpoint
    from pylog.files.log_dir_failure_channel import LogDirFailureChannel
    from pylog.log.retention import DeletedSegment
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)


class Candidate(NamedTuple):
    """A log that could be cleaned, and by how much ``max.compaction.lag.ms`` has passed."""

    log_to_clean: LogToClean
    compaction_delay_ms: int

    @property
    def is_due(self) -> bool:
        """Whether a broker would clean the log now."""
        each = self.log_to_clean
        ratio = each.log.config.min_cleanable_dirty_ratio
        return (
            each.needs_compaction_now and each.cleanable_bytes > 0
        ) or each.cleanable_ratio > ratio


class LogCleanerManager:
    """The book-keeping of a cleaner. Any number of threads may use it."""

    def __init__(
        self,
        logs: Callable[[], Mapping[TopicPartition, UnifiedLog]],
        checkpoints: Mapping[str, CleanerCheckpoint],
        failures: LogDirFailureChannel,
    ) -> None:
        self.states = CleaningStates()
        self.max_dirty_ratio = 0.0
        self.max_compaction_delay_ms = 0
        self.last_run_ms = monotonic_milliseconds()
        self._logs = logs
        self._checkpoints = checkpoints
        self._failures = failures
        # The logs themselves: one that was deleted and made again is another one.
        self._uncleanable: dict[TopicPartition, UnifiedLog] = {}

    # ---- choosing

    def compacted_logs(self) -> list[UnifiedLog]:
        """Return the compacted logs that are neither uncleanable nor offline."""
        return [
            log
            for topic_partition, log in self._logs().items()
            if log.config.is_compact
            and self._uncleanable.get(topic_partition) is not log
            and not self._failures.is_offline(log.log_directory)
        ]

    def candidate(self, log: UnifiedLog, now_ms: int) -> Candidate:
        """Return what of a log could be cleaned; a wrong checkpoint is put right."""
        checkpoint = self._checkpoints[log.log_directory]
        checkpointed = checkpoint.find(log.topic_partition)
        offsets = _cleanable_offsets(log, checkpointed, now_ms, log.last_stable_offset)
        if offsets.resets_checkpoint:
            # The start of a log that is compacted and trimmed passes the checkpoint all the time.
            if not log.config.is_delete or offsets.first_dirty_offset < (checkpointed or 0):
                _LOGGER.warning(
                    "all of %s counts as dirty again: the checkpoint says %s, and the log holds "
                    "offsets %d to %d",
                    *(log.topic_partition, checkpointed, log.log_start_offset, log.log_end_offset),
                )
            checkpoint.update(log.topic_partition, offsets.first_dirty_offset)
        delay_ms = _compaction_delay_ms(log, offsets.first_dirty_offset, now_ms)
        return Candidate(
            LogToClean(
                log,
                offsets.first_dirty_offset,
                offsets.first_uncleanable_offset,
                needs_compaction_now=delay_ms > 0,
            ),
            delay_ms,
        )

    def why_not_cleaned(self, candidate: Candidate, now_ms: int) -> NotCleaned:
        """Return why nothing of a log is cleaned, or why a broker would not clean it now."""
        each = candidate.log_to_clean
        if each.cleanable_bytes:
            return NotCleaned.DIRTY_RATIO
        log = each.log
        checkpointed = self._checkpoints[log.log_directory].find(log.topic_partition)
        params = _cleanable_params(log, checkpointed, now_ms, log.last_stable_offset)
        return NotCleaned.of(log.segments, params, log.high_watermark)

    def held_back_offsets(self, log: UnifiedLog, now_ms: int) -> tuple[int, int] | None:
        """Return the offsets ``[start, end)`` that can be cleaned once they are replicated."""
        if log.high_watermark >= log.log_end_offset:
            return None
        checkpointed = self._checkpoints[log.log_directory].find(log.topic_partition)
        undecided = log.producer_state.first_undecided_offset
        stable = log.log_end_offset if undecided is None else undecided
        now, later = (
            _cleanable_offsets(log, checkpointed, now_ms, each).first_uncleanable_offset
            for each in (log.last_stable_offset, stable)
        )
        return (now, later) if now < later else None

    def grab_filthiest_compacted_log(self, now_ms: int) -> LogToClean | None:
        """Return the log to clean next, marked as in progress; None if there is none."""
        with self.states.locked():
            self.last_run_ms = monotonic_milliseconds()
            candidates = list(self._candidates(now_ms))
            self.max_dirty_ratio = max(
                (each.log_to_clean.cleanable_ratio for each in candidates), default=0.0
            )
            self.max_compaction_delay_ms = max(
                (each.compaction_delay_ms for each in candidates), default=0
            )
            due = [each.log_to_clean for each in candidates if each.is_due]
            if not due:
                return None
            filthiest = max(due, key=lambda each: each.cleanable_ratio)
            self.states.begin([filthiest.topic_partition])
            return filthiest

    def _candidates(self, now_ms: int) -> Iterator[Candidate]:
        for log in self.compacted_logs():
            if self.states.state_of(log.topic_partition) is not None:
                continue
            try:
                with self._failures.watching(log.log_directory):
                    candidate = self.candidate(log, now_ms)
            except LogStorageError as error:
                self.mark_uncleanable(log, error)
                continue
            if candidate.log_to_clean.total_bytes > 0:
                yield candidate

    def delete_old_segments(
        self, now_ms: int | None = None
    ) -> dict[TopicPartition, list[DeletedSegment]]:
        """Run retention over every compacted log; return what was removed."""
        deleted: dict[TopicPartition, list[DeletedSegment]] = {}
        for log in self.compacted_logs():
            topic_partition = log.topic_partition
            if not self.states.begin([topic_partition]):
                continue
            try:
                if self._logs().get(topic_partition) is log:  # or it was deleted meanwhile
                    deleted[topic_partition] = log.delete_old_segments(now_ms)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others must go on
                self.mark_uncleanable(log, error)
            finally:
                self.states.finish(topic_partition)
        return {each: segments for each, segments in deleted.items() if segments}

    # ---- while a log is cleaned, and afterwards

    def check_cleaning_aborted(self, topic_partition: TopicPartition) -> None:
        """Return if the cleaning of a log may go on."""
        if self.states.is_aborted(topic_partition):
            raise CleaningAbortedError(topic_partition)

    def update_checkpoint(self, log: UnifiedLog, offset: int) -> None:
        """Note that a log is clean below ``offset``; `KafkaStorageError` if the disk failed."""
        self._checkpoints[log.log_directory].update(log.topic_partition, offset)

    def done_cleaning(self, log: UnifiedLog, end_offset: int) -> None:
        """Note that a log is clean below ``end_offset``, unless its cleaning was aborted."""
        topic_partition = log.topic_partition
        with self.states.locked():
            try:
                if not (
                    self.states.is_aborted(topic_partition)
                    or self._failures.is_offline(log.log_directory)
                ):
                    self.update_checkpoint(log, end_offset)
            except KafkaStorageError as error:
                _LOGGER.warning("%s is cleaned, and will be again: %s", topic_partition, error)
            finally:
                self.states.finish(topic_partition)

    # ---- logs that cannot be cleaned

    def mark_uncleanable(self, log: UnifiedLog, error: Exception) -> None:
        """Leave a log alone from now on, until it is deleted or the manager started again."""
        _LOGGER.warning(
            "log of %s in %s is not cleaned any more until the next start: %s: %s",
            log.topic_partition,
            printable_location(log.log_directory),
            type(error).__name__,
            error,
        )
        with self.states.locked():
            self._uncleanable[log.topic_partition] = log

    def uncleanable_partitions(self) -> dict[str, list[TopicPartition]]:
        """Return the partitions that are left alone, by log directory; [] where there are none."""
        logs = self._logs()
        with self.states.locked():
            # Those that were deleted are forgotten.
            self._uncleanable = {
                each: log for each, log in self._uncleanable.items() if logs.get(each) is log
            }
            partitions: dict[str, list[TopicPartition]] = {each: [] for each in self._checkpoints}
            for topic_partition, log in sorted(self._uncleanable.items()):
                partitions[log.log_directory].append(topic_partition)
            return partitions

    def uncleanable_bytes(self, now_ms: int) -> dict[str, int]:
        """Return how many bytes of them would be cleaned, by log directory."""
        logs = self._logs()
        sizes = {}
        for directory, partitions in self.uncleanable_partitions().items():
            offsets = self._checkpoints[directory].offsets()
            sizes[directory] = sum(
                _cleanable_bytes(logs[each], offsets.get(each), now_ms)
                for each in partitions
                if each in logs
            )
        return sizes


def _cleanable_offsets(
    log: UnifiedLog, checkpointed: int | None, now_ms: int, last_stable_offset: int
) -> CleanableOffsets:
    params = _cleanable_params(log, checkpointed, now_ms, last_stable_offset)
    return CleanableOffsets.of(log.segments, params)


def _cleanable_params(
    log: UnifiedLog, checkpointed: int | None, now_ms: int, last_stable_offset: int
) -> CleanableParams:
    return CleanableParams(
        checkpoint=checkpointed,
        log_start_offset=log.log_start_offset,
        last_stable_offset=last_stable_offset,
        log_end_offset=log.log_end_offset,
        min_compaction_lag_ms=log.config.min_compaction_lag_ms,
        now_ms=now_ms,
    )


def _compaction_delay_ms(log: UnifiedLog, first_dirty_offset: int, now_ms: int) -> int:
    """Return by how much ``max.compaction.lag.ms`` has passed for a log; 0 if it has not."""
    dirty = non_active_segments_from(log.segments, first_dirty_offset)
    firsts = [segment.first_batch_timestamp() for segment in dirty]
    timestamps = [first for first in firsts if first is not None and first > 0]
    if not timestamps:
        return 0
    return max(0, now_ms - log.config.max_compaction_lag_ms - min(timestamps))


def _cleanable_bytes(log: UnifiedLog, checkpointed: int | None, now_ms: int) -> int:
    try:
        offsets = _cleanable_offsets(log, checkpointed, now_ms, log.last_stable_offset)
    except LogStorageError:  # what cannot be read may be why it is left alone
        return 0
    return CleanableBytes.of(
        log.segments, offsets.first_dirty_offset, offsets.first_uncleanable_offset
    ).cleanable_bytes
