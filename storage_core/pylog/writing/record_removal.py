"""Removal of records from the end of a partition, or from its start.

The log directory is owned during it. `pylog.writing.removal_plan` says beforehand what would be
removed, and does not own the directory.
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
    """Remove a partition's records from ``offset`` on; return where its log ended and ends now.

    Parameters
    ----------
    directory
        A log directory that no broker has open.
    topic_partition
        The partition, as a pair of topic and number.
    offset
        The first offset to remove. If it is at or after the end of the log, nothing is removed.
    takes_whole_batch
        Whether a batch with records on both sides of ``offset`` is removed as a whole; the log then
        ends where that batch began.

    Raises
    ------
    OffsetInsideBatchError
        There is such a batch, and ``takes_whole_batch`` is False. Nothing has been removed.
    OffsetOutOfRangeError
        ``offset`` is below the log's start. Nothing has been removed.
    LogLockedError
        A broker, or another program, has the directory open.
    UnknownTopicOrPartitionError
        The directory does not have that partition.
    LogStorageError
        The directory cannot be opened or is damaged, or the disk failed.
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
    """Raise the start of a log to ``offset``; return where the log started and starts now.

    Records below the start are no longer served. Their files remain until retention removes whole
    segments below the start.

    Parameters
    ----------
    directory
        A log directory that no broker has open.
    topic_partition
        The partition, as a pair of topic and number.
    offset
        The first offset to keep; None to keep no record. Below the log's start it changes nothing.

    Raises
    ------
    OffsetOutOfRangeError
        The offset is after the end of the log.
    PolicyViolationError
        The topic's ``cleanup.policy`` is ``compact`` alone.
    LogLockedError
        A broker, or another program, has the directory open.
    UnknownTopicOrPartitionError
        The directory does not have that partition.
    LogStorageError
        The directory cannot be opened or is damaged, or the disk failed.
    """
    with own_log_directory(directory, must_exist=True) as manager:
        log = manager.get_log(TopicPartition(*topic_partition))
        before = log.log_start_offset
        return MovedOffset(before, log.delete_records(offset))
