"""Topics of a log directory: their partitions are created together, under one id, and deleted."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog.errors import UnknownTopicOrPartitionError
from pylog.files.file_names import PARTITION_METADATA, ensure_valid_topic, nearest_topic
from pylog.files.owned_directories import writable_log_directory
from pylog.files.partition_metadata import new_topic_id, read_partition_metadata
from pylog.lazy_modules import LazyModule
from pylog.model import TopicPartition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping

    from pylog.errors import LogStorageError
    from pylog.log import log_manager  # imports Arrow and Numba
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
else:
    log_manager = LazyModule("pylog.log.log_manager")

MAX_PARTITIONS = 100_000
"""Far above what a log directory can hold: a slip of the finger shall not fill the disk."""


def ensure_possible_count(partitions: int) -> None:
    """Raise `ValueError` unless a topic may have that many partitions."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        msg = f"a topic has 1 to {MAX_PARTITIONS} partitions, not {partitions}"
        raise ValueError(msg)


def closed_logs_of_topic(manager: LogManager, topic: str) -> dict[int, LogStorageError]:
    """Return why logs of a topic were left closed, by partition."""
    return {
        topic_partition.partition: error
        for topic_partition, error in manager.closed_logs.items()
        if topic_partition.topic == topic
    }


def logs_of_topic(manager: LogManager, topic: str) -> dict[int, UnifiedLog]:
    """Return the logs of a topic by partition, sorted; none if the topic is not there.

    Raises
    ------
    LogStorageError
        One of them was left closed, and this is why.
    """
    for error in closed_logs_of_topic(manager, topic).values():
        raise error
    return open_logs_of_topic(manager, topic)


def open_logs_of_topic(manager: LogManager, topic: str) -> dict[int, UnifiedLog]:
    """Return those logs of a topic that are open, by partition, sorted."""
    return {
        topic_partition.partition: log
        for topic_partition, log in manager.logs.items()
        if topic_partition.topic == topic
    }


def existing_logs(manager: LogManager, topic: str) -> dict[int, UnifiedLog]:
    """Return the logs of a topic by partition, sorted.

    Raises
    ------
    UnknownTopicOrPartitionError
        No partition of the topic exists.
    """
    logs = logs_of_topic(manager, topic)
    if not logs:
        near = nearest_topic(topic, {topic_partition.topic for topic_partition in manager.logs})
        hint = "" if near is None else f"; did you mean {near!r}?"
        msg = f"no topic {topic!r} in this log directory{hint}"
        raise UnknownTopicOrPartitionError(msg)
    return logs


def topic_id_of(logs: Mapping[int, UnifiedLog]) -> uuid.UUID | None:
    """Return the id that a topic's logs have; None if they are from before there were any.

    Raises
    ------
    CorruptCheckpointError
        A ``partition.metadata`` is malformed.
    """
    for log in logs.values():
        path = os.path.join(log.directory, PARTITION_METADATA)  # noqa: PTH118 - kept as text
        if os.path.exists(path):  # noqa: PTH110 - kept as text
            return read_partition_metadata(path).topic_id
    return None


@contextmanager
def opened(
    directory: str | os.PathLike[str] | LogManager, topic: str, *, must_exist: bool
) -> Iterator[LogManager]:
    """Give the manager that was given, or one of a directory for as long as the block lasts.

    Where a log of the topic would stay closed, the directory is left as it was.
    """
    if isinstance(directory, log_manager.LogManager):
        yield directory
        return
    path = writable_log_directory(directory, must_exist=must_exist)
    before_changes = log_manager.ensure_open(lambda each: each.topic == topic)
    with log_manager.LogManager([path], before_changes=before_changes) as manager:
        yield manager


def create_topic(
    directory: str | os.PathLike[str] | LogManager,
    topic: str,
    partitions: int,
    *,
    topic_id: uuid.UUID | None = None,
    properties: Mapping[str, str] | None = None,
) -> uuid.UUID:
    """Create partitions 0 to ``partitions`` - 1 of a new topic; return its id.

    Parameters
    ----------
    directory
        A log directory that no broker has open, created if it does not exist; or an open
        `LogManager`.
    topic
        The name of the topic, of which no partition may exist.
    partitions
        How many partitions, 1 or more.
    topic_id
        The id of the topic; a random one if None.
    properties
        The topic's own configuration, which is stored beside the logs before any is created.

    Raises
    ------
    ValueError
        The topic exists already, Kafka does not allow its name, or a property is wrong.
    LogLockedError
        A broker, or somebody else, has the directory open.
    KafkaStorageError
        The disk failed; some of the partitions may be there.
    LogStorageError
        The directory is not one that can be written to, or a log in it cannot be opened.

    Examples
    --------
    >>> pylog.create_topic("/tmp/logs", "orders", 3, properties={"cleanup.policy": "compact"})
    """
    ensure_valid_topic(topic)
    ensure_possible_count(partitions)
    with opened(directory, topic, must_exist=False) as manager:
        existing = logs_of_topic(manager, topic)
        if existing:
            there = ", ".join(map(str, existing))
            msg = f"topic {topic!r} already exists, with partitions {there}"
            raise ValueError(msg)
        manager.store_topic_config(topic, properties or {})
        topic_id = topic_id or new_topic_id()
        for partition in range(partitions):
            manager.get_or_create_log(TopicPartition(topic, partition), topic_id)
        return topic_id


def delete_topic(directory: str | os.PathLike[str] | LogManager, topic: str) -> None:
    """Delete all partitions of a topic, and the configuration that is stored for it.

    Each partition's directory is renamed to ``<topic>-<partition>.<id>-delete`` and then removed:
    at once if a path is given; after the topic's ``file.delete.delay.ms``, as a broker does it, if
    a manager is given. A crash or a failure leaves partitions that are not renamed yet, with their
    configuration, for which the same call can be made again; and renamed ones, which the next owner
    of the directory removes.

    Parameters
    ----------
    directory
        A log directory that no broker has open, or an open `LogManager`.
    topic
        The name of the topic.

    Raises
    ------
    UnknownTopicOrPartitionError
        No partition of the topic exists.
    LogLockedError
        A broker, or somebody else, has the directory open.
    KafkaStorageError
        The disk failed.
    LogStorageError
        The directory is not there or not one that can be written to, or a log in it cannot be
        opened.

    Examples
    --------
    >>> pylog.delete_topic("/tmp/logs", "orders")
    """
    is_managed = isinstance(directory, log_manager.LogManager)
    with opened(directory, topic, must_exist=True) as manager:
        for partition in existing_logs(manager, topic):
            manager.delete_log(TopicPartition(topic, partition), is_async=is_managed)
        # Last: until then a partition that is left has the configuration that it was written with.
        manager.store_topic_config(topic, None)


def add_partition(manager: LogManager, topic: str, partition: int) -> UnifiedLog:
    """Return the log of a partition, made under its topic's id if it is not there.

    Raises
    ------
    ValueError
        Kafka allows no such topic or partition.
    KafkaStorageError
        The disk failed.
    """
    topic_id = topic_id_of(logs_of_topic(manager, topic))
    return manager.get_or_create_log(TopicPartition(topic, partition), topic_id)
