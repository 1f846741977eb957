"""`CompactionJob`: compaction in many processes, by whatever runs tasks, such as Spark.

The one who makes the job, the driver, owns the log directory from the plan to the end. A task
takes no lock and changes no log: it reads segments, and writes those that are to take their place
as staged files (`pylog.files.staged_segments`). `CompactionJob.commit` gives these their names as
``.cleaned`` files and has each log replace its segments, group by group, as a cleaner does
(`pylog.log.segment_replacement`); then the checkpoint says how far the log is clean. So at any
moment, also after a crash, each group of segments is the old one or the new one.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from pylog.cleaner.cleaning_task import CleaningTask
from pylog.cleaner.large_cleaning import LargeCleaning
from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.cleaner.log_snapshot import LogSnapshot
from pylog.cleaner.offset_map import OffsetMap
from pylog.errors import KafkaStorageError, LogStorageError
from pylog.files.file_names import CLEANED_FILE_SUFFIX, SEGMENT_FILE_SUFFIXES, SegmentTarget
from pylog.files.staged_segments import new_job_token, remove_staged_segments
from pylog.writing.compaction import (
    CompactionSummary,
    PartitionCompaction,
    closed_partitions,
    compacted_topics,
)
from pylog.writing.owned_directory import own_logs

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from pylog.cleaner.cleanable_offsets import NotCleaned
    from pylog.cleaner.log_snapshot import StagedCleaning, StagedGroup
    from pylog.config.server_properties import ServerProperties
    from pylog.log.log_context import LogContext
    from pylog.log.log_segment import LogSegment
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.writing.owned_directory import ChosenLogs


class CompactionJob:
    """One compaction of a log directory; a context manager, within which the directory is owned.

    What it cleans, and what it leaves alone, is as in `pylog.compact`, whose parameters it has; but
    each partition is cleaned in one pass, whether or not its keys fit into
    ``log.cleaner.dedupe.buffer.size``.

    Parameters
    ----------
    directory
        A log directory, which all tasks see under the same path.
    topics, server_properties, config, now_ms, once, dry_run, context
        As in `pylog.compact`.
    high_watermark, recover_as_broker
        As in `pylog.compact`.

    Attributes
    ----------
    tasks
        One for each partition that is to be cleaned, the largest first; known within the block.

    Raises
    ------
    UnknownTopicConfigError, UnknownTopicOrPartitionError, LogLockedError, LogStorageError
        As of `pylog.compact`; entering the block may raise them, too.
    ValueError
        A property is unknown or has no such value, or a topic that is named is not compacted.

    Examples
    --------
    >>> rows = [{"key": "anna", "value": "10", "timestamp": day * 86_400_000} for day in range(3)]
    >>> config = {"cleanup.policy": "compact", "segment.ms": "1"}
    >>> summary = pylog.write_topic("logs", "accounts", rows, batch_size=1, config=config)
    >>> with pylog.jobs.CompactionJob("logs") as job:
    ...     summary = job.commit([task.run() for task in job.tasks])
    >>> summary.totals.records
    1
    """

    def __init__(  # noqa: PLR0913 - as `pylog.compact`
        self,
        directory: str | os.PathLike[str],
        *,
        topics: Iterable[str] | None = None,
        server_properties: ServerProperties | None = None,
        config: Mapping[str, str] | None = None,
        now_ms: int | None = None,
        once: bool = False,
        dry_run: bool = False,
        context: LogContext | None = None,
        high_watermark: str = "checkpoint",
        recover_as_broker: bool = False,
    ) -> None:
        chosen = compacted_topics(directory, topics, server_properties, config, now_ms, context)
        self._chosen = chosen
        self.directory = chosen.path
        settings = chosen.cleaner_config
        OffsetMap.of(settings)  # has room
        self._server_properties = server_properties
        self._high_watermark, self._recover_as_broker = high_watermark, recover_as_broker
        self._is_once, self._is_dry_run = once, dry_run
        self._token = new_job_token()
        self._stack = ExitStack()
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._manager: LogCleanerManager
        self._closed: list[PartitionCompaction] = []
        self._held_back: dict[TopicPartition, tuple[int, int] | None] = {}
        self._failed: dict[TopicPartition, str] = {}
        self._clean_up_to: dict[TopicPartition, int] = {}
        self._incomplete: set[TopicPartition] = set()
        self._not_cleaned: dict[TopicPartition, NotCleaned] = {}
        self.tasks: tuple[CleaningTask, ...] = ()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            opened = stack.enter_context(
                own_logs(
                    self.directory,
                    self._chosen.configs,
                    self._server_properties,
                    self._chosen.context,
                    high_watermark=self._high_watermark,
                    recover_as_broker=self._recover_as_broker,
                    is_dry_run=self._is_dry_run,
                    opens_all=True,
                )
            )
            self._plan(opened)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if not self._is_dry_run and not isinstance(error, KafkaStorageError):
                remove_staged_segments(self.directory, self._chosen.context.io)

    def _plan(self, opened: ChosenLogs) -> None:
        self._logs = {log.topic_partition: log for log in opened.visit()}
        self._closed = closed_partitions(self.directory, opened)
        self._manager = LogCleanerManager(lambda: self._logs, opened.checkpoints, opened.failures)
        tasks = []
        for topic_partition, log in self._logs.items():
            try:
                task = self._task(log)
            except KafkaStorageError:
                raise
            except LogStorageError as error:  # the others can be cleaned
                self._failed[topic_partition] = str(error)
                continue
            if task is not None:
                tasks.append(task)
        self.tasks = tuple(sorted(tasks, key=lambda task: -task.size_bytes))

    def _task(self, log: UnifiedLog) -> CleaningTask | None:
        """Return what there is to do for a log; None if nothing."""
        now_ms = self._chosen.now_ms
        candidate = self._manager.candidate(log, now_ms)
        self._held_back[log.topic_partition] = self._manager.held_back_offsets(log, now_ms)
        each = candidate.log_to_clean
        self._clean_up_to[log.topic_partition] = each.first_dirty_offset
        if each.cleanable_bytes == 0 or (self._is_once and not candidate.is_due):
            why = self._manager.why_not_cleaned(candidate, now_ms)
            self._not_cleaned[log.topic_partition] = why
            return None
        self._incomplete.add(log.topic_partition)
        return CleaningTask(
            snapshot=LogSnapshot.of(each),
            config=self._chosen.cleaner_config,
            now_ms=now_ms,
            job_token=self._token,
            is_dry_run=self._is_dry_run,
            size_bytes=each.cleanable_bytes + each.total_bytes,
        )

    def large(self, staged: Iterable[StagedCleaning]) -> Iterator[LargeCleaning]:
        """Yield what cleans those logs whose keys did not fit into the memory of a task.

        What `LargeCleaningPlan.merge` returns takes the place of what the task has said. A log that
        turns out to be damaged yields nothing, and needs nothing.
        """
        tasks = {task.snapshot.topic_partition: task for task in self.tasks}
        for each in staged:
            if each.keys_fit:
                continue
            try:
                yield LargeCleaning(tasks[each.topic_partition])
            except KafkaStorageError:
                raise
            except LogStorageError as error:
                self._failed[each.topic_partition] = str(error)

    def commit(self, staged: Iterable[StagedCleaning]) -> CompactionSummary:
        """Put what tasks have staged in the place of what was there; return what went.

        Parameters
        ----------
        staged
            One for each task, whose keys did fit, or that `large` has put right; of tasks that were
            run several times, any.

        Raises
        ------
        ValueError
            One is missing, or the keys of one did not fit. Nothing has been changed.
        LogStorageError
            A staged file is not there, or not as long as it was: nothing has been changed.
        KafkaStorageError
            The disk failed. Each log is as it was, or as it is to be, or so in its first segments.
        """
        by_partition = {each.topic_partition: each for each in staged}
        self._ensure_all_there(by_partition)
        for topic_partition, each in sorted(by_partition.items()):
            if each.failure is not None:
                self._failed[topic_partition] = each.failure
            if topic_partition in self._failed:
                continue
            log = self._logs[topic_partition]
            for group in each.groups:
                self._replace(log, group)
            self._manager.update_checkpoint(log, each.next_dirty_offset)
            self._clean_up_to[topic_partition] = each.next_dirty_offset
            self._incomplete.discard(topic_partition)
        return CompactionSummary(
            tuple(
                sorted(
                    [*self._closed, *self._summaries(by_partition)],
                    key=lambda each: each.topic_partition,
                )
            ),
            self._chosen.now_ms,
            self._is_dry_run,
            self._chosen.entries,
        )

    def _ensure_all_there(self, staged: Mapping[TopicPartition, StagedCleaning]) -> None:
        expected = {task.snapshot.topic_partition for task in self.tasks}
        if set(staged) | set(self._failed) < expected:
            msg = f"staged were {sorted(staged)}, expected {sorted(expected)}"
            raise ValueError(msg)
        for topic_partition, each in staged.items():
            if not each.keys_fit and topic_partition not in self._failed:
                msg = f"the keys of {each.topic_partition} did not fit: it needs a LargeCleaning"
                raise ValueError(msg)
            for group in each.groups:
                for segment in group.new:
                    segment.ensure_there()

    def _replace(self, log: UnifiedLog, group: StagedGroup) -> None:
        io = self._chosen.context.io
        new: list[LogSegment] = []
        for staged in group.new:
            target = SegmentTarget(log.directory, staged.target.base_offset, CLEANED_FILE_SUFFIX)
            for suffix in SEGMENT_FILE_SUFFIXES:
                if suffix in staged.sizes_bytes:
                    io.replace(staged.target.path(suffix), target.path(suffix))
                else:
                    io.remove(target.path(suffix), missing_ok=True)
            new.append(self._chosen.context.open_segment(target, log.config))
        bases = {base_offset for base_offset, _ in group.old}
        old = [segment for segment in log.segments if segment.base_offset in bases]
        log.replace_segments(new, old, is_async=False)

    def _summaries(
        self, staged: Mapping[TopicPartition, StagedCleaning]
    ) -> Iterator[PartitionCompaction]:
        for topic_partition, log in self._logs.items():
            each = staged.get(topic_partition)
            failure = self._failed.get(topic_partition)
            yield PartitionCompaction.of(
                log,
                [] if each is None or failure is not None else [each.stats],
                first_dirty_offset=self._clean_up_to.get(topic_partition),
                is_dry_run=self._is_dry_run,
                is_complete=topic_partition not in self._incomplete and failure is None,
                failure=failure,
                held_back_offsets=self._held_back.get(topic_partition),
                not_cleaned=self._not_cleaned.get(topic_partition),
            )
