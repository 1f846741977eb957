"""The bytes of one ``.log`` file that are to be read. Frozen and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from pylog.locations import name_of


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """Bytes ``[start_position, end_position)`` of one ``.log`` file, beginning where a batch does.

    Attributes
    ----------
    path
        The ``.log`` file.
    base_offset
        No record here is below: the segment's base offset, or the offset where a task was cut.
    next_base_offset
        No record here is at or above: the base offset of the segment after it, or where the task
        was cut. None for the end of the log.
    runs_to_segment_end
        Whether ``end_position`` is the length of a file that has a segment after it. Then whole
        batches must reach it, or reach up to ``next_base_offset``: bytes that are left could be
        lost records. Otherwise whole batches end exactly at ``end_position``.
    file_id
        Which file it was when the directory was listed; 0 where the storage tells nothing.
    leaves_page_cache
        Whether the file is read without leaving anything in the page cache.
    """

    path: str
    base_offset: int
    next_base_offset: int | None
    start_position: int
    end_position: int
    runs_to_segment_end: bool
    file_id: int = 0
    leaves_page_cache: bool = False

    @property
    def segment_base_offset(self) -> int:
        """Base offset of the segment, as the file's name tells it."""
        return int(name_of(self.path)[:20])

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.end_position - self.start_position
