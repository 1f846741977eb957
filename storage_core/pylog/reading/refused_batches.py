"""Batches whose records break the format, although their checksum is right, as damaged ranges.

None of such a batch's own offsets is believed: its range begins after the last sound batch before
it, and ends where the next sound one begins. That one may be in a window that has not been read
yet, so that a range is reported once it is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.reading.damage import DamagedRange

if TYPE_CHECKING:
    from pylog.reading.damage import DamageReport
    from pylog.reading.scan_task import SegmentSlice
    from pylog.record.window import Window


class _Refused(NamedTuple):
    """Batches in a row that were refused, and what is wrong with the first of them."""

    segment_slice: SegmentSlice
    position: int
    end_position: int
    next_offset: int
    reason: str


class RefusedBatches:
    """Collects what a decoder refuses of the windows of one read, in file order. One thread.

    Parameters
    ----------
    damage
        Where ranges are reported.
    """

    def __init__(self, damage: DamageReport) -> None:
        self._damage = damage
        self._open: _Refused | None = None
        self._path = ""
        self._next_offset = 0

    def enter(self, segment_slice: SegmentSlice, window: Window) -> None:
        """Note that a window has been read whose checksums and order are sound."""
        if segment_slice.path != self._path:
            self.finish()
            self._path = segment_slice.path
        self._next_offset = max(self._next_offset, segment_slice.base_offset)

    def leave(self, window: Window) -> None:
        """Note that all wanted records of a window have been decoded."""
        self.settle(window)
        if self._open is None:
            self._next_offset = int(window.headers.last_offsets[-1]) + 1

    def add(
        self,
        segment_slice: SegmentSlice,
        window: Window,
        positions: tuple[int, int],
        reason: str,
    ) -> None:
        """Note that the batches that begin at two bytes of the file, and between, are refused.

        The two are one and the same, or neighbours. What stands before them is sound, but for what
        was added before.
        """
        headers = window.headers
        first, last = np.searchsorted(
            headers.positions, np.array(positions) - window.file_position
        ).tolist()
        end = window.file_position + int(headers.positions[last] + headers.sizes_bytes[last])
        if self._open is not None and self._open.end_position == positions[0]:
            self._open = self._open._replace(end_position=end)
            return
        self.settle(window)
        before = self._next_offset if first == 0 else int(headers.last_offsets[first - 1]) + 1
        self._open = _Refused(segment_slice, positions[0], end, before, reason)

    def settle(self, window: Window) -> None:
        """Report what is open if the batch after it is in the window, where it has proved sound."""
        if self._open is None or self._open.end_position >= window.end_position:
            return
        headers = window.headers
        at = self._open.end_position - window.file_position
        following = int(np.searchsorted(headers.positions, at))
        self._report(self._open, int(headers.offsets[following]))

    def finish(self) -> None:
        """Report what is open: nothing sound follows in its file."""
        if self._open is not None:
            self._report(self._open, self._open.segment_slice.next_base_offset)

    def _report(self, refused: _Refused, end_offset: int | None) -> None:
        segment_slice, position, end_position, next_offset, reason = refused
        self._open = None
        self._damage.add(
            DamagedRange(
                segment_slice.path, position, end_position, next_offset, end_offset, reason
            )
        )
