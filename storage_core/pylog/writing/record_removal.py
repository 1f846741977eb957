"""Records taken away from a partition of a log directory: off its end, or from its start.

The directory is owned for that. `pylog.writing.removal_plan` says beforehand what would go, and
owns nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.model import TopicPartition
from pylog.writing.moved_offset import MovedOffset
from pylog.writing.owned_directory import own_log_directory

if TYPE_CHECKING:
    import os


def truncate_log(
    directory: str | os.PathLike[str],
    topic_partition: tuple[str, int],
    offset: int,
    *,
    takes_whole_batch: bool = False,
) -> MovedOffset:
    """Remove a partition's records from ``offset`` on; return where its log ends now.

    Parameters
    ----------
    directory
        A log directory that no broker has open.
    topic_partition
        One that is there.
    offset
        First offset to remove; at or after the end of the log, nothing is removed.
    takes_whole_batch
        Whether a batch that holds records on both sides of ``offset`` goes as a whole; the log
        then ends where it began.

    Raises
    ------
    OffsetInsideBatchError
        There is such a batch, and it is not to go. Nothing has been removed.
    OffsetOutOfRangeError
        ``offset`` is below the log's start. Nothing has been removed.
    LogLockedError
        Somebody else owns the directory.
    UnknownTopicOrPartitionError
        It has no such partition.
    LogStorageError
        The directory is refused or damaged, or the disk failed.
    """
    with own_log_directory(directory, must_exist=True) as manager:
        log = manager.get_log(TopicPartition(*topic_partition))
        before = log.log_end_offset
        log.truncate_at_boundary(offset, takes_whole_batch=takes_whole_batch)
        return MovedOffset(before, log.log_end_offset)


def delete_records(
    directory: str | os.PathLike[str],
    topic_partition: tuple[str, int],
    offset: int | None,
) -> MovedOffset:
    """Serve no record of a partition below ``offset`` any more; return where its log starts now.

    The files stay: retention removes whole segments below the start.

    Parameters
    ----------
    directory
        A log directory that no broker has open.
    topic_partition
        One that is there.
    offset
        First offset that is kept; None keeps no record. Below the log's start it changes nothing.

    Raises
    ------
    OffsetOutOfRangeError
        The offset is after the end of the log.
    PolicyViolationError
        The topic is compacted and nothing else.
    LogLockedError
        Somebody else owns the directory.
    UnknownTopicOrPartitionError
        It has no such partition.
    LogStorageError
        The directory is refused or damaged, or the disk failed.
    """
    with own_log_directory(directory, must_exist=True) as manager:
        log = manager.get_log(TopicPartition(*topic_partition))
        before = log.log_start_offset
        return MovedOffset(before, log.delete_records(offset))
