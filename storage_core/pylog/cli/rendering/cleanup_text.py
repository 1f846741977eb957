"""The text about a cleanup, by retention or compaction, done or planned: what it removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.aligned_columns import aligned_columns
from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.config_text import config_document, config_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog import CompactionSummary, ConfigEntry, HeldBack, RetentionSummary


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

    Parameters
    ----------
    summary
        What is removed, or would be.
    columns
        Of the topics that change; the first one has their names.
    failures
        A line for each partition that was left as it was.
    removed
        What is removed of them, such as "3 segments of 2 partitions"; None if nothing is.
    done
        What is done to partitions: they are "cleaned", say.
    """
    if summary.is_dry_run:
        yield from config_lines(_decisive_configs(summary))
    if columns["TOPIC"]:
        yield from aligned_columns(columns, {"TOPIC"})
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


def held_back_document(held_back: HeldBack | None) -> dict[str, Any] | None:
    """Return what a high watermark holds back; None if nothing."""
    if held_back is None:
        return None
    return {
        "startOffset": held_back.start_offset,
        "endOffset": held_back.end_offset,
        "records": held_back.records,
        "highWatermark": held_back.high_watermark,
        "logEndOffset": held_back.log_end_offset,
    }


def _decisive_configs(
    summary: RetentionSummary | CompactionSummary,
) -> dict[str, Sequence[ConfigEntry]]:
    """Return what the topics are configured to that were looked at."""
    return {topic: summary.configs.get(topic, ()) for topic in summary.by_topic}
