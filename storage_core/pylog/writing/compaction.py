"""Compaction of a log directory's topics: planned, run, and what was removed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pylog.cleaner.cleaned_segments import CleanedSegments, CountedSegments
from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.cleaning_states import CleaningAbortedError
from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.cleaner.throttler import Throttler
from pylog.config import CleanerConfig
from pylog.config.log_config import COMPACT
from pylog.errors import KafkaStorageError, LogStorageError
from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.owned_directories import partition_directories, writable_log_directory
from pylog.log.log_context import LogContext
from pylog.scheduling.clock import StoppedClock
from pylog.writing.cleanup import CleanupSummary
from pylog.writing.held_back import HeldBack
from pylog.writing.known_topic_configs import known_topic_configs
from pylog.writing.owned_directory import ChosenLogs, own_logs, size_of_log

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog.cleaner.cleanable_offsets import NotCleaned
    from pylog.cleaner.cleaner import CleanerProgress
    from pylog.cleaner.log_snapshot import CleanerStats
    from pylog.config import LogConfig
    from pylog.config.config_property import ConfigEntry
    from pylog.config.server_properties import ServerProperties
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCompaction:
    """The records and bytes that compaction removes from one partition.

    Attributes
    ----------
    topic_partition
        The partition.
    rounds
        How often it was cleaned; 0 if nothing had to be, or was chosen to be.
    not_cleaned
        Why it was not cleaned; None if it was, or if there is a `failure`.
    records, removed_bytes
        What is removed, records without a key and control records included. Bytes may be negative:
        records of formats v0 and v1 become larger.
    invalid_records
        How many of the records had no key.
    segments
        How many segments the ones that were cleaned are fewer by.
    first_dirty_offset
        Up to where the log is clean afterwards.
    size_bytes
        Of its ``.log`` files afterwards.
    is_complete
        Whether nothing is left that could be cleaned now. False of a dry run if the dedupe buffer
        has no room for all keys: the rounds after the first one would remove more than is said.
    damaged_records, damage
        How many records stay, as they do in Kafka, that had a wrong checksum in a compressed
        message of v0 or v1, and the first of them; 0 and None if there was none. They have a right
        checksum afterwards, so that nobody sees the damage any more.
    failure
        Why it could not be cleaned to the end; None if it was, or would be.
    held_back
        What can be cleaned as soon as it is replicated; None if nothing.
    """

    topic_partition: TopicPartition
    rounds: int = 0
    not_cleaned: NotCleaned | None = None
    records: int = 0
    removed_bytes: int = 0
    invalid_records: int = 0
    segments: int = 0
    first_dirty_offset: int | None = None
    size_bytes: int = 0
    is_complete: bool = True
    damaged_records: int = 0
    damage: str | None = None
    failure: str | None = None
    held_back: HeldBack | None = None

    @classmethod
    def of(  # noqa: PLR0913 - all that there is to say of it
        cls,
        log: UnifiedLog,
        rounds: Sequence[CleanerStats],
        *,
        first_dirty_offset: int | None,
        is_dry_run: bool,
        is_complete: bool,
        failure: str | None,
        held_back_offsets: tuple[int, int] | None,
        not_cleaned: NotCleaned | None,
    ) -> PartitionCompaction:
        """Add up the rounds of a log, whether or not it was changed by them."""
        removed_bytes = sum(each.bytes_read - each.bytes_written for each in rounds)
        return cls(
            topic_partition=log.topic_partition,
            rounds=len(rounds),
            not_cleaned=not_cleaned,
            records=sum(each.records_read - each.records_written for each in rounds),
            removed_bytes=removed_bytes,
            invalid_records=sum(each.invalid_records for each in rounds),
            segments=sum(each.segments_read - each.segments_written for each in rounds),
            first_dirty_offset=first_dirty_offset,
            size_bytes=log.size_bytes - removed_bytes if is_dry_run else log.size_bytes,
            is_complete=is_complete,
            damaged_records=sum(each.damaged_records for each in rounds),
            damage=next((each.first_damage for each in rounds if each.first_damage), None),
            failure=failure,
            held_back=HeldBack.of(log, held_back_offsets),
        )


class CompactionTotals(NamedTuple):
    """What compaction does to several partitions.

    Attributes
    ----------
    partitions, cleaned_partitions
        How many there are, and how many are cleaned.
    records, removed_bytes
        What is removed.
    size_bytes
        Of all ``.log`` files afterwards.
    is_complete
        Whether all are complete.
    invalid_records
        How many of the records had no key.
    """

    partitions: int
    cleaned_partitions: int
    records: int
    removed_bytes: int
    size_bytes: int
    is_complete: bool
    invalid_records: int = 0

    @classmethod
    def of(cls, partitions: Iterable[PartitionCompaction]) -> CompactionTotals:
        """Add partitions up."""
        partitions = list(partitions)
        return cls(
            len(partitions),
            sum(each.rounds > 0 for each in partitions),
            sum(each.records for each in partitions),
            sum(each.removed_bytes for each in partitions),
            sum(each.size_bytes for each in partitions),
            all(each.is_complete for each in partitions),
            sum(each.invalid_records for each in partitions),
        )


@dataclass(frozen=True, slots=True)
class CompactionSummary(CleanupSummary[PartitionCompaction, CompactionTotals]):
    """The compacted partitions of a log directory, and what was removed from them.

    Attributes
    ----------
    partitions
        Those of compacted topics, sorted.
    now_ms
        The time that lags and delete horizons were counted to.
    is_dry_run
        Whether nothing has been changed.
    configs
        By topic: the properties that decided, and where each value comes from.
    """

    json_names: ClassVar[Mapping[str, str | None]] = {
        "segments": "removedSegments",
        "records": "removedRecords",
    }

    @staticmethod
    def _added_up(partitions: Sequence[PartitionCompaction]) -> CompactionTotals:
        return CompactionTotals.of(partitions)


# The compacted logs of a directory: owned, or opened for a dry run, which locks nothing.
#
# For a dry run they are owned on an overlay (`pylog.files.overlay`), recovery included.


class CompactedTopics(NamedTuple):
    """What a compaction is told and has found out before it opens the log directory."""

    path: str
    configs: dict[str, LogConfig]  # of compacted topics
    entries: dict[str, tuple[ConfigEntry, ...]]
    cleaner_config: CleanerConfig
    context: LogContext
    now_ms: int


def compacted_topics(
    directory: str | os.PathLike[str],
    topics: Iterable[str] | None,
    server_properties: ServerProperties | None,
    config: Mapping[str, str] | None,
    now_ms: int | None,
    context: LogContext | None,
) -> CompactedTopics:
    """Return what is to be compacted; see `compact` for the parameters and errors.

    With a time given, all that is counted is counted to it. Producers expire by the clock while
    logs are loaded: Kafka has one time for all, too.
    """
    path = writable_log_directory(directory, must_exist=True)
    topics = topics if topics is None else list(topics)
    known = known_topic_configs(
        path, topics, cleanup=COMPACT, server_properties=server_properties, properties=config
    )
    for topic in topics or ():
        if not known.configs[topic].is_compact:
            policy = ",".join(sorted(known.configs[topic].cleanup_policy)) or "empty"
            msg = f"topic {topic} is not compacted: its cleanup.policy is {policy}"
            raise ValueError(msg)
    context = context or LogContext(failures=LogDirFailureChannel(is_logged=False))
    if now_ms is None:
        now_ms = context.clock.milliseconds()
    else:
        context = dataclasses.replace(context, clock=StoppedClock(now_ms))
    settings = CleanerConfig() if server_properties is None else server_properties.cleaner_config
    return CompactedTopics(
        path,
        {topic: each for topic, each in known.configs.items() if each.is_compact},
        known.entries,
        dataclasses.replace(settings, threads=1),
        context,
        now_ms,
    )


def closed_partitions(path: str, opened: ChosenLogs) -> list[PartitionCompaction]:
    """Return what is to be said of the logs of a log directory that stay closed."""
    return [
        PartitionCompaction(
            topic_partition=each,
            size_bytes=size_of_log(path, each),
            is_complete=False,
            failure=str(error),
        )
        for each, error in opened.find_closed().items()
    ]


class CompactionProgress:
    """Turns what single rounds say into bytes of the whole. One thread.

    What the callback raises ends the round that is under way as if it were aborted, so that its log
    is as it was; `stopped_by` has it then.
    """

    def __init__(self, callback: Callable[[int, int], object] | None) -> None:
        self.stopped_by: BaseException | None = None
        self.total_bytes = 0
        self._callback = callback
        self._start_bytes = 0
        self._done_bytes = 0
        self._map_bytes = 0

    def begin_round(self, map_bytes: int) -> None:
        """Note how many bytes the first phase of the next round reads."""
        self._map_bytes = map_bytes

    def end_round(self, size_bytes: int) -> None:
        """Note that a round is done that read so many bytes."""
        self._done_bytes += size_bytes

    def end_log(self, size_bytes: int) -> None:
        """Note that a log is done that counted as so many bytes, however much was read."""
        self._start_bytes += size_bytes
        self._done_bytes = self._start_bytes
        if self.stopped_by is None:
            self._tell(self._done_bytes)

    def report(self, progress: CleanerProgress) -> None:
        """Say how far it is."""
        done = self._done_bytes + progress.bytes_done
        if progress.phase == "copy":
            done += self._map_bytes
        self._tell(done)
        if self.stopped_by is not None:
            raise CleaningAbortedError from self.stopped_by

    def _tell(self, done: int) -> None:
        if self._callback is None:
            return
        try:
            self._callback(done, max(done, self.total_bytes))
        except BaseException as error:  # noqa: BLE001 - it is raised when the run has ended
            self.stopped_by = error


class Compaction:
    """Cleans logs that nobody else has open, one after the other, until nothing is dirty.

    One thread. Source: LogCleaner.CleanerThread (Kafka 4.3), which cleans the filthiest log for one
    round.
    """

    def __init__(
        self,
        cleaner: Cleaner,
        manager: LogCleanerManager,
        progress: CompactionProgress,
        now_ms: int,
        *,
        is_only_due: bool,
        is_dry_run: bool,
    ) -> None:
        self._cleaner = cleaner
        self._manager = manager
        self._progress = progress
        self._now_ms = now_ms
        self._is_only_due = is_only_due
        self._is_dry_run = is_dry_run

    def compact(self, logs: Iterable[UnifiedLog], *, rolls: bool) -> Iterator[PartitionCompaction]:
        """Clean logs in their order; those that come after the progress was stopped are left."""
        for log in logs:
            if self._progress.stopped_by is not None:
                return
            size_bytes = log.size_bytes
            yield self._compact(log, rolls=rolls)
            self._progress.end_log(2 * size_bytes)

    def _compact(self, log: UnifiedLog, *, rolls: bool) -> PartitionCompaction:
        rounds: list[CleanerStats] = []
        first_dirty_offset: int | None = None
        is_complete, failure, held_back_offsets, not_cleaned = False, None, None, None
        try:
            if rolls and log.local_log.segments.active_segment.size_bytes:
                log.roll()
            while not is_complete:
                candidate = self._manager.candidate(log, self._now_ms)
                each = candidate.log_to_clean
                first_dirty_offset = each.first_dirty_offset
                is_complete = each.cleanable_bytes == 0 or (
                    self._is_only_due and not candidate.is_due
                )
                if is_complete and not rounds:
                    not_cleaned = self._manager.why_not_cleaned(candidate, self._now_ms)
                if is_complete or (rounds and (self._is_only_due or self._is_dry_run)):
                    break
                self._progress.begin_round(each.cleanable_bytes)
                result = self._cleaner.clean(each, self._now_ms)
                rounds.append(result.stats)
                self._progress.end_round(each.cleanable_bytes + result.stats.bytes_read)
                self._manager.update_checkpoint(log, result.next_dirty_offset)
                if result.next_dirty_offset <= each.first_dirty_offset:
                    break  # nothing that it could get on with
            held_back_offsets = self._manager.held_back_offsets(log, self._now_ms)
        except CleaningAbortedError:
            pass
        except Exception as error:
            if isinstance(error, KafkaStorageError) and not self._is_dry_run:
                raise
            # Our own errors say what it is, of others their kind is a part of it.
            kind = "" if isinstance(error, LogStorageError) else f"{type(error).__name__}: "
            failure = f"{kind}{error}"
        return PartitionCompaction.of(
            log,
            rounds,
            first_dirty_offset=first_dirty_offset,
            is_dry_run=self._is_dry_run,
            is_complete=is_complete,
            failure=failure,
            held_back_offsets=held_back_offsets,
            not_cleaned=not_cleaned,
        )


def compact(  # noqa: PLR0913 - what it is done to, by which configuration, and how
    directory: str | os.PathLike[str],
    *,
    topics: Iterable[str] | None = None,
    server_properties: ServerProperties | None = None,
    config: Mapping[str, str] | None = None,
    now_ms: int | None = None,
    once: bool = False,
    roll: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
    context: LogContext | None = None,
    high_watermark: str = "checkpoint",
    recover_as_broker: bool = False,
) -> CompactionSummary:
    """Clean the compacted topics of a log directory as a broker's cleaner does; return what went.

    Of all records with the same key the last one stays. What else stays, and for how long, is as in
    Kafka: records without a value for ``delete.retention.ms`` after they were first cleaned,
    transactions' markers as long, the last batch of each producer, all that is younger than
    ``min.compaction.lag.ms``, what follows the last stable offset, and the active segment.
    Records without a key go, whatever their age: they are counted as `invalid_records`.
    Offsets do not change. Nothing is removed for its age or for a log's size; that is
    `apply_retention`.

    By default every log is cleaned that has something to clean, whatever its dirty ratio, until it
    has nothing more: in several rounds if the keys do not fit into
    ``log.cleaner.dedupe.buffer.size`` bytes, which bounds the memory.

    What topics are configured to is found as in `pylog.apply_retention`.

    Parameters
    ----------
    directory
        A log directory that no broker has open. For a dry run, one may have.
    topics
        Which; all compacted ones of the directory if None.
    server_properties
        A broker's file: what topics are configured to that have no properties of their own, and
        ``log.cleaner.*``.
    config
        Properties that win over all others, for this run. Of the topics that are named; if none
        is, of all but Kafka's internal ones.
    now_ms
        The time that lags and delete horizons are counted to; now if None.
    once
        Clean only the logs that a broker would clean now, for one round each: those with a dirty
        ratio above ``min.cleanable.dirty.ratio``, or that have waited for longer than
        ``max.compaction.lag.ms``.
    roll
        Begin a new segment first, so that the one that was active can be cleaned.
    dry_run
        Only say what would be removed, by reading all that would be read. Nothing is changed or
        locked. Where a log would need several rounds it is what the first one removes.
    progress
        Called after each piece of work with the bytes that are read and those that are to be. What
        it raises ends the run between two steps: the log that is being cleaned is as it was, or as
        after some of its segments were, the directory is closed in order, and `compact` raises it.
    context
        The clock, the disk and the background work; the real ones if None. With ``now_ms``, the
        clock stands still at that time.
    high_watermark
        Where the high watermark of each log starts: as on a broker (``checkpoint``), or, for a
        directory whose cluster is gone, at the log's end (``log-end``). Nothing is cleaned from the
        last stable offset on, which is never above it.
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does. Otherwise a log that would
        lose some stays as it is, and is a `failure`.

    Returns
    -------
    CompactionSummary
        All partitions of compacted topics. One that cannot be cleaned, because of damage, has a
        `failure`, and the others are done.

    Raises
    ------
    UnknownTopicConfigError
        Of some topics nobody has said what they are configured to, or the cluster's metadata is
        there and cannot be relied upon; nothing has been changed.
    UnknownTopicOrPartitionError
        The directory has no such topic; nothing has been changed.
    ValueError
        A property is unknown or has no such value, or a topic that is named is not compacted.
    LogLockedError
        A broker, or another program, has the directory open.
    KafkaStorageError
        The disk failed; what was cleaned before is.
    LogStorageError
        The directory is not one that can be written to, or a log in it cannot be opened.

    Examples
    --------
    >>> rows = [{"key": "anna", "value": "10"}, {"key": "anna", "value": "30"}]
    >>> config = {"cleanup.policy": "compact"}
    >>> summary = pylog.write_topic("logs", "accounts", rows, config=config)
    >>> pylog.compact("logs", topics=["accounts"], roll=True).totals.records
    1
    """
    chosen = compacted_topics(directory, topics, server_properties, config, now_ms, context)
    reported = CompactionProgress(progress)
    cleaner = Cleaner(
        chosen.cleaner_config,
        chosen.context.clock,
        throttle=Throttler(chosen.cleaner_config.io_max_bytes_per_second).throttle,
        progress=reported.report,
        # Nobody else reads them, so that the files of old segments need not wait.
        begin_segments=CountedSegments
        if dry_run
        else partial(CleanedSegments, keeps_old_files=False),
    )
    with own_logs(
        chosen.path,
        chosen.configs,
        server_properties,
        chosen.context,
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
        is_dry_run=dry_run,
    ) as opened:
        compaction = Compaction(
            cleaner,
            LogCleanerManager(dict, opened.checkpoints, opened.failures),  # it chooses none
            reported,
            chosen.now_ms,
            is_only_due=once,
            is_dry_run=dry_run,
        )
        reported.total_bytes = 2 * sum(
            size_of_log(chosen.path, name.topic_partition)
            for _, name in partition_directories(chosen.path)
            if not name.state and name.topic_partition.topic in chosen.configs
        )
        done = list(compaction.compact(opened.visit(), rolls=roll))
        done += closed_partitions(chosen.path, opened)
        done.sort(key=lambda each: each.topic_partition)
    if reported.stopped_by is not None:
        raise reported.stopped_by
    return CompactionSummary(tuple(done), chosen.now_ms, dry_run, chosen.entries)
