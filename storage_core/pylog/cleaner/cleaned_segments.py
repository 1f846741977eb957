"""The segments that a cleaning writes, as ``.cleaned`` files that nobody reads yet.

A group of segments becomes one. It becomes several where one has no room: for another offset, for
another entry in an index, or for more than 2^31-1 bytes. Differs from Kafka, whose cleaning fails
there (or, for want of offsets, splits the old segment and begins anew): v0 and v1 take more space
as v2, and a first batch, which has no index entry, may need one after another segment's last.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import KafkaStorageError
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.log_file.file_records import MAX_FILE_BYTES
from pylog.record.batch_scan import find_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.cleaner.log_snapshot import CleanableLog
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.log.log_segment import LogSegment
    from pylog.record.batch_scan import BatchHeaders


class CleanedSegments:
    """New segments in the making. One thread."""

    def __init__(
        self, log: CleanableLog, base_offset: int, *, keeps_old_files: bool = True
    ) -> None:
        self._log = log
        self._keeps_old_files = keeps_old_files
        self.segments: list[LogSegment] = []
        self._aborted: deque[TransactionIndexEntry] = deque()
        self._begin(base_offset)

    def _begin(self, base_offset: int) -> None:
        self.segments.append(self._log.create_cleaned_segment(base_offset))

    @property
    def size_bytes(self) -> int:
        """Length of all ``.log`` files."""
        return sum(segment.size_bytes for segment in self.segments)

    def append(self, data: list[memoryview]) -> int:
        """Append whole batches, which lie in pieces; return how many bytes they have."""
        if not data:
            return 0
        whole = data[0] if len(data) == 1 else memoryview(b"".join(data))
        headers = find_batches(np.frombuffer(whole.toreadonly(), dtype=np.uint8)).headers
        start = 0
        while start < len(headers):
            rest = headers.select(slice(start, None))
            count = self._count_with_room(rest)
            if count == 0:
                self._begin(int(rest.offsets[0]))
                continue
            chosen = rest.select(slice(count))
            first, last = int(chosen.positions[0]), int(chosen.positions[-1])
            end = last + int(chosen.sizes_bytes[-1])
            self.segments[-1].append_all(whole[first:end], _from_start(chosen))
            self._index_aborted(int(chosen.last_offsets[-1]))
            start += count
        return len(whole)

    def _count_with_room(self, headers: BatchHeaders) -> int:
        """Return how many batches the newest segment has room for; at least 1 if it is empty."""
        segment = self.segments[-1]
        ends = segment.size_bytes + np.cumsum(headers.sizes_bytes)
        fits = (ends <= MAX_FILE_BYTES) & (
            headers.last_offsets - segment.base_offset <= MAX_RELATIVE_OFFSET
        )
        count = len(headers) if fits.all() else int(fits.argmin())
        if count:
            count = segment.entry_writer.count_with_room(
                headers.select(slice(count)), segment.size_bytes
            )
        return max(count, 1) if segment.size_bytes == 0 else count

    def add_aborted(self, entry: TransactionIndexEntry) -> None:
        """Have an aborted transaction indexed in the segment that its marker will be in."""
        self._aborted.append(entry)

    def _index_aborted(self, last_offset: int) -> None:
        """Write the entries of markers up to ``last_offset``, the newest segment's last one."""
        while self._aborted and self._aborted[0].last_offset <= last_offset:
            self.segments[-1].transaction_index.append(self._aborted.popleft())

    def finish(self, modified_ms: int) -> None:
        """Cut the files to what they hold, force them to disk, and give them a time."""
        for segment in self.segments:
            segment.on_become_inactive_segment()
            segment.flush()
            segment.set_last_modified(modified_ms)

    @property
    def segment_count(self) -> int:
        """Number of cleaned segments."""
        return len(self.segments)

    def replace(self, old: Sequence[LogSegment]) -> None:
        """Put them, finished, in the place of old ones; see `UnifiedLog.replace_segments`."""
        self._log.replace_segments(self.segments, old, is_async=self._keeps_old_files)

    def discard(self) -> None:
        """Remove all files, as far as the disk lets; the next start removes what is left."""
        for segment in self.segments:
            with suppress(KafkaStorageError):
                segment.delete_if_exists()


def _from_start(headers: BatchHeaders) -> BatchHeaders:
    """Return headers whose positions count from the first batch."""
    columns = headers.columns.copy()
    moved = type(headers)(columns)
    moved.positions[:] -= headers.positions[0]
    return moved


class CountedSegments:
    """Takes the place of `CleanedSegments` in a dry run."""

    segment_count = 1

    def __init__(self, log: CleanableLog, base_offset: int) -> None:
        pass

    def append(self, data: list[memoryview]) -> int:
        """Return how many bytes the batches have."""
        return sum(len(piece) for piece in data)

    def add_aborted(self, entry: TransactionIndexEntry) -> None:
        """Do nothing."""

    def finish(self, modified_ms: int) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""

    def replace(self, old: Sequence[LogSegment]) -> None:
        """Do nothing."""


Destination = CleanedSegments | CountedSegments
"""Where what stays of a group goes."""


# Which neighbouring segments are cleaned into one, so that segments do not get ever smaller.
#
# Source: Cleaner.groupSegmentsBySize (Kafka 4.3).


def group_segments_by_size(
    segments: Sequence[LogSegment],
    max_size_bytes: int,
    max_index_bytes: int,
    first_uncleanable_offset: int,
) -> list[list[LogSegment]]:
    """Return the segments in groups, each of which takes as many as fit, in their order."""
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
