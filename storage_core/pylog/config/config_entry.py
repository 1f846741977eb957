"""Where the value of a topic's property comes from (Kafka: ConfigEntry)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ConfigSource(StrEnum):
    """Who says what a property is, those first that win over the ones after them.

    Those that Kafka has, too, have its names (ConfigEntry.ConfigSource).
    """

    GIVEN_FOR_THIS_RUN = "GIVEN_FOR_THIS_RUN"
    """Whoever runs it."""

    STORED_TOPIC_CONFIG = "STORED_TOPIC_CONFIG"
    """``pylog-topic-configs.json`` beside the logs."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    """The cluster's metadata, of the topic."""

    INTERNAL_TOPIC_CONFIG = "INTERNAL_TOPIC_CONFIG"
    """What Kafka makes this topic with, where nothing else is known of it."""

    DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
    """The cluster's metadata, of this broker."""

    DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    """The cluster's metadata, of all brokers."""

    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    """The broker's ``server.properties``."""

    DEFAULT_CONFIG = "DEFAULT_CONFIG"
    """Kafka's default."""

    NO_LIMIT = "NO_LIMIT"
    """Nobody: Kafka's default would remove records, and is not assumed."""


class ConfigEntry(NamedTuple):
    """A property of a topic, its value as text, and where that comes from."""

    name: str
    value: str
    source: ConfigSource
