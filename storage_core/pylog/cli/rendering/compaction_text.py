"""What compaction has removed, or would remove: topic by topic for people, all of it as JSON."""

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

    from pylog import CompactionSummary, CompactionTotals, PartitionCompaction


def compaction_lines(summary: CompactionSummary) -> Iterator[str]:
    """Yield a table of the topics that are cleaned, what went wrong, and the sum."""
    verb = "would not be" if summary.is_dry_run else "was not"
    yield from cleanup_lines(
        summary,
        _columns({each: of for each, of in summary.by_topic.items() if of.cleaned_partitions}),
        (
            f"{each.topic_partition} {verb} fully cleaned: {each.failure}"
            for each in summary.partitions
            if each.failure is not None
        ),
        _removed(summary),
        done="cleaned",
    )


def _columns(topics: dict[str, CompactionTotals]) -> dict[str, list[str]]:
    rows = topics.values()
    return {
        "TOPIC": list(topics),
        "PARTITIONS": [str(each.cleaned_partitions) for each in rows],
        "RECORDS": [str(each.records) for each in rows],
        "REMOVED": [format_bytes(each.removed_bytes) for each in rows],
        "LEFT": [format_bytes(each.size_bytes) for each in rows],
    }


def _removed(summary: CompactionSummary) -> str | None:
    totals = summary.totals
    if not totals.cleaned_partitions:
        return None
    is_more = summary.is_dry_run and any(map(_needs_rounds, summary.partitions))
    size = format_bytes(totals.removed_bytes)
    return (
        f"{'at least ' if is_more else ''}{counted(totals.records, 'record')} of "
        f"{counted(totals.cleaned_partitions, 'partition')} ({size})"
    )


def _needs_rounds(each: PartitionCompaction) -> bool:
    return each.rounds > 0 and not each.is_complete and each.failure is None


def compaction_document(summary: CompactionSummary) -> dict[str, Any]:
    """Return all of it; sizes in bytes, times in milliseconds."""
    return cleanup_document(summary, _partition, _totals)


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
        "heldBack": held_back_document(each.held_back),
        "failure": each.failure,
    }
