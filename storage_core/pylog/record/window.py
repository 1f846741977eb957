"""Whole batches of a ``.log`` file in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders, BatchScan

    Chosen = npt.NDArray[np.bool_] | npt.NDArray[np.int64] | slice


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive batches of a file; valid until the next window is read, unless it is kept.

    Attributes
    ----------
    buffer
        uint8, read-only; ``headers.positions`` index it.
    headers
        The batches, or those of them that were selected.
    path
        The ``.log`` file.
    file_position
        The byte of the file that ``buffer[0]`` is.
    size_bytes
        How many bytes of the buffer are whole batches.
    fetch
        Reads the rest of batches of which only headers are here; None where all are.
    """

    buffer: npt.NDArray[np.uint8]
    headers: BatchHeaders
    path: str
    file_position: int
    size_bytes: int
    fetch: Callable[[Window, npt.NDArray[np.bool_]], None] | None = None

    @classmethod
    def of(cls, scan: BatchScan, path: str = "", file_position: int = 0) -> Window:
        """Return the batches that were found at the head of a buffer."""
        return cls(scan.buffer, scan.headers, path, file_position, scan.valid_bytes)

    @property
    def end_position(self) -> int:
        """The byte of the file after the last batch."""
        return self.file_position + self.size_bytes

    def select(self, which: Chosen | None) -> Window:
        """Return the window with some of its batches, in their order; all if None."""
        if which is None:
            return self
        return replace(self, headers=self.headers.select(which))

    def position_of(self, index: int) -> int:
        """Return the byte of the file where a batch begins."""
        return self.file_position + int(self.headers.positions[index])

    def bytes_of(self, index: int) -> memoryview:
        """Return a batch."""
        start = int(self.headers.positions[index])
        return self.buffer[start : start + int(self.headers.sizes_bytes[index])].data

    def read_batches(self, which: npt.NDArray[np.bool_] | None = None) -> None:
        """Have the whole batches that a mask picks in the buffer, all if None.

        To be called before more than headers is looked at where only headers were read.
        """
        if self.fetch is not None:
            which = np.ones(len(self.headers), dtype=np.bool_) if which is None else which
            self.fetch(self, which)
