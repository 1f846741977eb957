"""The headers of every batch of a log, window by window, and what they add up to.

Offsets are held against each other and against the files' names, and the whole batches of a
segment must reach the next one: a table that left batches out in silence would be worse than none.
A record
count that does not fit the offsets is damage, too. Checksums are looked at only where the view
skips damage, to know what that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.slicing import open_slice, slice_of
from pylog.record.header_sums import from_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window


class HeaderWindow(NamedTuple):
    """Batches of one segment; valid until the next one is asked for."""

    segment: LogSegmentView
    window: Window


def header_windows(view: LogView, *, checks_counts: bool = True) -> Iterator[HeaderWindow]:
    """Yield the whole batches of a log, in file order, in windows of at least one.

    Where segments overlap, those that a reader from the log's start gets. Without ``checks_counts``
    also those that count more records than they can have.
    """
    for index, segment in enumerate(view.segments):
        headers = SegmentHeaders(view, index, checks_counts=checks_counts)
        for window in headers:
            new = from_offset(window, headers.first_new)
            if len(new.headers):
                yield HeaderWindow(segment, new)


class SegmentHeaders:
    """Iterates the windows of one segment; one thread, one iteration."""

    def __init__(
        self,
        view: LogView,
        index: int,
        *,
        verifies_checksums: bool = False,
        checks_counts: bool = True,
    ) -> None:
        if view.next_base_offset(index) is None:
            # Raises where the last segment is damaged: what follows it would be left out.
            _ = view.next_offset
        self._segment = view.segments[index]
        self.slice = slice_of(view, index)  # where its bytes are
        self._damage = view.damage
        self._verifies_checksums = verifies_checksums
        self._checks_counts = checks_counts
        # From here on, the offsets of the window that was given last are a reader's: others were in
        # an earlier segment, or in a batch that this one repeats where damage is skipped.
        self.first_new = view.first_consumed(index)
        # the byte after the last whole batch, once all windows have been seen
        self.end_position = 0
        # the offset after it; the segment's base offset where there is none
        self.next_offset = self._segment.base_offset

    def __iter__(self) -> Iterator[Window]:
        opened = open_slice(self.slice, self._damage)
        if opened is None:
            return
        with opened as source:
            windows = CheckedWindows(
                source,
                self.slice,
                damage=self._damage,
                verifies_checksums=self._verifies_checksums,
                checks_counts=self._checks_counts,
            )
            next_offset = windows.next_offset
            for window in windows:
                self.first_new = max(self.first_new, next_offset)
                next_offset = self.next_offset = windows.next_offset
                self.end_position = window.end_position
                yield window
            self.next_offset = windows.next_offset  # also after a batch that was left out
