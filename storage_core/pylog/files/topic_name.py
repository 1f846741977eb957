"""Names of topics, and of the directories that deleted partitions are renamed to.

A topic's name has 1 to 249 characters of ``[a-zA-Z0-9._-]`` and is neither ``.`` nor ``..``. The
directory of a deleted partition is ``<topic>-<partition>.<32 hex digits>-delete``; to keep it
within 255 characters the topic is cut.

Source: Topic.validate, LocalLog.logDeleteDirName (Kafka 4.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.files.file_names import DELETE_DIR_SUFFIX, MAX_PARTITION

if TYPE_CHECKING:
    import uuid

    from pylog.model import TopicPartition

MAX_TOPIC_LENGTH = 249
_MAX_DIRECTORY_LENGTH = 255
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def ensure_valid_topic(topic: str) -> None:
    """Raise `ValueError` unless Kafka allows a topic of this name."""
    reason = None
    if not topic:
        reason = "it is empty"
    elif topic in {".", ".."}:
        reason = "it cannot be '.' or '..'"
    elif len(topic) > MAX_TOPIC_LENGTH:
        reason = f"it has {len(topic)} characters, at most {MAX_TOPIC_LENGTH} are allowed"
    elif _LEGAL.fullmatch(topic) is None:
        reason = "it may consist of ASCII letters, digits, '.', '_' and '-' only"
    if reason is not None:
        msg = f"{topic!r} is not a topic name: {reason}"
        raise ValueError(msg)


def ensure_valid_topic_partition(topic_partition: TopicPartition) -> None:
    """Raise `ValueError` unless Kafka allows the topic, and a directory of the partition's name."""
    topic, partition = topic_partition
    ensure_valid_topic(topic)
    if not 0 <= partition <= MAX_PARTITION:
        msg = f"partition is {partition}, expected 0 to {MAX_PARTITION}"
        raise ValueError(msg)
    length = len(f"{topic}-{partition}")
    if length > _MAX_DIRECTORY_LENGTH:
        msg = (
            f"directory of partition {partition} of topic {topic!r} would have a name of {length} "
            f"characters, at most {_MAX_DIRECTORY_LENGTH} are allowed"
        )
        raise ValueError(msg)


def log_delete_directory_name(topic_partition: TopicPartition, unique_id: uuid.UUID) -> str:
    """Return the name that the directory of a deleted partition gets."""
    suffix = f"-{topic_partition.partition}.{unique_id.hex}{DELETE_DIR_SUFFIX}"
    return topic_partition.topic[: _MAX_DIRECTORY_LENGTH - len(suffix)] + suffix
