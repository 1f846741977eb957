"""Every error that pylog raises on purpose, under one root.

Bad arguments stay ``ValueError``. Everything that a file, a directory or a requested offset can
do wrong is a `LogStorageError` whose text is one line: what is wrong, in which file, at which
byte, stored against expected, and what to do where something can be done. Spark ships text and
not objects, so that line must suffice by itself.

Every argument is handed to ``Exception.__init__`` positionally, so that errors survive pickling
between processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.locations import shown

if TYPE_CHECKING:
    import os


class LogStorageError(Exception):
    """Root of all errors raised by pylog."""


class _LocatedError(LogStorageError):
    """An error about the bytes of one file.

    Parameters
    ----------
    reason
        What is wrong, stored against expected.
    path
        The file, if known; kept as it may be printed, without what a URI has of credentials.
    position
        Byte position in that file, if known.
    """

    def __init__(
        self,
        reason: str,
        path: str | os.PathLike[str] | None = None,
        position: int | None = None,
    ) -> None:
        path = shown(path) if isinstance(path, str) else path
        super().__init__(reason, path, position)
        self.reason = reason
        self.path = path
        self.position = position

    def __str__(self) -> str:
        where = ""
        if self.path is not None:
            where += f" in {self.path}"
        if self.position is not None:
            where += f" at byte {self.position}"
        return f"{self.reason}{where}"


class CorruptRecordError(_LocatedError):
    """Bytes of a ``.log`` that cannot be what a broker wrote (Kafka: CorruptRecordException)."""


class MisplacedBatchError(CorruptRecordError):
    """A batch whose records begin before those of the one in front of it end: one is wrong."""


class InvalidRecordError(_LocatedError):
    """A batch whose checksum is right and whose records are not (Kafka: InvalidRecordException)."""


class UnsupportedCodecError(InvalidRecordError):
    """A compression codec that the record format does not allow, or that does not exist."""


class CorruptIndexError(_LocatedError):
    """An index file that cannot belong to its segment (Kafka: CorruptIndexException)."""


class CorruptSnapshotError(_LocatedError):
    """A producer snapshot of wrong version, length or CRC (Kafka: CorruptSnapshotException)."""


class CorruptCheckpointError(_LocatedError):
    """A text checkpoint or properties file that does not follow its format."""


class UnexpectedFileError(_LocatedError):
    """A file or directory name that cannot stand where it was found."""


class LogDirectoryError(_LocatedError):
    """A path that holds no Kafka log, or that cannot be read."""


class UnknownTopicOrPartitionError(LogStorageError):
    """A topic or partition that was asked for and is not there."""


class SegmentVanishedError(_LocatedError):
    """A segment file that was planned for reading and is gone or shorter now."""


class TimestampOverflowError(_LocatedError):
    """A record timestamp in milliseconds that does not fit into 64-bit microseconds."""


class OffsetOutOfRangeError(LogStorageError):
    """An offset outside ``[log_start_offset, log_end_offset]`` (Kafka: OffsetOutOfRangeException).

    Parameters
    ----------
    topic_partition
        The log that was asked, as text.
    requested
        The offset asked for.
    log_start_offset, log_end_offset
        What the log holds; the end is exclusive.
    """

    def __init__(
        self,
        topic_partition: str,
        requested: int,
        log_start_offset: int,
        log_end_offset: int,
    ) -> None:
        super().__init__(topic_partition, requested, log_start_offset, log_end_offset)
        self.topic_partition = topic_partition
        self.requested = requested
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset

    def __str__(self) -> str:
        return (
            f"offset {self.requested} of {self.topic_partition} is out of range: the log holds "
            f"offsets {self.log_start_offset} to {self.log_end_offset} (exclusive)"
        )
