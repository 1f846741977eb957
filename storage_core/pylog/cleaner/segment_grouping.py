"""Which neighbouring segments are cleaned into one, so that segments do not get ever smaller.

Source: Cleaner.groupSegmentsBySize (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.index_entries import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.log_segment import LogSegment


def group_segments_by_size(
    segments: Sequence[LogSegment],
    max_size_bytes: int,
    max_index_bytes: int,
    first_uncleanable_offset: int,
) -> list[list[LogSegment]]:
    """Return the segments in groups, each of which takes as many as fit, in their order.

    Sizes are those before cleaning. A segment that is too large by itself is a group of its own.

    Parameters
    ----------
    segments
        Neighbours, in order.
    max_size_bytes
        What the ``.log`` files of a group have together, at the most.
    max_index_bytes
        The same for offset indexes, and for time indexes.
    first_uncleanable_offset
        Where the cleaning ends, exclusive: above all offsets in the last segment.
    """
    groups: list[list[LogSegment]] = []
    sizes: tuple[int, ...] = (0, 0, 0)
    limits = (max_size_bytes, max_index_bytes, max_index_bytes)
    for place, segment in enumerate(segments):
        added = _sizes_of(segment)
        together = tuple(size + more for size, more in zip(sizes, added, strict=True))
        # Not read from the segment, which would cost a scan: the next one begins after it.
        is_last = place + 1 == len(segments)
        end = first_uncleanable_offset if is_last else segments[place + 1].base_offset
        if (
            groups
            and all(size <= limit for size, limit in zip(together, limits, strict=True))
            and _spans(groups[-1][0].base_offset, segment, end - 1)
        ):
            groups[-1].append(segment)
            sizes = together
        else:
            groups.append([segment])
            sizes = added
    return groups


def _sizes_of(segment: LogSegment) -> tuple[int, ...]:
    indexes = segment.offset_index, segment.time_index
    sizes = (segment.size_bytes, *(index.size_in_bytes for index in indexes))
    segment.release()  # a log may have more segments than a process descriptors
    return sizes


def _spans(base_offset: int, segment: LogSegment, last_offset: int) -> bool:
    """Whether all offsets of a segment fit one that begins at ``base_offset``; if it has any."""
    return segment.size_bytes == 0 or last_offset - base_offset <= MAX_RELATIVE_OFFSET
