"""Topics of an owned log directory: made, given more partitions or other configs, deleted."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog.errors import KafkaStorageError, UnknownTopicOrPartitionError
from pylog.files import disk
from pylog.files.file_names import (
    PARTITION_METADATA,
    colliding_topic,
    ensure_valid_topic,
    nearest_topic,
)
from pylog.files.owned_directories import writable_log_directory
from pylog.files.partition_metadata import (
    ZERO_UUID,
    format_uuid,
    new_topic_id,
    read_partition_metadata,
)
from pylog.lazy_modules import LazyModule
from pylog.locations import printable_location
from pylog.model import INTERNAL_TOPICS, TopicPartition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pylog.errors import LogStorageError
    from pylog.log import log_manager  # imports Arrow and Numba
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from pylog.writing import node as node_rules
else:
    log_manager = LazyModule("pylog.log.log_manager")
    node_rules = LazyModule("pylog.writing.node")


_LOGGER = logging.getLogger(__name__)
BegunT = TypeVar("BegunT")

_SIMILARITY_OF_TYPOS = 0.8
"""As of `nearest_topic`: ``ordes`` is that similar to ``orders``, and ``events`` is not."""

MAX_PARTITIONS = 100_000
"""Far above what a log directory can hold: a slip of the finger shall not fill the disk."""


def ensure_possible_count(partitions: int) -> None:
    """Raise `ValueError` unless a topic may have that many partitions."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        msg = f"a topic has 1 to {MAX_PARTITIONS} partitions, not {partitions}"
        raise ValueError(msg)


def ensure_no_similar_topic(topic: str, known: Collection[str], advice: str) -> None:
    """Raise `UnknownTopicOrPartitionError` if a new topic's name is nearly that of a known one."""
    near = nearest_topic(topic, known, least_similarity=_SIMILARITY_OF_TYPOS)
    if near is not None:
        msg = f"no topic {topic!r} in this log directory; did you mean {near!r}? {advice}"
        raise UnknownTopicOrPartitionError(msg)


def ensure_no_collision(topic: str, known: Iterable[str]) -> None:
    """Raise `ValueError` if a cluster with the known topics would refuse a new one's name."""
    collides = colliding_topic(topic, known)
    if collides is not None:
        msg = (
            f"topic {topic!r} would collide with {collides!r}: Kafka's metrics take '.' and "
            "'_' for the same, so a cluster refuses it; choose another name"
        )
        raise ValueError(msg)


def no_such_topic(topic: str, known: Iterable[str]) -> UnknownTopicOrPartitionError:
    """Return the error for a topic that is not there, which names the nearest."""
    near = nearest_topic(topic, known)
    hint = "" if near is None else f"; did you mean {near!r}?"
    return UnknownTopicOrPartitionError(f"no topic {topic!r} in this log directory{hint}")


def closed_logs_of_topic(manager: LogManager, topic: str) -> dict[int, LogStorageError]:
    """Return why logs of a topic were left closed, by partition."""
    return {
        topic_partition.partition: error
        for topic_partition, error in manager.closed_logs.items()
        if topic_partition.topic == topic
    }


def logs_of_topic(manager: LogManager, topic: str) -> dict[int, UnifiedLog]:
    """Return the logs of a topic by partition, sorted; none if the topic is not there."""
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
    """Return the logs of a topic by partition, sorted."""
    logs = logs_of_topic(manager, topic)
    if not logs:
        raise no_such_topic(topic, manager.topics)
    return logs


def topic_id_of(logs: Mapping[int, UnifiedLog]) -> uuid.UUID | None:
    """Return the id that a topic's logs have; None if they are from before there were any."""
    for log in logs.values():
        path = os.path.join(log.directory, PARTITION_METADATA)  # noqa: PTH118 - kept as text
        if disk.exists(path):
            return read_partition_metadata(path).topic_id
    return None


