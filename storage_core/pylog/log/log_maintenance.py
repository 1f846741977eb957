"""What is done for all logs of a manager again and again, in the background.

=========================== ============================================================
task                        what it does
=========================== ============================================================
log-retention               removes segments that logs no longer keep; not of logs that are
                            compacted, which is the cleaner's
log-flusher                 flushes logs whose ``flush.ms`` has passed
recovery-point-checkpoint   writes up to where each log is on disk
log-start-offset-checkpoint writes where each log starts that starts inside a segment
high-watermark-checkpoint   writes up to where each log is replicated
producer-expiration         forgets producers that have been idle for too long
=========================== ============================================================

Source: LogManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pylog.config import LogManagerConfig
    from pylog.log.log_context import LogContext
    from pylog.log.owned_log_directory import OwnedLogDirectory
    from pylog.log.owned_logs import OwnedLogs

_LOGGER = logging.getLogger(__name__)


class LogMaintenance:
    """The tasks, which may also be called by hand, by any thread.

    Parameters
    ----------
    directories, logs
        Of the manager.
    settings
        How often each task is run.
    context
        Of the manager.
    unconfigured_topics
        Tells of which of some topics nobody has said what they are configured to: retention leaves
        them alone, with one warning each.
    """

    def __init__(
        self,
        directories: Sequence[OwnedLogDirectory],
        logs: OwnedLogs,
        settings: LogManagerConfig,
        context: LogContext,
        unconfigured_topics: Callable[[Iterable[str]], Sequence[str]],
    ) -> None:
        self._directories = directories
        self._logs = logs
        self._settings = settings
        self._context = context
        self._unconfigured_topics = unconfigured_topics
        self._warned_of: set[str] = set()

    def schedule(self, *, runs_retention: bool) -> None:
        """Have every task run on its schedule, retention only if it is wanted."""
        settings, schedule = self._settings, self._context.scheduler.schedule
        delay = settings.initial_task_delay_ms
        if runs_retention:
            schedule(
                "log-retention",
                self.delete_old_segments,
                delay,
                settings.retention_check_interval_ms,
            )
        schedule("log-flusher", self.flush_dirty_logs, delay, settings.flush_scheduler_interval_ms)
        schedule(
            "recovery-point-checkpoint",
            self.checkpoint_recovery_points,
            delay,
            settings.flush_offset_checkpoint_interval_ms,
        )
        schedule(
            "log-start-offset-checkpoint",
            self.checkpoint_log_start_offsets,
            delay,
            settings.flush_start_offset_checkpoint_interval_ms,
        )
        schedule(
            "high-watermark-checkpoint",
            self.checkpoint_high_watermarks,
            delay,
            settings.high_watermark_checkpoint_interval_ms,
        )
        schedule(
            "producer-expiration",
            self.remove_expired_producers,
            delay,
            settings.producer_id_expiration_check_interval_ms,
        )

    def delete_old_segments(self) -> None:
        """Remove the segments that retention no longer keeps of logs that are not compacted.

        Where it fails for a log, the others go on.
        """
        logs = [log for log in self._logs.current_and_future() if not log.config.is_compact]
        unknown = set(self._unconfigured_topics(log.topic_partition.topic for log in logs))
        for topic in sorted(unknown - self._warned_of):
            _LOGGER.warning(
                "retention leaves topic %s alone: nobody has said what it is configured to", topic
            )
        self._warned_of |= unknown
        for log in logs:
            if log.topic_partition.topic not in unknown:
                try:
                    log.delete_old_segments()
                except LogStorageError as error:
                    # Also of a log that is being deleted, or whose directory is offline.
                    _LOGGER.warning("retention of %s: %s", log.topic_partition, error)

    def flush_dirty_logs(self) -> None:
        """Flush logs whose ``flush.ms`` has passed since they were flushed last."""
        now_ms = self._context.clock.milliseconds()
        for log in self._logs.current_and_future():
            if now_ms - log.last_flushed_ms >= log.config.flush_ms:
                log.flush()

    def checkpoint_recovery_points(self) -> None:
        """Write every online directory's recovery points."""
        for directory in self._online():
            directory.checkpoint_recovery_points()

    def checkpoint_log_start_offsets(self) -> None:
        """Write every online directory's log start offsets."""
        for directory in self._online():
            directory.checkpoint_log_start_offsets()

    def checkpoint_high_watermarks(self) -> None:
        """Write every online directory's high watermarks."""
        for directory in self._online():
            directory.checkpoint_high_watermarks()

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for too long."""
        for log in self._logs.current_and_future():
            log.remove_expired_producers()

    def _online(self) -> list[OwnedLogDirectory]:
        return [directory for directory in self._directories if directory.is_online]
