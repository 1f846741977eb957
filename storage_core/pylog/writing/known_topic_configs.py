"""What the topics of a log directory are configured to, found before anything is removed from them.

Retention and compaction ask here, and only then open the directory: a topic of which nobody has
said what decides is not touched. Of all that say something of a property, the first one counts:

1. what is given for this run
2. the topic's own properties: those that pylog stored beside the logs, then those in the
   cluster's metadata; a warning says where they differ
3. what the metadata says of this broker
4. what the metadata says of all brokers
5. the broker's ``server.properties``
6. Kafka's default, if the file was given: then it is known that the file does not say it

The metadata is ``__cluster_metadata-0`` of the broker whose directory it is (KRaft).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.config.stored_topic_configs import (
    TopicConfigs,
)
from pylog.errors import (
    LogStorageError,
    UnknownTopicConfigError,
)
from pylog.files.owned_directories import NOT_LOADED, partition_directories
from pylog.model import INTERNAL_TOPICS
from pylog.writing.topic_configs import FoundTopicConfig, TopicConfigSources, find_cluster_configs
from pylog.writing.topics import no_such_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.config.config_property import ConfigEntry, ConfigSource
    from pylog.config.server_properties import ServerProperties

    Layers = dict[ConfigSource, Mapping[str, str]]


_SHOWN_REASONS = 3


@dataclass(frozen=True, slots=True)
class KnownTopicConfigs:
    """The configurations of some topics of a log directory."""

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
    """Return the configuration of each topic; nothing is locked or changed."""
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
            raise no_such_topic(topic, directories)
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
            f"the cluster's metadata cannot be relied upon ({error}); to go without it, move "
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
    gaps = {
        topic: each.gap
        for topic, each in found.items()
        if each.gap is not None and not (has_given and each.gap.is_closed_by_some)
    }
    if not gaps:
        return
    topics_of: dict[str, list[str]] = {}
    for topic, gap in gaps.items():
        if gap.reason:
            topics_of.setdefault(gap.reason, []).append(topic)
    reasons = [
        reason
        if len(topics) == len(gaps)
        else f"{reason} ({', '.join(topics[:_SHOWN_REASONS])}"
        f"{', …' if len(topics) > _SHOWN_REASONS else ''})"
        for reason, topics in topics_of.items()
    ]
    more = len(reasons) - _SHOWN_REASONS
    shown = "; ".join(reasons[:_SHOWN_REASONS]) + (f"; and {more} more" if more > 0 else "")
    raise UnknownTopicConfigError(list(gaps), shown or None)
