"""Removal of records from the end of a partition, or from the start of several.

What says beforehand what would be removed does the same on an overlay (`pylog.files.overlay`), and
locks nothing. So does each removal before it owns the log directory: what is refused is refused
there, and no file has been changed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from pylog.files.owned_directories import writable_log_directory
from pylog.log.log_manager import ensure_open
from pylog.model import TopicPartition
from pylog.reading.log_directory import open_directory
from pylog.reading.removal_preview import removal_from_end, removal_from_start
from pylog.writing.held_back import HeldBack
from pylog.writing.owned_directory import on_overlay, own_log_directory

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Mapping

    from pylog.config.server_properties import ServerProperties
    from pylog.log.log_context import LogContext
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from pylog.reading.removal_preview import Removal


MovedT = TypeVar("MovedT")
PartitionT = TypeVar("PartitionT", bound=tuple[str, int])
"""A partition, as a pair of topic and number; `TopicPartition` is one."""


class MovedOffset(NamedTuple):
    """The log start offset, or the log end offset (exclusive), of one partition.

    Attributes
    ----------
    before, after
        The offset before and after the removal.
    removal
        What would be removed, if this is a plan; None if the removal has been done.
    held_back
        What stays of the records that were all to go, because it may not be replicated.
    """

    before: int
    after: int
    removal: Removal | None = None
    held_back: HeldBack | None = None


def truncate_log(
    directory: str | os.PathLike[str],
    topic_partition: tuple[str, int],
    offset: int,
    *,
    takes_whole_batch: bool = False,
    server_properties: ServerProperties | None = None,
    recover_as_broker: bool = False,
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
    server_properties
        What topics are configured to that have nothing of their own; Kafka's defaults if None.
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does.

    Raises
    ------
    RecoveryRefusedError
        It would drop some of this log, and may not. Nothing has been changed.
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

    Examples
    --------
    >>> for value in ("a", "b"):
    ...     summary = pylog.write_topic("logs", "orders", [{"value": value}])
    >>> moved = pylog.truncate_log("logs", ("orders", 0), 1)
    >>> moved.before, moved.after
    (2, 1)
    """
    return _truncation(
        topic_partition,
        offset,
        takes_whole_batch=takes_whole_batch,
        server_properties=server_properties,
        recover_as_broker=recover_as_broker,
    ).carry_out(directory)


class _Change(NamedTuple, Generic[MovedT]):
    """A removal: from which logs, what owns the log directory for it, and what it does then."""

    partitions: Collection[tuple[str, int]]
    owner: Callable[..., LogManager]
    make: Callable[[LogManager], MovedT]

    def plan(self, directory: str | os.PathLike[str]) -> MovedT:
        """Return the removals that would be done."""
        path = writable_log_directory(directory, must_exist=True)
        with (
            on_overlay(path, None) as (path_there, context),
            self.owner(path_there, self.partitions, context=context) as manager,
        ):
            return self.make(manager)

    def carry_out(self, directory: str | os.PathLike[str]) -> MovedT:
        """Do it; what refuses it is raised before the directory is owned."""
        owner = self.owner(directory, self.partitions)
        with owner.rehearsal(self.partitions.__contains__) as rehearsed:
            self.make(rehearsed)
        with owner as manager:
            return self.make(manager)


def _truncation(
    topic_partition: tuple[str, int],
    offset: int,
    *,
    takes_whole_batch: bool,
    server_properties: ServerProperties | None,
    recover_as_broker: bool,
) -> _Change[MovedOffset]:
    return _Change(
        [topic_partition],
        partial(
            _owner,
            server_properties=server_properties,
            recover_as_broker=recover_as_broker,
        ),
        partial(
            _truncate,
            topic_partition=topic_partition,
            offset=offset,
            takes_whole_batch=takes_whole_batch,
        ),
    )


def _owner(
    directory: str | os.PathLike[str],
    partitions: Collection[tuple[str, int]],
    *,
    server_properties: ServerProperties | None,
    recover_as_broker: bool,
    high_watermark: str = "checkpoint",
    context: LogContext | None = None,
) -> LogManager:
    return own_log_directory(
        directory,
        must_exist=True,
        server_properties=server_properties,
        context=context,
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
        before_changes=ensure_open(partitions.__contains__),
    )


def _truncate(
    manager: LogManager, topic_partition: tuple[str, int], offset: int, *, takes_whole_batch: bool
) -> MovedOffset:
    log = manager.get_log(TopicPartition(*topic_partition))
    before = log.log_end_offset
    log.truncate_at_boundary(offset, takes_whole_batch=takes_whole_batch)
    return MovedOffset(before, log.log_end_offset)


