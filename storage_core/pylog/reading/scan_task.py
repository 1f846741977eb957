"""What one reader is given: byte ranges of segments, offsets, and what to leave out.

Frozen and picklable: made on a driver, read on an executor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.locations import name_of

if TYPE_CHECKING:
    from pylog.model import AbortedTransaction, TopicPartition
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.record_filter import RecordFilter


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
        No record here is at or above: the base offset of the segment behind it, or where the task
        was cut. None for the end of the log.
    runs_to_segment_end
        Whether ``end_position`` is the length of a file that has a segment behind it. Then whole
        batches must reach it, or reach up to ``next_base_offset``: bytes that are left could be
        lost records. Otherwise whole batches end exactly at ``end_position``.
    file_id
        Which file it was when the directory was listed; 0 where the storage tells nothing.
    """

    path: str
    base_offset: int
    next_base_offset: int | None
    start_position: int
    end_position: int
    runs_to_segment_end: bool
    file_id: int = 0

    @property
    def segment_base_offset(self) -> int:
        """Base offset of the segment, as the file's name tells it."""
        return int(name_of(self.path)[:20])

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.end_position - self.start_position


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A range of one partition.

    Attributes
    ----------
    directory
        Where the partition lies.
    slices
        In offset order.
    start_offset, end_offset
        Records with ``start_offset <= offset < end_offset``; the slices may hold more.
    aborted
        Transactions whose batches are left out.
    fail_on_data_loss
        Whether records of the range that are deleted before they are read are an error.
    where
        Which of the records are wanted; None for all.
    is_committed
        Whether the range is read with READ_COMMITTED.
    """

    directory: PartitionDirectory
    slices: tuple[SegmentSlice, ...]
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()
    fail_on_data_loss: bool = True
    where: RecordFilter | None = None
    is_committed: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose records."""
        return self.directory.topic_partition

    @property
    def size_bytes(self) -> int:
        """Bytes of ``.log`` files to read."""
        return sum(each.size_bytes for each in self.slices)
