"""What is done for all logs of a manager again and again, in the background.

Source: LogManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.config import LogManagerConfig
    from pylog.log.log_context import LogContext
    from pylog.log.owned_log_directory import OwnedLogDirectory
    from pylog.log.owned_logs import OwnedLogs

_LOGGER = logging.getLogger(__name__)


class LogMaintenance:
    """The tasks, which may also be called by hand, by any thread."""

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
        for name, task in TASKS.items():
            if name != RETENTION or runs_retention:
                self._context.scheduler.schedule(
                    name,
                    partial(task.run, self),
                    self._settings.initial_task_delay_ms,
                    task.interval_ms(self._settings),
                )

    def delete_old_segments(self) -> None:
        """Remove the segments that retention no longer keeps of logs that are not compacted."""
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


class MaintenanceTask(NamedTuple):
    """A task: the method that it calls, and its interval."""

    run: Callable[[LogMaintenance], None]
    interval_ms: Callable[[LogManagerConfig], int]


RETENTION = "log-retention"
TASKS: Mapping[str, MaintenanceTask] = {
    RETENTION: MaintenanceTask(
        LogMaintenance.delete_old_segments,
        lambda settings: settings.retention_check_interval_ms,
    ),
    "log-flusher": MaintenanceTask(
        LogMaintenance.flush_dirty_logs,
        lambda settings: settings.flush_scheduler_interval_ms,
    ),
    "recovery-point-checkpoint": MaintenanceTask(
        LogMaintenance.checkpoint_recovery_points,
        lambda settings: settings.flush_offset_checkpoint_interval_ms,
    ),
    "log-start-offset-checkpoint": MaintenanceTask(
        LogMaintenance.checkpoint_log_start_offsets,
        lambda settings: settings.flush_start_offset_checkpoint_interval_ms,
    ),
    "high-watermark-checkpoint": MaintenanceTask(
        LogMaintenance.checkpoint_high_watermarks,
        lambda settings: settings.high_watermark_checkpoint_interval_ms,
    ),
    "producer-expiration": MaintenanceTask(
        LogMaintenance.remove_expired_producers,
        lambda settings: settings.producer_id_expiration_check_interval_ms,
    ),
}
"""The tasks, by the names under which they are scheduled."""
