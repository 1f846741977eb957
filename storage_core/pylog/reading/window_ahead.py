"""A window that was read ahead, and what threads make of its batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.columnar.window import Window
from pylog.reading.head_start import HeadStart
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from pylog.columnar.decode import RecordDecoder
    from pylog.log_file.segment_windows import SegmentWindow
    from pylog.reading.filtered_decode import FilteredDecoder
    from pylog.reading.search_decode import SearchDecoder
    from pylog.record.batch_scan import BadChecksum, BatchHeaders
    from pylog.scheduling.worker_threads import WorkerThreads

    Decoder = RecordDecoder | FilteredDecoder | SearchDecoder

MOST_BYTES = 1 << 23
"""How much a thread makes before it is asked for: records may turn out to be more than expected."""


class PartAhead:
    """Consecutive batches of a window, with right checksums, that a thread decodes.

    Attributes
    ----------
    headers
        The batches.
    """

    def __init__(
        self, window: SegmentWindow, path: str, headers: BatchHeaders, last_offset: int
    ) -> None:
        self.headers = headers
        self._window = Window(window.scan.buffer, headers, path, window.file_position)
        self._last_offset = last_offset  # of the batch before
        self._decoder: Decoder | None = None
        self._batches: HeadStart[pa.RecordBatch] | None = None

    @property
    def decoder(self) -> Decoder | None:
        """What decodes it; None where no thread of this process does."""
        return self._decoder if self._batches is not None and self._batches.is_here else None

    def start(self, workers: WorkerThreads, decoder: Decoder, offsets: tuple[int, int]) -> None:
        """Have a thread decode the records in the range of offsets, ``[start, end)``."""
        self._decoder = decoder

        def make() -> Iterator[pa.RecordBatch]:
            decoder.restart(self._last_offset)
            return decoder.decode(self._window, *offsets)

        self._batches = HeadStart(workers, make, MOST_BYTES)

    def take_over(self, batches: HeadStart[pa.RecordBatch], decoder: Decoder | None) -> None:
        """Have what a thread has begun to decode already, and its decoder."""
        self._batches, self._decoder = batches, decoder

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield its records; errors as of the decoder."""
        if self._batches is not None:
            yield from self._batches

    def abandon(self) -> None:
        """Have the thread stop soon."""
        if self._batches is not None:
            self._batches.abandon()


@dataclass(slots=True)
class WindowAhead:
    """A window that was read ahead.

    Attributes
    ----------
    window
        As read.
    memory
        What it was read into.
    wanted
        Mask of its batches that are decoded; None for all.
    is_checked
        Whether its checksums have been looked at.
    bad
        The first batch whose checksum is wrong.
    parts
        Its wanted batches; none where whoever asks for the window decodes them.
    """

    window: SegmentWindow
    memory: bytearray
    wanted: npt.NDArray[np.bool_] | None
    is_checked: bool = False
    bad: BadChecksum | None = None
    parts: list[PartAhead] = field(default_factory=list)

    def find_bad_checksum(self) -> BadChecksum | None:
        """Return the first batch with a wrong checksum, None if all are right."""
        return self.bad if self.is_checked else find_bad_checksum(self.window.scan)
