"""A segment that is to be cleaned, in windows of whole batches that have been found sound.

Cleaning replaces what it reads, so nothing is taken on trust: checksums are computed, offsets have
to go up, and the file has to end where a batch does. Kafka's cleaner does not check the first two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_scan import find_bad_checksum
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.log.log_segment import LogSegment
    from pylog.record.batch_scan import BatchHeaders, BatchScan


class CheckedWindow(NamedTuple):
    """Whole batches of a segment; valid until the next window is asked for.

    Attributes
    ----------
    path
        The ``.log`` file.
    file_position
        Byte of the file that the window begins with.
    scan
        The batches.
    """

    path: str
    file_position: int
    scan: BatchScan

    @property
    def headers(self) -> BatchHeaders:
        """Of all batches, with positions in the window."""
        return self.scan.headers

    @property
    def size_bytes(self) -> int:
        """Bytes of the batches."""
        return self.scan.valid_bytes

    def position_of(self, batch: int) -> int:
        """Return the byte of the file where a batch begins."""
        return self.file_position + int(self.headers.positions[batch])

    def bytes_of(self, batch: int) -> memoryview:
        """Return a batch."""
        start = int(self.headers.positions[batch])
        return self.scan.buffer[start : start + int(self.headers.sizes_bytes[batch])].data


def checked_windows(segment: LogSegment, start: int, window_bytes: int) -> Iterator[CheckedWindow]:
    """Yield the batches of a segment from byte ``start`` on.

    Parameters
    ----------
    segment
        Not appended to meanwhile.
    start
        Where a batch begins.
    window_bytes
        How much is read at once; more if a batch is larger.

    Raises
    ------
    CorruptRecordError
        A checksum is wrong, an offset is not above those before it or not the segment's, a batch
        is larger than 256 MiB, or what the file ends with is not a whole batch.
    KafkaStorageError, SegmentVanishedError
        The file cannot be read.
    """
    path, size = segment.log.path, segment.size_bytes
    windows = SegmentWindows(
        segment.log,
        start,
        size,
        window_bytes=window_bytes,
        first_window_bytes=window_bytes,
        max_decompressed_bytes=DEFAULT_MAX_DECOMPRESSED_BYTES,
    )
    lowest = segment.base_offset
    for window in windows:
        checked = CheckedWindow(path, window.file_position, window.scan)
        _check_sums(checked)
        _check_offsets(checked, lowest)
        lowest = int(checked.headers.last_offsets[-1]) + 1
        yield checked
    tail = windows.tail
    if tail.position < size:
        reason = tail.defect or "no whole batch"
        left = f"{size - tail.position} bytes are left of the segment's {size}"
        raise CorruptRecordError(f"cannot clean: {reason} where {left}", path, tail.position)


def _check_sums(window: CheckedWindow) -> None:
    bad = find_bad_checksum(window.scan)
    if bad is not None:
        raise CorruptRecordError(bad.reason, window.path, window.position_of(bad.index))


def _check_offsets(window: CheckedWindow, lowest: int) -> None:
    headers = window.headers
    lasts = headers.last_offsets
    ends_before = np.concatenate([[lowest - 1], lasts[:-1]])
    firsts = np.where(headers.is_v2, headers.offsets, lasts)
    is_wrong = (firsts <= ends_before) | (lasts < firsts)
    if is_wrong.any():
        batch = int(is_wrong.argmax())
        reason = (
            f"batch has offsets {firsts[batch]} to {lasts[batch]}, "
            f"expected them from {ends_before[batch] + 1} on"
        )
        raise CorruptRecordError(reason, window.path, window.position_of(batch))
