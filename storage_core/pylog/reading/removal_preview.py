"""What a truncation, or a later start of a log, would remove; nothing is changed to find out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.lazy_modules import LazyModule
from pylog.reading.slicing import segment_slices
from pylog.reading.task_range import TaskRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.columnar import arrow_schema  # imports Arrow
    from pylog.reading import reader  # imports Arrow and Numba
    from pylog.reading.log_view import LogView
    from pylog.reading.task_range import SegmentSlice
else:
    arrow_schema = LazyModule("pylog.columnar.arrow_schema")
    reader = LazyModule("pylog.reading.reader")


class Removal(NamedTuple):
    """The offsets, records and segments that a removal would delete.

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


def removal_from_end(view: LogView, start: int, end: int) -> Removal:
    """Return what a truncation to ``start`` of a log that ends at ``end`` removes."""
    slices = segment_slices(view, start, end) if start < end else ()
    return Removal(
        start,
        end,
        count_records(view, slices, start, end) if slices else 0,
        sum(each.size_bytes for each in slices),
        sum(start < segment.base_offset < end for segment in view.segments),
    )


def removal_from_start(view: LogView, start: int, end: int) -> Removal:
    """Return what is served no more once a log that starts at ``start`` does so at ``end``."""
    slices = segment_slices(view, start, end) if start < end else ()
    below = [
        segment
        for index, segment in enumerate(view.segments)
        if (view.next_base_offset(index) or end + 1) <= end
    ]
    return Removal(
        start,
        end,
        count_records(view, slices, start, end) if slices else 0,
        sum(segment.size_bytes for segment in below),
        len(below),
    )


def count_records(view: LogView, slices: Sequence[SegmentSlice], start: int, end: int) -> int:
    """Return how many records, control records left out, the slices have of ``[start, end)``."""
    whole = TaskRange(view.directory, tuple(slices), start, end)
    return reader.TaskReader(whole, arrow_schema.record_schema(["offset"])).count()
