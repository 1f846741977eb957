"""All logs of one or more log directories: opened, found, made, flushed, checkpointed, closed.

Locks, in the order in which they are taken. A thread that holds one takes none that stands above:

1. the manager's lock of creation and deletion: for a log that is made or deleted, a topic's
   configuration that is stored, the beginning of a shutdown;
2. a log's locks: that of its flusher, then its own (`pylog.log.unified_log`);
3. a log directory's lock, while a checkpoint of it is written
   (`pylog.log.owned_log_directory`);
4. the manager's lock of the maps of logs, which is held for a look or an entry only.

So a truncation, which holds its log's lock, may write checkpoints (2, 3, 4), and the deletion of a
log may wait until a change of it is done (1, 2).

Source: LogManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from pylog.config import LogConfig, LogManagerConfig
from pylog.errors import (
    CorruptCheckpointError,
    KafkaStorageError,
    LogStorageError,
    UnexpectedFileError,
    UnknownTopicOrPartitionError,
)
from pylog.files.file_names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    PARTITION_METADATA,
    STRAY_DIR_SUFFIX,
)
from pylog.files.partition_metadata import new_topic_id, write_partition_metadata
from pylog.files.topic_configs import TOPIC_CONFIGS, read_topic_configs, write_topic_configs
from pylog.files.topic_name import (
    ensure_valid_topic,
    ensure_valid_topic_partition,
    log_delete_directory_name,
)
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_log
from pylog.log.owned_log_directory import OwnedLogDirectory
from pylog.log.segment_deletion import delete_directory

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)


class LogManager:
    """Owner of log directories, from `startup` to `shutdown`; a context manager.

    Threads: any number may use it. A child that was forked after the start has no lock of the
    directories: whatever would change something raises `LogLockedError` there, also the end of the
    ``with`` block. It may read.

    Parameters
    ----------
    directories
        Log directories. Made where they are not there.
    config
        Of topics that have none of their own.
    topic_configs
        Of single topics; they win over what is stored in the directories (`store_topic_config`).
    manager_config
        Schedules and limits.
    context
        Time, disk, background work; the real ones if None.
    broker_epoch
        Written into the clean shutdown marker; the one that was found there if None.

    Attributes
    ----------
    loadings
        What the start-up did, a log each: what was recovered, how much was cut off.
    """

    def __init__(
        self,
        directories: Sequence[str | os.PathLike[str]],
        config: LogConfig | None = None,
        *,
        topic_configs: Mapping[str, LogConfig] | None = None,
        manager_config: LogManagerConfig | None = None,
        context: LogContext | None = None,
        broker_epoch: int | None = None,
    ) -> None:
        self.config = LogConfig() if config is None else config
        self.manager_config = LogManagerConfig() if manager_config is None else manager_config
        self.loadings: list[LogLoading] = []
        self._topic_configs = dict(topic_configs or {})
        self._stored_topic_configs: dict[str, LogConfig] = {}
        self._context = LogContext() if context is None else context
        self._broker_epoch = broker_epoch
        self._directories = [
            OwnedLogDirectory(str(directory), self._context.io) for directory in directories
        ]
        if len({directory.path for directory in self._directories}) < len(self._directories):
            msg = "a log directory is given twice"
            raise ValueError(msg)
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._future_logs: dict[TopicPartition, UnifiedLog] = {}
        self._creation_or_deletion_lock = threading.RLock()
        self._logs_lock = threading.Lock()
        self._is_open = False

    # ---- life

    def startup(self) -> Self:
        """Lock all directories, load all logs, begin the background work.

        Raises
        ------
        LogLockedError
            Another process holds a directory; nothing has been changed.
        UnexpectedFileError
            A directory holds something that is not Kafka's, a partition twice, or a symbolic link
            in the place of a partition or of a log's file.
        CorruptCheckpointError
            The stored configurations of topics cannot be read.
        KafkaStorageError
            The disk failed.
        """
        opened: list[OwnedLogDirectory] = []
        try:
            for directory in self._directories:
                directory.open()
                opened.append(directory)
            self._load_topic_configs()
            for directory in self._directories:
                directory.begin()
            for directory in self._directories:
                self._load_logs(directory)
        except BaseException:
            for log in self._all_logs():
                log.close_handlers()
            for directory in opened:
                # A marker that was there still is, unless loading had begun.
                directory.close(is_clean=False, broker_epoch=self._broker_epoch)
            raise
        self._is_open = True
        self._context.scheduler.startup()
        self._schedule()
        return self

    def _load_topic_configs(self) -> None:
        self._stored_topic_configs.clear()
        for directory in self._directories:
            path = directory.file(TOPIC_CONFIGS)
            for topic, properties in read_topic_configs(path).items():
                try:
                    config = self._config_with(properties)
                except ValueError as error:
                    reason = f"configuration of topic {topic!r}: {error}"
                    raise CorruptCheckpointError(reason, path) from error
                self._stored_topic_configs.setdefault(topic, config)

    def _config_with(self, properties: Mapping[str, str]) -> LogConfig:
        return LogConfig.from_properties({**self.config.properties(), **properties})

    def _load_logs(self, directory: OwnedLogDirectory) -> None:
        loadings = []
        for path, name in directory.partition_directories():
            if name.state == DELETE_DIR_SUFFIX:
                self._delete_later(path)
            elif name.state != STRAY_DIR_SUFFIX:
                loadings.append((name, self._loading(directory, path, name.topic_partition)))
        self.loadings += [loading for _, loading in loadings]
        threads = self.manager_config.num_recovery_threads_per_data_dir
        with ThreadPoolExecutor(threads, "log-recovery") as pool:
            logs = list(pool.map(lambda each: load_log(each[1]), loadings))
        for (name, _), log in zip(loadings, logs, strict=True):
            is_future = name.state == FUTURE_DIR_SUFFIX
            known = self._future_logs if is_future else self._logs
            if log.topic_partition in known:
                log.close_handlers()
                other = known[log.topic_partition].directory
                reason = f"there are two directories of {log.topic_partition}, the other is {other}"
                raise UnexpectedFileError(reason, log.directory)
            known[log.topic_partition] = log
            # Without replicas everything that is in the log is replicated.
            log.update_high_watermark(log.log_end_offset)

    def _loading(
        self, directory: OwnedLogDirectory, path: str, topic_partition: TopicPartition
    ) -> LogLoading:
        return LogLoading(
            directory=path,
            config=self.config_of(topic_partition.topic),
            manager_config=self.manager_config,
            context=self._context,
            had_clean_shutdown=directory.had_clean_shutdown,
            recovery_point_checkpoint=directory.recovery_points.get(topic_partition, 0),
            log_start_offset_checkpoint=directory.log_start_offsets.get(topic_partition, 0),
            recovery_point_lowered=lambda: self._checkpoint_after_cut(directory),
        )

    def _schedule(self) -> None:
        settings, schedule = self.manager_config, self._context.scheduler.schedule
        delay = settings.initial_task_delay_ms
        for name, task, period in (
            ("log-flusher", self.flush_dirty_logs, settings.flush_scheduler_interval_ms),
            (
                "recovery-point-checkpoint",
                self.checkpoint_log_recovery_offsets,
                settings.flush_offset_checkpoint_interval_ms,
            ),
            (
                "log-start-offset-checkpoint",
                self.checkpoint_log_start_offsets,
                settings.flush_start_offset_checkpoint_interval_ms,
            ),
            (
                "high-watermark-checkpoint",
                self.checkpoint_high_watermarks,
                settings.high_watermark_checkpoint_interval_ms,
            ),
            (
                "producer-expiration",
                self.remove_expired_producers,
                settings.producer_id_expiration_check_interval_ms,
            ),
        ):
            schedule(name, task, delay, period)

    def shutdown(self) -> None:
        """Flush and close all logs, write all checkpoints and the clean shutdown markers.

        A directory in which something fails gets no marker, so its next owner recovers it.

        Raises
        ------
        LogLockedError
            This process is a fork of the one that opened the directories; nothing was done.
        LogStorageError
            The first failure, once every directory has been dealt with.
        """
        if self._is_open:
            self._ensure_own_process()
        with self._creation_or_deletion_lock:
            if not self._is_open:
                return
            self._is_open = False
        failures: list[LogStorageError] = []
        self._context.scheduler.shutdown()
        for directory in self._directories:
            try:
                self._close_directory(directory)
            except LogStorageError as error:
                failures.append(error)
        with self._logs_lock:
            self._logs.clear()
            self._future_logs.clear()
        if failures:
            raise failures[0]

    def _close_directory(self, directory: OwnedLogDirectory) -> None:
        logs = self._logs_in(directory, with_future=True)
        is_clean = False
        try:
            self._context.failures.ensure_online(directory.path)
            for log in logs:
                log.flush(includes_end=True)
                log.close()
            directory.write_recovery_points(lambda: self._logs_in(directory))
            directory.write_log_start_offsets(lambda: self._logs_in(directory))
            directory.write_high_watermarks(lambda: self._logs_in(directory))
            is_clean = True
        finally:
            for log in logs:
                log.close_handlers()
            directory.close(is_clean=is_clean, broker_epoch=self._broker_epoch)

    def abandon(self) -> None:
        """Let go of everything as a crash would: no flush, no marker; only the lock is given back.

        For whoever has to hand a directory on after its disk failed. In a forked child, which has
        no lock to give back, nothing is done.
        """
        if not self._context.io.is_own_process:
            self._is_open = False
            return
        with self._creation_or_deletion_lock:
            self._is_open = False
        self._context.scheduler.shutdown()
        for log in self._all_logs():
            log.close_handlers()
        for directory in self._directories:
            directory.close(is_clean=False, broker_epoch=self._broker_epoch)

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
            self.shutdown()
        except LogStorageError as failure:
            if error is None:
                raise
            # What went wrong first is what its finder has to be told.
            if failure.__cause__ is not error:
                error.add_note(f"closing the log directories failed, too: {failure}")

    # ---- logs

    def config_of(self, topic: str) -> LogConfig:
        """Return a topic's configuration: the one given, else the one stored, else that of all."""
        given = self._topic_configs.get(topic)
        return given or self._stored_topic_configs.get(topic, self.config)

    def store_topic_config(self, topic: str, properties: Mapping[str, str]) -> LogConfig:
        """Keep a topic's own properties in every online directory; return its configuration.

        It holds for logs that are opened or made from now on, by any manager. The properties
        replace those that were stored for the topic; none at all removes them.

        Raises
        ------
        ValueError
            A property is unknown or has no such value, or Kafka allows no topic of that name.
        CorruptCheckpointError
            What is stored cannot be read.
        LogLockedError
            This process is a fork of the one that opened the directories.
        KafkaStorageError
            The disk failed.
        """
        ensure_valid_topic(topic)
        config = self._config_with(properties)
        self._ensure_own_process()
        with self._creation_or_deletion_lock:
            self._ensure_open()
            for directory in self._online():
                path = directory.file(TOPIC_CONFIGS)
                stored: dict[str, Mapping[str, str]] = {**read_topic_configs(path)}
                had = stored.pop(topic, {})
                if dict(properties) == had:
                    continue
                if properties:
                    stored[topic] = properties
                with self._context.failures.watching(directory.path):
                    write_topic_configs(self._context.io, path, stored)
            self._stored_topic_configs[topic] = config
        return config

    @property
    def logs(self) -> dict[TopicPartition, UnifiedLog]:
        """All logs by partition, sorted; a copy."""
        with self._logs_lock:
            return dict(sorted(self._logs.items()))

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog:
        """Return a log.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is none.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            where = ", ".join(directory.path for directory in self._directories)
            msg = f"there is no log of {topic_partition} in {where}"
            raise UnknownTopicOrPartitionError(msg)
        return log

    def get_or_create_log(
        self, topic_partition: TopicPartition, topic_id: uuid.UUID | None = None
    ) -> UnifiedLog:
        """Return a log; if there is none, make it in the directory with the fewest logs.

        Parameters
        ----------
        topic_partition
            Whose log.
        topic_id
            Written into ``partition.metadata`` of a new one; a random one if None. All partitions
            of a topic must have the same.

        Raises
        ------
        ValueError
            Kafka allows no topic of that name, or no such partition.
        UnexpectedFileError
            A symbolic link has the name of the partition's directory.
        LogLockedError
            There is none, and this process is a fork of the one that opened the directories.
        KafkaStorageError
            No directory is online, or the disk failed.
        """
        log = self._logs.get(topic_partition)
        if log is not None:
            return log
        ensure_valid_topic_partition(topic_partition)
        self._ensure_own_process()
        with self._creation_or_deletion_lock:
            log = self._logs.get(topic_partition)
            if log is not None:  # another thread was faster
                return log
            self._ensure_open()
            directory = self._directory_with_fewest_logs()
            with self._context.failures.watching(directory.path):
                log = self._create(directory, topic_partition, topic_id or new_topic_id())
            with self._logs_lock:
                self._logs[topic_partition] = log
            return log

    def _create(
        self, directory: OwnedLogDirectory, topic_partition: TopicPartition, topic_id: uuid.UUID
    ) -> UnifiedLog:
        io = self._context.io
        path = directory.file(str(topic_partition))
        io.make_directory(path, exist_ok=True)
        loading = self._loading(directory, path, topic_partition)
        loading.had_clean_shutdown = False  # nothing there to trust, nothing to recover
        loading.recovery_point_checkpoint = 0
        loading.log_start_offset_checkpoint = 0
        log = load_log(loading)
        # Before the first record: a broker takes records without a topic id for another topic's.
        write_partition_metadata(io, f"{path}/{PARTITION_METADATA}", topic_id)
        io.sync_directory(directory.path)
        return log

    def _directory_with_fewest_logs(self) -> OwnedLogDirectory:
        online = [
            directory
            for directory in self._directories
            if not self._context.failures.is_offline(directory.path)
        ]
        if not online:
            self._context.failures.ensure_online(self._directories[0].path)
        return min(online, key=lambda directory: len(self._logs_in(directory)))

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Take a log away; its directory is renamed at once and removed later.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is none.
        LogLockedError
            This process is a fork of the one that opened the directories.
        KafkaStorageError
            The disk failed.
        """
        self._ensure_own_process()
        with self._creation_or_deletion_lock:
            log = self.get_log(topic_partition)
            directory = self._directory_of(log)
            with self._context.failures.watching(directory.path):
                with self._logs_lock:
                    del self._logs[topic_partition]
                log.close_handlers()
                name = log_delete_directory_name(topic_partition, uuid.uuid4())
                renamed = directory.file(name)
                self._context.io.replace(log.directory, renamed)
                self._context.io.sync_directory(directory.path)
                self._checkpoint_recovery_points(directory)
                self._checkpoint_log_start_offsets(directory)
        delay = self.config_of(topic_partition.topic).file_delete_delay_ms
        self._delete_later(renamed, delay)

    def _delete_later(self, path: str, delay_ms: int | None = None) -> None:
        delay_ms = self.config.file_delete_delay_ms if delay_ms is None else delay_ms

        def remove() -> None:
            try:
                delete_directory(path, self._context.io)
            except KafkaStorageError as error:
                _LOGGER.warning("directory of a deleted log stays behind: %s", error)

        self._context.scheduler.schedule_once("kafka-delete-logs", remove, delay_ms)

    def _ensure_own_process(self) -> None:
        """Raise in a forked child, before it waits for a lock that nobody there will give back."""
        self._context.io.ensure_own_process(self._directories[0].path)

    def _ensure_open(self) -> None:
        """Raise if the locks of the directories are not held (any more)."""
        if not self._is_open:
            reason = "log manager is closed: start one, and change logs through that"
            raise KafkaStorageError(reason, self._directories[0].path)

    # ---- background work

    def flush_dirty_logs(self) -> None:
        """Flush logs whose ``flush.ms`` has passed since they were flushed last."""
        now_ms = self._context.clock.milliseconds()
        for log in self._all_logs():
            if now_ms - log.last_flushed_ms >= log.config.flush_ms:
                log.flush()

    def checkpoint_log_recovery_offsets(self) -> None:
        """Write every online directory's recovery points."""
        for directory in self._online():
            self._checkpoint_recovery_points(directory)

    def checkpoint_log_start_offsets(self) -> None:
        """Write every online directory's log start offsets."""
        for directory in self._online():
            self._checkpoint_log_start_offsets(directory)

    def checkpoint_high_watermarks(self) -> None:
        """Write every online directory's high watermarks."""
        for directory in self._online():
            self._checkpoint_high_watermarks(directory)

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for too long."""
        for log in self._all_logs():
            log.remove_expired_producers()

    def _checkpoint_recovery_points(self, directory: OwnedLogDirectory) -> None:
        with self._context.failures.watching(directory.path):
            directory.write_recovery_points(lambda: self._logs_in(directory))

    def _checkpoint_after_cut(self, directory: OwnedLogDirectory) -> None:
        # Differs from Kafka, which leaves the start for later: a crash before it is written would
        # put the start above the new end, and all records of since then would be deleted.
        self._checkpoint_log_start_offsets(directory)
        self._checkpoint_recovery_points(directory)

    def _checkpoint_log_start_offsets(self, directory: OwnedLogDirectory) -> None:
        with self._context.failures.watching(directory.path):
            directory.write_log_start_offsets(lambda: self._logs_in(directory))

    def _checkpoint_high_watermarks(self, directory: OwnedLogDirectory) -> None:
        with self._context.failures.watching(directory.path):
            directory.write_high_watermarks(lambda: self._logs_in(directory))

    def _online(self) -> list[OwnedLogDirectory]:
        failures = self._context.failures
        return [each for each in self._directories if not failures.is_offline(each.path)]

    def _all_logs(self) -> list[UnifiedLog]:
        with self._logs_lock:
            return [*self._logs.values(), *self._future_logs.values()]

    def _logs_in(
        self, directory: OwnedLogDirectory, *, with_future: bool = False
    ) -> list[UnifiedLog]:
        with self._logs_lock:
            logs = list(self._logs.values())
            logs += self._future_logs.values() if with_future else ()
        return [log for log in logs if log.log_directory == directory.path]

    def _directory_of(self, log: UnifiedLog) -> OwnedLogDirectory:
        return next(each for each in self._directories if each.path == log.log_directory)
