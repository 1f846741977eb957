"""The cleaner of a manager's logs, as far as the logs have to know of it.

A cleaner (`pylog.cleaner.log_cleaner`) stands above the logs and registers itself. Whoever takes
away what it may be working on has it stop first, and keeps it away until that is done::

    with cleaner.paused(topic_partition):   # a cleaning under way has ended, none begins
        ...                                 # the log's lock is taken here, and never before

Source: LogManager.cleaner, .abortAndPauseCleaning, .truncateTo (Kafka 4.3).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log.metrics import CleanerMetrics
    from pylog.model import TopicPartition


class LogCleaning(Protocol):
    """What a manager and its logs ask of a cleaner; any thread may, but one of the cleaner's."""

    def abort_and_pause_cleaning(self, topic_partition: TopicPartition) -> None:
        """Return when no cleaning of a log is under way; none begins until it is resumed.

        The caller holds no lock that cleaning takes: no log's, no directory's.
        """
        ...

    def resume_cleaning(self, topic_partition: TopicPartition) -> None:
        """Undo one `abort_and_pause_cleaning`."""
        ...

    def shutdown(self) -> None:
        """Return when no thread cleans any more; what one was at has been left as it was."""
        ...

    def metrics(self) -> CleanerMetrics:
        """Return the cleaner's numbers."""
        ...


class RegisteredCleaner:
    """The cleaner of one manager, or that there is none. Any number of threads may ask."""

    def __init__(self) -> None:
        self._cleaner: LogCleaning | None = None

    def register(self, cleaner: LogCleaning) -> None:
        """Make a cleaner the manager's."""
        if self._cleaner is not None:
            msg = "the log manager has a cleaner already; shut that down first"
            raise RuntimeError(msg)
        self._cleaner = cleaner

    def unregister(self, cleaner: LogCleaning) -> None:
        """Forget a cleaner that has been shut down; nothing if it is not the manager's."""
        if self._cleaner is cleaner:
            self._cleaner = None

    @contextmanager
    def paused(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Enter when no cleaning of a log is under way, and let none begin within the block."""
        cleaner = self._cleaner
        if cleaner is None:
            yield
            return
        cleaner.abort_and_pause_cleaning(topic_partition)
        try:
            yield
        finally:
            cleaner.resume_cleaning(topic_partition)

    def shutdown(self) -> None:
        """Shut the cleaner down, if there is one."""
        if self._cleaner is not None:
            self._cleaner.shutdown()

    def metrics(self) -> CleanerMetrics | None:
        """Return the cleaner's numbers, None if there is none."""
        return None if self._cleaner is None else self._cleaner.metrics()
