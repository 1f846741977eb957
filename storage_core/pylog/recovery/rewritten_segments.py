"""Segments of a log that we own, written anew with other batches at the same offsets.

Each segment is replaced by itself (`pylog.log.segment_replacement`): a crash leaves those before it
as they are to be, it as it was or as it is to be, and the others as they were. What is done again
after that ends the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pylog.cleaner.cleaned_segments import CleanedSegments
from pylog.cleaner.intact_windows import checked_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.log.log_segment import LogSegment
    from pylog.log.unified_log import UnifiedLog
    from pylog.record.batch_scan import Window

_WINDOW_BYTES = 1 << 22


class Rewriter(Protocol):
    """A change of the batches of windows."""

    def is_due(self, window: Window) -> bool:
        """Return whether any batch of a window is to be another one."""

    def rewrite(self, window: Window) -> Iterator[memoryview]:
        """Yield the batches that a window is to have."""


def segments_due(
    log: UnifiedLog, rewriter: Rewriter, progress: Callable[[int], object] = lambda _: None
) -> list[int]:
    """Return the base offsets of the segments in which any batch is to be another one."""
    due = []
    for segment in log.segments:
        is_due = False
        for window in checked_windows(segment, 0, _WINDOW_BYTES):
            is_due = is_due or rewriter.is_due(window)
            progress(window.size_bytes)
        if is_due:
            due.append(segment.base_offset)
    return due


def rewrite_segments(log: UnifiedLog, base_offsets: list[int], rewriter: Rewriter) -> None:
    """Replace some segments; their old files are removed at once."""
    if log.segments[-1].base_offset in base_offsets:
        log.roll()
    for segment in log.segments:
        if segment.base_offset in base_offsets:
            _rewrite(log, segment, rewriter)


def _rewrite(log: UnifiedLog, segment: LogSegment, rewriter: Rewriter) -> None:
    written = CleanedSegments(log, segment.base_offset, keeps_old_files=False)
    try:
        for entry in segment.transaction_index.entries():
            written.add_aborted(entry)
        for window in checked_windows(segment, 0, _WINDOW_BYTES):
            for data in rewriter.rewrite(window):
                written.append([data])
        written.finish(segment.last_modified_ms())
    except BaseException:
        written.discard()
        raise
    written.replace([segment])
