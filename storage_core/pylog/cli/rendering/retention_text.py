"""What retention has removed, or would remove: topic by topic for people, all of it as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.cleanup_text import (
    cleanup_document,
    cleanup_lines,
    held_back_document,
)
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import PartitionRetention, RetentionSummary, RetentionTotals


def retention_lines(summary: RetentionSummary) -> Iterator[str]:
    """Yield a table of the topics that lose segments, what was left alone, and the sum."""
    would = "would be" if summary.is_dry_run else "was"
    yield from cleanup_lines(
        summary,
        _columns({topic: each for topic, each in summary.by_topic.items() if each.segments}),
        (
            f"nothing {would} removed from {each.topic_partition}: {each.failure}"
            for each in summary.partitions
            if each.failure is not None
        ),
        _removed(summary.totals),
        done="removed",
    )


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


def _removed(totals: RetentionTotals) -> str | None:
    if not totals.segments:
        return None
    size = format_bytes(totals.deleted_bytes)
    if totals.records is not None:
        size = f"{counted(totals.records, 'record')}, {size}"
    return (
        f"{counted(totals.segments, 'segment')} of "
        f"{counted(totals.changed_partitions, 'partition')} ({size})"
    )


def retention_document(summary: RetentionSummary) -> dict[str, Any]:
    """Return all of it; sizes in bytes, times in milliseconds."""
    return cleanup_document(summary, _partition, _totals)


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
        "heldBack": held_back_document(each.held_back),
        "failure": each.failure,
    }
