"""What a topic's configuration is, and where it was found.

The cluster's metadata is that of the broker whose directory it is: ``__cluster_metadata-0`` in
the directory itself; or, where the broker's ``server.properties`` names the directory, in the one
of its directories that it keeps them in.
"""

from __future__ import annotations

import logging
import os
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from pylog.config import LogConfig
from pylog.config.config_property import ConfigEntry, ConfigSource
from pylog.config.log_config import COMPACT, DELETE
from pylog.config.server_properties import dynamic_topic_properties
from pylog.config.stored_topic_configs import (
    INTERNAL_TOPIC_PROPERTIES,
    TOPIC_CONFIGS,
    TopicConfigs,
    read_topic_configs,
)
from pylog.errors import (
    InvalidRecordError,
    LogDirectoryError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.files.file_names import META_PROPERTIES, PARTITION_METADATA
from pylog.files.high_watermarks import HIGH_WATERMARKS
from pylog.files.meta_properties import read_meta_properties
from pylog.files.owned_directories import partition_directories
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.locations import without_overlay
from pylog.reading.internal_logs import CLUSTER_METADATA, read_committed_metadata
from pylog.reading.log_directory import open_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.config.server_properties import ServerProperties

    Layers = dict[ConfigSource, Mapping[str, str]]
    from pylog.files.checkpoint_file import IsOnlyReplica
    from pylog.files.meta_properties import MetaProperties
    from pylog.internal_topics.metadata_image import TopicImage
    from pylog.model import TopicPartition
    from pylog.reading.internal_logs import CommittedMetadata


_LOGGER = logging.getLogger(__name__)
_ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


class ClusterTopicConfig(NamedTuple):
    """The configuration of a topic in the cluster's metadata."""

    properties: dict[str, str] | None
    doubt: str | None = None


class ClusterConfigs:
    """The configurations in a cluster's metadata, as one of its nodes takes them."""

    def __init__(self, metadata: CommittedMetadata, node_id: int | None) -> None:
        self.path = metadata.path
        self._metadata = metadata
        self._node_id = node_id
        self._topics: Mapping[str, TopicImage] = {each.name: each for each in metadata.image.topics}
        self._deleted = {each.topic_id for each in metadata.image.deleted}
        own = _ALL_BROKERS
        if node_id is not None:
            own = ConfigResource(ConfigResourceType.BROKER, str(node_id))
        self._brokers = (own, _ALL_BROKERS)
        self.of_brokers = {
            ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: self._of_broker(_ALL_BROKERS),
            ConfigSource.DYNAMIC_BROKER_CONFIG: {} if node_id is None else self._of_broker(own),
        }
        self._is_node_unknown = node_id is None and any(
            resource.type is ConfigResourceType.BROKER
            and resource != _ALL_BROKERS
            and self._of_broker(resource)
            for resource in {*metadata.image.configured, *metadata.undecided}
        )

    def _of_broker(self, resource: ConfigResource) -> dict[str, str]:
        try:
            return dynamic_topic_properties(self._metadata.image.configs_of(resource))
        except ValueError as error:
            whose = f"broker {resource.name}" if resource.name else "all brokers"
            reason = f"configuration of {whose}: {error}"
            raise InvalidRecordError(reason, self.path) from error

    def topic(self, name: str, directories: Iterable[str]) -> ClusterTopicConfig:
        """Return what is said of the topic that partition directories belong to."""
        image = self._topics.get(name)
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        undecided = {resource, *self._brokers} & self._metadata.undecided
        if undecided:
            doubt = (
                f"records from offset {self._metadata.committed_end_offset} on change it, and not "
                "all controllers may have agreed on them"
            )
        elif self._is_node_unknown:
            doubt = f"brokers have properties of their own, and no {META_PROPERTIES} says which "
            doubt += "broker's directory this is"
        else:
            doubt = None
        if image is None:
            missing = "the cluster has no such topic: it was deleted, or never there"
            return ClusterTopicConfig(None, doubt or missing)
        for directory in directories:
            reason = self._other_topic(image, directory)
            if reason is not None:
                return ClusterTopicConfig(None, doubt or reason)
        known = LogConfig.kinds()
        return ClusterTopicConfig(
            {key: value for key, value in image.configs.items() if key in known}, doubt
        )

    def is_only_replica(self, topic_partition: TopicPartition, directory: str) -> bool:
        """Whether this node is certainly the only replica of the partition in a directory."""
        topic = self._topics.get(topic_partition.topic)
        partition = None if topic is None else topic.partitions.get(topic_partition.partition)
        return (
            topic is not None
            and partition is not None
            and self._node_id is not None
            and partition.replicas == (self._node_id,)
            and topic_partition not in self._metadata.undecided_replicas
            and self._other_topic(topic, directory) is None
        )

    def _other_topic(self, image: TopicImage, directory: str) -> str | None:
        """Return why a partition directory is not one of this topic, None if it is."""
        path = os.path.join(directory, PARTITION_METADATA)  # noqa: PTH118 - kept as text
        try:
            topic_id = read_partition_metadata(path).topic_id
        except SegmentVanishedError:
            return f"{directory} has no {PARTITION_METADATA}, which tells whether it is this topic"
        if topic_id == image.topic_id:
            return None
        deleted = ", which was deleted" if topic_id in self._deleted else ""
        return (
            f"{directory} belongs to another topic of that name{deleted}: it has the id "
            f"{format_uuid(topic_id)}, the cluster's has {format_uuid(image.topic_id)}"
        )


def find_cluster_configs(
    log_directory: str, server_properties: ServerProperties | None = None
) -> ClusterConfigs | None:
    """Return what the metadata of a log directory's broker say, None if they are not found."""
    owner = _owner(log_directory)
    for candidate in _candidates(log_directory, server_properties):
        path = os.path.join(candidate, str(CLUSTER_METADATA))  # noqa: PTH118 - kept as text
        if not os.path.lexists(path):
            continue
        _ensure_same_node(owner, _owner(candidate), log_directory, candidate)
        view = open_directory(path)[CLUSTER_METADATA]
        node_id = None if owner is None else owner.node_id
        return ClusterConfigs(read_committed_metadata(view), node_id)
    return None


def cluster_topic_configs(
    log_directory: str, server_properties: ServerProperties | None = None
) -> dict[str, LogConfig]:
    """Return the configurations that the metadata certainly have of the topics in a directory.

    Topics whose configuration is stored beside their logs are left out. What cannot be read is a
    warning here; commands that remove records use `known_topic_configs`, which refuses.
    """
    log_directory = without_overlay(log_directory)
    try:
        cluster = find_cluster_configs(log_directory, server_properties)
        stored = read_topic_configs(os.path.join(log_directory, TOPIC_CONFIGS))  # noqa: PTH118
    except LogStorageError as error:
        _LOGGER.warning("what topics are configured to is not known: %s", error)
        return {}
    if cluster is None:
        return {}
    directories: dict[str, list[str]] = {}
    for directory, name in partition_directories(log_directory):
        if not name.state and name.topic_partition.topic not in stored:
            directories.setdefault(name.topic_partition.topic, []).append(directory)
    below: dict[str, str] = {}
    if server_properties is not None:
        below |= server_properties.log_config.properties()
    for properties in cluster.of_brokers.values():
        below |= properties
    found = {}
    for topic, places in directories.items():
        try:
            config = cluster.topic(topic, places)
            if config.properties is not None and config.doubt is None:
                found[topic] = LogConfig.from_properties({**below, **config.properties})
        except (LogStorageError, ValueError) as error:
            _LOGGER.warning("what topic %s is configured to is not known: %s", topic, error)
    return found


def only_replica_rule(
    log_directory: str,
    server_properties: ServerProperties | None = None,
    *,
    high_watermark: str = HIGH_WATERMARKS[0],
) -> IsOnlyReplica:
    """Return what tells whether this node is the only replica of a partition in a directory."""
    if high_watermark not in HIGH_WATERMARKS:
        msg = f"high_watermark is {high_watermark!r}, expected one of {', '.join(HIGH_WATERMARKS)}"
        raise ValueError(msg)
    if high_watermark == "log-end":
        return lambda _: True
    cluster = cache(partial(find_cluster_configs, log_directory, server_properties))

    def is_only_replica(topic_partition: TopicPartition) -> bool:
        try:
            found = cluster()
            directory = os.path.join(log_directory, str(topic_partition))  # noqa: PTH118
            return found is not None and found.is_only_replica(topic_partition, directory)
        except LogStorageError as error:
            _LOGGER.info("replicas of %s are not known: %s", topic_partition, error)
            return False

    return is_only_replica


def _candidates(log_directory: str, server_properties: ServerProperties | None) -> list[str]:
    """Return where a broker keeps its metadata; last of all in the log directory itself."""
    candidates = [log_directory]
    if server_properties is not None and server_properties.is_log_dir(log_directory):
        candidates.insert(0, server_properties.metadata_log_dir or server_properties.log_dirs[0])
    return candidates


def _owner(directory: str) -> MetaProperties | None:
    try:
        return read_meta_properties(os.path.join(directory, META_PROPERTIES))  # noqa: PTH118
    except SegmentVanishedError:
        return None


def _ensure_same_node(
    owner: MetaProperties | None, other: MetaProperties | None, directory: str, metadata: str
) -> None:
    if os.path.realpath(directory) == os.path.realpath(metadata):
        return
    ours, theirs = (
        None if each is None else (each.cluster_id, each.node_id) for each in (owner, other)
    )
    if ours is None or ours != theirs:
        reason = (
            f"{META_PROPERTIES} here names cluster and node {theirs}, and that of {directory} "
            f"{ours}: these are not its metadata"
        )
        raise LogDirectoryError(reason, metadata)


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
        own = layers.get(ConfigSource.DYNAMIC_TOPIC_CONFIG, {})
        for name, text in (stored or {}).items():
            if name not in given and own.get(name, text) != text:
                _LOGGER.warning(
                    "%s: %s is %s, as pylog stored it here; the cluster's metadata has %s",
                    *(topic, name, text, own[name]),
                )
        layers[ConfigSource.GIVEN_FOR_THIS_RUN] = given
        return self._found(layers, self._find_gap(layers, stored, of_cluster))

    def _ensure_sound(self, layers: Layers) -> None:
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
        if of_cluster is None:
            return None if self._has_file or stored is not None else ConfigGap(None)
        own = of_cluster.properties
        if own is None:
            return None if stored is not None else ConfigGap(of_cluster.doubt)
        given = layers[ConfigSource.GIVEN_FOR_THIS_RUN]
        if of_cluster.doubt is not None and self._missing({ConfigSource.GIVEN_FOR_THIS_RUN: given}):
            return ConfigGap(of_cluster.doubt, is_closed_by_some=False)
        missing = [] if self._has_file or stored is not None else self._missing(layers)
        if missing:
            return ConfigGap(f"the cluster's metadata does not set {', '.join(missing)}")
        return None

    def _missing(self, layers: Layers) -> list[str]:
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
    return {name: text for layer in layers.values() for name, text in layer.items()}


def _source(layers: Layers, name: str) -> ConfigSource:
    return next(
        (source for source in reversed(layers) if name in layers[source]),
        ConfigSource.DEFAULT_CONFIG,
    )
