"""The logs of a manager: loaded, found, made and deleted.

Source: LogManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pylog.config import RecoveryMode
from pylog.errors import (
    CorruptCheckpointError,
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    InvalidRecordError,
    KafkaStorageError,
    RecoveryRefusedError,
    UnexpectedFileError,
)
from pylog.files.file_names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    PARTITION_METADATA,
    log_delete_directory_name,
    nearest_topic,
    parse_partition_directory_name,
)
from pylog.files.owned_directories import NOT_LOADED, partition_directories
from pylog.files.partition_metadata import ZERO_UUID, write_partition_metadata
from pylog.log.local_log import delete_directory
from pylog.log.log_loader import LogLoading, load_log, try_loading
from pylog.log.log_truncation import RegisteredCleaner, TruncationGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylog.config import LogManagerConfig
    from pylog.config.stored_topic_configs import TopicConfigs
    from pylog.errors import LogStorageError
    from pylog.files.file_names import PartitionDirectoryName
    from pylog.log.log_context import LogContext
    from pylog.log.owned_log_directory import OwnedLogDirectory
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)
_DAMAGED = (
    RecoveryRefusedError,
    CorruptRecordError,
    InvalidRecordError,
    CorruptIndexError,
    CorruptSnapshotError,
    CorruptCheckpointError,
)
"""What is wrong with one log is no reason to refuse work on another."""
LoadedT = TypeVar("LoadedT")


class OwnedLogs:
    """The current log of each partition, and the future ones apart.

    A future log (``….<id>-future``) is the copy of a partition that a broker was moving to another
    log directory. It is loaded, flushed and closed like the others, and not given out.

    Any number of threads may ask. Its lock guards the maps; it is held for a look or an entry only,
    and comes last in the order of locks (`pylog.log.log_manager`). Loading is for one thread;
    whoever makes or deletes logs holds the manager's lock of creation and deletion.
    """

    def __init__(
        self,
        configs: TopicConfigs,
        manager_config: LogManagerConfig,
        context: LogContext,
        recovery_mode: RecoveryMode,
        is_seen: Callable[[TopicPartition], bool],
    ) -> None:
        self.cleaner = RegisteredCleaner()
        self.loadings: list[LogLoading] = []
        self.closed: dict[TopicPartition, LogStorageError] = {}
        self._recovery_mode = recovery_mode
        self._is_seen = is_seen
        self._names: set[TopicPartition] = set()
        self._closed_directories: dict[str, LogStorageError] = {}
        self._resting: dict[str, bool] = {}
        self._configs = configs
        self._manager_config = manager_config
        self._context = context
        self._current: dict[TopicPartition, UnifiedLog] = {}
        self._future: dict[TopicPartition, UnifiedLog] = {}
        self._lock = threading.Lock()

    def find(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the current log of a partition, None if there is none."""
        return self._current.get(topic_partition)

    def find_in(self, log_directory: str, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the current log of a partition if it lies in that log directory."""
        log = self.find(topic_partition)
        return log if log is not None and log.log_directory == log_directory else None

    def nearest_to(self, topic_partition: TopicPartition) -> str:
        """Return what is there instead of a log, as the end of a sentence."""
        logs = sorted(self._names.union(self.by_partition()))
        partitions = [str(each.partition) for each in logs if each.topic == topic_partition.topic]
        if partitions:
            return f"; partitions found: {', '.join(partitions)}"
        near = nearest_topic(topic_partition.topic, {each.topic for each in logs})
        return "" if near is None else f"; did you mean topic {near!r}?"

    def topics(self) -> set[str]:
        """Return the topics of all partitions that were found, or made since."""
        return {each.topic for each in self._names.union(self.by_partition())}

    def clear(self) -> None:
        """Remove all logs."""
        with self._lock:
            self._current.clear()
            self._future.clear()

    def by_partition(self) -> dict[TopicPartition, UnifiedLog]:
        """Return the current logs by partition, sorted; a copy."""
        with self._lock:
            return dict(sorted(self._current.items()))

    def current_and_future(self) -> list[UnifiedLog]:
        """Return all logs."""
        with self._lock:
            return [*self._current.values(), *self._future.values()]

    def current_in(self, log_directory: str) -> list[UnifiedLog]:
        """Return the current logs of one log directory."""
        with self._lock:
            logs = list(self._current.values())
        return [log for log in logs if log.log_directory == log_directory]

    def all_in(self, log_directory: str) -> list[UnifiedLog]:
        """Return the current and the future logs of one log directory."""
        return [log for log in self.current_and_future() if log.log_directory == log_directory]

    def closed_in(self, log_directory: str) -> list[TopicPartition]:
        """Return the partitions of a log directory whose logs are not open, future ones too."""
        return [
            parse_partition_directory_name(os.path.basename(path)).topic_partition  # noqa: PTH119
            for path in (*self._closed_directories, *self._resting)
            if os.path.dirname(path) == log_directory  # noqa: PTH120
        ]

    def are_recovered_in(self, log_directory: str) -> bool:
        """Whether no log of a log directory was left as an unclean stop may have left it."""
        return all(
            os.path.dirname(path) != log_directory or self._resting.get(path, False)  # noqa: PTH120
            for path in (*self._closed_directories, *self._resting)
        )

    def rest_all(self, directory: OwnedLogDirectory) -> None:
        """Leave the logs of a log directory closed, to `visit` them; delete what is to go."""
        self._delete_marked(directory)
        for path, name in partition_directories(directory.path):
            if name.state not in NOT_LOADED and path not in self._closed_directories:
                self._resting[path] = directory.had_clean_shutdown

    def visit(
        self, directory: OwnedLogDirectory, is_chosen: Callable[[TopicPartition], bool]
    ) -> Iterator[UnifiedLog]:
        """Yield the logs that are chosen, each open until the next one is asked for.

        After an unclean stop the others are recovered in passing.
        """
        for path, is_recovered in list(self._resting.items()):
            name = parse_partition_directory_name(os.path.basename(path))  # noqa: PTH119
            is_wanted = not name.state and is_chosen(name.topic_partition)
            if os.path.dirname(path) != directory.path or (is_recovered and not is_wanted):  # noqa: PTH120
                continue
            del self._resting[path]
            loading = self._loading(directory, path, name.topic_partition)
            log = self._load_or_note(name, loading, load_log)
            if log is None:
                continue
            self._add(log, is_future=name.state == FUTURE_DIR_SUFFIX)
            self._lower_cleaner_checkpoint(directory, log)
            if is_wanted:
                yield log
            directory.settle(log)
            with self._lock:
                del (self._future if name.state else self._current)[log.topic_partition]
            self._resting[path] = True

    def _delete_marked(self, directory: OwnedLogDirectory) -> None:
        for path, name in partition_directories(directory.path):
            if name.state == DELETE_DIR_SUFFIX:
                self._delete_later(path, self._configs.default.file_delete_delay_ms)

    def try_all(self, directory: OwnedLogDirectory) -> None:
        """Find the logs of a log directory that are to stay closed; nothing is changed."""
        if self._recovery_mode.keeps_intact:
            self._load_each(self._found_in(directory), try_loading)

    def load_all(self, directory: OwnedLogDirectory) -> None:
        """Load the log of every partition directory of a log directory, in several threads."""
        self._delete_marked(directory)
        found = self._found_in(directory)
        self.loadings += [loading for _, loading in found]
        loaded = self._load_each(found, load_log)
        for (name, _), log in zip(found, loaded, strict=True):
            if log is None:
                continue
            try:
                self._add(log, is_future=name.state == FUTURE_DIR_SUFFIX)
            except BaseException:
                log.close_handlers()
                raise
        for log in self.current_in(directory.path):
            self._lower_cleaner_checkpoint(directory, log)

    def _lower_cleaner_checkpoint(self, directory: OwnedLogDirectory, log: UnifiedLog) -> None:
        # What is appended after the end that a crash left must not count as clean.
        if directory.cleaner_checkpoint.offset(log.topic_partition) > log.log_end_offset:
            directory.cleaner_checkpoint.lower(log.topic_partition, log.log_start_offset)

    def _found_in(
        self, directory: OwnedLogDirectory
    ) -> list[tuple[PartitionDirectoryName, LogLoading]]:
        """Return what is to be loaded, without the logs that stay closed."""
        directories = partition_directories(directory.path)
        self._names.update(name.topic_partition for _, name in directories if not name.state)
        return [
            (name, self._loading(directory, path, name.topic_partition))
            for path, name in directories
            if name.state not in NOT_LOADED
            and path not in self._closed_directories
            and self._is_seen(name.topic_partition)
        ]

    def _load_each(
        self,
        found: Sequence[tuple[PartitionDirectoryName, LogLoading]],
        load: Callable[[LogLoading], LoadedT],
    ) -> list[LoadedT | None]:
        """Return what ``load`` returns, None for a log that stays closed."""
        threads = self._manager_config.num_recovery_threads_per_data_dir
        with ThreadPoolExecutor(threads, "log-recovery") as pool:
            return list(pool.map(lambda each: self._load_or_note(each[0], each[1], load), found))

    def _load_or_note(
        self,
        name: PartitionDirectoryName,
        loading: LogLoading,
        load: Callable[[LogLoading], LoadedT],
    ) -> LoadedT | None:
        try:
            return load(loading)
        except _DAMAGED as error:
            if self._recovery_mode is RecoveryMode.BROKER_START:
                raise
            with self._lock:
                self._closed_directories[loading.directory] = error
                if name.state != FUTURE_DIR_SUFFIX:
                    self.closed[name.topic_partition] = error
            return None

    def _add(self, log: UnifiedLog, *, is_future: bool) -> None:
        with self._lock:
            logs = self._future if is_future else self._current
            other = logs.setdefault(log.topic_partition, log)
        if other is not log:
            reason = (
                f"there are two directories of {log.topic_partition}, the other is "
                f"{other.directory}"
            )
            raise UnexpectedFileError(reason, log.directory)

    def _loading(
        self, directory: OwnedLogDirectory, path: str, topic_partition: TopicPartition
    ) -> LogLoading:
        return LogLoading(
            directory=path,
            config=self._configs.config_of(topic_partition.topic),
            manager_config=self._manager_config,
            context=self._context,
            had_clean_shutdown=directory.had_clean_shutdown,
            recovery_point_checkpoint=directory.recovery_points.get(topic_partition, 0),
            log_start_offset_checkpoint=directory.log_start_offsets.get(topic_partition, 0),
            truncation_guard=TruncationGuard(
                cleaner=self.cleaner,
                lower_cleaner_checkpoint=directory.cleaner_checkpoint.lower,
                checkpoint_after_truncation=directory.checkpoint_after_truncation,
            ),
            recovery_mode=self._recovery_mode,
            high_watermark_start=partial(directory.high_watermarks.start_of, topic_partition),
        )

    def directory_with_fewest(self, directories: Sequence[OwnedLogDirectory]) -> OwnedLogDirectory:
        """Return the online directory with the fewest logs."""
        online = [directory for directory in directories if directory.is_online]
        if not online:
            self._context.failures.ensure_online(directories[0].path)
        return min(online, key=lambda directory: len(self.current_in(directory.path)))

    def create(
        self, directory: OwnedLogDirectory, topic_partition: TopicPartition, topic_id: uuid.UUID
    ) -> UnifiedLog:
        """Make the directory of a new partition; return its log, once its topic id is on disk."""
        io = self._context.io
        path = directory.file(str(topic_partition))
        is_there = os.path.lexists(path)
        try:
            log = self._create(directory, path, topic_partition, topic_id)
        except KafkaStorageError:
            # A full disk, say: half a partition would be taken for a whole one later.
            if not is_there:
                with suppress(KafkaStorageError):
                    delete_directory(path, io)
            raise
        self._add(log, is_future=False)
        return log

    def _create(
        self,
        directory: OwnedLogDirectory,
        path: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
    ) -> UnifiedLog:
        io = self._context.io
        with self._context.failures.watching(directory.path):
            directory.cleaner_checkpoint.remove(topic_partition)  # of one that somebody removed
            io.make_directory(path, exist_ok=True)
            # Before the first record: a broker takes records without a topic id for another
            # topic's.
            if topic_id != ZERO_UUID:
                write_partition_metadata(io, f"{path}/{PARTITION_METADATA}", topic_id)
            loading = self._loading(directory, path, topic_partition)
            loading.had_clean_shutdown = False  # nothing there to trust, nothing to recover
            loading.recovery_point_checkpoint = 0
            loading.log_start_offset_checkpoint = 0
            log = load_log(loading)
            io.sync_directory(directory.path)
        return log

    def delete(self, directory: OwnedLogDirectory, log: UnifiedLog, *, is_async: bool) -> None:
        """Take a log away; its directory is renamed at once, and removed later or at once."""
        io = self._context.io
        with self._context.failures.watching(directory.path):
            with self._lock:
                del self._current[log.topic_partition]
                self._names.discard(log.topic_partition)
            with self.cleaner.paused(log.topic_partition):  # and it finds the log no more
                log.close_handlers()
            renamed = directory.file(log_delete_directory_name(log.topic_partition, uuid.uuid4()))
            io.replace(log.directory, renamed)
            io.sync_directory(directory.path)
            directory.checkpoint_recovery_points()
            directory.checkpoint_log_start_offsets()
            directory.cleaner_checkpoint.remove(log.topic_partition)
            if not is_async:
                delete_directory(renamed, io)
                return
        config = self._configs.config_of(log.topic_partition.topic)
        self._delete_later(renamed, config.file_delete_delay_ms)

    def _delete_later(self, path: str, delay_ms: int) -> None:
        def delete() -> None:
            try:
                delete_directory(path, self._context.io)
            except KafkaStorageError as error:
                _LOGGER.warning("the directory of a deleted log could not be removed: %s", error)

        self._context.scheduler.schedule_once("kafka-delete-logs", delete, delay_ms)
