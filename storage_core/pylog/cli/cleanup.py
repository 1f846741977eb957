"""What commands that remove something have in common: the topics' configuration, what went."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli.style import OutputTraits
from pylog.cli.table import aligned_columns
from pylog.results import ConfigSource
from pylog.text.words import counted, format_bytes, named, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pylog.results import CompactionSummary, ConfigEntry, Removal, RetentionSummary


def cleanup_lines(
    summary: RetentionSummary | CompactionSummary,
    columns: dict[str, list[str]],
    failures: Iterable[str],
    removed: str | None,
    *,
    done: str,
) -> Iterator[str]:
    """Yield a table of the topics that change, what went wrong, and the sum."""
    if summary.is_dry_run:
        looked_at = {topic: summary.configs.get(topic, ()) for topic in summary.by_topic}
        yield from _config_lines(looked_at)
    if columns["TOPIC"]:
        width = OutputTraits.of(sys.stdout).width
        yield from aligned_columns(columns, {"TOPIC"}, width, ("PARTITIONS", "SEGMENTS"))
    yield from failures
    for each in summary.partitions:
        if each.held_back is not None:
            yield f"{each.topic_partition}: {each.held_back}"
    is_dry_run = summary.is_dry_run
    left = format_bytes(summary.totals.size_bytes)
    left += " would remain" if is_dry_run else " remain"
    if removed is None:
        yield f"nothing {'would be' if is_dry_run else 'was'} {done}; {left}"
    else:
        yield f"{'would remove' if is_dry_run else 'removed'} {removed}; {left}"


def cleanup_document(summary: RetentionSummary | CompactionSummary) -> dict[str, Any]:
    """Return all of a summary."""
    names = summary.json_names
    partitions = [
        # What is held back is not removed, whatever its records are called otherwise.
        pylog.jobs.document_of(each, names) | {"heldBack": pylog.jobs.document_of(each.held_back)}
        for each in summary.partitions
    ]
    return {
        "dryRun": summary.is_dry_run,
        "now": summary.now_ms,
        "partitions": partitions,
        "topics": [
            {
                "topic": topic,
                **pylog.jobs.document_of(each, names),
                "configs": config_document(summary.configs.get(topic, ())),
            }
            for topic, each in summary.by_topic.items()
        ],
        "summary": pylog.jobs.document_of(summary.totals, names),
    }


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


def _config_lines(configs: Mapping[str, Sequence[ConfigEntry]]) -> Iterator[str]:
    """Yield a table of what decides; topics for which the same is said share a line."""
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
            "VALUE": [entry.value or "(empty)" for entry in rows],
            "SOURCE": [_ORIGINS[entry.source] for entry in rows],
            "TOPICS": [named(topics[entry]) for entry in rows],
        },
        {"PROPERTY", "SOURCE", "TOPICS"},
        OutputTraits.of(sys.stdout).width,
    )
    yield ""


def config_document(entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    """Return what a topic is configured to: values as text, sources by Kafka's names."""
    return {entry.name: {"value": entry.value, "source": str(entry.source)} for entry in entries}


def is_agreed(what: str, size_bytes: int) -> bool:
    """Ask whether all records of something may go; a no is said, and nothing was changed."""
    question = f"All records of {what} will be removed ({format_bytes(size_bytes)}). Remove them?"
    try:
        answer = click.confirm(question, err=True)
    except click.Abort as abort:  # Ctrl-C, or Ctrl-D
        click.echo("\npylog: nothing was changed", err=True)
        raise KeyboardInterrupt from abort
    if not answer:
        click.echo("pylog: nothing was changed", err=True)
    return answer


def removal_lines(what: str, removal: Removal) -> list[str]:
    """Return what would be done, and what would be removed with it."""
    first, end = removal.start_offset, removal.end_offset
    gone = (
        f"{offsets_text(first, end)} would be removed: {counted(removal.records, 'record')}, "
        f"{counted(removal.size_bytes, 'byte')}, {counted(removal.segments, 'whole segment')}"
    )
    return [what, gone]


def removal_json(removal: Removal | None) -> dict[str, Any]:
    """Return what a dry run adds to the summary; nothing where there was none."""
    if removal is None:
        return {}
    return {
        "dryRun": True,
        "removed": pylog.jobs.document_of(removal),
    }
