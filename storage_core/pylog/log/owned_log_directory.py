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
from typing import TYPE_CHECKING

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
from pylog.files.owned_directories import (
    NOT_LOADED,
    ensure_regular_files,
    ensure_writable_log_directory,
    local_location,
    partition_directories,
)
from pylog.files.staged_segments import remove_staged_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pylog.log.log_context import LogContext
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)


class OwnedLogDirectory:
    """A locked log directory. Any number of threads may write checkpoints; the rest is for one.

    A lock lets one checkpoint be written at a time. Whoever holds it waits for no log.

    Parameters
    ----------
    path
        The directory; made if it is not there. May be a link, or lead through some.
    context
        Of the manager.
    logs_in
        Gives the current logs of a log directory, whose offsets are written.

    Attributes
    ----------
    had_clean_shutdown
        Whether the last owner closed everything in order; known once `open` has returned.
    broker_epoch
        Of that owner, if it did and was a broker; else `UNKNOWN_BROKER_EPOCH`.
    recovery_points, log_start_offsets, high_watermarks
        As the checkpoints had them then.
    cleaner_checkpoint
        How far each log is clean.
    """

    def __init__(
        self, path: str, context: LogContext, logs_in: Callable[[str], Sequence[UnifiedLog]]
    ) -> None:
        self.path = os.path.realpath(path)  # a link that the user names is followed
        self.had_clean_shutdown = False
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._logs_in = logs_in
        self._failures = context.failures
        self._io = context.io
        self._lock = DirectoryLock(self.path)
        self.cleaner_checkpoint = CleanerCheckpoint(
            self.path,
            context.io,
            context.failures,
            lambda: [log.topic_partition for log in logs_in(self.path)],
        )
        self._checkpoint_lock = threading.Lock()

    def file(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.path, name)  # noqa: PTH118

    def open(self) -> None:
        """Lock the directory, note the marker, read the checkpoints; change nothing else.

        Raises
        ------
        LogDirectoryError
            It is not a log directory, and must not become one; see
            `pylog.files.owned_directories`.
        LogLockedError
            Somebody else holds it.
        UnexpectedFileError
            It holds a directory that is none of Kafka's, or a symbolic link in the place of a
            partition directory or of a file that is written to.
        KafkaStorageError
            The disk failed.
        """
        ensure_writable_log_directory(self.path)
        if self._io.make_directory(self.path, exist_ok=True):
            self._io.sync_directory(os.path.dirname(self.path))  # noqa: PTH120 - kept as text
        self._lock.try_lock()
        try:
            marker = read_clean_shutdown(self.file(CLEAN_SHUTDOWN))
            self.had_clean_shutdown = marker is not None
            if marker is not None and marker.broker_epoch is not None:
                self.broker_epoch = marker.broker_epoch
            self._ensure_partitions_are_ours()
            self.recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
            self.log_start_offsets = self._read(LOG_START_OFFSET_CHECKPOINT)
            self.high_watermarks = self._read(HIGH_WATERMARK_CHECKPOINT)
            self.cleaner_checkpoint.load()
        except BaseException:
            self._lock.unlock()
            raise

    def begin(self) -> None:
        """Remove the marker: from here on a crash is an unclean stop. Remove what tasks left."""
        # Also where none was found: a link that leads nowhere now may lead to a file later.
        remove_clean_shutdown(self._io, self.file(CLEAN_SHUTDOWN))
        remove_staged_segments(self.path, self._io)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offset_checkpoint(self.file(name))
        except CorruptCheckpointError as error:
            _LOGGER.warning("taking a checkpoint for empty: %s", error)
            return {}

    def _ensure_partitions_are_ours(self) -> None:
        """Raise, while nothing has been changed, if a partition cannot be owned."""
        for path, name in partition_directories(self.path):
            if name.state not in NOT_LOADED:
                ensure_regular_files(path)

    @property
    def is_online(self) -> bool:
        """Whether nothing has failed in it."""
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
        self._write(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    def _write_log_start_offsets(self) -> None:
        self._write(
            LOG_START_OFFSET_CHECKPOINT,
            lambda log: log.log_start_offset,
            is_written=lambda log: log.log_start_offset > log.segments[0].base_offset,
        )

    def _write_high_watermarks(self) -> None:
        self._write(HIGH_WATERMARK_CHECKPOINT, lambda log: log.high_watermark)

    def _write(
        self,
        name: str,
        offset_of: Callable[[UnifiedLog], int],
        is_written: Callable[[UnifiedLog], bool] = lambda _: True,
    ) -> None:
        """Write one checkpoint with an offset of each log.

        The logs are asked once no other thread writes a checkpoint: of two that are written one
        after the other, the later one has the later offsets.
        """
        path = self.file(name)
        self._io.ensure_own_process(path)  # a fork may have copied a lock that is held
        with self._checkpoint_lock:
            offsets = {
                log.topic_partition: offset_of(log)
                for log in self._logs_in(self.path)
                if is_written(log)
            }
            write_offset_checkpoint(self._io, path, offsets)

    # ---- topics

    def store_topic_configs(self, configs: Mapping[str, Mapping[str, str] | None]) -> None:
        """Replace the properties that are stored for topics; None removes a topic from the file.

        Raises
        ------
        CorruptCheckpointError
            What is stored cannot be read.
        KafkaStorageError
            The disk failed, or has failed before.
        """
        path = self.file(TOPIC_CONFIGS)
        before: dict[str, Mapping[str, str]] = {**read_topic_configs(path)}
        after = {topic: each for topic, each in {**before, **configs}.items() if each is not None}
        if after != before:
            with self._failures.watching(self.path):
                write_topic_configs(self._io, path, after)

    # ---- end

    def shut_down(self, logs: Sequence[UnifiedLog], broker_epoch: int | None) -> None:
        """Flush and close all logs, write all checkpoints and the marker, give the lock back.

        If anything fails there is no marker, and the lock is given back all the same.

        Parameters
        ----------
        logs
            All that lie in the directory, future ones, too.
        broker_epoch
            See `close`.

        Raises
        ------
        LogStorageError
            The first failure.
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
            is_clean = True
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


def own_directories(
    paths: Sequence[str | os.PathLike[str]],
    context: LogContext,
    logs_in: Callable[[str], Sequence[UnifiedLog]],
) -> list[OwnedLogDirectory]:
    """Return the directories of one manager; parameters as of `OwnedLogDirectory`.

    Raises
    ------
    TypeError, ValueError
        One path is given instead of a list, or a directory twice.
    """
    if isinstance(paths, str | os.PathLike):
        msg = f"directories is one path, expected a list of them: [{os.fspath(paths)!r}]"
        raise TypeError(msg)
    directories = [OwnedLogDirectory(local_location(path), context, logs_in) for path in paths]
    if len({directory.path for directory in directories}) < len(directories):
        msg = "a log directory is given twice"
        raise ValueError(msg)
    return directories
