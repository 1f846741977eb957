"""The segments of a view with what retention asks of them: how large they are, and how old.

What a start of the log would rebuild is not asked here, either: of a segment that it would
recover, batches tell the largest timestamp. Of all others the time index does, as for their
owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    SegmentVanishedError,
)
from pylog.files import disk
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    INDEX_FILE_SUFFIX,
    RECOVERY_POINT_CHECKPOINT,
    TIME_INDEX_FILE_SUFFIX,
)
from pylog.files.time_index import TimeIndexEntries
from pylog.locations import join
from pylog.log_file.batch_walk import walk_headers
from pylog.model import (
    NO_TIMESTAMP,
    TimestampOffset,
)

if TYPE_CHECKING:
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView


@dataclass(frozen=True)
class DatedSegment:
    """One segment of a local log; `pylog.log.retention` decides over it as over an owned one."""

    segment: LogSegmentView
    size_bytes: int
    is_recovered: bool

    @property
    def base_offset(self) -> int:
        """First offset that it can hold."""
        return self.segment.base_offset

    @property
    def largest_record_timestamp(self) -> int | None:
        """Its largest timestamp by its time index, in ms; None if that is empty."""
        indexed = self._last_entry()
        return None if indexed is None else indexed.timestamp

    @cached_property
    def largest_timestamp(self) -> int:
        """Its largest timestamp by its time index, else when its file was changed last; ms."""
        if self.is_recovered:
            return self.read_largest_timestamp()
        indexed = self._last_entry()
        return self._last_modified_ms() if indexed is None else indexed.timestamp

    def read_largest_timestamp(self) -> int:
        """Return the same, after a look at the batches that the time index leaves out."""
        indexed = self._last_entry()
        if indexed is None and not self.is_recovered:
            return self._last_modified_ms()
        largest = NO_TIMESTAMP if indexed is None else indexed.timestamp
        start = None if indexed is None else indexed.offset
        largest = max(largest, self._largest_timestamp_from(start))
        return self._last_modified_ms() if largest < 0 else largest

    def _last_entry(self) -> TimestampOffset | None:
        """Return the last entry of the time index that counts, None if none does."""
        if self.is_recovered:
            return None
        path = self.segment.file_path(TIME_INDEX_FILE_SUFFIX)
        with TimeIndexEntries.open(path, self.base_offset) as entries:
            last = entries.last_entry()
        return last if last is not None and last.timestamp >= 0 else None

    def _largest_timestamp_from(self, offset: int | None) -> int:
        """Return the largest timestamp of the batches from that of an offset on."""
        segment = self.segment
        with segment.open_log() as source:
            position = 0
            if offset is not None:
                batch = segment.find_batch(source, offset, self.size_bytes)
                if batch is None:
                    return NO_TIMESTAMP
                position = batch.position
            headers = walk_headers(source, position, self.size_bytes)
            return max((each.header.max_timestamp for each in headers), default=NO_TIMESTAMP)

    def _last_modified_ms(self) -> int:
        path = self.segment.file_path()
        try:
            return disk.stat(path).st_mtime_ns // 1_000_000
        except FileNotFoundError as error:
            reason = "file is gone since the directory was listed"
            raise SegmentVanishedError(reason, path) from error


def dated_segments(view: LogView) -> list[DatedSegment]:
    """Return the segments of a log in a local directory, in order."""
    _ = view.next_offset  # raises where the last segment is damaged
    recovered_from = _first_recovered_offset(view)
    return [
        DatedSegment(
            segment,
            view.segment_end(index),
            segment.base_offset >= recovered_from or INDEX_FILE_SUFFIX not in segment.suffixes,
        )
        for index, segment in enumerate(view.segments)
    ]


def _first_recovered_offset(view: LogView) -> int:
    """Return the base offset from which on a start of the log recovers all segments."""
    log_directory = view.directory.log_directory
    if read_clean_shutdown(join(log_directory, CLEAN_SHUTDOWN)) is not None:
        return 2**63
    try:
        points = read_offset_checkpoint(join(log_directory, RECOVERY_POINT_CHECKPOINT))
    except CorruptCheckpointError:  # counts as empty, as for whoever owns the directory
        points = {}
    index = view.find_segment(points.get(view.topic_partition, 0))
    return 0 if index is None else view.segments[index].base_offset
