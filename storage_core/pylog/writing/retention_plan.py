"""What retention would remove from a partition; nothing is changed, locked or recovered.

The decision is that of `pylog.log.retention`, over the segments as they lie on the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.log.retention import (
    RetentionParams,
    deletable_segments,
    describe_deletable,
    held_back_segments,
    offsets_of,
)
from pylog.reading.dated_segments import dated_segments
from pylog.reading.removal_preview import count_records
from pylog.reading.slicing import segment_slices
from pylog.writing.held_back import HeldBack
from pylog.writing.retention_summary import PartitionRetention

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.files.high_watermarks import HighWatermarks
    from pylog.reading.log_view import LogView


def plan_retention(
    view: LogView, config: LogConfig, watermarks: HighWatermarks, now_ms: int
) -> PartitionRetention:
    """Return what `UnifiedLog.delete_old_segments` would remove.

    Where the log was not closed in order, its owner recovers it first: a batch that recovery finds
    damaged, and all after it, is counted here as if it stayed.

    Raises
    ------
    CorruptRecordError
        A segment may be younger than its time index says, or is the last one, and is damaged.
    UnreadableFileError, SegmentVanishedError, LogDirectoryError
        A file cannot be read.
    """
    segments = dated_segments(view)
    start, end = view.log_start_offset, view.log_end_offset
    high_watermark = watermarks.start_of(view.topic_partition, start, end)
    params = RetentionParams.of(
        config, now_ms, log_start_offset=start, high_watermark=high_watermark, log_end_offset=end
    )
    deletable = deletable_segments(segments, params)
    deleted = describe_deletable(segments, deletable, params)
    rest = segments[len(deleted) :]
    kept = describe_deletable(rest, held_back_segments(rest, params), params)
    new_start = max(start, deleted[-1].next_offset) if deleted else start
    return PartitionRetention(
        topic_partition=view.topic_partition,
        deleted=tuple(deleted),
        records=_count(view, start, new_start),
        log_start_offset=new_start,
        log_end_offset=end,
        size_bytes=sum(segment.size_bytes for segment in rest),
        held_back=HeldBack.of(
            view.directory.path,
            view.topic_partition,
            offsets_of(kept),
            high_watermark=high_watermark,
            log_end_offset=end,
        ),
    )


def _count(view: LogView, start: int, end: int) -> int | None:
    """Return how many records are served of offsets ``[start, end)``, None if damage hides it."""
    if start == end:
        return 0
    try:
        return count_records(view, segment_slices(view, start, end), start, end)
    except (CorruptRecordError, InvalidRecordError):
        return None