@contextmanager
def opened(
    directory: str | os.PathLike[str] | LogManager,
    topic: str,
    begin: Callable[[LogManager], BegunT],
    *,
    must_exist: bool,
) -> Iterator[tuple[LogManager, BegunT]]:
    """Give the manager that was given, or one of a directory for as long as the block lasts.

    One that is not open is opened so long. With it comes what ``begin`` returns. What that refuses
    is refused before a directory is owned.
    """
    if not isinstance(directory, log_manager.LogManager):
        path = writable_log_directory(directory, must_exist=must_exist)
        before_changes = log_manager.ensure_open(lambda each: each.topic == topic)
        owner = log_manager.LogManager([path], before_changes=before_changes)
    elif directory.is_open:
        yield directory, begin(directory)
        return
    else:
        owner = directory
    with owner.rehearsal(lambda each: each.topic == topic) as rehearsed:
        begin(rehearsed)
    with owner as manager:
        yield manager, begin(manager)


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
        The topic exists already, Kafka does not allow its name, also beside that of another topic,
        or a property is wrong.
    LogLockedError
        A broker, or somebody else, has the directory open.
    KafkaStorageError
        The disk failed; some of the partitions may be there.
    LogStorageError
        The directory is not one that can be written to, or a log in it cannot be opened.

    Examples
    --------
    >>> topic_id = pylog.create_topic("logs", "orders", 3, properties={"retention.ms": "-1"})
    >>> [each.partition for each in pylog.list_partitions("logs").partitions]
    [0, 1, 2]
    """
    ensure_valid_topic(topic)
    ensure_possible_count(partitions)

    def begin(manager: LogManager) -> None:
        existing = logs_of_topic(manager, topic)
        if existing:
            there = ", ".join(map(str, existing))
            msg = f"topic {topic!r} already exists, with partitions {there}"
            raise ValueError(msg)
        ensure_no_collision(topic, manager.topics)
        manager.store_topic_config(topic, properties or {})

    with opened(directory, topic, begin, must_exist=False) as (manager, _):
        topic_id = topic_id or new_topic_id()
        for partition in range(partitions):
            try:
                log = manager.get_or_create_log(TopicPartition(topic, partition), topic_id)
            except KafkaStorageError as error:
                if partition:
                    error.add_note(
                        f"partitions 0 to {partition - 1} have been created; once the disk is "
                        f"mended, pylog alter-topic --partitions {partitions} adds the others"
                    )
                raise
        _warn_unless_of_cluster(
            log.log_directory, topic, topic_id, manager.context.io.warning_level
        )
        return topic_id


def _warn_unless_of_cluster(
    log_directory: str, topic: str, topic_id: uuid.UUID, level: int
) -> None:
    """Log a warning if brokers will not serve a topic, since their cluster does not have it."""
    node = node_rules.nodes_of([log_directory])[log_directory]
    if not (node.is_kraft or node.has_metadata_log) or node.topic_id(topic) == topic_id:
        return
    has_it = "does not have" if node.has_metadata_log else "is not here, and has to have"
    _LOGGER.log(
        level,
        "%s belongs to a KRaft cluster, whose metadata %s topic %s with the id %s: a broker sets a "
        "topic that it lacks aside as -stray when it starts, and does not serve it; create it in "
        "the cluster first, and here under the id that it has there (--topic-id)",
        *(printable_location(log_directory), has_it, topic, format_uuid(topic_id)),
    )


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
    >>> topic_id = pylog.create_topic("logs", "orders", 1)
    >>> pylog.delete_topic("logs", "orders")
    """
    is_managed = isinstance(directory, log_manager.LogManager)
    find_logs = partial(existing_logs, topic=topic)
    with opened(directory, topic, find_logs, must_exist=True) as (manager, logs):
        for partition in logs:
            manager.delete_log(TopicPartition(topic, partition), is_async=is_managed)
        # Last: until then a partition that is left has the configuration that it was written with.
        manager.store_topic_config(topic, None)


def add_partition(manager: LogManager, topic: str, partition: int) -> UnifiedLog:
    """Return the log of a partition, made under its topic's id if it is not there."""
    logs = logs_of_topic(manager, topic)
    topic_id = topic_id_of(logs)
    if logs and topic_id is None:  # the new one has none either: a broker refuses two answers
        topic_id = ZERO_UUID
    return manager.get_or_create_log(TopicPartition(topic, partition), topic_id)


