"""One partition's log that we own: appended to, read, rolled, flushed, truncated.

What moves its end on is in `pylog.log.writable_log`, with the lock; here is what takes something
away, by `pylog.log.retention` and `segment_replacement`; its end goes back in
`pylog.log.log_truncation`.

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

from pylog.log import retention
from pylog.log.log_truncation import TruncatableLog
from pylog.log.segment_replacement import create_cleaned_segment, replace_in_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.log_segment import LogSegment
    from pylog.log.retention import DeletedSegment
    from pylog.producers.producer_state_entry import LastRecord


class UnifiedLog(TruncatableLog):
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

    def held_back_offsets(self, now_ms: int) -> tuple[int, int] | None:
        """Return the offsets ``[start, end)`` that `delete_old_segments` removes once replicated.

        None if there are none. `CorruptRecordError` as of `delete_old_segments`.
        """
        return retention.held_back_offsets(self._state, now_ms)

    def future_segment(self, now_ms: int) -> retention.FutureSegment | None:
        """Return the first segment if `delete_old_segments` keeps it for a time in the future."""
        return retention.future_segment(self._state, now_ms)

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Make an empty segment for `replace_segments`; `KafkaStorageError` if the disk failed."""
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
            self._is_closed = True
            self.local_log.close()
            self._context.io.sync_directory(self.directory)

    def close_handlers(self) -> None:
        """Release all files, changing nothing: for a log whose disk failed."""
        self._flusher.stop()
        with self._lock:
            self._is_closed = True
            self.local_log.close_handlers()
