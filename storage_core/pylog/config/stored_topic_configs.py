"""``pylog-topic-configs.json``: what single topics of a log directory are configured to.

A broker keeps these in its cluster's metadata; a directory without one needs them beside its logs.
Brokers pass over plain files of a log directory that they do not know. UTF-8, one JSON object::

    {
      "version": 1,
      "topics": {
        "orders": {"cleanup.policy": "compact", "segment.bytes": "1048576"}
      }
    }

Names and texts of properties are Kafka's (`pylog.config.LogConfig`); what is not listed has the
value that it has for all topics. A topic that was made here is listed even without properties: then
its configuration is known to be that of all topics. The file is replaced as a whole, and missing
where no topic has been made here or given a configuration.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from pylog.config import LogConfig
from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.files.durable_io import DurableIO

TOPIC_CONFIGS = "pylog-topic-configs.json"
TOPIC_CONFIGS_VERSION = 1
_EXPECTED = '{"version": …, "topics": {topic: {property: text}}}'

_COMPACTED = {"cleanup.policy": "compact"}
_KEPT_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
INTERNAL_TOPIC_PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "__consumer_offsets": _COMPACTED,
    "__transaction_state": _COMPACTED,
    "__share_group_state": _KEPT_FOR_EVER,
    "__remote_log_metadata": _KEPT_FOR_EVER,
}
"""What the topics are configured to that Kafka makes for itself: ``cleanup.policy`` and retention.

A broker makes each with these properties of its own, whatever its ``server.properties`` says. So
they hold where a log directory has come without its cluster: by the defaults for all topics, the
offsets of consumer groups would be removed after 7 days.

Source: the topic configurations of GroupCoordinatorService, TransactionCoordinator and
ShareCoordinatorService, and TopicBasedRemoteLogMetadataManagerConfig (Kafka 4.3).
"""


def read_topic_configs(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Return the properties of every topic that is listed, {} if there is no such file."""
    try:
        text = read_text_file(path)
    except SegmentVanishedError:
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"topic configurations are not JSON: {error}"
        raise CorruptCheckpointError(reason, path) from error
    if not isinstance(content, dict) or set(content) != {"version", "topics"}:
        reason = f"topic configurations are not of the form {_EXPECTED}"
        raise CorruptCheckpointError(reason, path)
    if content["version"] != TOPIC_CONFIGS_VERSION:
        reason = (
            f"topic configurations have version {content['version']!r}, "
            f"expected {TOPIC_CONFIGS_VERSION}"
        )
        raise CorruptCheckpointError(reason, path)
    return _checked(content["topics"], path)


def _checked(topics: object, path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Return ``topics`` once it is known to map topics to properties, and those to texts."""
    if not isinstance(topics, dict):
        reason = f"topic configurations are not of the form {_EXPECTED}"
        raise CorruptCheckpointError(reason, path)
    for topic, properties in topics.items():
        if not isinstance(properties, dict) or not all(
            isinstance(value, str) for value in properties.values()
        ):
            reason = f"configuration of topic {topic!r} is not an object of texts"
            raise CorruptCheckpointError(reason, path)
    return topics


def write_topic_configs(
    io: DurableIO, path: str | os.PathLike[str], configs: Mapping[str, Mapping[str, str]]
) -> None:
    """Replace the file, and return when it is on the disk."""
    topics = {topic: dict(configs[topic]) for topic in sorted(configs)}
    content = {"version": TOPIC_CONFIGS_VERSION, "topics": topics}
    io.write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


class _StoredConfig(NamedTuple):
    """A topic's own properties, and the configuration that it has with them."""

    properties: Mapping[str, str]
    config: LogConfig


class TopicConfigs:
    """The configuration of each topic: the one given, else the one stored, else that of all.

    Kafka's internal topics have what Kafka gives them in the place of that of all.
    """

    def __init__(
        self, default: LogConfig | None, given: Mapping[str, LogConfig] | None = None
    ) -> None:
        self.default = LogConfig() if default is None else default
        self._is_default_given = default is not None
        self._given = dict(given or {})
        self._stored: dict[str, _StoredConfig] = {}

    def config_of(self, topic: str) -> LogConfig:
        """Return a topic's configuration."""
        if topic in self._given:
            return self._given[topic]
        stored = self._stored.get(topic)
        return self.with_properties(topic, {}) if stored is None else stored.config

    def with_properties(self, topic: str, properties: Mapping[str, str]) -> LogConfig:
        """Return the configuration that a topic has with these properties of its own."""
        own = {**INTERNAL_TOPIC_PROPERTIES.get(topic, {}), **properties}
        return self.default.with_properties(own) if own else self.default

    def unconfigured(self, topics: Iterable[str]) -> list[str]:
        """Return the topics, sorted, whose configuration is nothing but Kafka's defaults.

        A topic without properties of its own that was made here is not among them: that it has
        none is stored. A log directory that was copied from a broker has topics of which nothing
        is stored, since a broker keeps their properties in its cluster.
        """
        if self._is_default_given:
            return []
        return sorted(set(topics) - {*self._given, *self._stored})

    def stored_properties(self, topic: str) -> dict[str, str] | None:
        """Return what is stored for a topic; None if nothing is."""
        stored = self._stored.get(topic)
        return None if stored is None else dict(stored.properties)

    def set_stored(self, topic: str, properties: Mapping[str, str] | None) -> None:
        """Take over what has been stored for a topic; None if nothing is any more."""
        if properties is None:
            self._stored.pop(topic, None)
        else:
            config = self.with_properties(topic, properties)
            self._stored[topic] = _StoredConfig(properties, config)

    def load(self, log_directories: Iterable[str]) -> None:
        """Read what is stored in log directories; the first one that names a topic counts."""
        self._stored.clear()
        for directory in log_directories:
            path = os.path.join(directory, TOPIC_CONFIGS)  # noqa: PTH118 - kept as text
            for topic, properties in read_topic_configs(path).items():
                try:
                    config = self.with_properties(topic, properties)
                except ValueError as error:
                    reason = f"configuration of topic {topic!r}: {error}"
                    raise CorruptCheckpointError(reason, path) from error
                self._stored.setdefault(topic, _StoredConfig(properties, config))
