"""What compaction has removed, or would remove: topic by topic for people, all of it as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.aligned_columns import aligned_columns
from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import CompactionSummary, CompactionTotals, PartitionCompaction


def compaction_lines(summary: CompactionSummary) -> Iterator[str]:
    """Yield a table of the topics that are cleaned, what went wrong, and the sum."""
    cleaned = {topic: each for topic, each in summary.by_topic.items() if each.cleaned_partitions}
    if cleaned:
        yield from aligned_columns(_columns(cleaned), {"TOPIC"})
    for each in summary.partitions:
        if each.failure is not None:
            verb = "would not be" if summary.is_dry_run else "was not"
            yield f"{each.topic_partition} {verb} fully cleaned: {each.failure}"
    yield _sum(summary)


def _columns(topics: dict[str, CompactionTotals]) -> dict[str, list[str]]:
    rows = topics.values()
    return {
        "TOPIC": list(topics),
        "PARTITIONS": [str(each.cleaned_partitions) for each in rows],
        "RECORDS": [str(each.records) for each in rows],
        "REMOVED": [format_bytes(each.removed_bytes) for each in rows],
        "LEFT": [format_bytes(each.size_bytes) for each in rows],
    }


def _sum(summary: CompactionSummary) -> str:
    totals, would = summary.totals, summary.is_dry_run
    left = f"{format_bytes(totals.size_bytes)} {'would remain' if would else 'remain'}"
    if not totals.cleaned_partitions:
        return f"nothing {'would be' if would else 'was'} cleaned; {left}"
    least = "at least " if would and any(map(_needs_rounds, summary.partitions)) else ""
    size = format_bytes(totals.removed_bytes)
    return (
        f"{'would remove' if would else 'removed'} {least}{counted(totals.records, 'record')} of "
        f"{counted(totals.cleaned_partitions, 'partition')} ({size}); {left}"
    )


def _needs_rounds(each: PartitionCompaction) -> bool:
    return each.rounds > 0 and not each.is_complete and each.failure is None


def compaction_document(summary: CompactionSummary) -> dict[str, Any]:
    """Return all of it; sizes in bytes, times in milliseconds."""
    return {
        "dryRun": summary.is_dry_run,
        "now": summary.now_ms,
        "partitions": [_partition(each) for each in summary.partitions],
        "topics": [{"topic": topic, **_totals(each)} for topic, each in summary.by_topic.items()],
        "summary": _totals(summary.totals),
    }


def _totals(totals: CompactionTotals) -> dict[str, Any]:
    return {
        "partitions": totals.partitions,
        "cleanedPartitions": totals.cleaned_partitions,
        "removedRecords": totals.records,
        "removedBytes": totals.removed_bytes,
        "sizeInBytes": totals.size_bytes,
        "isComplete": totals.is_complete,
    }


def _partition(each: PartitionCompaction) -> dict[str, Any]:
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "rounds": each.rounds,
        "removedRecords": each.records,
        "removedBytes": each.removed_bytes,
        "invalidRecords": each.invalid_records,
        "removedSegments": each.segments,
        "firstDirtyOffset": each.first_dirty_offset,
        "sizeInBytes": each.size_bytes,
        "isComplete": each.is_complete,
        "failure": each.failure,
    }
