"""Batch headers read one by one with ``pread``, from a kernel.

Where only a field of each header is wanted, the records in between need not be read: a batch of 16
KB costs a system call of 61 bytes instead of a copy of 16 KB.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import helper, intrinsic, kernel

if TYPE_CHECKING:
    import numpy.typing as npt

HEADER_BYTES = 61
_LEAST_HEADER_BYTES = 26
_V2_MAX_TIMESTAMP = 35
_V1_TIMESTAMP = 18
_ATTRIBUTES = 17
_V2_ATTRIBUTES = 22  # the low byte
_CODEC_MASK = 7
_APPEND_TIME = 8
_SIZE_END = 12
_DELETE_HORIZON = 0x40

ROW_FIELDS = 10
"""Of `header_rows`: first and last offset, epoch, checksum, size, position, records, first and
largest timestamp, flags."""
STATE_POSITION, STATE_LOWEST = 0, 1
IS_REWRITTEN, FOLLOWS_A_GAP = 1, 2
"""Flags: a cleaner has taken records out; it does not begin at the offset after the batch before.
"""


@intrinsic("read_file", also_checked=True)
def _read(descriptor: int, buf: npt.NDArray[np.uint8], at: int, count: int, position: int) -> int:
    """Read ``count`` bytes at ``position`` into ``buf[at:]``; return how many came, -1 for none."""
    try:
        return os.preadv(descriptor, [buf[at : at + count].data], position)
    except OSError:
        return -1


@helper
def _big_endian(buf: npt.NDArray[np.uint8], at: int, width: int) -> int:
    value = np.int64(0)
    for index in range(at, at + width):
        value = (value << 8) | np.int64(buf[index])
    return value


@kernel(writes=("buf",))
def first_late_batch(
    descriptor: int,
    start: int,
    until: int,
    end: int,
    timestamp: int,
    trusts_headers: int,
    buf: npt.NDArray[np.uint8],
) -> int:
    """Return where the first batch begins that may hold a record of ``timestamp`` ms or later.

    Without ``trusts_headers`` the header of a batch decides only where its timestamp is by
    definition that of each record: with LogAppendTime, and for a message of its own.
    """
    position = np.int64(start)
    while position < until:
        wanted = min(np.int64(HEADER_BYTES), end - position)
        count = _read(descriptor, buf, np.int64(0), wanted, position)
        if count < _LEAST_HEADER_BYTES:
            return position
        size = _big_endian(buf, 8, 4)
        magic = buf[16]
        if size < 14 or size >= (1 << 31) or position + 12 + size > end or magic > 2:
            return position
        attributes = buf[_V2_ATTRIBUTES if magic == 2 else _ATTRIBUTES]
        is_exact = trusts_headers != 0 or (attributes & _APPEND_TIME) != 0
        if magic == 2:
            if count < HEADER_BYTES:
                return position
            latest = _big_endian(buf, _V2_MAX_TIMESTAMP, 8)
        elif magic == 1:
            latest = _big_endian(buf, _V1_TIMESTAMP, 8)
            is_exact = is_exact or (attributes & _CODEC_MASK) == 0
        elif attributes & _CODEC_MASK:
            return position
        else:
            is_exact = True
            latest = np.int64(-1)
        if latest >= timestamp or not is_exact:
            return position
        position += 12 + size
    return position


@kernel(writes=("buf",))
def read_headers(descriptor: int, position: int, length: int, buf: npt.NDArray[np.uint8]) -> bool:
    """Read the headers of the batches in ``[position, position + length)`` to where they belong."""
    at = np.int64(0)
    length = min(np.int64(length), np.int64(buf.size))
    while at < length:
        wanted = min(np.int64(HEADER_BYTES), length - at)
        count = _read(descriptor, buf, at, wanted, position + at)
        if count != wanted:
            return False
        if wanted < _SIZE_END:
            return True
        size = _big_endian(buf, at + 8, 4)
        if size < 14 or size >= (1 << 31):
            return False
        at += 12 + size
    return True


@kernel(writes=("buf", "rows", "state"))
def header_rows(
    descriptor: int,
    until: int,
    end: int,
    limit: int,
    buf: npt.NDArray[np.uint8],
    rows: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
) -> int:
    """Read what headers of v2 say, a row of ``rows`` a batch; return how many.

    ``state`` has where it begins, and the lowest offset that may come; in the end, those of what
    follows. It ends with the batch that reaches ``until``, where there is no more room, or before a
    batch that does not end by ``end``, has another format, or offsets below those or not below
    ``limit``.
    """
    position, lowest = np.int64(state[STATE_POSITION]), np.int64(state[STATE_LOWEST])
    room = np.int64(rows.size) // ROW_FIELDS
    if np.int64(buf.size) < HEADER_BYTES:
        return 0
    count = np.int64(0)
    while count < room and position < until and position + HEADER_BYTES <= end:
        if _read(descriptor, buf, np.int64(0), HEADER_BYTES, position) != HEADER_BYTES:
            break
        size = _big_endian(buf, 8, 4) + 12
        base = _big_endian(buf, 0, 8)
        delta = _big_endian(buf, 23, 4)
        if buf[16] != 2 or size < HEADER_BYTES or size >= (1 << 31) or position + size > end:
            break
        if base < lowest or delta >= (1 << 31) or base >= limit - delta:
            break
        records = np.int64(np.int32(_big_endian(buf, 57, 4)))
        first, latest = _big_endian(buf, 27, 8), _big_endian(buf, 35, 8)
        attributes = buf[_V2_ATTRIBUTES]
        has_horizon = (attributes & _DELETE_HORIZON) != 0
        if (attributes & _APPEND_TIME) != 0 or has_horizon or first == -1:
            first = latest
        at = count * ROW_FIELDS
        rows[at] = base
        rows[at + 1] = base + delta
        rows[at + 2] = np.int64(np.int32(_big_endian(buf, 12, 4)))
        rows[at + 3] = _big_endian(buf, 17, 4)
        rows[at + 4] = size
        rows[at + 5] = position
        rows[at + 6] = records
        rows[at + 7] = first
        rows[at + 8] = latest
        rows[at + 9] = (IS_REWRITTEN if has_horizon or records < delta + 1 else 0) | (
            FOLLOWS_A_GAP if base != lowest else 0
        )
        lowest = base + delta + 1
        position += size
        count += 1
    state[STATE_POSITION], state[STATE_LOWEST] = position, lowest
    return count
