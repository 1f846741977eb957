"""What each thread of a cleaner does again and again: clean the filthiest log, then trim.

Source: LogCleaner.CleanerThread (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.cleaner_stats import CleanerStats
from pylog.cleaner.cleaning_states import CleaningAbortedError
from pylog.errors import KafkaStorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.cleaner.log_cleaner_manager import LogCleanerManager
    from pylog.cleaner.log_to_clean import LogToClean
    from pylog.config import CleanerConfig
    from pylog.log.log_context import LogContext
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)


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
    """One thread of a cleaner. Only the thread itself calls `do_work`; anybody looks at its counts.

    Parameters
    ----------
    name
        Of the thread.
    config
        Of the cleaner: its memory is shared between all threads, each takes its part.
    manager
        Chooses the logs.
    context
        Time, and where a failing disk is noted.
    throttle
        Called with what is to be read or has been written.
    stopping
        Set when the cleaner is shut down.

    Attributes
    ----------
    counts
        Of all rounds.
    last_stats, last_compaction_delay_ms
        Of the last round.
    """

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
