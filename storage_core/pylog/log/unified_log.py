"""One partition's log that we own: appended to, read, rolled, flushed, truncated.

What moves its end on is in `pylog.log.writable_log`, with the lock; here is what takes something
away, by `pylog.log.log_truncation`, `retention` and `segment_replacement`.

Threads: any number may append and change; one lock lets one through at a time. Whoever holds it may
have checkpoints written, and takes neither the flusher's lock nor the manager's lock of creation
and deletion, which come before it (`pylog.log.log_manager`); a cleaner that may be at work on the
log is stopped before the lock is taken (`pylog.log.log_truncation`). After a failed write or fsync
the log directory is offline, and the log refuses whatever changes it. So it does in a child that
was forked since the log was opened: `LogLockedError`.

Source: UnifiedLog (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.log import log_truncation, retention
from pylog.log.segment_replacement import create_cleaned_segment, replace_in_log
from pylog.log.writable_log import WritableLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState
    from pylog.log.log_truncation import TruncationGuard
    from pylog.log.retention import DeletedSegment
    from pylog.producers.producer_state_entry import LastRecord


class UnifiedLog(WritableLog):
    """A log; made by `pylog.log.log_loader.load_log`.

    Parameters
    ----------
    state
        What the log consists of.
    log_directory
        The log directory that the partition directory lies in.
    truncation_guard
        Around what takes the log's end back.
    """

    def __init__(
        self,
        state: LogState,
        log_directory: str,
        truncation_guard: TruncationGuard,
    ) -> None:
        super().__init__(state, log_directory)
        self._truncation_guard = truncation_guard

    def ensure_records_may_be_deleted(self, offset: int | None = None) -> None:
        """Raise what `delete_records` would raise; nothing is changed."""
        self.config.ensure_records_may_be_deleted(str(self.topic_partition))
        self._state.ensure_possible_start(offset)

    def delete_records(self, offset: int | None = None) -> int:
        """Serve no record below ``offset`` any more; return the new log start offset.

        None for the high watermark. The files stay as they are; segments that lie below as a whole
        are retention's business.

        Raises
        ------
        PolicyViolationError
            The topic is compacted and nothing else.
        OffsetOutOfRangeError
            The offset is negative or above the high watermark.
        """
        self.config.ensure_records_may_be_deleted(str(self.topic_partition))
        with self._changing():
            return self._state.delete_records(offset)

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset; False if it is not lower.

        `OffsetOutOfRangeError` if ``offset`` is above the high watermark.
        """
        with self._changing():
            return self._state.maybe_increment_log_start_offset(offset)

    def delete_old_segments(
        self, now_ms: int | None = None, *, is_async: bool = True
    ) -> list[DeletedSegment]:
        """Remove the oldest segments, as far as retention does not keep them; return those.

        Parameters
        ----------
        now_ms
            The time; that of the clock if None.
        is_async
            Whether the files are removed after ``file.delete.delay.ms``, or at once.

        Raises
        ------
        CorruptRecordError
            A segment may be younger than its time index says, and is damaged; none is removed.
        KafkaStorageError
            The disk failed.
        """
        with self._changing():
            now_ms = self._context.clock.milliseconds() if now_ms is None else now_ms
            return retention.delete_old_segments(
                self._state, self._roller, now_ms, is_async=is_async
            )

    def truncate_to(self, target_offset: int) -> bool:
        """Remove everything from ``target_offset`` on; False if nothing is there.

        The batch that holds the offset goes as a whole. ``ValueError`` if the offset is negative,
        `KafkaStorageError` if the disk failed.
        """
        log_truncation.ensure_not_negative(self._state, target_offset)
        with self._truncation_guard.truncating(self._state, target_offset, self._changing):
            return log_truncation.truncate_to(self._state, target_offset)

    def truncate_at_boundary(self, offset: int, *, takes_whole_batch: bool = False) -> None:
        """Remove everything from ``offset`` on, and nothing below it; with no other writer.

        At or after the log's end nothing is removed. With ``takes_whole_batch`` a batch that holds
        records on both sides of ``offset`` goes as a whole, as in Kafka; the log ends where it
        began.

        Raises
        ------
        OffsetInsideBatchError, OffsetOutOfRangeError
            There is such a batch, and it is not to go; or ``offset`` is below the log's start.
            Nothing has been removed.
        CorruptRecordError, InvalidRecordError
            The batch there is of v0 or v1, and damaged.
        """
        self.truncate_to(
            log_truncation.boundary_at(self._state, offset, takes_whole_batch=takes_whole_batch)
        )

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove all records; the next one gets ``new_offset``.

        Records are served from ``log_start_offset`` on, from ``new_offset`` if None.
        """
        with self._truncation_guard.removing_all(self._state, new_offset, self._changing):
            log_truncation.truncate_fully_and_start_at(self._state, new_offset, log_start_offset)

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Make an empty segment for `replace_segments`; nobody reads it, and no lock is needed.

        `KafkaStorageError` if a file could not be made.
        """
        return create_cleaned_segment(self._state, base_offset)

    def replace_segments(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], *, is_async: bool = True
    ) -> None:
        """Put rewritten segments in the place of old ones, which have not been changed meanwhile.

        Readers see the ones or the others. What a crash leaves: `pylog.log.segment_replacement`.

        Parameters
        ----------
        new
            From `create_cleaned_segment`, by offset, forced to disk. The first begins where the
            first old one does.
        old
            By offset, neighbours; the active segment is not among them.
        is_async
            Whether the old files are removed after ``file.delete.delay.ms``, or at once.

        Raises
        ------
        KafkaStorageError
            The disk failed; the next start completes it or takes it back.
        """
        with self._changing():
            replace_in_log(self._state, new, old, is_async=is_async)

    def last_records_of_active_producers(self) -> dict[int, LastRecord]:
        """Return what the log must not lose of each active producer, by producer id."""
        with self._lock:
            return self.producer_state.last_records()

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for ``producer.id.expiration.ms``."""
        with self._lock:
            self.producer_state.remove_expired_producers(self._context.clock.milliseconds())

    def close(self) -> None:
        """Take a producer snapshot and close all files as at a clean shutdown; no flush of records.

        The names of all files are on the disk then: without its snapshot or transaction index a
        log that was closed in order would be another one.
        """
        self._context.io.ensure_own_process(self.directory)
        self._flusher.stop()
        with self._changing():
            self.producer_state.take_snapshot()
            self.local_log.close()
            self._context.io.sync_directory(self.directory)
            self._is_closed = True

    def close_handlers(self) -> None:
        """Release all files, changing nothing: for a log whose disk failed."""
        self._flusher.stop()
        with self._lock:
            self.local_log.close_handlers()
            self._is_closed = True
