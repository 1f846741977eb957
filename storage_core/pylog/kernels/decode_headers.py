"""Kernel: the header fields of batches of any format, one column a field.

The rows of ``headers`` are the fields below, its columns the batches. v0 and v1 messages get the
sentinels of the fields they lack. ``LAST_OFFSET`` and ``IS_…`` are derived; see
`pylog.record.batch_header` for the meaning of each.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

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

NO_TIMESTAMP = -1
NONE = -1
UNKNOWN_RECORD_COUNT = -1
COMPRESSION_CODEC_MASK = 0x07


@numba.njit(cache=True, nogil=True)
def _read_unsigned(buf: npt.NDArray[np.uint8], at: int, width: int) -> int:
    value = np.int64(0)
    for i in range(width):
        value = (value << 8) | np.int64(buf[at + i])
    return value


@numba.njit(cache=True, nogil=True)
def _read_int32(buf: npt.NDArray[np.uint8], at: int) -> int:
    value = _read_unsigned(buf, at, 4)
    return value - ((value & 0x80000000) << 1)


@numba.njit(cache=True, nogil=True)
def decode_headers(
    buf: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    count: int,
    headers: npt.NDArray[np.int64],
) -> None:
    """Fill ``headers[:, :count]`` from the whole batches at ``positions[:count]``.

    The caller has found the batches with ``scan_batches``, so each is at least as long as the
    header of its format.
    """
    for i in range(count):
        at = positions[i]
        headers[POSITION, i] = at
        headers[SIZE_BYTES, i] = 12 + _read_int32(buf, at + 8)
        offset = _read_unsigned(buf, at, 8)
        headers[OFFSET, i] = offset
        magic = np.int64(buf[at + 16])
        headers[MAGIC, i] = magic
        if magic == 2:
            headers[PARTITION_LEADER_EPOCH, i] = _read_int32(buf, at + 12)
            headers[CRC, i] = _read_unsigned(buf, at + 17, 4)
            headers[ATTRIBUTES, i] = np.int64(buf[at + 22])
            headers[LAST_OFFSET, i] = offset + _read_int32(buf, at + 23)
            headers[BASE_TIMESTAMP, i] = _read_unsigned(buf, at + 27, 8)
            headers[MAX_TIMESTAMP, i] = _read_unsigned(buf, at + 35, 8)
            headers[PRODUCER_ID, i] = _read_unsigned(buf, at + 43, 8)
            epoch = _read_unsigned(buf, at + 51, 2)
            headers[PRODUCER_EPOCH, i] = epoch - ((epoch & 0x8000) << 1)
            headers[BASE_SEQUENCE, i] = _read_int32(buf, at + 53)
            headers[RECORD_COUNT, i] = _read_int32(buf, at + 57)
            continue
        attributes = np.int64(buf[at + 17])
        timestamp = np.int64(NO_TIMESTAMP)
        if magic == 1:
            timestamp = _read_unsigned(buf, at + 18, 8)
        headers[PARTITION_LEADER_EPOCH, i] = NONE
        headers[CRC, i] = _read_unsigned(buf, at + 12, 4)
        headers[ATTRIBUTES, i] = attributes
        headers[LAST_OFFSET, i] = offset
        headers[BASE_TIMESTAMP, i] = timestamp
        headers[MAX_TIMESTAMP, i] = timestamp
        headers[PRODUCER_ID, i] = NONE
        headers[PRODUCER_EPOCH, i] = NONE
        headers[BASE_SEQUENCE, i] = NONE
        compressed = (attributes & COMPRESSION_CODEC_MASK) != 0
        headers[RECORD_COUNT, i] = UNKNOWN_RECORD_COUNT if compressed else 1
