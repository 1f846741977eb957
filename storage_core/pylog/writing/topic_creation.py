"""Topics of a log manager: their partitions, made together and under one topic id."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.files.file_names import PARTITION_METADATA
from pylog.files.partition_metadata import new_topic_id, read_partition_metadata
from pylog.files.topic_name import ensure_valid_topic
from pylog.model import TopicPartition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog

MAX_PARTITIONS = 100_000
"""Far above what a log directory can hold: a slip of the finger shall not fill the disk."""


def logs_of_topic(manager: LogManager, topic: str) -> dict[int, UnifiedLog]:
    """Return the logs of a topic by partition, sorted; none if the topic is not there."""
    return {
        topic_partition.partition: log
        for topic_partition, log in manager.logs.items()
        if topic_partition.topic == topic
    }


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


def create_topic(
    manager: LogManager,
    topic: str,
    partitions: int,
    *,
    topic_id: uuid.UUID | None = None,
    properties: Mapping[str, str] | None = None,
) -> uuid.UUID:
    """Make partitions 0 to ``partitions`` - 1 of a new topic; return its id.

    Parameters
    ----------
    manager
        An open one.
    topic
        No partition of it is there.
    partitions
        How many, at least 1.
    topic_id
        A random one if None.
    properties
        The topic's own, stored beside the logs before any is made.

    Raises
    ------
    ValueError
        The topic is there already, Kafka allows none of that name, or a property is wrong.
    KafkaStorageError
        The disk failed; some of the partitions may be there.
    """
    ensure_valid_topic(topic)
    if not 1 <= partitions <= MAX_PARTITIONS:
        msg = f"a topic has 1 to {MAX_PARTITIONS} partitions, not {partitions}"
        raise ValueError(msg)
    existing = logs_of_topic(manager, topic)
    if existing:
        there = ", ".join(map(str, existing))
        msg = f"topic {topic!r} is there already, with partitions {there}"
        raise ValueError(msg)
    manager.store_topic_config(topic, properties or {})
    topic_id = topic_id or new_topic_id()
    for partition in range(partitions):
        manager.get_or_create_log(TopicPartition(topic, partition), topic_id)
    return topic_id


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
