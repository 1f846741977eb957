"""What a topic's configuration is, and where it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.config import LogConfig
from pylog.config.config_property import ConfigEntry, ConfigSource
from pylog.config.log_config import COMPACT, DELETE
from pylog.config.stored_topic_configs import INTERNAL_TOPIC_PROPERTIES, TOPIC_CONFIGS, TopicConfigs
from pylog.errors import (
    InvalidRecordError,
    LogStorageError,
    UnknownTopicConfigError,
    UnknownTopicOrPartitionError,
)
from pylog.files.file_names import nearest_topic
from pylog.files.owned_directories import NOT_LOADED, partition_directories
from pylog.model import INTERNAL_TOPICS
from pylog.writing.cluster_configs import find_cluster_configs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.config.server_properties import ServerProperties
    from pylog.writing.cluster_configs import ClusterConfigs, ClusterTopicConfig

    Layers = dict[ConfigSource, Mapping[str, str]]


_POLICY = "cleanup.policy"

_DECIDING = {
    DELETE: ("retention.ms",),
    COMPACT: ("delete.retention.ms", "min.compaction.lag.ms"),
}
"""What, where nobody says it, removes records by Kafka's default."""

_SHOWN = {
    DELETE: (_POLICY, "retention.ms", "retention.bytes"),
    COMPACT: (
        _POLICY,
        "delete.retention.ms",
        "min.compaction.lag.ms",
        "max.compaction.lag.ms",
        "min.cleanable.dirty.ratio",
    ),
}
_UNLIMITED = {"retention.ms": "-1", "retention.bytes": "-1"}


class ConfigGap(NamedTuple):
    """That something is not known which decides over a topic's records."""

    reason: str | None
    is_closed_by_some: bool = True


class FoundTopicConfig(NamedTuple):
    """The configuration of a topic, as far as it is known."""

    config: LogConfig
    entries: tuple[ConfigEntry, ...]
    gap: ConfigGap | None


class TopicConfigSources:
    """All that says what the topics of a log directory are configured to."""

    def __init__(
        self,
        cleanup: str,
        server_properties: ServerProperties | None,
        stored: TopicConfigs,
        cluster: ClusterConfigs | None,
    ) -> None:
        self._cleanup = cleanup
        self._stored = stored
        self._cluster = cluster
        self._has_file = server_properties is not None
        self._of_all: Layers = {}
        if server_properties is not None:
            texts = server_properties.log_config.properties()
            defaults = LogConfig().properties()
            self._of_all[ConfigSource.STATIC_BROKER_CONFIG] = {
                name: text
                for name, text in texts.items()
                if name in server_properties.named or text != defaults[name]
            }
        if cluster is not None:
            self._of_all |= cluster.of_brokers

    def find(
        self, topic: str, directories: Iterable[str], given: Mapping[str, str]
    ) -> FoundTopicConfig:
        """Return the configuration of a topic."""
        stored = self._stored.stored_properties(topic)
        of_cluster = None if self._cluster is None else self._cluster.topic(topic, directories)
        layers: Layers = dict(self._of_all)
        if of_cluster is None or of_cluster.properties is None:
            layers[ConfigSource.INTERNAL_TOPIC_CONFIG] = INTERNAL_TOPIC_PROPERTIES.get(topic, {})
        else:
            layers[ConfigSource.DYNAMIC_TOPIC_CONFIG] = of_cluster.properties
            self._ensure_sound(layers)
        layers[ConfigSource.STORED_TOPIC_CONFIG] = stored or {}
        layers[ConfigSource.GIVEN_FOR_THIS_RUN] = given
        return self._found(layers, self._find_gap(layers, stored, of_cluster))

    def _ensure_sound(self, layers: Layers) -> None:
        """Raise `InvalidRecordError` if what the metadata say is not a configuration."""
        try:
            LogConfig.from_properties(_merged(layers))
        except ValueError as error:
            path = None if self._cluster is None else self._cluster.path
            raise InvalidRecordError(str(error), path) from error

    def _find_gap(
        self,
        layers: Layers,
        stored: Mapping[str, str] | None,
        of_cluster: ClusterTopicConfig | None,
    ) -> ConfigGap | None:
        """Return why a topic's configuration is not known, None if it is."""
        if of_cluster is None:
            return None if self._has_file or stored is not None else ConfigGap(None)
        own = of_cluster.properties
        if own is None:
            return None if stored is not None else ConfigGap(of_cluster.doubt)
        given = layers[ConfigSource.GIVEN_FOR_THIS_RUN]
        if of_cluster.doubt is not None and self._missing({ConfigSource.GIVEN_FOR_THIS_RUN: given}):
            return ConfigGap(of_cluster.doubt, is_closed_by_some=False)
        differing = [
            f"{name} is {text} in {TOPIC_CONFIGS}, and {own[name]} in the cluster's metadata"
            for name, text in (stored or {}).items()
            if name not in given and own.get(name, text) != text
        ]
        if differing:
            return ConfigGap("; ".join(differing), is_closed_by_some=False)
        missing = [] if self._has_file or stored is not None else self._missing(layers)
        if missing:
            return ConfigGap(f"the cluster's metadata do not say its {', '.join(missing)}")
        return None

    def _missing(self, layers: Layers) -> list[str]:
        """Return which of the properties that decide nobody names."""
        named = _merged(layers)
        if _POLICY not in named:
            return [_POLICY, *(name for name in _DECIDING[self._cleanup] if name not in named)]
        if self._cleanup not in LogConfig.from_properties(named).cleanup_policy:
            return []
        return [name for name in _DECIDING[self._cleanup] if name not in named]

    def _found(self, layers: Layers, gap: ConfigGap | None) -> FoundTopicConfig:
        if gap is not None:
            # Nobody set these limits of this topic, unless the topic's own do.
            for source in self._of_all:
                layers[source] = {
                    name: text for name, text in layers[source].items() if name not in _UNLIMITED
                }
            layers = {ConfigSource.NO_LIMIT: _UNLIMITED, **layers}
        config = LogConfig.from_properties(_merged(layers))
        texts = config.properties()
        names = _SHOWN[self._cleanup] if self._cleanup in config.cleanup_policy else (_POLICY,)
        entries = tuple(ConfigEntry(name, texts[name], _source(layers, name)) for name in names)
        return FoundTopicConfig(config, entries, gap)


def _merged(layers: Layers) -> dict[str, str]:
    """Return all properties; of several values the last one."""
    return {name: text for layer in layers.values() for name, text in layer.items()}


def _source(layers: Layers, name: str) -> ConfigSource:
    """Return where the value of a property comes from."""
    return next(
        (source for source in reversed(layers) if name in layers[source]),
        ConfigSource.DEFAULT_CONFIG,
    )


# What the topics of a log directory are configured to, found before anything is removed from them.
#
# Retention and compaction ask here, and only then open the directory: a topic of which nobody has
# said what decides is not touched. Of all that say something of a property, the first one counts:
#
# 1. what is given for this run
# 2. the topic's own properties: those in the cluster's metadata, or stored beside the logs
# 3. what the metadata say of this broker
# 4. what the metadata say of all brokers
# 5. the broker's ``server.properties``
# 6. Kafka's default, if the file was given: then it is known that the file does not say it
#
# The metadata are ``__cluster_metadata-0`` of the broker whose directory it is (KRaft).


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
