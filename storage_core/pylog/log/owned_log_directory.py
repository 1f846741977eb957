"""One log directory that we own: its lock, its clean shutdown marker, its checkpoints.

Life of a directory:

1. the lock is taken; another process, be it a broker, is refused;
2. checkpoints are read. One that cannot be read counts as empty, as in Kafka: then more is
   recovered than necessary, and nothing less;
3. the clean shutdown marker is removed *before* any log is loaded, so that a crash while loading
   counts as an unclean stop; until then nothing has been changed, and a directory that cannot be
   opened is left as it was;
4. while open, checkpoints are written on their schedules;
5. at the end all logs are flushed and closed, checkpoints are written, then the marker; then the
   lock is given back. If anything failed, there is no marker.

Source: LogManager (Kafka 4.3).
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs, write_topic_configs
from pylog.errors import CorruptCheckpointError, KafkaStorageError
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.clean_shutdown import (
    UNKNOWN_BROKER_EPOCH,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from pylog.files.cleaner_checkpoint import CleanerCheckpoint
from pylog.files.directory_lock import DirectoryLock
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pylog.files.high_watermarks import (
    HighWatermarks,
    is_known_to_a_broker,
    is_own_directory,
    mark_as_own,
)
from pylog.files.owned_directories import (
    NOT_LOADED,
    ensure_regular_files,
    ensure_writable_log_directory,
    local_location,
    partition_directories,
)
from pylog.files.staged_segments import remove_staged_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pylog.files.checkpoint_file import IsOnlyReplica
    from pylog.log.log_context import LogContext
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)


class LogsOfDirectories(Protocol):
    """What a log directory asks of its manager's logs."""

    def current_in(self, log_directory: str) -> Sequence[UnifiedLog]:
        """Return the current logs of one log directory."""
        ...

    def closed_in(self, log_directory: str) -> Collection[TopicPartition]:
        """Return the partitions there whose logs are not open."""
        ...

    def are_recovered_in(self, log_directory: str) -> bool:
        """Whether no log there was left as an unclean stop may have left it."""
        ...


