"""What ``append`` says of the records that it appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def append_lines(partitions: Sequence[PartitionSummary]) -> Iterator[str]:
    """Yield the summary as lines of text."""
    records = sum(each.records for each in partitions)
    size = format_bytes(sum(each.size_bytes for each in partitions))
    yield f"appended {counted(records, 'record')}, {size} in batches"
    for each in partitions:
        records_there = counted(each.records, "record")
        yield f"{each.topic_partition}: {records_there}, end offset {each.end_offset}"