class AlteredTopic(NamedTuple):
    """A topic after `alter_topic`.

    Attributes
    ----------
    properties
        Its own properties; those that are not there it has from the configuration of all topics.
    partitions
        How many it has in this log directory.
    added_partitions
        How many of them are new.
    """

    properties: dict[str, str]
    partitions: int
    added_partitions: int


def alter_topic(
    directory: str | os.PathLike[str] | LogManager,
    topic: str,
    *,
    properties: Mapping[str, str] | None = None,
    deleted_properties: Collection[str] = (),
    partitions: int | None = None,
) -> AlteredTopic:
    """Change a topic's own properties, and add partitions; return what it has now.

    Everything is checked before anything is changed. The properties are stored before partitions
    are made; after a crash the same call can be made again, as long as the number of partitions is
    still to grow.

    Parameters
    ----------
    directory
        A log directory that no broker has open, or an open `LogManager`, whose open logs follow the
        new configuration at once.
    topic
        The name of the topic.
    properties
        Properties of its own that it gets, or gets another value of.
    deleted_properties
        Properties of its own that it loses; the configuration of all topics then counts.
    partitions
        How many partitions it has after the call: more than now, all under the topic's id. Kafka's
        partitioner then sends keys to other partitions than before.

    Raises
    ------
    UnknownTopicOrPartitionError
        No partition of the topic exists.
    ValueError
        Nothing is to be changed, a property is wrong or is not there to be deleted, or the
        partitions would not be more. Nothing has been changed.
    LogLockedError
        A broker, or somebody else, has the directory open.
    LogStorageError
        The directory is not there or not one that can be written to, a log in it cannot be opened,
        or the disk failed.

    Notes
    -----
    Source: ConfigCommand, TopicCommand, ReplicationControlManager.createPartitions (Kafka 4.3).

    Examples
    --------
    >>> topic_id = pylog.create_topic("logs", "orders", 1)
    >>> pylog.alter_topic("logs", "orders", partitions=3, properties={"retention.ms": "86400000"})
    AlteredTopic(properties={'retention.ms': '86400000'}, partitions=3, added_partitions=2)
    """
    properties = properties or {}
    if not properties and not deleted_properties and partitions is None:
        msg = "nothing to alter: give properties, properties to delete, or a number of partitions"
        raise ValueError(msg)

    def begin(manager: LogManager) -> tuple[dict[str, str], int, list[int]]:
        logs = existing_logs(manager, topic)
        own = _changed(
            manager.stored_properties(topic) or {}, properties, deleted_properties, topic
        )
        if partitions is not None:
            _ensure_more(topic, list(logs), partitions)
        if properties or deleted_properties:
            manager.store_topic_config(topic, own)
        return own, len(logs), list(range(len(logs), partitions or 0))

    with opened(directory, topic, begin, must_exist=True) as (manager, (own, count, added)):
        for partition in added:
            add_partition(manager, topic, partition)
        return AlteredTopic(own, count + len(added), len(added))


def _changed(
    own: Mapping[str, str], properties: Mapping[str, str], deleted: Collection[str], topic: str
) -> dict[str, str]:
    for name in deleted:
        if name in properties:
            msg = f"property {name} is both to be set and to be deleted"
            raise ValueError(msg)
        if name not in own:
            there = f"it has {', '.join(sorted(own))}" if own else "it has none"
            msg = f"topic {topic!r} has no property {name} of its own to delete; {there}"
            raise ValueError(msg)
    kept = {name: text for name, text in own.items() if name not in deleted}
    return {**kept, **properties}


def _ensure_more(topic: str, existing: list[int], partitions: int) -> None:
    ensure_possible_count(partitions)
    if topic in INTERNAL_TOPICS:
        msg = (
            f"the number of partitions of {topic} stays: brokers find what is in it by that number"
        )
        raise ValueError(msg)
    if existing != list(range(len(existing))):
        there = ", ".join(map(str, existing))
        msg = (
            f"topic {topic!r} has only partitions {there} here: the others lie elsewhere, so that "
            "nobody can tell here how many there are"
        )
        raise ValueError(msg)
    if partitions <= len(existing):
        count = f"{len(existing)} partition{'s'[: len(existing) != 1]}"
        msg = (
            f"topic {topic!r} has {count}, so {partitions} would not be more: partitions can only "
            "be added"
        )
        raise ValueError(msg)
