"""What the topics of a log directory are configured to, found before anything is removed from them.

Retention and compaction ask here, and only then open the directory: a topic whose configuration
nobody has said is not touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.errors import UnknownTopicConfigError, UnknownTopicOrPartitionError
from pylog.files.partition_directories import NOT_LOADED, partition_directories
from pylog.files.topic_configs import TopicConfigs
from pylog.files.topic_name import nearest_topic
from pylog.model import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.files.server_properties import ServerProperties

_UNLIMITED = LogConfig(retention_ms=-1)


def known_topic_configs(
    log_directory: str,
    topics: Iterable[str] | None = None,
    *,
    server_properties: ServerProperties | None = None,
    properties: Mapping[str, str] | None = None,
) -> dict[str, LogConfig]:
    """Return the configuration of each topic, sorted; nothing is locked or changed.

    Parameters
    ----------
    log_directory
        Local.
    topics
        Which; all of the directory if None.
    server_properties
        A broker's file: what topics are configured to that have no properties of their own.
    properties
        Win over all others, also over those stored. Of the topics that are named; if none is, of
        all but Kafka's internal ones. A topic of which nothing else is known has no other limits
        than these: Kafka's default of 7 days is not assumed.

    Raises
    ------
    UnknownTopicConfigError
        Of some topics nothing is stored, and nothing else says what they are configured to.
    UnknownTopicOrPartitionError
        The directory has no such topic.
    ValueError
        A property is unknown or has no such value.
    TypeError
        ``topics`` is one name.
    CorruptCheckpointError, UnexpectedFileError, LogDirectoryError
        What is stored cannot be read, or the directory is not a log directory.
    """
    if isinstance(topics, str):
        msg = f"topics is one name, expected several: [{topics!r}]"
        raise TypeError(msg)
    given = dict(properties or {})
    found = {
        name.topic_partition.topic
        for _, name in partition_directories(log_directory)
        if name.state not in NOT_LOADED
    }
    chosen = sorted(found) if topics is None else sorted(set(topics))
    for topic in chosen:
        if topic not in found:
            raise _no_such_topic(topic, found)
    changed = set(chosen) if topics is not None else set(chosen) - INTERNAL_TOPICS
    configs = TopicConfigs(None if server_properties is None else server_properties.log_config)
    configs.load([log_directory])
    unknown = configs.unconfigured(chosen)
    if unknown and not given:
        raise UnknownTopicConfigError(unknown)
    unlimited = set(unknown) - INTERNAL_TOPICS
    return {
        topic: (_UNLIMITED if topic in unlimited else configs.config_of(topic)).with_properties(
            given if topic in changed else {}
        )
        for topic in chosen
    }


def _no_such_topic(topic: str, found: Iterable[str]) -> UnknownTopicOrPartitionError:
    near = nearest_topic(topic, found)
    hint = "" if near is None else f"; did you mean {near!r}?"
    return UnknownTopicOrPartitionError(f"no topic {topic!r} in this log directory{hint}")