def delete_records(
    directory: str | os.PathLike[str],
    offsets: Mapping[PartitionT, int | None],
    *,
    server_properties: ServerProperties | None = None,
    high_watermark: str = "checkpoint",
    recover_as_broker: bool = False,
) -> dict[TopicPartition, MovedOffset]:
    """Raise the start of logs; return where each log started and starts now.

    Records below the start are no longer served. Their files remain until retention removes whole
    segments below the start.

    Parameters
    ----------
    directory
        A log directory that no broker has open.
    offsets
        The first offset to keep of each partition, a pair of topic and number; None to keep no
        record below the high watermark, which in most cases is the log's end. Below the log's start
        it changes nothing.
    server_properties
        What topics are configured to that have nothing of their own; Kafka's defaults if None.
    high_watermark
        Where the high watermark of each log starts: as on a broker (``checkpoint``), or, for a
        directory whose cluster is gone, at the log's end (``log-end``).
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does.

    Raises
    ------
    RecoveryRefusedError
        It would drop some of one of these logs, and may not. Nothing has been changed.
    OffsetAboveHighWatermarkError
        An offset is after the high watermark of its log. No start has been raised.
    OffsetOutOfRangeError
        An offset is after the end of its log. No start has been raised.
    PolicyViolationError
        A topic's ``cleanup.policy`` is ``compact`` alone. No start has been raised.
    UnknownTopicOrPartitionError
        The directory does not have one of the partitions. No start has been raised.
    LogLockedError
        A broker, or another program, has the directory open.
    LogStorageError
        The directory cannot be opened or is damaged, or the disk failed.

    Examples
    --------
    >>> pylog.write_topic("logs", "orders", [{"value": "a"}, {"value": "b"}]).end_offsets
    {0: 2}
    >>> moved = pylog.delete_records("logs", {("orders", 0): 1})
    >>> [(each.before, each.after) for each in moved.values()]
    [(0, 1)]
    """
    return _deletion(
        offsets,
        server_properties=server_properties,
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
    ).carry_out(directory)


def _deletion(
    offsets: Mapping[PartitionT, int | None],
    *,
    server_properties: ServerProperties | None,
    high_watermark: str,
    recover_as_broker: bool,
) -> _Change[dict[TopicPartition, MovedOffset]]:
    return _Change(
        offsets,
        partial(
            _owner,
            server_properties=server_properties,
            recover_as_broker=recover_as_broker,
            high_watermark=high_watermark,
        ),
        partial(_delete, offsets=offsets),
    )


def _delete(
    manager: LogManager, offsets: Mapping[PartitionT, int | None]
) -> dict[TopicPartition, MovedOffset]:
    logs = [(manager.get_log(TopicPartition(*each)), offset) for each, offset in offsets.items()]
    for log, offset in logs:
        log.ensure_records_may_be_deleted(offset)
    return {log.topic_partition: _delete_records(log, offset) for log, offset in logs}


def _delete_records(log: UnifiedLog, offset: int | None) -> MovedOffset:
    before, after = log.log_start_offset, log.delete_records(offset)
    end = log.log_end_offset
    stays = (after, end) if offset is None and after < end else None
    return MovedOffset(before, after, held_back=HeldBack.of(log, stays))


def plan_truncation(
    directory: str | os.PathLike[str],
    topic_partition: tuple[str, int],
    offset: int,
    *,
    takes_whole_batch: bool = False,
    server_properties: ServerProperties | None = None,
    recover_as_broker: bool = False,
) -> MovedOffset:
    """Return where the log would end after `truncate_log`, and what it would remove.

    Parameters and errors are those of `truncate_log`; a directory that is locked is not an error.

    Examples
    --------
    >>> summary = pylog.write_topic("logs", "orders", [{"value": "a"}, {"value": "b"}])
    >>> plan = pylog.jobs.plan_truncation("logs", ("orders", 0), 1, takes_whole_batch=True)
    >>> plan.before, plan.after
    (2, 0)
    """
    moved = _truncation(
        topic_partition,
        offset,
        takes_whole_batch=takes_whole_batch,
        server_properties=server_properties,
        recover_as_broker=recover_as_broker,
    ).plan(directory)
    view = open_directory(directory)[topic_partition]
    return moved._replace(removal=removal_from_end(view, moved.after, moved.before))


def plan_record_deletion(
    directory: str | os.PathLike[str],
    offsets: Mapping[PartitionT, int | None],
    *,
    server_properties: ServerProperties | None = None,
    high_watermark: str = "checkpoint",
    recover_as_broker: bool = False,
) -> dict[TopicPartition, MovedOffset]:
    """Return where logs would start after `delete_records`, and what it would remove.

    Bytes and segments are those that retention may remove afterwards. Parameters and errors are
    those of `delete_records`; a directory that is locked is not an error.

    Examples
    --------
    >>> summary = pylog.write_topic("logs", "orders", [{"value": "a"}, {"value": "b"}])
    >>> plan = pylog.jobs.plan_record_deletion("logs", {("orders", 0): 1})
    >>> [(each.before, each.after) for each in plan.values()]
    [(0, 1)]
    """
    plan = _deletion(
        offsets,
        server_properties=server_properties,
        high_watermark=high_watermark,
        recover_as_broker=recover_as_broker,
    ).plan(directory)
    views = open_directory(directory)
    return {
        each: moved._replace(removal=removal_from_start(views[each], moved.before, moved.after))
        for each, moved in plan.items()
    }
