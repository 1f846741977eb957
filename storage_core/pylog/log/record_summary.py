"""What a leader has to know of the records of one batch, before it gives them offsets.

v2 batches go through a kernel; what that refuses goes through the readable decoder, which says what
is wrong. v0 and v1 go through the readable decoder alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.kernels import decode_records as kernel
from pylog.model import NO_TIMESTAMP, TimestampType
from pylog.record.batch_layout import MAGIC_VALUE_V2, MIN_RECORD_SIZE_V2, RECORDS_OFFSET
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from pylog.record.batch_header import BatchHeader
    from pylog.record.compression import Decompressor

_FEW_RECORDS = 4
_ANY_OFFSET = -(2**62)
_HIGHEST_DELTA = 2**31 - 1
_NULL_KEYS = 2
# The kernel's outputs for values and headers.
_NOT_WANTED = (
    np.empty(1, dtype=np.int32),
    np.empty(0, dtype=np.uint8),
    np.empty(0, dtype=np.uint8),
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.int32),
)


class RecordSummary(NamedTuple):
    """Facts about the records of one batch.

    Attributes
    ----------
    record_count
        How many there are.
    is_consecutive
        Whether their offsets are the batch's base offset, that plus 1, and so on.
    null_keys
        How many have no key.
    lowest_timestamp
        Of those that have one; None if none has.
    highest_timestamp
        Of all; `NO_TIMESTAMP` where none has one.
    without_timestamp
        How many have none.
    """

    record_count: int
    is_consecutive: bool
    null_keys: int
    lowest_timestamp: int | None
    highest_timestamp: int
    without_timestamp: int


def summarize(batch: memoryview, header: BatchHeader, decompressor: Decompressor) -> RecordSummary:
    """Return the facts about a batch whose checksum is right; every record is looked at.

    Parameters
    ----------
    batch
        Exactly its bytes.
    header
        Its header.
    decompressor
        Its buffer is cleared and used.

    Raises
    ------
    InvalidRecordError, CorruptRecordError
        The records break their format, or are not as many as the header counts.
    """
    if header.magic == MAGIC_VALUE_V2 and header.record_count > _FEW_RECORDS:
        found = _summarize_by_kernel(batch, header, decompressor)
        if found is not None:
            return found
    offsets, timestamps, null_keys = [], [], 0
    for record in RecordBatch(batch, decompressor).unassigned_records():
        offsets.append(record.offset)
        timestamps.append(record.timestamp)
        null_keys += record.key is None
    first = header.offset if header.magic == MAGIC_VALUE_V2 else (offsets or [0])[0]
    stamped = [stamp for stamp in timestamps if stamp != NO_TIMESTAMP]
    return RecordSummary(
        len(offsets),
        offsets == list(range(first, first + len(offsets))),
        null_keys,
        min(stamped, default=None),
        max(timestamps, default=NO_TIMESTAMP),
        len(timestamps) - len(stamped),
    )


def _summarize_by_kernel(
    batch: memoryview, header: BatchHeader, decompressor: Decompressor
) -> RecordSummary | None:
    """Return the facts, None where a record breaks the format or offsets do not go up."""
    payload = batch.toreadonly()[RECORDS_OFFSET:]
    if header.is_compressed:
        decompressor.buffer.clear()
        start, end = decompressor.append(header.compression, payload, header.magic)
        payload = decompressor.buffer.view(start, end)
    count = header.record_count
    records = np.frombuffer(payload, dtype=np.uint8)
    if count * MIN_RECORD_SIZE_V2 > records.size:
        return None
    table = np.zeros((1, kernel.BATCH_FIELDS), dtype=np.int64)
    table[0, kernel.BATCH_END] = records.size
    table[0, kernel.BATCH_BASE_TIMESTAMP] = header.base_timestamp
    table[0, kernel.BATCH_RECORD_COUNT] = count
    table[0, kernel.BATCH_LAST_OFFSET] = _HIGHEST_DELTA
    offset_deltas, timestamps = np.empty((2, count), dtype=np.int64)
    totals = np.zeros(kernel.TOTALS, dtype=np.int64)
    rows, status, _ = kernel.decode_records(
        records,
        table,
        _ANY_OFFSET,
        -_ANY_OFFSET,
        kernel.WANT_TIMESTAMP | kernel.WANT_KEY,
        1,
        offset_deltas,
        timestamps,
        np.empty(count + 1, dtype=np.int32),
        np.empty(records.size, dtype=np.uint8),
        np.full(count // 8 + 1, 0xFF, dtype=np.uint8),
        *_NOT_WANTED,
        np.empty(1, dtype=np.int64),
        totals,
    )
    if status != kernel.STATUS_OK or rows != count:
        return None
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        timestamps[:] = header.max_timestamp
    without = int(np.count_nonzero(timestamps == NO_TIMESTAMP))
    stamped = timestamps[timestamps != NO_TIMESTAMP] if without else timestamps
    is_consecutive = offset_deltas[0] == 0 and bool((np.diff(offset_deltas) == 1).all())
    return RecordSummary(
        count,
        is_consecutive,
        int(totals[_NULL_KEYS]),
        int(stamped.min()) if stamped.size else None,
        int(timestamps.max()),
        without,
    )
