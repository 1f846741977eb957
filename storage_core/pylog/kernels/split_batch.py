"""Kernels: where a large batch may be cut between two of its records.

They walk from length to length of records that have been decoded once and found sound, so lengths
are believed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import helper, kernel

if TYPE_CHECKING:
    import numpy.typing as npt

# One row of the output.
PIECE_START = 0
PIECE_END = 1
PIECE_RECORDS = 2
PIECE_LAST_RECORD = 3
"""Where the last record of the piece begins."""
PIECE_FIELDS = 4

LOG_OVERHEAD = 12
SIZE_OFFSET = 8


@helper
def _record_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position after the v2 record at ``at``, at most ``end``."""
    raw = np.int64(0)
    shift = 0
    while at < end and shift < 35:
        byte = np.int64(buf[at])
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return min(np.int64(end), at + ((raw & 0xFFFFFFFF) >> 1))


@helper
def _message_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position after the v0 or v1 message at ``at``; ``at`` where it is cut short."""
    if end - at < LOG_OVERHEAD:
        return at
    size = np.int64(0)
    for i in range(4):
        size = (size << 8) | np.int64(buf[at + SIZE_OFFSET + i])
    after = at + LOG_OVERHEAD + size
    return after if after <= end else at


@kernel(writes=("pieces",), tables=("pieces",))
def split_batch(
    buf: npt.NDArray[np.uint8],
    start: int,
    end: int,
    is_v2: bool,  # noqa: FBT001 - kernels take no keywords
    most_bytes: int,
    most_records: int,
    pieces: npt.NDArray[np.int64],
) -> int:
    """Cut the records in ``[start, end)`` into pieces; return how many."""
    at = np.int64(start)
    count = np.int64(0)
    piece_start = at
    records = np.int64(0)
    last = at
    while at < end:
        after = _record_end(buf, at, end) if is_v2 else _message_end(buf, at, end)
        if after <= at:
            break
        if records and (after - piece_start > most_bytes or records == most_records):
            pieces[count, PIECE_START] = piece_start
            pieces[count, PIECE_END] = at
            pieces[count, PIECE_RECORDS] = records
            pieces[count, PIECE_LAST_RECORD] = last
            count += 1
            piece_start = at
            records = np.int64(0)
        records += 1
        last = at
        at = after
    if records:
        pieces[count, PIECE_START] = piece_start
        pieces[count, PIECE_END] = at
        pieces[count, PIECE_RECORDS] = records
        pieces[count, PIECE_LAST_RECORD] = last
        count += 1
    return count
