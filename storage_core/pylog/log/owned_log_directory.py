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
    DELETE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_DIR_SUFFIX,
    PartitionDirectoryName,
    find_partition_directory_name,
)
from pylog.files.regular_file import link_as_directory
from pylog.log.partition_files import ensure_regular_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition

_LOGGER = logging.getLogger(__name__)
_METADATA_TOPIC = "__cluster_metadata"
_IGNORED = frozenset({"remote-log-index-cache"})
_NOT_LOADED = frozenset({DELETE_DIR_SUFFIX, STRAY_DIR_SUFFIX})


class OwnedLogDirectory:
    """A locked log directory. Any number of threads may write checkpoints; the rest is for one.

    A lock lets one checkpoint be written at a time. Whoever holds it waits for no log.

    Parameters
    ----------
    path
        The directory; made if it is not there. May be a link, or lead through some.
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
        self.path = os.path.realpath(path)  # a link that the user names is followed
        self.had_clean_shutdown = False
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._io = io
        self._lock = DirectoryLock(self.path)
        self._checkpoint_lock = threading.Lock()

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
            It holds a directory that is none of Kafka's, or a symbolic link in the place of a
            partition directory or of a file that is written to.
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
            self._ensure_partitions_are_ours()
            self.recovery_points = self._read(RECOVERY_POINT_CHECKPOINT)
            self.log_start_offsets = self._read(LOG_START_OFFSET_CHECKPOINT)
            self.high_watermarks = self._read(HIGH_WATERMARK_CHECKPOINT)
        except BaseException:
            self._lock.unlock()
            raise

    def begin(self) -> None:
        """Remove the marker: from here on a crash is an unclean stop."""
        # Also where none was found: a link that leads nowhere now may lead to a file later.
        remove_clean_shutdown(self._io, self.file(CLEAN_SHUTDOWN))

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offset_checkpoint(self.file(name))
        except CorruptCheckpointError as error:
            _LOGGER.warning("taking a checkpoint for empty: %s", error)
            return {}

    def _ensure_partitions_are_ours(self) -> None:
        """Raise, while nothing has been changed, if a partition cannot be owned."""
        for path, name in self.partition_directories():
            if name.state not in _NOT_LOADED:
                ensure_regular_files(path)

    def partition_directories(self) -> list[tuple[str, PartitionDirectoryName]]:
        """Return path and parsed name of every partition directory, sorted.

        One that is not loaded (deleted or stray) may be a link.

        Raises
        ------
        UnexpectedFileError
            A directory is none of Kafka's: a broker would refuse to start. Or a partition directory
            is a link, which Kafka would follow.
        LogDirectoryError
            The directory cannot be listed.
        """
        try:
            with os.scandir(self.path) as entries:
                found = [(entry.name, entry.is_symlink()) for entry in entries if _leads_on(entry)]
        except OSError as error:
            reason = f"cannot list log directory: {error.strerror}"
            raise LogDirectoryError(reason, self.path) from error
        partitions = []
        for name, is_link in sorted(found):
            if name in _IGNORED:
                continue
            parts = find_partition_directory_name(name)
            if parts is None:
                reason = (
                    f"directory {name!r} is not <topic>-<partition>; a log directory may hold "
                    "nothing else, move it away"
                )
                raise UnexpectedFileError(reason, self.file(name))
            if parts.topic_partition.topic == _METADATA_TOPIC:
                continue
            if is_link and parts.state not in _NOT_LOADED:
                raise link_as_directory(self.file(name))
            partitions.append((self.file(name), parts))
        return partitions

    def write_recovery_points(self, logs: Callable[[], Iterable[UnifiedLog]]) -> None:
        """Write the recovery point of every log.

        ``logs`` is called, and its logs are asked, once no other thread writes a checkpoint: of two
        that are written one after the other, the later one has the later offsets.
        """
        self._write(
            RECOVERY_POINT_CHECKPOINT,
            lambda: {log.topic_partition: log.recovery_point for log in logs()},
        )

    def write_log_start_offsets(self, logs: Callable[[], Iterable[UnifiedLog]]) -> None:
        """Write the start of those logs that do not begin where their first segment does."""
        self._write(
            LOG_START_OFFSET_CHECKPOINT,
            lambda: {
                log.topic_partition: log.log_start_offset
                for log in logs()
                if log.log_start_offset > log.segments[0].base_offset
            },
        )

    def write_high_watermarks(self, logs: Callable[[], Iterable[UnifiedLog]]) -> None:
        """Write the high watermark of every log."""
        self._write(
            HIGH_WATERMARK_CHECKPOINT,
            lambda: {log.topic_partition: log.high_watermark for log in logs()},
        )

    def _write(self, name: str, offsets: Callable[[], dict[TopicPartition, int]]) -> None:
        path = self.file(name)
        self._io.ensure_own_process(path)  # a fork may have copied a lock that is held
        with self._checkpoint_lock:
            write_offset_checkpoint(self._io, path, offsets())

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


def _leads_on(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a directory, or a link that is named like one or leads to one."""
    if not entry.is_symlink():
        return entry.is_dir()
    # One that leads in a circle is none, as for Java, and no reason to refuse all the others.
    leads_to_one = os.path.isdir(entry.path)  # noqa: PTH112 - kept as text
    return leads_to_one or find_partition_directory_name(entry.name) is not None
