"""All logs of one or more log directories: opened, found, made, flushed, checkpointed, closed.

Locks, in the order in which they are taken. A thread that holds one takes none that stands above:

1. the manager's lock of creation and deletion: for a log that is made or deleted, a topic's
   configuration that is stored, the beginning of a shutdown;
2. a log's locks: that of its flusher, then its own (`pylog.log.unified_log`); or the cleaner's
   lock of its states (`pylog.cleaner.log_cleaner_manager`);
3. a log directory's locks, while a checkpoint of it is written
   (`pylog.log.owned_log_directory`, `pylog.files.checkpoint_file`);
4. the lock of the maps of logs (`pylog.log.owned_logs`), held for a look or an entry only.

So a truncation, which holds its log's lock, may write checkpoints (2, 3, 4), and the deletion of a
log may wait until a change of it is done (1, 2).

Whoever waits for the cleaner to let go of a log holds none but the first, which that never takes.

Source: LogManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from pylog.config import LogConfig, LogManagerConfig, RecoveryMode
from pylog.config.stored_topic_configs import TopicConfigs
from pylog.errors import KafkaStorageError, LogStorageError, UnknownTopicOrPartitionError
from pylog.files.commit_manifest import read_manifest, write_manifest
from pylog.files.file_names import ensure_valid_topic, ensure_valid_topic_partition
from pylog.files.overlay import Overlay
from pylog.files.partition_metadata import new_topic_id
from pylog.locations import printable_location
from pylog.log.log_context import LogContext
from pylog.log.log_maintenance import LogMaintenance
from pylog.log.metrics import LogManagerMetrics
from pylog.log.owned_log_directory import own_directories
from pylog.log.owned_logs import OwnedLogs
from pylog.model import TopicPartition
from pylog.staged_commit.roll_forward import RollForward

if TYPE_CHECKING:
    import os
    import uuid
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from pylog.files.checkpoint_file import IsOnlyReplica
    from pylog.files.commit_manifest import Manifest, NewTopic
    from pylog.log.log_loader import LogLoading
    from pylog.log.owned_log_directory import OwnedLogDirectory
    from pylog.log.unified_log import UnifiedLog

    ClosedLogs = Mapping[TopicPartition, LogStorageError]


_LOGGER = logging.getLogger(__name__)


class LogManager:
    """Owner of log directories, from `startup` to `shutdown`; a context manager.

    Threads: any number may use it. A child that was forked after the start may read. What would
    change something raises `LogLockedError` there, also the end of the ``with`` block.

    Parameters
    ----------
    directories
        Log directories, local. Made where they are not there.
    config, topic_configs
        Of all topics, and of single ones; the latter win over what is stored in the directories
        (`store_topic_config`), and that over the former. Without ``config``, topics of which
        nothing is stored have Kafka's defaults: see `unconfigured_topics`.
    manager_config, context
        Schedules and limits; time, disk and background work, the real ones if None.
    broker_epoch
        Written into the clean shutdown marker; the one that was found there if None.
    runs_retention
        Whether to remove in the background what logs no longer keep, as a broker does.
    is_only_replica
        Tells of a partition that no other broker has it, by the cluster's metadata for example: the
        high watermark then starts at the log's end (`pylog.files.checkpoint_file`). Asked only of
        logs that end above their high watermark.
    recovery_mode
        What recovery may drop.
    before_changes
        Called at the start with the logs that will be left closed, and why, before anything is
        changed. What it raises ends the start.
    opens_logs
        Whether all logs are open between start and shutdown. Otherwise none is, and `visit` opens
        one after the other: for thousands of logs, of which each is looked at once.
    is_seen
        Tells the partitions whose logs there are; see `rehearsal`.

    Attributes
    ----------
    context
        Time, disk and background work of the logs.
    cleaner, cleaner_checkpoints
        The cleaner of the logs, if one is registered; it ends with the manager. Up to where logs
        are clean, by log directory.

    Examples
    --------
    >>> batch = pylog.logs.RecordBatchBuilder()
    >>> batch.append(1_730_999_991_709, b"k1", b"v1")
    >>> with pylog.logs.LogManager(["logs"]) as manager:
    ...     log = manager.get_or_create_log(pylog.TopicPartition("orders", 0))
    ...     print(log.append_as_leader(batch.build()).last_offset)
    0
    """

    def __init__(  # noqa: PLR0913 - all that a broker is configured to
        self,
        directories: Sequence[str | os.PathLike[str]],
        config: LogConfig | None = None,
        *,
        topic_configs: Mapping[str, LogConfig] | None = None,
        manager_config: LogManagerConfig | None = None,
        context: LogContext | None = None,
        broker_epoch: int | None = None,
        runs_retention: bool = False,
        is_only_replica: IsOnlyReplica = lambda _: False,
        recovery_mode: RecoveryMode = RecoveryMode.KEEP_INTACT,
        before_changes: Callable[[ClosedLogs], object] = lambda _: None,
        opens_logs: bool = True,
        is_seen: Callable[[TopicPartition], bool] = lambda _: True,
    ) -> None:
        self._twin = partial(
            LogManager,
            config=config,
            topic_configs=topic_configs,
            manager_config=manager_config,
            is_only_replica=is_only_replica,
            recovery_mode=recovery_mode,
            before_changes=before_changes,
        )
        self.manager_config = LogManagerConfig() if manager_config is None else manager_config
        self.context = LogContext() if context is None else context
        self._broker_epoch = broker_epoch
        self._configs = TopicConfigs(config, topic_configs)
        self.config = self._configs.default
        self._logs = OwnedLogs(
            self._configs, self.manager_config, self.context, recovery_mode, is_seen
        )
        self.cleaner = self._logs.cleaner
        self._directories = own_directories(directories, self.context, self._logs, is_only_replica)
        self.cleaner_checkpoints = {
            each.path: each.cleaner_checkpoint for each in self._directories
        }
        self._maintenance = LogMaintenance(
            self._directories,
            self._logs,
            self.manager_config,
            self.context,
            self._configs.unconfigured,
        )
        self._runs_retention = runs_retention
        self._before_changes = before_changes
        self._opens_logs = opens_logs
        self._creation_or_deletion_lock = threading.RLock()
        self._is_open = False

    def startup(self) -> Self:
        """Lock all directories, load all logs, begin the background work.

        Raises
        ------
        LogLockedError
            Another process holds a directory; nothing has been changed.
        LogDirectoryError
            A path is a topic-partition directory, lies in one or in another log directory, or
            holds a log directory; nothing has been changed.
        UnexpectedFileError
            A directory holds something that is not Kafka's, a partition twice, or a symbolic link
            in the place of a partition or of a log's file.
        CorruptCheckpointError, KafkaStorageError
            The stored configurations of topics cannot be read; the disk failed.
        """
        opened: list[OwnedLogDirectory] = []
        try:
            for directory in self._directories:
                directory.open()
                opened.append(directory)
            self._configs.load(directory.path for directory in self._directories)
            for directory in self._directories:
                self._logs.try_all(directory)
                self._ensure_commit_can_complete(directory)
            self._before_changes(self.closed_logs)
            for directory in self._directories:
                directory.begin()
            for directory in self._directories:
                if self._opens_logs or read_manifest(directory.path) is not None:
                    self._logs.load_all(directory)
                else:
                    directory.cleaner_checkpoint.hold_back()
                    self._logs.rest_all(directory)
        except BaseException:
            # A marker that was there still is, unless loading had begun.
            self._let_go(opened)
            raise
        self._is_open = True
        self.context.scheduler.startup()
        try:
            for directory in self._directories:
                RollForward(_LogsOfDirectory(self, directory), self.context.io).complete_pending()
        except BaseException:
            self.abandon()
            raise
        if self._opens_logs:
            self._maintenance.schedule(runs_retention=self._runs_retention)
        return self

    def visit(self, is_chosen: Callable[[TopicPartition], bool]) -> Iterator[UnifiedLog]:
        """Yield the logs that are chosen, of a manager that does not open its logs.

        Each is open until the next one is asked for, and closed in order then.
        """
        for directory in self._directories:
            for log in self._logs.current_in(directory.path):  # those that a commit was pending for
                if is_chosen(log.topic_partition):
                    yield log
            yield from self._logs.visit(directory, is_chosen)

    @property
    def is_open(self) -> bool:
        """Whether the directories are owned."""
        return self._is_open

    @contextmanager
    def rehearsal(self, is_seen: Callable[[TopicPartition], bool]) -> Iterator[LogManager]:
        """Give a twin of a manager that is not started yet, on an overlay, with some of its logs.

        Whatever is done with it happens to no file. So what will be refused is known before the
        directories are owned. Logs that a commit is under way to are there in any case.
        """
        manifests = [read_manifest(each.path) for each in self._directories]
        pending = {
            each.topic_partition
            for manifest in manifests
            if manifest is not None
            for each in manifest.partitions
        }
        with Overlay(is_quiet=True) as overlay:
            paths = [overlay.path(each.path) for each in self._directories]
            context = replace(self.context, io=overlay)
            with self._twin(
                paths, context=context, is_seen=lambda each: is_seen(each) or each in pending
            ) as twin:
                yield twin

    def _ensure_commit_can_complete(self, directory: OwnedLogDirectory) -> None:
        """Raise if a commit is under way to a log that stays closed."""
        manifest = read_manifest(directory.path)
        for each in () if manifest is None else manifest.partitions:
            if each.topic_partition in self.closed_logs:
                raise self.closed_logs[each.topic_partition]

    def carry_out(self, manifest: Manifest) -> None:
        """Publish the manifest of a commit, and append what it announces; all is on disk then.

        For managers of one log directory, in which nothing is pending: `startup` has completed
        what was. Errors as of `pylog.staged_commit.roll_forward.RollForward.carry_out`.
        """
        self._ensure_own_process()
        [directory] = self._directories
        with self._creation_or_deletion_lock:
            self._ensure_open()
            write_manifest(self.context.io, directory.path, manifest)
            RollForward(_LogsOfDirectory(self, directory), self.context.io).carry_out(manifest)

    def _ensure_topic_in(self, directory: OwnedLogDirectory, topic: NewTopic) -> None:
        """Make the partitions of a topic that are not there, in that directory."""
        if not any(each.topic == topic.topic for each in self.logs):
            self.store_topic_config(topic.topic, topic.properties)
        with self._creation_or_deletion_lock:
            self._ensure_open()
            for partition in range(topic.partitions):
                place = TopicPartition(topic.topic, partition)
                self._ensure_not_closed(place)
                if self._logs.find(place) is None:
                    self._logs.create(directory, place, topic.topic_id)

    def _let_go(self, directories: Sequence[OwnedLogDirectory]) -> None:
        """Give files and locks back, without a marker."""
        for log in self._logs.current_and_future():
            log.close_handlers()
        for directory in directories:
            directory.close(is_clean=False, broker_epoch=self._broker_epoch)

    def shutdown(self) -> None:
        """Flush and close all logs, write all checkpoints and the clean shutdown markers.

        A directory in which something fails gets no marker, so its next owner recovers it; the
        first failure is raised in the end. A forked child gets `LogLockedError` and does nothing.
        """
        self._shut_down(keeps_marker=False)

    def _shut_down(self, *, keeps_marker: bool) -> None:
        """Shut down; ``keeps_marker`` says whether a log that stays closed keeps the marker away.

        A command that is refused because of such a log leaves the marker as it was.
        """
        if self._is_open:
            self._ensure_own_process()
        with self._creation_or_deletion_lock:
            if not self._is_open:
                return
            self._is_open = False
        failures: list[LogStorageError] = []
        self.cleaner.shutdown()
        self.context.scheduler.shutdown()
        for directory in self._directories:
            try:
                directory.shut_down(
                    self._logs.all_in(directory.path),
                    self._broker_epoch,
                    keeps_marker=keeps_marker,
                )
            except LogStorageError as error:
                failures.append(error)
        self._logs.clear()
        if failures:
            raise failures[0]

    def abandon(self) -> None:
        """Let go of everything as a crash would: no flush, no marker; only the lock is given back.

        For whoever has to hand a directory on after its disk failed. A forked child, which has no
        lock to give back, does nothing.
        """
        if not self.context.io.is_own_process:
            self._is_open = False
            return
        with self._creation_or_deletion_lock:
            self._is_open = False
        self.cleaner.shutdown()
        self.context.scheduler.shutdown()
        self._let_go(self._directories)

    def __enter__(self) -> Self:
        return self.startup()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            # It may have come in the middle of a write: the next owner has to look at the logs.
            self.abandon()
            return
        try:
            is_refusal = any(error is each for each in self.closed_logs.values())
            self._shut_down(keeps_marker=is_refusal)
        except LogStorageError as failure:
            if error is None:
                raise
            # What went wrong first is what the caller has to see.
            if failure.__cause__ is not error:
                error.add_note(f"closing the log directories failed, too: {failure}")

    @property
    def loadings(self) -> list[LogLoading]:
        """What the start-up did, a log each: what was recovered, how much was cut off."""
        return self._logs.loadings

    @property
    def closed_logs(self) -> ClosedLogs:
        """The partitions whose logs were left closed and unchanged at the start, and why; a copy.

        Recovery would drop intact batches, or something in the log can be neither used nor
        repaired. The other logs of a manager are open.
        """
        return dict(self._logs.closed)

    @property
    def logs(self) -> dict[TopicPartition, UnifiedLog]:
        """All logs by partition, sorted; a copy."""
        return self._logs.by_partition()

    @property
    def topics(self) -> set[str]:
        """The topics of all partitions in the directories, whether or not their logs are open."""
        return self._logs.topics()

    def metrics(self) -> LogManagerMetrics:
        """Return sizes, offsets and counts of all logs as they are now; takes no lock of a log."""
        offline = tuple(each.path for each in self._directories if not each.is_online)
        return LogManagerMetrics(
            logs={topic_partition: log.metrics() for topic_partition, log in self.logs.items()},
            offline_log_directories=offline,
            cleaner=self.cleaner.metrics(),
        )

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog:
        """Return a log.

        `UnknownTopicOrPartitionError` if there is none; if it was left closed, what that is for.
        """
        log = self._logs.find(topic_partition)
        if log is None:
            self._ensure_not_closed(topic_partition)
            where = ", ".join(printable_location(each.path) for each in self._directories)
            near = self._logs.nearest_to(topic_partition)
            msg = f"there is no log of {topic_partition} in {where}{near}"
            raise UnknownTopicOrPartitionError(msg)
        return log

    def get_or_create_log(
        self, topic_partition: TopicPartition, topic_id: uuid.UUID | None = None
    ) -> UnifiedLog:
        """Return a log; if there is none, make it in the directory with the fewest logs.

        A new one gets ``topic_id``, a random one if None, none if it is zero (a topic from before
        Kafka 2.8); all partitions of a topic must have the same. ``ValueError`` if Kafka allows no
        such topic or partition; `UnexpectedFileError` if a symbolic link has the name of its
        directory; `LogLockedError` in a forked child; `KafkaStorageError` if no directory is online
        or the disk failed.
        """
        log = self._logs.find(topic_partition)
        if log is not None:
            return log
        ensure_valid_topic_partition(topic_partition)
        self._ensure_own_process()
        with self._creation_or_deletion_lock:
            log = self._logs.find(topic_partition)  # another thread may have been faster
            if log is None:
                self._ensure_open()
                self._ensure_not_closed(topic_partition)
                directory = self._logs.directory_with_fewest(self._directories)
                log = self._logs.create(directory, topic_partition, topic_id or new_topic_id())
        return log

    def _ensure_not_closed(self, topic_partition: TopicPartition) -> None:
        """Raise why a log was left closed at the start, if it was."""
        if topic_partition in self._logs.closed:
            raise self._logs.closed[topic_partition]

    def delete_log(self, topic_partition: TopicPartition, *, is_async: bool = True) -> None:
        """Take a log away: its directory is renamed at once, and removed later or at once.

        ``is_async`` says whether it is removed after the topic's ``file.delete.delay.ms``, as a
        broker does it. `UnknownTopicOrPartitionError` if there is none; `LogLockedError` in a
        forked child; `KafkaStorageError` if the disk failed.
        """
        self._ensure_own_process()
        with self._creation_or_deletion_lock:
            log = self.get_log(topic_partition)
            directory = next(each for each in self._directories if each.path == log.log_directory)
            self._logs.delete(directory, log, is_async=is_async)

    def config_of(self, topic: str) -> LogConfig:
        """Return a topic's configuration: the one given, else the one stored, else that of all."""
        return self._configs.config_of(topic)

    def unconfigured_topics(self, topics: Iterable[str]) -> list[str]:
        """Return the topics, sorted, whose configuration nobody has given or stored.

        Nothing may be removed from them for its age or size: in a directory that was copied from a
        broker, Kafka's defaults are not what the topics were configured to.
        """
        return self._configs.unconfigured(topics)

    def stored_properties(self, topic: str) -> dict[str, str] | None:
        """Return a topic's own properties as they are stored; None if nothing is."""
        return self._configs.stored_properties(topic)

    def store_topic_config(self, topic: str, properties: Mapping[str, str] | None) -> LogConfig:
        """Keep a topic's own properties in every online directory; return its configuration.

        It holds from now on, also for logs that are open. The properties replace those that were
        stored; None removes the topic. ``ValueError`` if a property is unknown or has no such
        value, or Kafka allows no such topic; `CorruptCheckpointError` if what is stored cannot be
        read; `KafkaStorageError` if the disk failed.
        """
        ensure_valid_topic(topic)
        config = self._configs.with_properties(topic, properties or {})
        self._ensure_own_process()
        with self._creation_or_deletion_lock:
            self._ensure_open()
            for directory in self._directories:
                if directory.is_online:
                    directory.store_topic_configs({topic: properties})
            self._configs.set_stored(topic, properties)
            for topic_partition, log in self.logs.items():
                if topic_partition.topic == topic:
                    # A log that is not compacted any more is retention's alone.
                    with self.cleaner.paused(topic_partition):
                        log.update_config(self.config_of(topic))
        return config

    def _ensure_own_process(self) -> None:
        """Raise in a forked child, before it waits for a lock that nobody there will give back."""
        self.context.io.ensure_own_process(self._directories[0].path)

    def _ensure_open(self) -> None:
        if not self._is_open:
            reason = (
                "log manager is not started, or closed: change logs inside of its with block, or "
                "after startup() and before shutdown()"
            )
            raise KafkaStorageError(reason, self._directories[0].path)

    def flush_dirty_logs(self) -> None:
        """Flush logs whose ``flush.ms`` has passed since they were flushed last."""
        self._maintenance.flush_dirty_logs()

    def checkpoint_log_recovery_offsets(self) -> None:
        """Write every online directory's recovery points."""
        self._maintenance.checkpoint_recovery_points()

    def checkpoint_log_start_offsets(self) -> None:
        """Write every online directory's log start offsets."""
        self._maintenance.checkpoint_log_start_offsets()

    def checkpoint_high_watermarks(self) -> None:
        """Write every online directory's high watermarks."""
        self._maintenance.checkpoint_high_watermarks()

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for too long."""
        self._maintenance.remove_expired_producers()


def ensure_open(is_needed: Callable[[TopicPartition], bool]) -> Callable[[ClosedLogs], None]:
    """Return what raises, before anything is changed, if a log stays closed that is needed."""

    def ensure(closed: ClosedLogs) -> None:
        for topic_partition, error in sorted(closed.items()):
            if is_needed(topic_partition):
                raise error

    return ensure


class _LogsOfDirectory(NamedTuple):
    """What a commit is carried out on: the logs of one of the manager's directories."""

    manager: LogManager
    directory: OwnedLogDirectory

    @property
    def path(self) -> str:
        return self.directory.path

    def find_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        return self.manager._logs.find_in(self.directory.path, topic_partition)

    def ensure_topic(self, topic: NewTopic) -> None:
        self.manager._ensure_topic_in(self.directory, topic)
