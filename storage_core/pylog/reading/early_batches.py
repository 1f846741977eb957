"""Batches at the head of a slice that are too early for a filter.

They are skipped by their headers, one after the other: the time index is not needed, so it cannot
mislead.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptRecordError,
    UnreadableFileError,
)
from pylog.files.byte_source import LocalFile
from pylog.lazy_modules import LazyModule
from pylog.log_file.batch_walk import (
    has_valid_checksum,
    walk_headers,
)

if TYPE_CHECKING:
    import numpy as np

    from pylog.files.byte_source import ByteSource
    from pylog.kernels import skip_headers  # compiles
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.task_range import SegmentSlice
else:
    np = LazyModule("numpy")
    skip_headers = LazyModule("pylog.kernels.skip_headers")


_STRIDE = 64 << 20


def late_part(segment_slice: SegmentSlice, where: RecordFilter | None) -> SegmentSlice:
    """Return a slice without what is too early for a filter; as it is if it cannot be read."""
    if where is None or where.min_timestamp is None or segment_slice.is_corrupt:
        return segment_slice
    try:
        with segment_slice.open() as source:
            return without_early_batches(source, segment_slice, where)
    except UnreadableFileError:
        return segment_slice  # its reader will report it


def without_early_batches(
    source: ByteSource, segment_slice: SegmentSlice, where: RecordFilter
) -> SegmentSlice:
    """Return the rest of a slice from the first batch on that may be late enough for a filter.

    The slice itself where that is uncertain, where the file is not local, since a request for each
    header would cost more than reading all, and where the page cache is to be left as it was.
    """
    if where.min_timestamp is None:
        return segment_slice
    if not (isinstance(source, LocalFile) and source.is_read_by_kernels):
        return segment_slice
    scratch = np.empty(64, dtype=np.uint8)
    position, end = segment_slice.start_position, segment_slice.end_position
    while position < end:
        until = min(position + _STRIDE, end)
        source.will_need(position, _STRIDE)
        position = int(
            skip_headers.first_late_batch(
                source.descriptor,
                position,
                until,
                end,
                where.min_timestamp,
                int(where.trusts_batch_timestamps),
                scratch,
            )
        )
        if position < until:
            break
    if position < end and not _is_sound(source, position, end):
        return segment_slice
    return replace(segment_slice, start_position=position)


def _is_sound(source: ByteSource, position: int, end: int) -> bool:
    """Whether sizes have led to an intact batch, which ends where the slice or another one does."""
    try:
        two = list(islice(walk_headers(source, position, end), 2))
    except CorruptRecordError:
        return False
    is_last = len(two) == 1 and two[0].end_position == end
    return (is_last or len(two) == 2) and all(has_valid_checksum(source, each) for each in two)
