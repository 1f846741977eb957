"""A segment that is cleaned, in windows of whole batches that are intact.

Cleaning replaces what it reads, so it trusts nothing: it computes checksums, offsets have to go
up, and the file has to end where a batch does. Kafka's cleaner does not check the first two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.log_file.batch_walk import is_zero
from pylog.log_file.segment_windows import SegmentWindows
from pylog.record.batch_scan import find_bad_checksum
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.record.batch_scan import Window

    Int64Array = npt.NDArray[np.int64]
    from pylog.log.log_segment import LogSegment


def checked_windows(segment: LogSegment, start: int, window_bytes: int) -> Iterator[Window]:
    """Yield the batches of a segment from byte ``start`` on."""
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
        _check_sums(window)
        _check_offsets(window, lowest)
        lowest = int(window.headers.last_offsets[-1]) + 1
        yield window
    tail = windows.tail
    if tail.position < size:
        is_rest_zero = is_zero(segment.log, tail.position, size)
        found = "zeros" if is_rest_zero else tail.defect or "no whole batch"
        reason = (
            f"cannot clean: {found} where {size - tail.position} bytes are left of the segment's "
            f"{size}; save what is intact with pylog doctor --repair-to"
        )
        raise CorruptRecordError(reason, path, tail.position)


def _check_sums(window: Window) -> None:
    bad = find_bad_checksum(window)
    if bad is not None:
        raise CorruptRecordError(bad.reason, window.path, window.position_of(bad.index))


def _check_offsets(window: Window, lowest: int) -> None:
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
