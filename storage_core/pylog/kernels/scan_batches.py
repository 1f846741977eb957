"""Kernel: the boundaries of the batches in a window of a ``.log`` file, any format.

An entry is 12 bytes of offset and size, then ``size`` bytes; the magic is byte 16. The minimum
size depends on the magic: 14 for v0, 22 for v1, 49 for v2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import kernel

SIZE_OFFSET = 8
LOG_OVERHEAD = 12
MAGIC_OFFSET = 16
HEADER_SIZE_UP_TO_MAGIC = 17
MIN_SIZE_V0 = 14
MIN_SIZE_V1 = 22
MIN_SIZE_V2 = 49

STATUS_OK = 0
"""The window ends where a batch ends."""
STATUS_PARTIAL = 1
"""The window ends inside a batch or a header."""
STATUS_FULL = 2
"""``positions`` is full; call again from the position returned."""
STATUS_BAD_SIZE = 3
STATUS_BAD_MAGIC = 4


@kernel(writes=("positions",))
def scan_batches(
    buf: npt.NDArray[np.uint8], start: int, end: int, positions: npt.NDArray[np.int64]
) -> tuple[int, int, int]:
    """Fill ``positions`` with the start of every whole batch in ``buf[start:end]``."""
    at = start
    count = 0
    while end - at >= HEADER_SIZE_UP_TO_MAGIC:
        if count == positions.size:
            return count, at, STATUS_FULL
        size = np.int64(0)
        for i in range(SIZE_OFFSET, SIZE_OFFSET + 4):
            size = (size << 8) | np.int64(buf[at + i])
        magic = np.int64(buf[at + MAGIC_OFFSET])
        minimum = MIN_SIZE_V0
        if magic == 1:
            minimum = MIN_SIZE_V1
        elif magic == 2:
            minimum = MIN_SIZE_V2
        elif magic != 0:
            return count, at, STATUS_BAD_MAGIC
        if size < minimum or size > 0x7FFFFFFF:
            return count, at, STATUS_BAD_SIZE
        if LOG_OVERHEAD + size > end - at:
            return count, at, STATUS_PARTIAL
        positions[count] = at
        count += 1
        at += LOG_OVERHEAD + size
    return count, at, (STATUS_OK if at == end else STATUS_PARTIAL)
