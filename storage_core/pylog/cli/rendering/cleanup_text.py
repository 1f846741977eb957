"""The text about a cleanup, by retention or compaction, done or planned: what it removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.aligned_columns import aligned_columns
from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.config_text import config_document, config_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog import CompactionSummary, ConfigEntry, RetentionSummary


def cleanup_lines(
    summary: RetentionSummary | CompactionSummary,
    columns: dict[str, list[str]],
    failures: Iterable[str],
    removed: str | None,
    *,
    done: str,
) -> Iterator[str]:
    """Yield a table of the topics that change, what went wrong, and the sum.

    A dry run is preceded by what decides, topic by topic, and who says it.
    """
    if summary.is_dry_run:
        yield from config_lines(_decisive_configs(summary))
    if columns["TOPIC"]:
        yield from aligned_columns(columns, {"TOPIC"})
    yield from failures
    is_dry_run = summary.is_dry_run
    left = format_bytes(summary.totals.size_bytes)
    left += " would remain" if is_dry_run else " remain"
    if removed is None:
        yield f"nothing {'would be' if is_dry_run else 'was'} {done}; {left}"
    else:
        yield f"{'would remove' if is_dry_run else 'removed'} {removed}; {left}"


def cleanup_document(
    summary: RetentionSummary | CompactionSummary,
    partition: Callable[[Any], Mapping[str, Any]],
    totals: Callable[[Any], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return all of a summary, given what is said of its partitions and of its totals."""
    return {
        "dryRun": summary.is_dry_run,
        "now": summary.now_ms,
        "partitions": [partition(each) for each in summary.partitions],
        "topics": [
            {
                "topic": topic,
                **totals(each),
                "configs": config_document(summary.configs.get(topic, ())),
            }
            for topic, each in summary.by_topic.items()
        ],
        "summary": totals(summary.totals),
    }


def _decisive_configs(
    summary: RetentionSummary | CompactionSummary,
) -> dict[str, Sequence[ConfigEntry]]:
    """Return what the topics are configured to that were looked at."""
    return {topic: summary.configs.get(topic, ()) for topic in summary.by_topic}
