"""What retention has removed, or would remove: topic by topic for people, all of it as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.aligned_columns import aligned_columns
from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import PartitionRetention, RetentionSummary, RetentionTotals


def retention_lines(summary: RetentionSummary) -> Iterator[str]:
    """Yield a table of the topics that lose segments, what was left alone, and the sum."""
    would = "would be" if summary.is_dry_run else "was"
    changed = {topic: each for topic, each in summary.by_topic.items() if each.segments}
    if changed:
        yield from aligned_columns(_columns(changed), {"TOPIC"})
    for each in summary.partitions:
        if each.failure is not None:
            yield f"nothing {would} removed from {each.topic_partition}: {each.failure}"
    yield _sum(summary.totals, is_dry_run=summary.is_dry_run)


def _columns(topics: dict[str, RetentionTotals]) -> dict[str, list[str]]:
    rows = topics.values()
    columns = {
        "TOPIC": list(topics),
        "PARTITIONS": [str(each.changed_partitions) for each in rows],
        "SEGMENTS": [str(each.segments) for each in rows],
        "RECORDS": ["?" if each.records is None else str(each.records) for each in rows],
        "REMOVED": [format_bytes(each.deleted_bytes) for each in rows],
        "LEFT": [format_bytes(each.size_bytes) for each in rows],
    }
    if all(each.records is None for each in rows):
        del columns["RECORDS"]
    return columns


def _sum(totals: RetentionTotals, *, is_dry_run: bool) -> str:
    left = f"{format_bytes(totals.size_bytes)} {'would remain' if is_dry_run else 'remain'}"
    if not totals.segments:
        return f"nothing {'would be' if is_dry_run else 'was'} removed; {left}"
    size = format_bytes(totals.deleted_bytes)
    if totals.records is not None:
        size = f"{counted(totals.records, 'record')}, {size}"
    return (
        f"{'would remove' if is_dry_run else 'removed'} {counted(totals.segments, 'segment')} of "
        f"{counted(totals.changed_partitions, 'partition')} ({size}); {left}"
    )


def retention_document(summary: RetentionSummary) -> dict[str, Any]:
    """Return all of it; sizes in bytes, times in milliseconds."""
    return {
        "dryRun": summary.is_dry_run,
        "now": summary.now_ms,
        "partitions": [_partition(each) for each in summary.partitions],
        "topics": [{"topic": topic, **_totals(each)} for topic, each in summary.by_topic.items()],
        "summary": _totals(summary.totals),
    }


def _totals(totals: RetentionTotals) -> dict[str, Any]:
    return {
        "partitions": totals.partitions,
        "changedPartitions": totals.changed_partitions,
        "removedSegments": totals.segments,
        "removedRecords": totals.records,
        "removedBytes": totals.deleted_bytes,
        "sizeInBytes": totals.size_bytes,
    }


def _partition(each: PartitionRetention) -> dict[str, Any]:
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "logStartOffset": each.log_start_offset,
        "logEndOffset": each.log_end_offset,
        "removedRecords": each.records,
        "removedBytes": each.deleted_bytes,
        "sizeInBytes": each.size_bytes,
        "removed": [
            {
                "baseOffset": segment.base_offset,
                "nextOffset": segment.next_offset,
                "sizeInBytes": segment.size_bytes,
                "reason": str(segment.reason),
            }
            for segment in each.deleted
        ],
        "failure": each.failure,
    }
