"""Batches whose records break the format, although their checksum is right, as damaged ranges.

None of such a batch's own offsets is believed: its range starts after the last intact batch
before it, and ends where the next intact one starts. That one may be in a window that has not
been read yet, so a range is reported once it is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    MisplacedBatchError,
)
from pylog.reading.damage import DamagedRange, DamageReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylog.columnar.decode import RecordDecoder
    from pylog.reading.filtered_decode import FilteredDecoder, SearchDecoder
    from pylog.reading.task_range import SegmentSlice
    from pylog.record.batch_scan import Window

    Decoder: TypeAlias = RecordDecoder | FilteredDecoder | SearchDecoder


class _Refused(NamedTuple):
    """Batches in a row that were refused, and what is wrong with the first of them."""

    segment_slice: SegmentSlice
    position: int
    end_position: int
    next_offset: int
    reason: str


class RefusedBatches:
    """Collects what a decoder refuses of the windows of one read, in file order. One thread."""

    def __init__(self, damage: DamageReport) -> None:
        self._damage = damage
        # bytes of the file, of the window that was entered last
        self.in_window: list[tuple[int, int]] = []
        self._open: _Refused | None = None
        self._path = ""
        self._next_offset = 0

    def enter(self, segment_slice: SegmentSlice, window: Window) -> None:
        """Note that a window has been read whose checksums and order are sound."""
        self.in_window = []
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
        """Note that the batches that start at two bytes of the file, and between, are refused."""
        headers = window.headers
        first, last = np.searchsorted(
            headers.positions, np.array(positions) - window.file_position
        ).tolist()
        end = window.file_position + int(headers.positions[last] + headers.sizes_bytes[last])
        self.in_window.append((positions[0], end))
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


_Decoded = TypeVar("_Decoded")


_AFTER_DAMAGE = 16
"""Batches that are decoded together after one that was refused, twice as many each time they are
sound: every refusal costs what was decoded with it."""


def decode_sound(
    decoder: Decoder,
    refused: RefusedBatches,
    segment_slice: SegmentSlice,
    window: Window,
    decode: Callable[[Window], Iterable[_Decoded]],
) -> Iterator[_Decoded]:
    """Yield what ``decode`` does, with ``decoder``, of a window's intact batches, part by part."""
    start, size = 0, len(window.headers)
    while start < len(window.headers):
        part = window.select(slice(start, start + size))
        try:
            for batch in decode(part):
                refused.settle(window)  # the first of this part is sound, then
                yield batch
        except (CorruptRecordError, InvalidRecordError) as error:
            if error.position is None:
                raise
            bad = int(np.searchsorted(part.headers.positions, error.position - part.file_position))
            done = decoder.finished_batches
            first = bad
            if isinstance(error, MisplacedBatchError) and bad > done:
                first = bad - 1  # nobody knows which of the two is wrong
            start += done
            if first > done:
                size = first - done  # what is before may be sound; then this one once more
                continue
            if done:
                refused.settle(window)
            positions = part.position_of(first), error.position
            refused.add(segment_slice, window, positions, error.reason)
            start += bad + 1 - done
            size = _AFTER_DAMAGE
        else:
            refused.settle(window)
            start += len(part.headers)
            size *= 2
