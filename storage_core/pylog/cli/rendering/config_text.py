"""What topics are configured to, and who says so: a table for people, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog import ConfigSource
from pylog.cli.rendering.aligned_columns import aligned_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pylog import ConfigEntry

_SHOWN_TOPICS = 3
_NO_LIMITS = ("-1", str(2**63 - 1))

_ORIGINS = {
    ConfigSource.GIVEN_FOR_THIS_RUN: "--config",
    ConfigSource.STORED_TOPIC_CONFIG: "stored topic config",
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "cluster metadata: topic",
    ConfigSource.INTERNAL_TOPIC_CONFIG: "Kafka, for this topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "cluster metadata: this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "cluster metadata: all brokers",
    ConfigSource.STATIC_BROKER_CONFIG: "server properties",
    ConfigSource.DEFAULT_CONFIG: "Kafka's default",
    ConfigSource.NO_LIMIT: "nobody: not limited",
}


def config_lines(configs: Mapping[str, Sequence[ConfigEntry]]) -> Iterator[str]:
    """Yield a table of what decides; topics for which the same is said share a line.

    A default that sets no limit decides nothing, and is left out.
    """
    topics: dict[ConfigEntry, list[str]] = {}
    for topic, entries in configs.items():
        for entry in entries:
            if entry.source is not ConfigSource.DEFAULT_CONFIG or entry.value not in _NO_LIMITS:
                topics.setdefault(entry, []).append(topic)
    if not topics:
        return
    places = {entry.name: place for place, entry in enumerate(topics)}
    rows = sorted(topics, key=lambda entry: places[entry.name])
    yield from aligned_columns(
        {
            "PROPERTY": [entry.name for entry in rows],
            "VALUE": [entry.value for entry in rows],
            "SOURCE": [_ORIGINS[entry.source] for entry in rows],
            "TOPICS": [_named(topics[entry]) for entry in rows],
        },
        {"PROPERTY", "SOURCE", "TOPICS"},
    )
    yield ""


def _named(topics: Sequence[str]) -> str:
    more = len(topics) - _SHOWN_TOPICS
    return ", ".join(topics[:_SHOWN_TOPICS]) + (f" and {more} more" if more > 0 else "")


def config_document(entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    """Return what a topic is configured to: values as text, sources by Kafka's names."""
    return {entry.name: {"value": entry.value, "source": str(entry.source)} for entry in entries}
