"""Kernels: the header fields of batches of any format; the types of control records.

The rows of ``headers`` are the fields below, its columns the batches. v0 and v1 messages get the
sentinels of the fields they lack. ``LAST_OFFSET`` and ``IS_…`` are derived; see
`pylog.record.batch_header` for the meaning of each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import kernel
from pylog.kernels.helpers import skip_varlong

POSITION = 0
SIZE_BYTES = 1
OFFSET = 2
LAST_OFFSET = 3
MAGIC = 4
CRC = 5
ATTRIBUTES = 6
PARTITION_LEADER_EPOCH = 7
BASE_TIMESTAMP = 8
MAX_TIMESTAMP = 9
PRODUCER_ID = 10
PRODUCER_EPOCH = 11
BASE_SEQUENCE = 12
RECORD_COUNT = 13
FIELD_COUNT = 14

LOG_OVERHEAD = 12
MAGIC_OFFSET = 16
NONE = -1
"""No timestamp, leader epoch, producer id, epoch or sequence; a record count that is not known."""
COMPRESSION_CODEC_MASK = 0x07

# What is read of an entry, by its magic: (row of ``headers``, byte of the entry, width, 1 where
# signed). A loop over a table compiles three times faster than a read a field, and one header in
# 16 KB is not worth more. Width 0 stands for a field that the format lacks: NONE.
_V2 = (
    (SIZE_BYTES, 8, 4, 1),
    (OFFSET, 0, 8, 1),
    (LAST_OFFSET, 23, 4, 1),
    (CRC, 17, 4, 0),
    (ATTRIBUTES, 22, 1, 0),
    (PARTITION_LEADER_EPOCH, 12, 4, 1),
    (BASE_TIMESTAMP, 27, 8, 1),
    (MAX_TIMESTAMP, 35, 8, 1),
    (PRODUCER_ID, 43, 8, 1),
    (PRODUCER_EPOCH, 51, 2, 1),
    (BASE_SEQUENCE, 53, 4, 1),
    (RECORD_COUNT, 57, 4, 1),
)
_V1 = (
    (SIZE_BYTES, 8, 4, 1),
    (OFFSET, 0, 8, 1),
    (LAST_OFFSET, 0, 8, 1),
    (CRC, 12, 4, 0),
    (ATTRIBUTES, 17, 1, 0),
    (PARTITION_LEADER_EPOCH, 0, 0, 0),
    (BASE_TIMESTAMP, 18, 8, 1),
    (MAX_TIMESTAMP, 18, 8, 1),
    (PRODUCER_ID, 0, 0, 0),
    (PRODUCER_EPOCH, 0, 0, 0),
    (BASE_SEQUENCE, 0, 0, 0),
    (RECORD_COUNT, 0, 0, 0),
)
_V0 = tuple((row, 0, 0, 0) if at == 18 else (row, at, width, sign) for row, at, width, sign in _V1)
_FIELDS = np.array([_V0, _V1, _V2], dtype=np.int64)
_FIELD_ROWS = len(_V2)


@kernel(writes=("headers",), tables=("headers",))
def decode_headers(
    buf: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    count: int,
    headers: npt.NDArray[np.int64],
) -> None:
    """Fill ``headers[:, :count]`` from the whole batches at ``positions[:count]``."""
    for i in range(count):
        at = positions[i]
        magic = np.int64(buf[at + MAGIC_OFFSET])
        headers[POSITION, i] = at
        headers[MAGIC, i] = magic
        for field in range(_FIELD_ROWS):
            first = at + _FIELDS[magic, field, 1]
            width = _FIELDS[magic, field, 2]
            value = np.int64(0) if width > 0 else np.int64(NONE)
            for byte in range(first, first + width):
                value = (value << 8) | np.int64(buf[byte])
            if _FIELDS[magic, field, 3] != 0:
                unused = 64 - 8 * width
                value = (value << unused) >> unused
            headers[_FIELDS[magic, field, 0], i] = value
        headers[SIZE_BYTES, i] += LOG_OVERHEAD
        if magic == 2:
            headers[LAST_OFFSET, i] += headers[OFFSET, i]
        elif (headers[ATTRIBUTES, i] & COMPRESSION_CODEC_MASK) == 0:
            headers[RECORD_COUNT, i] = 1


# Kernel: the types of the control records in uncompressed v2 control batches.
#
# A control batch begins like any v2 batch; its first record's key holds int16 version, int16 type.
# See `pylog.record.control_record` for the types.


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
