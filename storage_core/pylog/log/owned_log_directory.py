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
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    KafkaStorageError,
    LogDirectoryError,
    UnexpectedFileError,
)
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.clean_shutdown import (
    UNKNOWN_BROKER_EPOCH,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from pylog.files.directory_lock import DirectoryLock
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    PartitionDirectoryName,
    find_partition_directory_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)
_METADATA_TOPIC = "__cluster_metadata"
_IGNORED = frozenset({"remote-log-index-cache"})


class OwnedLogDirectory:
    """A locked log directory. Its manager calls one method at a time.

    Parameters
    ----------
    path
        The directory; made if it is not there.
    io
        What it is changed through.

    Attributes
    ----------
    had_clean_shutdown
        Whether the last owner closed everything in order; known once `open` has returned.
    broker_epoch
        Of that owner, if it did and was a broker; else `UNKNOWN_BROKER_EPOCH`.
    recovery_points, log_start_offsets, high_watermarks
        As the checkpoints had them then.
    """

    def __init__(self, path: str, io: DurableIO) -> None:
        self.path = os.path.abspath(path)  # noqa: PTH100 - kept as text
        self.had_clean_shutdown = False
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._io = io
        self._lock = DirectoryLock(self.path)

    def file(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.path, name)  # noqa: PTH118

    def open(self) -> None:
        """Lock the directory, note the marker, read the checkpoints; change nothing else.

        Raises
        ------
        LogLockedError
            Somebody else holds it.
        UnexpectedFileError
            It holds a directory that is none of Kafka's.
        KafkaStorageError
            The disk failed.
        """
        if self._io.make_directory(self.path, exist_ok=True):
            self._io.sync_directory(os.path.dirname(self.path))  # noqa: PTH120 - kept as text
        self._lock.try_lock()
        try:
            found = read_clean_shutdown(self.file(CLEAN_SHUTDOWN))
            self.had_clean_shutdown = found is not None
            if found is not None and found.broker_epoch is not None:
                self.broker_epoch = found.broker_epoch
            self.partition_directories()  # raises while nothing has been changed
            self.recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
            self.log_start_offsets = self._read(LOG_START_OFFSET_CHECKPOINT)
            self.high_watermarks = self._read(HIGH_WATERMARK_CHECKPOINT)
        except BaseException:
            self._lock.unlock()
            raise

    def begin(self) -> None:
        """Remove the marker: from here on a crash is an unclean stop."""
        if self.had_clean_shutdown:
            remove_clean_shutdown(self._io, self.file(CLEAN_SHUTDOWN))

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offset_checkpoint(self.file(name))
        except CorruptCheckpointError as error:
            _LOGGER.warning("taking a checkpoint for empty: %s", error)
            return {}

    def partition_directories(self) -> list[tuple[str, PartitionDirectoryName]]:
        """Return path and parsed name of every partition directory, sorted.

        Raises
        ------
        UnexpectedFileError
            A directory is none of Kafka's: a broker would refuse to start.
        LogDirectoryError
            The directory cannot be listed.
        """
        try:
            with os.scandir(self.path) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir())
        except OSError as error:
            reason = f"cannot list log directory: {error.strerror}"
            raise LogDirectoryError(reason, self.path) from error
        found = []
        for name in names:
            if name in _IGNORED:
                continue
            parts = find_partition_directory_name(name)
            if parts is None:
                reason = (
                    f"directory {name!r} is not <topic>-<partition>; a log directory may hold "
                    "nothing else, move it away"
                )
                raise UnexpectedFileError(reason, self.file(name))
            if parts.topic_partition.topic != _METADATA_TOPIC:
                found.append((self.file(name), parts))
        return found

    def write_recovery_points(self, logs: Iterable[UnifiedLog]) -> None:
        """Write the recovery point of every log."""
        points = {log.topic_partition: log.recovery_point for log in logs}
        write_offset_checkpoint(self._io, self.file(RECOVERY_POINT_CHECKPOINT), points)

    def write_log_start_offsets(self, logs: Iterable[UnifiedLog]) -> None:
        """Write the start of those logs that do not begin where their first segment does."""
        starts = {
            log.topic_partition: log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments[0].base_offset
        }
        write_offset_checkpoint(self._io, self.file(LOG_START_OFFSET_CHECKPOINT), starts)

    def write_high_watermarks(self, logs: Iterable[UnifiedLog]) -> None:
        """Write the high watermark of every log."""
        watermarks = {log.topic_partition: log.high_watermark for log in logs}
        write_offset_checkpoint(self._io, self.file(HIGH_WATERMARK_CHECKPOINT), watermarks)

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
