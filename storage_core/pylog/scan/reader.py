"""A `ScanTask` to Arrow record batches, or to a count.

Window by window: find batch boundaries, check that offsets go up and every checksum is right,
leave out control batches, aborted batches and batches outside the range, decode the rest.
FAILFAST: whatever is wrong raises an error with file, position and cause, and no row of the window
at fault is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.decode import RecordDecoder
from pylog.columnar.window import Window
from pylog.errors import CorruptRecordError
from pylog.files.storage import open_file
from pylog.record.batch_layout import CONTROL_FLAG_MASK
from pylog.record.batch_scan import find_bad_checksum
from pylog.record.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scan.aborted import AbortedTransactions
from pylog.scan.segment_windows import DEFAULT_WINDOW_BYTES, SegmentWindow, SegmentWindows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.scan.scan_task import ScanTask, SegmentSlice


class TaskReader:
    """Reads one task; holds at most one window and what it decodes to. One thread.

    Parameters
    ----------
    task
        From the planner.
    schema
        From `pylog.columnar.arrow_schema.record_schema`; None for all of Spark's columns.
    window_bytes
        How much of a file is read at once.
    max_decompressed_bytes
        Most bytes that one batch may decompress to.
    """

    def __init__(
        self,
        task: ScanTask,
        schema: pa.Schema | None = None,
        *,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> None:
        self._task = task
        self._window_bytes = window_bytes
        self._aborted = AbortedTransactions(task.aborted)
        self._decoder = RecordDecoder(
            task.topic_partition, schema, max_decompressed_bytes=max_decompressed_bytes
        )

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the task's records in offset order, as record batches that own their memory.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, UnsupportedCodecError
            Bytes that are to be read are damaged.
        SegmentVanishedError
            A file is gone or shorter than when the task was planned.
        TimestampOverflowError
            A timestamp does not fit the schema's unit.
        """
        for piece, window in self._windows():
            _check_checksums(window, piece)
            yield from self._decode(window, piece, self._wanted(window))

    def count(self) -> int:
        """Return how many records `record_batches` gives, from batch headers.

        Only batches that the range cuts, and compressed v0/v1 wrappers, are decoded. Checksums are
        verified of those alone: the count trusts the other headers.
        """
        total = 0
        for piece, window in self._windows():
            headers = window.scan.headers
            wanted = self._wanted(window)
            if wanted is None and headers.offsets[0] >= self._task.start_offset:
                total += int(headers.record_counts.sum())
                continue
            whole = (
                (headers.record_counts >= 0)
                & (headers.offsets >= self._task.start_offset)
                & (headers.last_offsets < self._task.end_offset)
            )
            cut = ~whole
            if wanted is not None:
                whole &= wanted
                cut &= wanted
            total += int(headers.record_counts[whole].sum())
            if cut.any():
                _check_checksums(window, piece, only=cut)
                total += sum(batch.num_rows for batch in self._decode(window, piece, cut))
        return total

    def _windows(self) -> Iterator[tuple[SegmentSlice, SegmentWindow]]:
        next_offset = 0
        for piece in self._task.slices:
            next_offset = max(next_offset, piece.base_offset)
            with open_file(piece.path) as source:
                windows = SegmentWindows(
                    source,
                    piece.start_position,
                    piece.end_position,
                    window_bytes=self._window_bytes,
                )
                for window in windows:
                    _check_offsets(window, piece, next_offset)
                    next_offset = int(window.scan.headers.last_offsets[-1]) + 1
                    yield piece, window
            _check_tail(windows, piece, next_offset)

    def _wanted(self, window: SegmentWindow) -> npt.NDArray[np.bool_] | None:
        """Mask the batches that may hold records of the range that an application sees.

        None for all of them, which is the usual case and told by the first and last batch.
        """
        headers = window.scan.headers
        traits = headers.traits
        if (
            traits.all_v2
            and not traits.any_has(CONTROL_FLAG_MASK)
            and not self._task.aborted
            and headers.last_offsets[0] >= self._task.start_offset
            and headers.last_offsets[-1] < self._task.end_offset
        ):
            return None
        wanted = ~headers.is_control & (headers.last_offsets >= self._task.start_offset)
        # A compressed v0/v1 wrapper's offset is its last; it may begin inside the range.
        wanted &= (headers.offsets < self._task.end_offset) | (headers.record_counts < 0)
        if self._task.aborted:
            wanted &= ~self._aborted.mask(headers)
        return wanted

    def _decode(
        self, window: SegmentWindow, piece: SegmentSlice, wanted: npt.NDArray[np.bool_] | None
    ) -> Iterator[pa.RecordBatch]:
        headers = window.scan.headers
        chosen = headers if wanted is None else headers.select(wanted)
        batches = Window(window.scan.buffer, chosen, piece.path, window.file_position)
        return self._decoder.decode(batches, self._task.start_offset, self._task.end_offset)


def _check_checksums(
    window: SegmentWindow, piece: SegmentSlice, only: npt.NDArray[np.bool_] | None = None
) -> None:
    bad = find_bad_checksum(window.scan, only)
    if bad is not None:
        position = window.file_position + int(window.scan.headers.positions[bad.index])
        reason = f"batch CRC stored {bad.stored:#010x}, computed {bad.computed:#010x}"
        raise CorruptRecordError(reason, piece.path, position)


def _check_offsets(window: SegmentWindow, piece: SegmentSlice, next_offset: int) -> None:
    """Refuse offsets that go back or leave the segment.

    A batch's base offset lies outside its checksum; its neighbours and the file's name bound it.
    """
    headers = window.scan.headers
    offsets, last_offsets = headers.offsets, headers.last_offsets
    bad = last_offsets < offsets
    bad[1:] |= offsets[1:] <= last_offsets[:-1]
    bad[0] |= offsets[0] < next_offset
    if piece.next_base_offset is not None:
        bad[-1] |= last_offsets[-1] >= piece.next_base_offset
    if bad.any():
        _check_checksums(window, piece)  # then that is the cause to be told
        index = int(np.argmax(bad))
        lowest = next_offset if index == 0 else int(last_offsets[index - 1]) + 1
        limit = "" if piece.next_base_offset is None else f" and below {piece.next_base_offset}"
        reason = (
            f"batch has offsets {offsets[index]} to {last_offsets[index]}, "
            f"expected from {lowest} on{limit}"
        )
        position = window.file_position + int(headers.positions[index])
        raise CorruptRecordError(reason, piece.path, position)


def _check_tail(windows: SegmentWindows, piece: SegmentSlice, next_offset: int) -> None:
    """Refuse an end of whole batches that could hide records."""
    position, defect = windows.tail
    if defect is not None:
        raise CorruptRecordError(defect, piece.path, position)
    if position == piece.end_position:
        return
    if piece.runs_to_segment_end and next_offset == piece.next_base_offset:
        return  # the torn or preallocated rest holds no offset of the log
    missing = (
        f"; the next segment begins at offset {piece.next_base_offset}, so records from "
        f"{next_offset} on may be missing"
        if piece.runs_to_segment_end
        else ""
    )
    reason = f"whole batches end {piece.end_position - position} bytes before they should{missing}"
    raise CorruptRecordError(reason, piece.path, position)
