"""The headers of every batch of a log, segment by segment, window by window.

Offsets are held against each other and against the files' names, and the whole batches of a
segment must reach the next one: a table that left batches out in silence would be worse than none.
Checksums are looked at only where the view skips damage, to know what that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.slicing import open_slice, slice_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.window import Window


class HeaderWindow(NamedTuple):
    """Batches of one segment; valid until the next one is asked for."""

    segment: LogSegmentView
    window: Window


def header_windows(view: LogView) -> Iterator[HeaderWindow]:
    """Yield all whole batches of a log, in file order, in windows of at least one.

    Raises
    ------
    CorruptRecordError
        A header is impossible, offsets go back, or whole batches end before they should; where the
        view has a damage report, that is noted there and left out instead.
    SegmentVanishedError
        A file is gone, shorter or another one than when the view was taken.
    """
    for index, segment in enumerate(view.segments):
        for window in SegmentHeaders(view, index):
            yield HeaderWindow(segment, window)


class SegmentHeaders:
    """Iterates the windows of one segment; one thread, one iteration.

    Parameters
    ----------
    view
        The log.
    index
        Which of its segments.
    verifies_checksums
        Whether more than headers is to be looked at: batches are read as a whole, and checked.

    Attributes
    ----------
    end_position
        The byte after the last whole batch, once all windows have been seen.
    next_offset
        The offset after it; the segment's base offset where there is none.

    Raises
    ------
    CorruptRecordError
        It is the last segment, and where the log ends is not known.
    """

    def __init__(self, view: LogView, index: int, *, verifies_checksums: bool = False) -> None:
        if view.next_base_offset(index) is None:
            # Raises where the last segment is damaged: what follows it would be left out.
            _ = view.next_offset
        self._segment = view.segments[index]
        self._slice = slice_of(view, index)
        self._damage = view.damage
        self._verifies_checksums = verifies_checksums
        self.end_position = 0
        self.next_offset = self._segment.base_offset

    def __iter__(self) -> Iterator[Window]:
        """Yield windows in file order; see `header_windows` for the errors."""
        opened = open_slice(self._slice, self._damage)
        if opened is None:
            return
        with opened as source:
            windows = CheckedWindows(
                source,
                self._slice,
                damage=self._damage,
                verifies_checksums=self._verifies_checksums,
            )
            for window in windows:
                self.next_offset = windows.next_offset
                self.end_position = window.end_position
                yield window
