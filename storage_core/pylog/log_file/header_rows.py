"""What the headers of a ``.log`` file say, read one by one: 61 bytes a batch.

A batch of 16 KiB so costs a system call in place of a copy. It ends before the first batch that is
not of v2, or that is not in order: whoever reads on from there finds out why. Small batches are
read as windows faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.byte_source import LocalFile
    from pylog.kernels import skip_headers  # compiles
else:
    skip_headers = LazyModule("pylog.kernels.skip_headers")

IS_REWRITTEN, FOLLOWS_A_GAP = 1, 2
"""Flags, as `pylog.kernels.skip_headers` has them."""
_FIELDS = 10
_HEADER_BYTES = 61
_FIRST_BYTES = 1 << 20
_STRIDE = 1 << 26
_MOST_ROWS = 1 << 14
_LEAST_BATCH_BYTES = 1 << 12
"""Batches of this size on average: a system call costs as much as copying half of that."""


class HeaderRows:
    """Iterates the headers of a slice, some at a time: an array with a row a batch.

    One thread, one iteration.

    Attributes
    ----------
    position, next_offset
        Where it has ended, and the lowest offset that may follow.
    """

    def __init__(self, source: LocalFile, start: int, end: int, bounds: tuple[int, int]) -> None:
        self._source, self._end = source, end
        self.position = start
        self.next_offset, self._limit = bounds

    def __iter__(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the columns of `pylog.kernels.skip_headers.header_rows`, in the file's order."""
        buffer = np.empty(_HEADER_BYTES, dtype=np.uint8)
        stride, asked_up_to = _FIRST_BYTES, 0
        while self.position < self._end:
            rows = np.empty(_MOST_ROWS * _FIELDS, dtype=np.int64)
            filled, begun = 0, self.position
            is_stopped = False
            while not is_stopped and filled < _MOST_ROWS and self.position < self._end:
                until = min(self.position + stride, self._end)
                if until > asked_up_to:
                    self._source.will_need(self.position, stride)
                    asked_up_to = until
                state = np.array([self.position, self.next_offset], dtype=np.int64)
                count = skip_headers.header_rows(
                    *(self._source.descriptor, until, self._end, self._limit),
                    *(buffer, rows[filled * _FIELDS :], state),
                )
                filled += count
                self.position, self.next_offset = map(int, state)
                is_stopped = self.position < until and filled < _MOST_ROWS
                if stride == _FIRST_BYTES:
                    break
            if filled:
                yield rows[: filled * _FIELDS].reshape(filled, _FIELDS)
            if is_stopped or (self.position - begun) < filled * _LEAST_BATCH_BYTES:
                return
            stride = _STRIDE
