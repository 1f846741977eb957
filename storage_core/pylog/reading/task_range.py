"""A range of offsets of one partition, and which bytes of which files hold it.

Frozen and picklable: made on a driver, read on an executor. Needs neither NumPy nor Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, UnreadableFileError
from pylog.locations import name_of
from pylog.log_file.batch_walk import HIGHEST_OFFSET, OFFSETS_IN_SEGMENT
from pylog.reading.segments import DEFAULT_ACCESS, FileAccess, open_segment

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.model import AbortedTransaction, TopicPartition
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.record_filter import RecordFilter


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """Bytes ``[start_position, end_position)`` of one ``.log`` file from a batch on."""

    path: str
    base_offset: int
    next_base_offset: int | None
    start_position: int
    end_position: int
    runs_to_segment_end: bool
    file_id: int = 0
    leaves_page_cache: bool = False
    defect: str | None = None  # why it cannot be opened; then ``path`` may be the directory
    skipped_below: int = 0  # records below this offset are an earlier slice's: segments overlap
    stamp: int = 0  # of a file that does not grow; see `LogSegmentView`
    # Which file held the segment before it, of that base offset: compaction replaces it where it
    # takes this one away.
    file_before: tuple[int, int, int] | None = None
    is_overlong: bool = False  # more than one batch has offsets that no index could hold
    is_corrupt: bool = False  # the defect is that of the bytes from ``start_position`` on

    @property
    def first_offset(self) -> int:
        """The lowest offset that records of this slice may have."""
        return max(self.base_offset, self.skipped_below)

    @property
    def segment_base_offset(self) -> int:
        """Base offset of the segment, as the file's name tells it."""
        return int(name_of(self.path)[:20])

    @property
    def limit_offset(self) -> int:
        """What all its offsets lie below: other segments, or what a segment can hold."""
        most = HIGHEST_OFFSET if self.is_overlong else self.segment_base_offset + OFFSETS_IN_SEGMENT
        return most if self.next_base_offset is None else min(most, self.next_base_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.end_position - self.start_position

    def open(self) -> ByteSource:
        """Open the file; `SegmentVanishedError` if it is gone or has been replaced."""
        if self.defect is not None and self.is_corrupt:
            raise CorruptRecordError(self.defect, self.path, self.start_position)
        if self.defect is not None:
            raise UnreadableFileError(self.defect, self.path)
        return open_segment(
            self.path, self.file_id, self.stamp, leaves_page_cache=self.leaves_page_cache
        )


@dataclass(frozen=True, slots=True)
class TaskRange:
    """What a `pylog.reading.scan_task.ScanTask` is made of; it explains the fields."""

    directory: PartitionDirectory
    slices: tuple[SegmentSlice, ...]
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()
    fail_on_data_loss: bool = True
    where: RecordFilter | None = None
    is_committed: bool = False
    looks_for_late: bool = True
    earliest_offset: int | None = None
    access: FileAccess = DEFAULT_ACCESS

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the records."""
        return self.directory.topic_partition

    def ensure_end_is_found(self) -> None:
        """Raise `CorruptRecordError` where damage hides what the last records are."""
        for each in self.slices:
            if each.is_corrupt:
                each.open()

    @property
    def size_bytes(self) -> int:
        """Bytes of ``.log`` files to read."""
        return sum(each.size_bytes for each in self.slices)
