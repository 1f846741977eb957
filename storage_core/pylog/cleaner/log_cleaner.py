"""Compaction in the background, as a broker does it, of the logs of one manager.

::

    with LogManager(directories, runs_retention=True) as manager, LogCleaner(manager) as cleaner:
        ...

Meanwhile any number of threads may append to logs, read, truncate and delete them. Truncating a log
below its active segment and deleting it wait until a cleaning that is under way has been given up,
which leaves the log as it was.

* Each thread takes the log with the largest dirty ratio of those that have to be cleaned, and
  cleans it for one round (`pylog.cleaner.log_cleaner_manager`). If there is none, it waits for
  ``log.cleaner.backoff.ms``.
* After that it runs retention over all compacted logs; the other logs are the manager's.
* A log whose cleaning fails unexpectedly is left alone until the next start, and `metrics` counts
  it; a disk that fails takes its log directory offline.

Source: LogCleaner (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.cleaning_states import CleaningAbortedError
from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.cleaner.log_snapshot import CleanerStats
from pylog.cleaner.throttler import Throttler
from pylog.config import CleanerConfig
from pylog.errors import KafkaStorageError
from pylog.log.metrics import CleanerMetrics
from pylog.scheduling.clock import monotonic_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pylog.cleaner.cleanable_offsets import LogToClean
    from pylog.log.log_context import LogContext
    from pylog.log.log_manager import LogManager
    from pylog.model import TopicPartition


_LOGGER = logging.getLogger(__name__)


# What each thread of a cleaner does again and again: clean the filthiest log, then trim.
#
# Source: LogCleaner.CleanerThread (Kafka 4.3).


@dataclass(slots=True)
class CleanerThreadCounts:
    """What one thread has done since it was started; read by others without a lock."""

    rounds: int = 0
    failed_rounds: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0

    def add(self, stats: CleanerStats) -> None:
        """Add a round that came to its end."""
        self.rounds += 1
        self.bytes_read += stats.bytes_read
        self.bytes_written += stats.bytes_written
        self.records_read += stats.records_read
        self.records_written += stats.records_written


class CleanerThread:
    """One thread of a cleaner. Only the thread itself calls `do_work`."""

    def __init__(
        self,
        name: str,
        config: CleanerConfig,
        manager: LogCleanerManager,
        context: LogContext,
        *,
        throttle: Callable[[int], object],
        stopping: threading.Event,
    ) -> None:
        self.counts = CleanerThreadCounts()
        self.last_stats = CleanerStats()
        self.last_compaction_delay_ms = 0
        self._manager = manager
        self._context = context
        self._stopping = stopping
        self._backoff_seconds = config.backoff_ms / 1000
        self._cleaner = Cleaner(
            config, context.clock, check_done=self._check_done, throttle=throttle
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def join(self) -> None:
        """Return when the thread has come to its end."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self.do_work():
                    self._stopping.wait(self._backoff_seconds)
        except Exception:
            _LOGGER.exception("thread %s of the cleaner has ended", self._thread.name)

    def do_work(self) -> bool:
        """Clean the filthiest log one round, run retention; return whether a log was cleaned."""
        log_to_clean = self._manager.grab_filthiest_compacted_log(
            self._context.clock.milliseconds()
        )
        is_cleaned = False
        if log_to_clean is not None:
            self.last_compaction_delay_ms = self._manager.max_compaction_delay_ms
            is_cleaned = self._clean(log_to_clean)
        if not self._stopping.is_set():
            self._manager.delete_old_segments()
        return is_cleaned

    def _clean(self, log_to_clean: LogToClean) -> bool:
        """Clean a log one round; return False if it cannot be cleaned."""
        log = log_to_clean.log
        next_dirty_offset = log_to_clean.first_dirty_offset
        try:
            with self._context.failures.watching(log.log_directory):
                result = self._cleaner.clean(log_to_clean)
            next_dirty_offset = result.next_dirty_offset
            self.last_stats = result.stats
            if result.stats.first_damage is not None:
                _LOGGER.warning(
                    "%s: %d records that stay had a wrong checksum, the first one at %s",
                    log.topic_partition,
                    result.stats.damaged_records,
                    result.stats.first_damage,
                )
            self.counts.add(result.stats)
        except CleaningAbortedError:
            _LOGGER.info("cleaning of %s is given up", log.topic_partition)
        except KafkaStorageError as error:  # and the directory is offline
            _LOGGER.warning("cleaning of %s has failed: %s", log.topic_partition, error)
            self.counts.failed_rounds += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the other logs must go on
            self._manager.mark_uncleanable(log, error)
            self.counts.failed_rounds += 1
            return False
        finally:
            self._manager.done_cleaning(log, next_dirty_offset)
        return True

    def _check_done(self, topic_partition: TopicPartition) -> None:
        """Raise if the cleaner is being shut down, or the log wanted by somebody else."""
        if self._stopping.is_set():
            raise CleaningAbortedError(topic_partition)
        self._manager.check_cleaning_aborted(topic_partition)


