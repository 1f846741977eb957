"""What ``--dry-run`` shows: what a command would remove from a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog
from pylog.writing.writable_directory import writable_log_directory

if TYPE_CHECKING:
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.reading.removal_preview import Removal


def view_of(path: str, topic_partition: TopicPartition) -> LogView:
    """Return the read-only view of a partition in a directory that may be written to.

    Raises
    ------
    LogDirectoryError
        A command that writes would not take the path either.
    UnknownTopicOrPartitionError
        It has no such partition.
    """
    return pylog.open_directory(writable_log_directory(path, must_exist=True))[topic_partition]


def removal_lines(what: str, removal: Removal) -> list[str]:
    """Return what would be done, and what would go with it."""
    first, end = removal.start_offset, removal.end_offset
    if first == end:
        return [f"{what}, as it does now: nothing would go"]
    gone = (
        f"offsets {first} to {end - 1} would go: {removal.records} records; "
        f"{removal.size_bytes} bytes, {removal.segments} segments as a whole"
    )
    return [what, gone]


def removal_json(removal: Removal | None) -> dict[str, Any]:
    """Return what a dry run adds to the summary; nothing where there was none."""
    if removal is None:
        return {}
    return {
        "dryRun": True,
        "removed": {
            "startOffset": removal.start_offset,
            "endOffset": removal.end_offset,
            "records": removal.records,
            "sizeBytes": removal.size_bytes,
            "segments": removal.segments,
        },
    }
