"""What owned logs tell an operator: the numbers of a broker's JMX metrics, by their names.

A name is that of Kafka's metric, snake_cased, and means what Kafka's means. Where Kafka has a rate
there is a count since the log was opened: whoever asks twice has the rate. What Kafka has no metric
for says so.

======================= ======================================================================
value here              Kafka's metrics
======================= ======================================================================
`LogMetrics`            ``kafka.log:type=Log``, of a partition; ``kafka.server:type=
                        BrokerTopicMetrics``, of a topic there and of a partition here;
                        ``kafka.log:type=LogFlushStats``, of a broker there
`CleanerMetrics`        ``kafka.log:type=LogCleaner``, ``kafka.log:type=LogCleanerManager``
`LogManagerMetrics`     ``kafka.log:type=LogManager``, and the two above
======================= ======================================================================

The values are frozen: numbers of one moment. Imports nothing that is heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.model import TopicPartition


@dataclass(slots=True)
class LogCounters:
    """What one log has counted since it was opened; changed under the log's lock.

    Attributes are those of `LogMetrics`, which takes them by name; any thread may read them.
    """

    bytes_in: int = 0
    messages_in: int = 0
    bytes_rejected: int = 0
    log_flush_count: int = 0
    log_flush_time_ms: int = 0
    deleted_segments: int = 0
    deleted_bytes: int = 0

    def count_append(self, size_bytes: int, messages: int) -> None:
        """Count what has been written by an append."""
        self.bytes_in += size_bytes
        self.messages_in += messages

    def count_rejected(self, size_bytes: int) -> None:
        """Count an append that ``max.message.bytes`` has refused."""
        self.bytes_rejected += size_bytes

    def count_flush(self, time_ms: int) -> None:
        """Count a flush that has forced something to disk."""
        self.log_flush_count += 1
        self.log_flush_time_ms += time_ms

    def count_deleted(self, segments: int, size_bytes: int) -> None:
        """Count segments that retention has taken out of the log."""
        self.deleted_segments += segments
        self.deleted_bytes += size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMetrics:
    """One log; counts are since it was opened.

    Attributes
    ----------
    size
        Length of all ``.log`` files, in bytes.
    num_log_segments
        How many there are.
    log_start_offset, log_end_offset
        First offset served, and the offset of the next record.
    bytes_in, messages_in
        Of all appends, as written to the disk; a message is an offset that an append took. Other
        than in Kafka those of a follower count, too.
    bytes_rejected
        Of the appends that were refused because a batch was above ``max.message.bytes``.
    log_flush_count, log_flush_time_ms
        Flushes that had something to force to disk, and what they took together.
    deleted_segments, deleted_bytes
        What retention has taken out of the log. No metric of Kafka's.
    """

    size: int
    num_log_segments: int
    log_start_offset: int
    log_end_offset: int
    bytes_in: int
    messages_in: int
    bytes_rejected: int
    log_flush_count: int
    log_flush_time_ms: int
    deleted_segments: int
    deleted_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerMetrics:
    """The cleaner of a manager; counts are since it was started.

    Attributes
    ----------
    cleaner_recopy_percent
        Bytes that the last round of each thread wrote, of those that it read.
    max_buffer_utilization_percent
        The largest part of a dedupe buffer that the last round of a thread filled.
    max_clean_time_secs
        The longest of these rounds.
    max_compaction_delay_secs
        By how much a log that was cleaned last was later than ``max.compaction.lag.ms`` says.
    dead_thread_count
        Threads that have ended although the cleaner runs.
    uncleanable_partitions_count, uncleanable_bytes
        By log directory: partitions that a cleaning failed on, and the bytes there that would be
        cleaned. They are left alone until the next start.
    max_dirty_percent
        The largest dirty ratio of a log when the threads looked last.
    time_since_last_run_ms
        Since then.
    rounds, failed_rounds
        Rounds of cleaning that were done, and that failed. This and the rest have no metric in
        Kafka, which writes them to its log.
    bytes_read, bytes_written, records_read, records_written
        Of the copies of all rounds.
    """

    cleaner_recopy_percent: int = 0
    max_buffer_utilization_percent: int = 0
    max_clean_time_secs: int = 0
    max_compaction_delay_secs: int = 0
    dead_thread_count: int = 0
    uncleanable_partitions_count: Mapping[str, int]
    uncleanable_bytes: Mapping[str, int]
    max_dirty_percent: int = 0
    time_since_last_run_ms: int = 0
    rounds: int = 0
    failed_rounds: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerMetrics:
    """All logs of a manager.

    Attributes
    ----------
    logs
        By partition, sorted. The counts of a log that was deleted are gone with it.
    offline_log_directories
        Those whose disk has failed.
    cleaner
        None where no cleaner is registered.
    """

    logs: Mapping[TopicPartition, LogMetrics]
    offline_log_directories: tuple[str, ...]
    cleaner: CleanerMetrics | None = None

    @property
    def offline_log_directory_count(self) -> int:
        """Number of log directories that are offline."""
        return len(self.offline_log_directories)