class LogCleaner:
    """Threads that compact the logs of a manager, from `startup` to `shutdown`; a context manager.

    It ends with the manager at the latest.

    Parameters
    ----------
    manager
        Has been started.
    config
        ``log.cleaner.*``, Kafka's defaults if None. With ``log.cleaner.enable=false`` nothing is
        ever cleaned.

    Examples
    --------
    >>> with pylog.logs.LogManager(["logs"]) as manager, pylog.logs.LogCleaner(manager) as cleaner:
    ...     print(cleaner.config.threads)
    1
    """

    def __init__(self, manager: LogManager, config: CleanerConfig | None = None) -> None:
        self.config = CleanerConfig() if config is None else config
        self._log_manager = manager
        self._context = manager.context
        self._manager = LogCleanerManager(
            lambda: manager.logs, manager.cleaner_checkpoints, manager.context.failures
        )
        self._stopping = threading.Event()
        self._threads: list[CleanerThread] = []

    def startup(self) -> Self:
        """Begin to clean.

        Raises
        ------
        RuntimeError
            The manager has a cleaner already.
        """
        self._log_manager.cleaner.register(self)
        self._stopping.clear()
        throttler = Throttler(self.config.io_max_bytes_per_second, self._stopping.wait)
        count = self.config.threads if self.config.enable else 0
        self._threads = [
            CleanerThread(
                f"pylog-log-cleaner-{number}",
                self.config,
                self._manager,
                self._context,
                throttle=throttler.throttle,
                stopping=self._stopping,
            )
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def shutdown(self) -> None:
        """Return when no thread cleans any more; a log that one was at is as it was before.

        A second call does nothing, nor does one in a forked child, which has no such threads.
        """
        if not self._context.io.is_own_process:
            return
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._log_manager.cleaner.unregister(self)

    def __enter__(self) -> Self:
        return self.startup()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()

    def abort_and_pause_cleaning(self, topic_partition: TopicPartition) -> None:
        """Return when no cleaning of a log is under way; none begins until it is resumed.

        Not for callers that hold a lock of a log or a log directory.
        """
        self._manager.states.abort_and_pause(topic_partition)

    def resume_cleaning(self, topic_partition: TopicPartition) -> None:
        """Undo one `abort_and_pause_cleaning`; ``RuntimeError`` if there is none to undo."""
        self._manager.states.resume(topic_partition)

    def metrics(self) -> CleanerMetrics:
        """Return the metrics of the cleaner."""
        threads = self._threads
        last = [thread.last_stats for thread in threads]
        counts = [thread.counts for thread in threads]
        read = sum(stats.bytes_read for stats in last)
        uncleanable = self._manager.uncleanable_partitions()
        return CleanerMetrics(
            cleaner_recopy_percent=100 * sum(each.bytes_written for each in last) // max(read, 1),
            max_buffer_utilization_percent=int(
                100 * max((each.buffer_utilization for each in last), default=0)
            ),
            max_clean_time_secs=max(
                ((each.map_milliseconds + each.copy_milliseconds) // 1000 for each in last),
                default=0,
            ),
            max_compaction_delay_secs=max(
                (thread.last_compaction_delay_ms // 1000 for thread in threads), default=0
            ),
            dead_thread_count=0
            if self._stopping.is_set()
            else sum(not thread.is_alive for thread in threads),
            uncleanable_partitions_count={
                directory: len(partitions) for directory, partitions in uncleanable.items()
            },
            uncleanable_bytes=self._manager.uncleanable_bytes(self._context.clock.milliseconds()),
            max_dirty_percent=int(100 * self._manager.max_dirty_ratio),
            time_since_last_run_ms=monotonic_milliseconds() - self._manager.last_run_ms,
            rounds=sum(each.rounds for each in counts),
            failed_rounds=sum(each.failed_rounds for each in counts),
            bytes_read=sum(each.bytes_read for each in counts),
            bytes_written=sum(each.bytes_written for each in counts),
            records_read=sum(each.records_read for each in counts),
            records_written=sum(each.records_written for each in counts),
        )
