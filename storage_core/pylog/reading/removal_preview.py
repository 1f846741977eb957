"""What a truncation, or a later start of a log, would remove; nothing is changed to find out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    OffsetAboveHighWatermarkError,
    OffsetInsideBatchError,
    OffsetOutOfRangeError,
)
from pylog.lazy_modules import LazyModule
from pylog.reading.scan_task import ScanTask
from pylog.reading.slicing import segment_slices
from pylog.record.legacy_batch import BatchOffsets, batch_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.columnar import arrow_schema  # imports Arrow
    from pylog.config import LogConfig
    from pylog.reading import reader  # imports Arrow and Numba
    from pylog.reading.log_view import LogView
    from pylog.reading.scan_task import SegmentSlice
else:
    arrow_schema = LazyModule("pylog.columnar.arrow_schema")
    reader = LazyModule("pylog.reading.reader")


class Removal(NamedTuple):
    """What would be removed.

    Attributes
    ----------
    start_offset, end_offset
        The offsets ``[start, end)``; an empty range if nothing would be removed.
    records
        How many records these are, without control records.
    size_bytes
        How many bytes of ``.log`` files would be freed.
    segments
        How many whole segments would be removed.
    """

    start_offset: int
    end_offset: int
    records: int
    size_bytes: int
    segments: int


def preview_truncation(view: LogView, offset: int, *, takes_whole_batch: bool = False) -> Removal:
    """Return what `pylog.log.unified_log.UnifiedLog.truncate_at_boundary` would remove."""
    end = view.log_end_offset
    if not view.segments or offset >= end:
        return Removal(end, end, 0, 0, 0)
    if offset < view.log_start_offset:
        raise OffsetOutOfRangeError(str(view.topic_partition), offset, view.log_start_offset, end)
    batch = _batch_around(view, offset)
    if batch is not None and batch.are_cut_at(offset):
        if not takes_whole_batch:
            raise OffsetInsideBatchError(str(view.topic_partition), offset, *batch)
        offset = batch.first
    slices = segment_slices(view, offset, end)
    return Removal(
        offset,
        end,
        count_records(view, slices, offset, end),
        sum(each.size_bytes for each in slices),
        sum(segment.base_offset > offset for segment in view.segments),
    )


def preview_record_deletion(
    view: LogView, config: LogConfig, offset: int | None, high_watermark: int
) -> Removal:
    """Return what would be served no more if the log started at ``offset``."""
    config.ensure_records_may_be_deleted(str(view.topic_partition))
    start, end = view.log_start_offset, view.log_end_offset
    offset = high_watermark if offset is None else offset
    if not 0 <= offset <= end:
        raise OffsetOutOfRangeError(str(view.topic_partition), offset, start, end)
    if offset > high_watermark:
        name = str(view.topic_partition)
        raise OffsetAboveHighWatermarkError(name, offset, start, high_watermark, end)
    low, high = start, max(start, offset)
    below = [
        segment
        for index, segment in enumerate(view.segments)
        if (view.next_base_offset(index) or high + 1) <= high
    ]
    return Removal(
        low,
        high,
        count_records(view, segment_slices(view, low, high), low, high),
        sum(segment.size_bytes for segment in below),
        len(below),
    )


def _batch_around(view: LogView, offset: int) -> BatchOffsets | None:
    """Return the offsets of the first batch that ends after ``offset``."""
    index = view.find_segment(offset)
    if index is None:
        return None
    segment = view.segments[index]
    with segment.open_log() as source:
        batch = segment.find_batch(source, offset, view.segment_end(index))
        if batch is None:
            return None
        return batch_offsets(memoryview(source.read_at(batch.position, batch.header.size_bytes)))


def count_records(view: LogView, slices: Sequence[SegmentSlice], start: int, end: int) -> int:
    """Return how many records, control records left out, the slices have of ``[start, end)``."""
    whole = ScanTask(view.directory, tuple(slices), start, end)
    return reader.TaskReader(whole, arrow_schema.record_schema(["offset"])).count()
