"""What the topics of a log directory are configured to, found before anything is removed from them.

Retention and compaction ask here, and only then open the directory: a topic of which nobody has
said what decides is not touched. Of all that say something of a property, the first one counts:

1. what is given for this run
2. the topic's own properties: those in the cluster's metadata, or stored beside the logs
3. what the metadata say of this broker
4. what the metadata say of all brokers
5. the broker's ``server.properties``
6. Kafka's default, if the file was given: then it is known that the file does not say it

The metadata are ``__cluster_metadata-0`` of the broker whose directory it is (KRaft).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.config.stored_topic_configs import TopicConfigs
from pylog.errors import LogStorageError, UnknownTopicConfigError, UnknownTopicOrPartitionError
from pylog.files.file_names import nearest_topic
from pylog.files.owned_directories import NOT_LOADED, partition_directories
from pylog.model import INTERNAL_TOPICS
from pylog.writing.cluster_configs import find_cluster_configs
from pylog.writing.topic_config_sources import TopicConfigSources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.config.config_property import ConfigEntry
    from pylog.config.server_properties import ServerProperties
    from pylog.writing.topic_config_sources import FoundTopicConfig

_SHOWN_REASONS = 3


@dataclass(frozen=True, slots=True)
class KnownTopicConfigs:
    """The configurations of some topics of a log directory.

    Attributes
    ----------
    configs
        By topic, sorted.
    entries
        By topic: the properties that decide what is removed, and where they come from.
    cluster_metadata
        The directory of the cluster's metadata, None if there are none.
    """

    configs: dict[str, LogConfig]
    entries: dict[str, tuple[ConfigEntry, ...]]
    cluster_metadata: str | None = None


def known_topic_configs(
    log_directory: str,
    topics: Iterable[str] | None = None,
    *,
    cleanup: str,
    server_properties: ServerProperties | None = None,
    properties: Mapping[str, str] | None = None,
) -> KnownTopicConfigs:
    """Return the configuration of each topic; nothing is locked or changed.

    Parameters
    ----------
    log_directory
        Local.
    topics
        Which; all of the directory if None.
    cleanup
        What it is wanted for, as a word of ``cleanup.policy``: ``delete`` or ``compact``.
    server_properties
        A broker's file: what topics are configured to that have no properties of their own.
    properties
        Win over all others. Of the topics that are named; if none is, of all but Kafka's internal
        ones. A topic of which nothing else is known has no other limits than these: Kafka's default
        of 7 days is not assumed.

    Raises
    ------
    UnknownTopicConfigError
        Of some topics nobody says what decides; what is said contradicts itself; or the cluster's
        metadata are there and cannot be relied upon.
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
    directories: dict[str, list[str]] = {}
    for path, name in partition_directories(log_directory):
        if name.state not in NOT_LOADED:
            directories.setdefault(name.topic_partition.topic, []).append(path)
    chosen = sorted(directories) if topics is None else sorted(set(topics))
    for topic in chosen:
        if topic not in directories:
            raise _no_such_topic(topic, directories)
    given = dict(properties or {})
    LogConfig.from_properties(given)  # wrong ones are refused whatever else is found
    stored = TopicConfigs(None if server_properties is None else server_properties.log_config)
    stored.load([log_directory])
    changed = set(chosen) if topics is not None else set(chosen) - INTERNAL_TOPICS
    try:
        cluster = find_cluster_configs(log_directory, server_properties)
        sources = TopicConfigSources(cleanup, server_properties, stored, cluster)
        found = {
            topic: sources.find(topic, directories[topic], given if topic in changed else {})
            for topic in chosen
        }
    except LogStorageError as error:
        reason = (
            f"the cluster's metadata cannot be relied upon ({error}); to go without them, move "
            "__cluster_metadata-0 out of the log directory"
        )
        raise UnknownTopicConfigError(chosen, reason) from error
    _ensure_known(found, has_given=bool(given))
    return KnownTopicConfigs(
        {topic: each.config for topic, each in found.items()},
        {topic: each.entries for topic, each in found.items()},
        None if cluster is None else cluster.path,
    )


def _ensure_known(found: Mapping[str, FoundTopicConfig], *, has_given: bool) -> None:
    """Raise `UnknownTopicConfigError` if a topic's configuration is neither known nor given."""
    gaps = {
        topic: each.gap
        for topic, each in found.items()
        if each.gap is not None and not (has_given and each.gap.is_closed_by_some)
    }
    if not gaps:
        return
    reasons = [f"of {topic}, {gap.reason}" for topic, gap in gaps.items() if gap.reason]
    more = len(reasons) - _SHOWN_REASONS
    shown = "; ".join(reasons[:_SHOWN_REASONS]) + (f"; and {more} more" if more > 0 else "")
    raise UnknownTopicConfigError(list(gaps), shown or None)


def _no_such_topic(topic: str, found: Iterable[str]) -> UnknownTopicOrPartitionError:
    near = nearest_topic(topic, found)
    hint = "" if near is None else f"; did you mean {near!r}?"
    return UnknownTopicOrPartitionError(f"no topic {topic!r} in this log directory{hint}")