class OwnedLogDirectory:
    """A locked log directory. Any number of threads may write checkpoints; the rest is for one.

    A lock lets one checkpoint be written at a time. Whoever holds it waits for no log.
    """

    def __init__(
        self,
        path: str,
        context: LogContext,
        logs: LogsOfDirectories,
        is_only_replica: IsOnlyReplica,
    ) -> None:
        self.path = os.path.realpath(path)  # a link that the user names is followed
        self.had_clean_shutdown = False
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks = HighWatermarks({}, is_only_replica)
        self._is_own = self._is_new = False
        self._logs = logs
        self._failures = context.failures
        self._io = context.io
        self._lock = DirectoryLock(self.path)
        self.cleaner_checkpoint = CleanerCheckpoint(
            self.path,
            context.io,
            context.failures,
            lambda: [
                *(log.topic_partition for log in logs.current_in(self.path)),
                *logs.closed_in(self.path),
            ],
        )
        self._checkpoint_lock = threading.Lock()
        self._settled: dict[str, dict[TopicPartition, int | None]] = {}

    def file(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.path, name)  # noqa: PTH118

    def open(self) -> None:
        """Lock the directory, note the marker, read the checkpoints; change nothing else."""
        ensure_writable_log_directory(self.path)
        if self._io.make_directory(self.path, exist_ok=True):
            self._io.sync_directory(os.path.dirname(self.path))  # noqa: PTH120 - kept as text
        self._lock.try_lock()
        try:
            marker = read_clean_shutdown(self.file(CLEAN_SHUTDOWN))
            self.had_clean_shutdown = marker is not None
            if marker is not None and marker.broker_epoch is not None:
                self.broker_epoch = marker.broker_epoch
            has_partitions = self._ensure_partitions_are_ours()
            self.recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
            self.log_start_offsets = self._read(LOG_START_OFFSET_CHECKPOINT)
            self.high_watermarks = HighWatermarks.read(
                self.path, self.high_watermarks.is_only_replica
            )
            self._is_own = is_own_directory(self.path)
            self._is_new = not has_partitions and not is_known_to_a_broker(self.path)
            self.cleaner_checkpoint.load()
        except BaseException:
            self._lock.unlock()
            raise

    def begin(self) -> None:
        """Remove the marker: from here on a crash is an unclean stop. Remove what tasks left."""
        # Also where none was found: a link that leads nowhere now may lead to a file later.
        remove_clean_shutdown(self._io, self.file(CLEAN_SHUTDOWN))
        if self._is_new:
            mark_as_own(self._io, self.path)
            self._is_own = True
        remove_staged_segments(self.path, self._io)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offset_checkpoint(self.file(name))
        except CorruptCheckpointError as error:
            _LOGGER.log(self._io.warning_level, "taking a checkpoint for empty: %s", error)
            return {}

    def _ensure_partitions_are_ours(self) -> bool:
        """Raise, while nothing has been changed, if a partition cannot be owned."""
        partitions = partition_directories(self.path)
        for path, name in partitions:
            if name.state not in NOT_LOADED:
                ensure_regular_files(path)
        return bool(partitions)

    @property
    def is_online(self) -> bool:
        """Whether the directory is online: no write to it has failed."""
        return not self._failures.is_offline(self.path)

    # ---- checkpoints

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery point of every log."""
        with self._failures.watching(self.path):
            self._write_recovery_points()

    def checkpoint_log_start_offsets(self) -> None:
        """Write the start of those logs that do not begin where their first segment does."""
        with self._failures.watching(self.path):
            self._write_log_start_offsets()

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of every log."""
        with self._failures.watching(self.path):
            self._write_high_watermarks()

    def checkpoint_after_truncation(self) -> None:
        """Write the offsets that may have gone back with a log's end."""
        # Differs from Kafka, which leaves the start for later: a crash before it is written would
        # put the start above the new end, and all records of since then would be deleted.
        self.checkpoint_log_start_offsets()
        self.checkpoint_recovery_points()

    def _write_recovery_points(self) -> None:
        self._write(RECOVERY_POINT_CHECKPOINT, self.recovery_points, _recovery_point_of)

    def _write_log_start_offsets(self) -> None:
        self._write(LOG_START_OFFSET_CHECKPOINT, self.log_start_offsets, _start_of)

    def _write_high_watermarks(self) -> None:
        before = self.high_watermarks.checkpoint
        self._write(HIGH_WATERMARK_CHECKPOINT, before, self._high_watermark_of)

    def _high_watermark_of(self, log: UnifiedLog) -> int | None:
        if self._is_own or log.has_raised_high_watermark:
            return log.high_watermark
        # Differs from Kafka, which writes the offset that it started from: whoever has appended
        # nothing does not say that others have more than they said.
        entry = self.high_watermarks.checkpoint.get(log.topic_partition)
        return None if entry is None else min(entry, log.high_watermark)

    def _write(
        self,
        name: str,
        before: Mapping[TopicPartition, int],
        offset_of: Callable[[UnifiedLog], int | None],
    ) -> None:
        """Write one checkpoint with an offset of each log, if it has one.

        Logs that are not open keep the entries that they had before, or since they were settled.
        The logs are asked once no other thread writes a checkpoint: of two that are written one
        after the other, the later one has the later offsets.
        """
        path = self.file(name)
        self._io.ensure_own_process(path)  # a fork may have copied a lock that is held
        with self._checkpoint_lock:
            settled = self._settled.get(name, {})
            offsets = {
                each: settled.get(each, before.get(each))
                for each in self._logs.closed_in(self.path)
            }
            for log in self._logs.current_in(self.path):
                offsets[log.topic_partition] = offset_of(log)
            known = {each: at for each, at in sorted(offsets.items()) if at is not None}
            write_offset_checkpoint(self._io, path, known)

    # ---- topics

    def store_topic_configs(self, configs: Mapping[str, Mapping[str, str] | None]) -> None:
        """Replace the properties that are stored for topics; None removes a topic from the file."""
        path = self.file(TOPIC_CONFIGS)
        before: dict[str, Mapping[str, str]] = {**read_topic_configs(path)}
        after = {topic: each for topic, each in {**before, **configs}.items() if each is not None}
        if after != before:
            with self._failures.watching(self.path):
                write_topic_configs(self._io, path, after)

    # ---- end

    def settle(self, log: UnifiedLog) -> None:
        """Flush and close one log, and note its entries of all checkpoints for the end."""
        log.flush(includes_end=True)
        log.close()
        for name, offset_of in (
            (RECOVERY_POINT_CHECKPOINT, _recovery_point_of),
            (LOG_START_OFFSET_CHECKPOINT, _start_of),
            (HIGH_WATERMARK_CHECKPOINT, self._high_watermark_of),
        ):
            self._settled.setdefault(name, {})[log.topic_partition] = offset_of(log)
        log.close_handlers()

    def shut_down(
        self, logs: Sequence[UnifiedLog], broker_epoch: int | None, *, keeps_marker: bool = False
    ) -> None:
        """Flush and close all logs, write all checkpoints and the marker, give the lock back.

        If anything fails there is no marker, nor is there one beside a log that was left closed:
        it has not been recovered. The lock is given back all the same.
        """
        is_clean = False
        try:
            self._failures.ensure_online(self.path)
            for log in logs:
                log.flush(includes_end=True)
                log.close()
            self._write_recovery_points()
            self._write_log_start_offsets()
            self._write_high_watermarks()
            self.cleaner_checkpoint.write()
            is_recovered = self._logs.are_recovered_in(self.path)
            is_clean = is_recovered or (keeps_marker and self.had_clean_shutdown)
        finally:
            for log in logs:
                log.close_handlers()
            self.close(is_clean=is_clean, broker_epoch=broker_epoch)

    def close(self, *, is_clean: bool, broker_epoch: int | None = None) -> None:
        """Write the marker if everything was closed in order, and give the lock back.

        With the broker epoch that was found if none is given: a controller of version 4 takes a
        broker that comes back with another one for a broker that has lost records.
        """
        if broker_epoch is None:
            broker_epoch = self.broker_epoch
        try:
            if is_clean:
                self._write_marker(broker_epoch)
        finally:
            self._lock.unlock()

    def _write_marker(self, broker_epoch: int) -> None:
        marker = self.file(CLEAN_SHUTDOWN)
        try:
            write_clean_shutdown(self._io, marker, broker_epoch)
        except KafkaStorageError:
            with suppress(KafkaStorageError):  # that it is there says that all went well
                remove_clean_shutdown(self._io, marker)
            raise


def _recovery_point_of(log: UnifiedLog) -> int:
    return log.recovery_point


def _start_of(log: UnifiedLog) -> int | None:
    start = log.log_start_offset
    return start if start > log.segments[0].base_offset else None


def own_directories(
    paths: Sequence[str | os.PathLike[str]],
    context: LogContext,
    logs: LogsOfDirectories,
    is_only_replica: IsOnlyReplica,
) -> list[OwnedLogDirectory]:
    """Return the directories of one manager; parameters as of `OwnedLogDirectory`."""
    if isinstance(paths, str | os.PathLike):
        msg = f"directories is one path, expected a list of them: [{os.fspath(paths)!r}]"
        raise TypeError(msg)
    directories = [
        OwnedLogDirectory(local_location(path), context, logs, is_only_replica) for path in paths
    ]
    if len({directory.path for directory in directories}) < len(directories):
        msg = "a log directory is given twice"
        raise ValueError(msg)
    return directories
