"""What ``append`` says of the records that it appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog import PartitionSummary


def append_document(
    line_count: int,
    partitions: Sequence[PartitionSummary],
    created_topics: Mapping[str, Sequence[int]],
) -> dict[str, Any]:
    """Return the summary as a JSON document."""
    return {
        "lines": line_count,
        "records": sum(each.records for each in partitions),
        "sizeInBytes": sum(each.size_bytes for each in partitions),
        "partitions": [
            {
                "topic": each.topic_partition.topic,
                "partition": each.topic_partition.partition,
                "records": each.records,
                "sizeInBytes": each.size_bytes,
                "logEndOffset": each.end_offset,
            }
            for each in partitions
        ],
        "createdTopics": [
            {"topic": topic, "partitions": list(numbers)}
            for topic, numbers in created_topics.items()
        ],
    }


def append_line(
    partitions: Sequence[PartitionSummary],
    created_topics: Mapping[str, Sequence[int]],
    *,
    is_interrupted: bool = False,
) -> str:
    """Return the summary in one line, however many topics and partitions there are."""
    line = _created(created_topics) + _appended(partitions)
    if not is_interrupted:
        return line
    kept = "; they are kept" if partitions else ""
    return f"interrupted: {line}{kept}"


def _created(topics: Mapping[str, Sequence[int]]) -> str:
    if not topics:
        return ""
    names = f"topic {next(iter(topics))}" if len(topics) == 1 else counted(len(topics), "topic")
    partitions = counted(sum(map(len, topics.values())), "partition")
    return f"created {names} with {partitions}, "


def _appended(partitions: Sequence[PartitionSummary]) -> str:
    records = counted(sum(each.records for each in partitions), "record")
    if not partitions:
        return f"appended {records}"
    size = format_bytes(sum(each.size_bytes for each in partitions))
    if len(partitions) == 1:
        (only,) = partitions
        where = f"{only.topic_partition}, which ends at offset {only.end_offset} (exclusive)"
    else:
        topics = {each.topic_partition.topic for each in partitions}
        what = f"topic {topics.pop()}" if len(topics) == 1 else counted(len(topics), "topic")
        where = f"{len(partitions)} partitions of {what}"
    return f"appended {records} ({size} in batches) to {where}"
