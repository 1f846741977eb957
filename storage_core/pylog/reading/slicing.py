"""From offsets to bytes of ``.log`` files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptRecordError,
    UnreadableFileError,
)
from pylog.log_file.batch_walk import (
    read_header,
)
from pylog.log_file.proved_positions import ProvedPosition
from pylog.reading.damage import DamagedRange
from pylog.reading.task_range import SegmentSlice

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.reading.damage import DamageReport
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView


def slice_of(
    view: LogView,
    index: int,
    start: int = 0,
    end: int | None = None,
    *,
    skipped_below: int = 0,
) -> SegmentSlice:
    """Return bytes ``[start, end)`` of segment ``index``; up to the end of its log if None."""
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    end = segment_end if end is None else end
    limit = view.limit_offset(index)
    return SegmentSlice(
        segment.file_path(),
        segment.base_offset,
        limit,
        start,
        end,
        limit is not None and end == segment_end,
        segment.file_id,
        segment.access.leave_page_cache,
        segment.defect,
        skipped_below,
        segment.stamp,
        _file_of(view.segments[index - 1]) if index else None,
        view.is_overlong(index),
    )


def _file_of(segment: LogSegmentView) -> tuple[int, int, int]:
    return segment.base_offset, segment.file_id, segment.stamp


def segment_slices(
    view: LogView,
    start_offset: int,
    end_offset: int,
    *,
    origin: int | None = None,
    checks_gap: bool = True,
) -> tuple[SegmentSlice, ...]:
    """Return the byte ranges of every segment that may hold offsets ``[start, end)``.

    They begin and end with whole batches, so they may hold a little more: also the batch before a
    gap in which the range begins, unless ``checks_gap`` is false. A file that cannot be
    read has a slice, too, so that its reader meets the error. Where damage is skipped and the
    range goes up to the log's end, the slices reach to the end of the last file: what is damaged
    there is to be reported, whatever its offsets say.

    Where segments overlap, the slices are those of a reader that begins at ``origin``, by default
    at the range's own start; see `LogView.consumed_segments`.
    """
    reaches_end_of_files = view.damage is not None and end_offset >= view.log_end_offset
    if start_offset >= end_offset and not reaches_end_of_files:
        return ()
    slices = []
    origin = start_offset if origin is None else origin
    for index, consumed_from in view.consumed_segments(origin):
        segment = view.segments[index]
        first = max(start_offset, consumed_from)
        if max(segment.base_offset, first) >= end_offset and not reaches_end_of_files:
            break
        limit = view.limit_offset(index)
        if limit is not None and limit <= start_offset and origin < start_offset:
            continue
        segment_end = view.segment_end(index)
        start, end = ProvedPosition(0, segment.base_offset), segment_end
        is_unreadable = segment.defect is not None
        if segment_end and (segment.base_offset < first or _ends_inside(limit, end_offset)):
            start, end = _positions(
                view, index, (first, end_offset), checks_gap=checks_gap and first == start_offset
            )
        if start.position < end or is_unreadable:
            skipped_below = consumed_from if consumed_from > origin else 0
            found = slice_of(view, index, start.position, end, skipped_below=skipped_below)
            if start.lowest_offset != found.base_offset:
                # Where offsets are wrong, those before the slice tell which ones.
                found = replace(found, base_offset=start.lowest_offset)
            slices.append(found)
    return tuple(slices)


def open_slice(
    segment_slice: SegmentSlice, damage: DamageReport | None, lowest_offset: int = 0
) -> ByteSource | None:
    """Open the file of a slice; None where it cannot be read and ``damage`` has a note of it."""
    try:
        return segment_slice.open()
    except UnreadableFileError as error:
        if damage is None:
            raise
        damage.add(
            DamagedRange(
                segment_slice.path,
                segment_slice.start_position,
                segment_slice.end_position,
                max(lowest_offset, segment_slice.base_offset),
                segment_slice.next_base_offset,
                error.reason,
                is_unreadable=True,
            )
        )
        return None


def _ends_inside(limit: int | None, end_offset: int) -> bool:
    return limit is None or end_offset < limit


def _positions(
    view: LogView, index: int, offsets: tuple[int, int], *, checks_gap: bool
) -> tuple[ProvedPosition, int]:
    """Return where the batch that holds the first offset begins, and the last one's ends."""
    start_offset, end_offset = offsets
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    start, end = ProvedPosition(0, segment.base_offset), segment_end
    first = None
    try:
        with segment.open_log() as source:
            if segment.base_offset < start_offset:
                start, first = segment.find_start(
                    source, start_offset, segment_end, checks_gap=checks_gap
                )
            covers_the_end = end_offset >= view.log_end_offset
            if _ends_inside(view.limit_offset(index), end_offset) and not covers_the_end:
                last = first
                if first is None or first.header.last_offset < end_offset - 1:
                    last = segment.find_batch(source, end_offset - 1, segment_end)
                end = segment_end if last is None else last.end_position
                if view.damage is not None and last is not None:
                    following = read_header(source, end, segment_end)
                    if following and following.header.offset <= last.header.last_offset:
                        end = segment_end  # one of the two has a wrong offset
    except (CorruptRecordError, UnreadableFileError):
        if view.damage is None:
            raise
        return ProvedPosition(0, segment.base_offset), segment_end  # its reader finds its way
    return start, end
