"""Offsets to bytes: which parts of which ``.log`` files hold a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, UnreadableFileError
from pylog.reading.damage import DamagedRange
from pylog.reading.scan_task import SegmentSlice

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.reading.damage import DamageReport
    from pylog.reading.log_view import LogView


def slice_of(view: LogView, index: int, start: int = 0, end: int | None = None) -> SegmentSlice:
    """Return bytes ``[start, end)`` of segment ``index``; up to the end of its log if None."""
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    end = segment_end if end is None else end
    following = view.next_base_offset(index)
    return SegmentSlice(
        segment.file_path(),
        segment.base_offset,
        following,
        start,
        end,
        following is not None and end == segment_end,
        segment.file_id,
        segment.leaves_page_cache,
    )


def segment_slices(
    view: LogView, start_offset: int, end_offset: int, *, checks_gap: bool = True
) -> tuple[SegmentSlice, ...]:
    """Return the byte ranges of every segment that may hold offsets ``[start, end)``.

    They begin and end with whole batches, so they may hold a little more: also the batch before a
    gap in which the range begins, unless ``checks_gap`` is false. A file that cannot be
    read has a slice, too, so that its reader meets the error. Where damage is skipped and the
    range goes up to the log's end, the slices reach to the end of the last file: what is damaged
    there is to be reported, whatever its offsets say.
    """
    reaches_end_of_files = view.damage is not None and end_offset >= view.log_end_offset
    if start_offset >= end_offset and not reaches_end_of_files:
        return ()
    slices = []
    first = view.find_segment(start_offset) or 0
    for index in range(first, len(view.segments)):
        segment = view.segments[index]
        if segment.base_offset >= end_offset and not reaches_end_of_files:
            break
        following = view.next_base_offset(index)
        segment_end = view.segment_end(index)
        start, end = 0, segment_end
        is_unreadable = segment.defect is not None
        if segment_end and (
            segment.base_offset < start_offset or _ends_inside(following, end_offset)
        ):
            bounds = start_offset, end_offset
            start, end = _positions(view, index, bounds, checks_gap=checks_gap)
        if start < end or is_unreadable:
            slices.append(slice_of(view, index, start, end))
    return tuple(slices)


def open_slice(
    segment_slice: SegmentSlice, damage: DamageReport | None, lowest_offset: int = 0
) -> ByteSource | None:
    """Open the file of a slice; None where it cannot be read and ``damage`` has a note of it.

    Parameters
    ----------
    segment_slice
        The slice.
    damage
        Where that is noted; None for an error.
    lowest_offset
        The offset after the last batch before this slice.

    Raises
    ------
    SegmentVanishedError
        It is gone, or another file has its name.
    UnreadableFileError
        It is not a regular file, or cannot be opened, and there is no report.
    """
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
            )
        )
        return None


def _ends_inside(following: int | None, end_offset: int) -> bool:
    return following is None or end_offset < following


def _positions(
    view: LogView, index: int, offsets: tuple[int, int], *, checks_gap: bool
) -> tuple[int, int]:
    """Return the bytes from the batch that holds the first offset to after the last one's."""
    start_offset, end_offset = offsets
    segment = view.segments[index]
    segment_end = view.segment_end(index)
    start, end = 0, segment_end
    first = None
    try:
        with segment.open_log() as source:
            if segment.base_offset < start_offset:
                start, first = segment.find_start(
                    source, start_offset, segment_end, checks_gap=checks_gap
                )
            covers_the_end = end_offset >= view.log_end_offset
            if _ends_inside(view.next_base_offset(index), end_offset) and not covers_the_end:
                last = first
                if first is None or first.header.last_offset < end_offset - 1:
                    last = segment.find_batch(source, end_offset - 1, segment_end)
                end = segment_end if last is None else last.end_position
    except (CorruptRecordError, UnreadableFileError):
        if view.damage is None:
            raise
        return 0, segment_end  # the reader finds its way through
    return start, end
