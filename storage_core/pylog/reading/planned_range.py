"""What one reader is given: byte ranges of segments, offsets, and what to leave out.

Frozen and picklable: made on a driver, read on an executor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.model import AbortedTransaction, TopicPartition
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.segment_slice import SegmentSlice


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range of offsets of one partition, and where its records lie.

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
    looks_for_late
        Whether slices may begin with batches too early for ``where``, which are passed over.
    """

    directory: PartitionDirectory
    slices: tuple[SegmentSlice, ...]
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()
    fail_on_data_loss: bool = True
    where: RecordFilter | None = None
    is_committed: bool = False
    looks_for_late: bool = True

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose records."""
        return self.directory.topic_partition

    @property
    def size_bytes(self) -> int:
        """Bytes of ``.log`` files to read."""
        return sum(each.size_bytes for each in self.slices)
