"""Windows of which only the batch headers are read, where that is cheaper than reading all.

Only of local files: elsewhere a request a header would cost more than the bytes between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import SegmentVanishedError
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.files.byte_source import LocalFile
    from pylog.kernels import skip_headers  # compiles
    from pylog.record.batch_scan import BatchScan
    from pylog.record.window import Window
else:
    skip_headers = LazyModule("pylog.kernels.skip_headers")

_LEAST_BATCH_BYTES = 1 << 12
"""Batches of this size on average: a system call costs as much as copying half of that."""
_STRIDE = 1 << 26
"""How far the system is asked to read ahead: scattered reads of a cold disk are slow."""


class HeaderReading:
    """Reads headers into a window's memory, each to its place. One file, one thread."""

    def __init__(self, source: LocalFile) -> None:
        self._source = source
        self._batch_bytes = 0.0
        self._asked_up_to = 0

    def note(self, scan: BatchScan) -> None:
        """Note how large batches are here; the next window is expected to be alike."""
        if len(scan.headers):
            self._batch_bytes = scan.valid_bytes / len(scan.headers)

    def fill(self, position: int, memory: memoryview) -> bool:
        """Fill in the headers of the batches that begin in the window at ``position``.

        False where all is to be read instead: batches are small, or something is wrong, which
        whoever reads all finds out.
        """
        end = position + len(memory)
        if self._batch_bytes < _LEAST_BATCH_BYTES or end > self._source.size():
            return False
        while end > self._asked_up_to:
            start = max(position, self._asked_up_to)
            self._source.will_need(start, _STRIDE)
            self._asked_up_to = start + _STRIDE
        into = np.frombuffer(memory, dtype=np.uint8)
        return bool(skip_headers.read_headers(self._source.descriptor, position, into.size, into))

    def read_batches(
        self, memory: memoryview, window: Window, which: npt.NDArray[np.bool_]
    ) -> None:
        """Read the whole batches that a mask picks into the memory of a window."""
        headers, position = window.headers, window.file_position
        starts = headers.positions[which].tolist()
        ends = (headers.positions + headers.sizes_bytes)[which].tolist()
        for start, end in zip(starts, ends, strict=True):
            count = self._source.read_into(position + start, memory[start:end])
            if count < end - start:
                raise shorter_than_planned(self._source.path, position + start + count)


def shorter_than_planned(path: str, position: int, end: int | None = None) -> SegmentVanishedError:
    """Return the error for a file that ends at ``position`` now."""
    planned = "" if end is None else f" up to byte {end}"
    return SegmentVanishedError(
        f"file ends here, it was planned to be read{planned}", path, position
    )
