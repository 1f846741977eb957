"""Retention of a log directory's topics: planned, run, and what was removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pylog.config.log_config import DELETE
from pylog.errors import CorruptRecordError, InvalidRecordError, KafkaStorageError, LogStorageError
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.owned_directories import partition_directories, writable_log_directory
from pylog.log.log_context import LogContext
from pylog.reading.log_directory import open_directory
from pylog.reading.removal_preview import count_records
from pylog.reading.slicing import segment_slices
from pylog.scheduling.clock import SystemClock
from pylog.writing.cleanup import CleanupSummary
from pylog.writing.held_back import HeldBack
from pylog.writing.known_topic_configs import known_topic_configs
from pylog.writing.owned_directory import own_logs, size_of_log

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog.config.server_properties import ServerProperties
    from pylog.log.retention import DeletedSegment, FutureSegment
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

    Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRetention:
    """The segments that retention removes from one partition.

    Attributes
    ----------
    topic_partition
        The partition.
    deleted
        The segments that are removed, the oldest first.
    records
        How many of the records that are served these hold; control records do not count. None if
        that has not been counted, which a dry run alone does, or cannot be, because of damage.
    log_start_offset, log_end_offset
        Of the log afterwards.
    size_bytes
        Of its ``.log`` files afterwards.
    failure
        Why nothing is removed from it; None if it was done, or would be.
    held_back
        What is removed as soon as it is replicated; None if nothing.
    future
        The segment that keeps all that is left, by a timestamp in the future; None if none does.
    """

    topic_partition: TopicPartition
    deleted: tuple[DeletedSegment, ...] = ()
    records: int | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    size_bytes: int = 0
    failure: str | None = None
    held_back: HeldBack | None = None
    future: FutureSegment | None = None

    @property
    def deleted_bytes(self) -> int:
        """Length of the ``.log`` files that are removed."""
        return sum(segment.size_bytes for segment in self.deleted)


class RetentionTotals(NamedTuple):
    """The totals of retention over several partitions.

    Attributes
    ----------
    partitions
        How many there are, and `changed_partitions` of how many segments are removed.
    segments, records, deleted_bytes
        What is removed; ``records`` is None where it is not known of some partition.
    size_bytes
        Of all ``.log`` files afterwards.
    """

    partitions: int
    changed_partitions: int
    segments: int
    records: int | None
    deleted_bytes: int
    size_bytes: int

    @classmethod
    def of(cls, partitions: Iterable[PartitionRetention]) -> RetentionTotals:
        """Add partitions up."""
        partitions = list(partitions)
        known = [each.records for each in partitions if each.records is not None]
        return cls(
            len(partitions),
            sum(bool(each.deleted) for each in partitions),
            sum(len(each.deleted) for each in partitions),
            sum(known) if len(known) == len(partitions) else None,
            sum(each.deleted_bytes for each in partitions),
            sum(each.size_bytes for each in partitions),
        )


@dataclass(frozen=True, slots=True)
class RetentionSummary(CleanupSummary[PartitionRetention, RetentionTotals]):
    """The partitions of a log directory, and the segments that retention removes.

    Attributes
    ----------
    partitions
        All that were looked at, sorted.
    now_ms
        The time that the age of segments was counted to.
    is_dry_run
        Whether nothing has been changed.
    configs
        By topic: the properties that decided, and where each value comes from.
    """

    json_names: ClassVar[Mapping[str, str | None]] = {
        "deleted": "removed",
        "segments": "removedSegments",
        "records": "removedRecords",
        "deleted_bytes": "removedBytes",
    }

    @staticmethod
    def _added_up(partitions: Sequence[PartitionRetention]) -> RetentionTotals:
        return RetentionTotals.of(partitions)


def _count(view: LogView, start: int, end: int) -> int | None:
    """Return how many records are served of offsets ``[start, end)``, None if damage hides it."""
    if start == end:
        return 0
    try:
        return count_records(view, segment_slices(view, start, end), start, end)
    except (CorruptRecordError, InvalidRecordError):
        return None


# `apply_retention`: remove what a log directory's topics no longer keep, once.
#
# The log directory is owned during it; by a dry run on an overlay (`pylog.files.overlay`).


def apply_retention(  # noqa: PLR0913 - what it is done to, by which configuration, and how
    directory: str | os.PathLike[str],
    *,
    topics: Iterable[str] | None = None,
    server_properties: ServerProperties | None = None,
    config: Mapping[str, str] | None = None,
    now_ms: int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    context: LogContext | None = None,
    high_watermark: str = "checkpoint",
    recover_as_broker: bool = False,
) -> RetentionSummary:
    """Remove the segments of a log directory that its topics no longer keep; return which.

    What a broker's check does for topics that are not compacted, and its cleaner for those that
    are. Segments below the log start offset go, whatever the topic's ``cleanup.policy``; by
    ``retention.bytes`` and ``retention.ms``, if the policy contains ``delete``. The files are
    removed at once, without ``file.delete.delay.ms``: nobody else owns the directory.

    What topics are configured to is found as in `pylog.writing.topic_configs`: what is given
    wins over a topic's own properties, those over what brokers have in the cluster's metadata, and
    that over ``server.properties``. The summary says where each value comes from.

    Parameters
    ----------
    directory
        A log directory that no broker has open. For a dry run, one may have.
    topics
        Which; all of the directory if None.
    server_properties
        A broker's file: what topics are configured to that have no properties of their own.
    config
        Properties that win over all others, for this run. Of the topics that are named; if none
        is, of all but Kafka's internal ones.
    now_ms
        The time that the age of segments is counted to; now if None.
    dry_run
        Only say what would be removed: all is done on an overlay. Nothing is changed or locked.
    progress
        Called after each partition with the bytes of logs that are done, and those of all.
    context
        The clock, the disk and the background work; the real ones if None.
    high_watermark
        Where the high watermark of each log starts: as on a broker (``checkpoint``), or, for a
        directory whose cluster is gone, at the log's end (``log-end``). No segment is removed that
        has records above it.
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does. Otherwise a log that would
        lose some stays as it is, and is a `failure`.

    Returns
    -------
    RetentionSummary
        All partitions that were looked at. One that cannot be decided over, because of damage, has
        a `failure`, and the others are done.

    Raises
    ------
    UnknownTopicConfigError
        Of some topics nobody has said what they are configured to, or the cluster's metadata is
        there and cannot be relied upon; nothing has been changed.
    UnknownTopicOrPartitionError
        The directory has no such topic; nothing has been changed.
    ValueError
        A property is unknown or has no such value.
    LogLockedError
        A broker, or another program, has the directory open.
    KafkaStorageError
        The disk failed; what was removed before is gone.
    LogStorageError
        The directory is not one that can be written to, or a log in it cannot be opened.

    Examples
    --------
    >>> rows = [{"value": "old", "timestamp": 1_730_999_000_000}]
    >>> summary = pylog.write_topic("logs", "events", rows, config={"retention.ms": "86400000"})
    >>> pylog.apply_retention("logs", topics=["events"], dry_run=True).totals.deleted_bytes
    71
    """
    path = writable_log_directory(directory, must_exist=True)
    known = known_topic_configs(
        path, topics, cleanup=DELETE, server_properties=server_properties, properties=config
    )
    configs = known.configs
    if now_ms is None:
        now_ms = (SystemClock() if context is None else context.clock).milliseconds()
    with own_logs(
        path,
        configs,
        server_properties,
        context or LogContext(failures=LogDirFailureChannel(is_logged=False)),
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
        is_dry_run=dry_run,
    ) as owned:
        total = sum(
            size_of_log(path, name.topic_partition)
            for _, name in partition_directories(path)
            if not name.state and name.topic_partition.topic in configs
        )
        counts_in = open_directory(path) if dry_run else None
        done = list(_applied(owned.visit(), now_ms, progress, total, counts_in=counts_in))
        done += [
            PartitionRetention(
                topic_partition=each,
                size_bytes=size_of_log(path, each),
                failure=str(error),
            )
            for each, error in owned.find_closed().items()
        ]
        done.sort(key=lambda each: each.topic_partition)
    return RetentionSummary(tuple(done), now_ms, dry_run, known.entries)


def _applied(
    logs: Iterable[UnifiedLog],
    now_ms: int,
    progress: Progress | None,
    total: int,
    *,
    counts_in: LogDirectory | None,
) -> Iterator[PartitionRetention]:
    """Remove; count the records that go in a directory in which they are left, if there is one."""
    done = 0
    for log in logs:
        done += log.size_bytes
        failure = offsets = records = future = None
        start = log.log_start_offset
        try:
            deleted = log.delete_old_segments(now_ms, is_async=False)
            offsets = log.held_back_offsets(now_ms)
            future = log.future_segment(now_ms)
            if counts_in is not None:
                view = counts_in[log.topic_partition]
                records = _count(view, start, log.log_start_offset)
        except KafkaStorageError:
            raise
        except LogStorageError as error:
            deleted, failure = [], str(error)
        yield PartitionRetention(
            topic_partition=log.topic_partition,
            deleted=tuple(deleted),
            records=records,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            size_bytes=log.size_bytes,
            failure=failure,
            future=future,
            held_back=HeldBack.of(log, offsets),
        )
        if progress is not None:
            progress(done, total)
