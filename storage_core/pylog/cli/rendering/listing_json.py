"""A listing as ``ls --json`` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pylog import ListedPartition, PartitionListing


def listing_document(listing: PartitionListing) -> dict[str, Any]:
    """Return the whole listing; sizes in bytes."""
    totals = listing.totals
    return {
        "partitions": [_partition(each) for each in listing.partitions],
        "notLive": [each._asdict() for each in listing.not_live],
        "summary": {
            "topics": totals.topics,
            "partitions": totals.partitions,
            "segments": totals.segments,
            "sizeInBytes": totals.size_bytes,
            "notLive": totals.not_live,
            "leftoverFiles": totals.leftover_files,
            "findings": totals.findings,
        },
    }


def _partition(listed: ListedPartition) -> dict[str, Any]:
    return {
        "topic": listed.topic,
        "partition": listed.partition,
        "logStartOffset": listed.log_start_offset,
        "logEndOffset": listed.log_end_offset,
        "segments": listed.segments,
        "sizeInBytes": listed.size_bytes,
        "leaderEpoch": listed.leader_epoch,
        "topicId": listed.topic_id,
        "leftoverFiles": listed.leftover_files,
        "path": listed.path,
        "findings": listed.findings,
        "notes": listed.notes,
    }
