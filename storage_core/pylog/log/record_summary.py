"""What a leader has to know of the records of one batch, before it gives them offsets.

v2 batches go through a kernel; what that refuses goes through the readable decoder, which says what
is wrong. v0 and v1 go through the readable decoder alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.kernels import summarize_records as kernel
from pylog.model import NO_TIMESTAMP, TimestampType
from pylog.record.batch_layout import MAGIC_VALUE_V2, RECORDS_OFFSET
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from pylog.record.batch_header import BatchHeader
    from pylog.record.compression import Decompressor

_FEW_RECORDS = 4


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
    for record in RecordBatch(batch, decompressor).records():
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
    """Return the facts, None where a record breaks the format."""
    payload = batch.toreadonly()[RECORDS_OFFSET:]
    if header.is_compressed:
        decompressor.buffer.clear()
        start, end = decompressor.append(header.compression, payload, header.magic)
        payload = decompressor.buffer.view(start, end)
    records = np.frombuffer(payload, dtype=np.uint8)
    facts = np.empty(kernel.FACTS, dtype=np.int64)
    status = kernel.summarize_records(
        records, 0, records.size, header.record_count, header.base_timestamp, facts
    )
    if status != kernel.STATUS_OK:
        return None
    null_keys, lowest, highest, without, is_consecutive = facts.tolist()
    count = header.record_count
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        lowest = highest = header.max_timestamp
        without = count if highest == NO_TIMESTAMP else 0
    return RecordSummary(
        count,
        bool(is_consecutive),
        null_keys,
        None if without == count else lowest,
        highest,
        without,
    )
