"""A range of a file's bytes that a thread reads, checks and decodes before it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.window import Window
from pylog.errors import LogStorageError
from pylog.log_file.segment_windows import SegmentWindow
from pylog.reading.head_start import HeadStart
from pylog.reading.window_ahead import MOST_BYTES, PartAhead, WindowAhead
from pylog.record.batch_scan import find_bad_checksum, find_batches
from pylog.record.decompression_limit import is_surely_over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.files.byte_source import ByteSource
    from pylog.reading.window_ahead import Decoder
    from pylog.scheduling.worker_threads import WorkerThreads

    Wanted = Callable[[SegmentWindow], npt.NDArray[np.bool_] | None]


class RangeAhead:
    """Bytes that are one window if batches lead from their beginning exactly to their end.

    Nothing of one thread's work is another's, but for the order in which they are asked for.

    Parameters
    ----------
    source
        The opened ``.log`` file; it stays open until the range was asked for, or stopped.
    bounds
        Which bytes, ``[start, end)``.
    memory
        What they are read into; at least as many bytes.
    max_decompressed_bytes
        As of the decoder.

    Attributes
    ----------
    start
        The first byte.
    """

    def __init__(
        self,
        source: ByteSource,
        bounds: tuple[int, int],
        memory: bytearray,
        max_decompressed_bytes: int,
    ) -> None:
        self.start, end = bounds
        self._size_bytes = end - self.start
        self._source = source
        self._memory = memory
        self._max_decompressed_bytes = max_decompressed_bytes
        self._made: WindowAhead | None = None
        self._decoder: Decoder | None = None
        self._batches: HeadStart[pa.RecordBatch] | None = None

    def begin(
        self, workers: WorkerThreads, decoder: Decoder, wanted: Wanted, offsets: tuple[int, int]
    ) -> None:
        """Have a thread do it.

        Parameters
        ----------
        workers
            Whose thread.
        decoder
            Nobody else's until the range was asked for, or stopped.
        wanted
            Says which batches of a window are decoded.
        offsets
            The range ``[start, end)`` of the records that are decoded.
        """
        self._decoder = decoder

        def make() -> Iterator[pa.RecordBatch]:
            self._made = self._read(wanted)
            if self._made is None or not self._made.parts:
                return iter(())
            window = self._made.window
            headers = self._made.parts[0].headers
            decoder.restart(-1)
            chosen = Window(window.scan.buffer, headers, self._source.path, self.start)
            return decoder.decode(chosen, *offsets)

        self._batches = HeadStart(workers, make, MOST_BYTES)

    def finish(self) -> WindowAhead | None:
        """Return the window, and what is decoded of it; None if the bytes are not a window.

        They have to be read otherwise then, and so they have in a forked child, which has no
        threads.
        """
        if self._batches is None or not self._batches.is_here:
            return None
        self._batches.wait()
        if self._made is not None:
            for part in self._made.parts:
                part.take_over(self._batches, self._decoder)
        return self._made

    def stop(self) -> Decoder | None:
        """Return once no thread uses the file any more; return the decoder, None if it is lost."""
        if self._batches is None:
            return self._decoder
        return self._decoder if self._batches.stop() else None

    def _read(self, wanted: Wanted) -> WindowAhead | None:
        view = memoryview(self._memory)[: self._size_bytes]
        try:
            if self._source.read_into(self.start, view) < self._size_bytes:
                return None
        except LogStorageError:
            return None  # whoever reads them otherwise meets it
        scan = find_batches(np.frombuffer(view.toreadonly(), dtype=np.uint8))
        if scan.valid_bytes != self._size_bytes:
            return None
        if is_surely_over(int(scan.headers.sizes_bytes.max()), self._max_decompressed_bytes):
            return None  # which error that is depends on whether it fits into a window
        window = SegmentWindow(self.start, scan)
        mask = wanted(window)
        made = WindowAhead(window, self._memory, mask, is_checked=True, bad=find_bad_checksum(scan))
        headers = scan.headers if mask is None else scan.headers.select(mask)
        # What is wrong about a wrapper of v0 or v1 depends on the batch before the range.
        if made.bad is None and scan.headers.traits.all_v2 and len(headers):
            made.parts.append(PartAhead(window, self._source.path, headers, -1))
        return made
