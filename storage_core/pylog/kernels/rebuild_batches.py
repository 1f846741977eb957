"""Kernel: v2 batches written anew with some of their records, as compaction leaves them.

Records are copied from their offset delta on; length and timestamp delta are written anew, since
the base timestamp may be another one. So numbers after the timestamp delta that were written longer
than need be stay so.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import kernel
from pylog.kernels.helpers import (
    add_words,
    copy_bytes,
    put_integer,
    put_varint,
    size_of_varint,
    unsigned_varint,
)

STATUS_OK = 0
STATUS_NO_ROOM = 1
STATUS_BAD_TIMESTAMP = 2
"""A timestamp is negative and not NO_TIMESTAMP, so that no batch can be built of it."""

# One row of the per-batch input.
BATCH_FIRST_ROW = 0
BATCH_END_ROW = 1
"""The rows of its records; none where only its header is to be kept."""
BATCH_OLD_BASE_TIMESTAMP = 2
BATCH_APPEND_TIME = 3
"""1 where every record reports BATCH_MAX_TIMESTAMP."""
BATCH_MAX_TIMESTAMP = 4
BATCH_DELETE_HORIZON = 5
"""The base timestamp to be written; NO_TIMESTAMP for that of the first record."""
BATCH_BASE_OFFSET = 6
BATCH_LAST_OFFSET = 7
BATCH_FROM_RECORDS = 8
"""1 where base and last offset are to be those of the first and the last record."""
BATCH_PARTITION_LEADER_EPOCH = 9
BATCH_ATTRIBUTES = 10
BATCH_PRODUCER_ID = 11
BATCH_PRODUCER_EPOCH = 12
BATCH_BASE_SEQUENCE = 13
BATCH_FIELDS = 14

NO_TIMESTAMP = -1
LOG_OVERHEAD = 12
RECORDS_OFFSET = 61
MAGIC_VALUE_V2 = 2

MOST_ADDED_BYTES = 24
"""What a record may become longer by: its length by 4 bytes, two deltas by 9 each, and room to
write."""


@kernel(writes=("out", "ends"), tables=("batches",))
def rebuild_batches(
    buf: npt.NDArray[np.uint8],
    batches: npt.NDArray[np.int64],
    positions: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    kept: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Write each of ``batches`` with those of its records that are kept; checksums are left 0."""
    at = np.int64(0)
    for batch in range(batches.shape[0]):
        start = at
        if out.size - start < RECORDS_OFFSET:
            return STATUS_NO_ROOM, batch
        at += RECORDS_OFFSET
        base_offset = batches[batch, BATCH_BASE_OFFSET]
        last_offset = batches[batch, BATCH_LAST_OFFSET]
        base_timestamp = batches[batch, BATCH_DELETE_HORIZON]
        append_time = batches[batch, BATCH_APPEND_TIME] != 0
        highest = np.int64(NO_TIMESTAMP)
        count = np.int64(0)
        for row in range(batches[batch, BATCH_FIRST_ROW], batches[batch, BATCH_END_ROW]):
            if kept[row] == 0:
                continue
            raw, source = unsigned_varint(buf, positions[row])
            record_end = source + ((raw & 0xFFFFFFFF) >> 1)
            if out.size - at < record_end - source + MOST_ADDED_BYTES:
                return STATUS_NO_ROOM, row
            raw, source = unsigned_varint(buf, source + 1)
            delta = ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1)
            timestamp = add_words(batches[batch, BATCH_OLD_BASE_TIMESTAMP], delta)
            if append_time:
                timestamp = batches[batch, BATCH_MAX_TIMESTAMP]
            if timestamp < NO_TIMESTAMP:
                return STATUS_BAD_TIMESTAMP, row
            raw, source = unsigned_varint(buf, source)
            offset = offsets[row]
            if count == 0:
                if batches[batch, BATCH_DELETE_HORIZON] == NO_TIMESTAMP:
                    base_timestamp = timestamp
                if batches[batch, BATCH_FROM_RECORDS] != 0:
                    base_offset = offset
            if batches[batch, BATCH_FROM_RECORDS] != 0:
                last_offset = offset
            delta = timestamp - base_timestamp
            raw_timestamp = (delta << 1) ^ (delta >> 63)
            raw_offset = (offset - base_offset) << 1
            rest = record_end - source
            raw = (1 + size_of_varint(raw_timestamp) + size_of_varint(raw_offset) + rest) << 1
            at = put_varint(out, at, raw)
            out[at] = 0
            at = put_varint(out, at + 1, raw_timestamp)
            at = put_varint(out, at, raw_offset)
            copy_bytes(out, at, buf, source, rest)
            at += rest
            highest = max(highest, timestamp)
            count += 1
        if append_time or count == 0:
            highest = batches[batch, BATCH_MAX_TIMESTAMP]
        put_integer(out, start, base_offset, 8)
        put_integer(out, start + 8, at - start - LOG_OVERHEAD, 4)
        put_integer(out, start + 12, batches[batch, BATCH_PARTITION_LEADER_EPOCH], 4)
        out[start + 16] = MAGIC_VALUE_V2
        put_integer(out, start + 17, np.int64(0), 4)
        put_integer(out, start + 21, batches[batch, BATCH_ATTRIBUTES], 2)
        put_integer(out, start + 23, last_offset - base_offset, 4)
        put_integer(out, start + 27, base_timestamp, 8)
        put_integer(out, start + 35, highest, 8)
        put_integer(out, start + 43, batches[batch, BATCH_PRODUCER_ID], 8)
        put_integer(out, start + 51, batches[batch, BATCH_PRODUCER_EPOCH], 2)
        put_integer(out, start + 53, batches[batch, BATCH_BASE_SEQUENCE], 4)
        put_integer(out, start + 57, count, 4)
        ends[batch] = at
    return STATUS_OK, batches.shape[0]
