"""Kernel: the types of the control records in uncompressed v2 control batches.

A control batch begins like any v2 batch; its first record's key holds int16 version, int16 type.
See `pylog.record.control_record` for the types.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import kernel
from pylog.kernels.helpers import skip_varlong

RECORDS_OFFSET = 61
UNKNOWN = -1
NEEDS_REFERENCE = -2
"""The batch is not of the usual form; the plain decoder must look at it."""


@kernel(writes=("types",))
def decode_control_types(
    buf: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    types: npt.NDArray[np.int64],
) -> None:
    """Fill ``types`` with the control type of each whole, uncompressed batch at ``positions``."""
    for i in range(positions.size):
        types[i] = NEEDS_REFERENCE
        end = positions[i] + sizes[i]
        at = positions[i] + RECORDS_OFFSET
        if at >= end or at + 1 + (np.int64(buf[at]) >> 1) != end or buf[at] & 0x81 != 0:  # length
            continue
        at = skip_varlong(buf, at + 2, end)  # attributes, timestamp delta
        if at < 0 or at + 7 > end or buf[at] != 0 or buf[at + 1] != 8:  # offset delta, key length 4
            continue
        if buf[at + 2] >= 0x80:  # negative version
            continue
        kind = (np.int64(buf[at + 4]) << 8) | np.int64(buf[at + 5])
        value_length = np.int64(buf[at + 6])  # zig-zag; negative is null
        at += 7 + (0 if value_length & 1 else value_length >> 1)
        if value_length >= 0x80 or at + 1 != end or buf[at] != 0:  # no headers
            continue
        types[i] = kind if kind <= 6 else UNKNOWN
