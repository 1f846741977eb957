"""A topic that exists gets other properties, or more partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.model import INTERNAL_TOPICS
from pylog.writing.topic_creation import (
    add_partition,
    ensure_possible_count,
    existing_logs,
    opened,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping

    from pylog.log.log_manager import LogManager


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
    >>> pylog.alter_topic("/tmp/logs", "orders", properties={"retention.ms": "86400000"})
    """
    properties = properties or {}
    if not properties and not deleted_properties and partitions is None:
        msg = "nothing to alter: give properties, properties to delete, or a number of partitions"
        raise ValueError(msg)
    with opened(directory, topic, must_exist=True) as manager:
        logs = existing_logs(manager, topic)
        own = _changed(
            manager.stored_properties(topic) or {}, properties, deleted_properties, topic
        )
        added: list[int] = []
        if partitions is not None:
            _ensure_more(topic, list(logs), partitions)
            added = list(range(len(logs), partitions))
        if properties or deleted_properties:
            manager.store_topic_config(topic, own)
        for partition in added:
            add_partition(manager, topic, partition)
        return AlteredTopic(own, len(logs) + len(added), len(added))


def _changed(
    own: Mapping[str, str], properties: Mapping[str, str], deleted: Collection[str], topic: str
) -> dict[str, str]:
    """Return a topic's own properties after the change."""
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
    """Raise unless partitions can be added, up to the number ``partitions``."""
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
