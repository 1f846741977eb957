"""What ``append`` says of the records that it appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog import PartitionSummary


def append_document(line_count: int, partitions: Sequence[PartitionSummary]) -> dict[str, Any]:
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
    }


def append_line(partitions: Sequence[PartitionSummary]) -> str:
    """Return the summary in one line, however many partitions there are."""
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
