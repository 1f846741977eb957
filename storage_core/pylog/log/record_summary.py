"""What a leader has to know of the records of one batch, before it gives them offsets.

Large batches go through the decoding kernel, small ones through the plain decoder, which starts
faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar import decode_v2
from pylog.columnar.window import GroupRequest
from pylog.errors import InvalidRecordError
from pylog.kernels.decode_headers import FIELD_COUNT, decode_headers
from pylog.kernels.decode_records import BATCH_END, BATCH_START, WANT_KEY, WANT_TIMESTAMP
from pylog.model import NO_TIMESTAMP
from pylog.record.batch_layout import MAGIC_VALUE_V2, RECORDS_OFFSET
from pylog.record.batch_scan import BatchHeaders
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from pylog.record.batch_header import BatchHeader
    from pylog.record.compression import Decompressor

_FEW_RECORDS = 24
_ALL_OFFSETS = (0, 1 << 62)


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

    Raises
    ------
    InvalidRecordError, CorruptRecordError
        The records break their format, or are not as many as the header counts.
    """
    if header.magic == MAGIC_VALUE_V2 and header.record_count > _FEW_RECORDS:
        return _summarize_by_kernel(batch, header, decompressor)
    offsets, timestamps, null_keys = [], [], 0
    for record in RecordBatch(batch, decompressor).records():
        offsets.append(record.offset)
        timestamps.append(record.timestamp)
        null_keys += record.key is None
    first = header.offset if header.magic == MAGIC_VALUE_V2 else (offsets or [0])[0]
    is_consecutive = offsets == list(range(first, first + len(offsets)))
    stamped = [stamp for stamp in timestamps if stamp != NO_TIMESTAMP]
    return RecordSummary(
        len(offsets),
        is_consecutive,
        null_keys,
        min(stamped, default=None),
        max(timestamps, default=NO_TIMESTAMP),
        len(timestamps) - len(stamped),
    )


def _summarize_by_kernel(
    batch: memoryview, header: BatchHeader, decompressor: Decompressor
) -> RecordSummary:
    buffer = np.frombuffer(batch.toreadonly(), dtype=np.uint8)
    columns = np.empty((FIELD_COUNT, 1), dtype=np.int64)
    decode_headers(buffer, np.zeros(1, dtype=np.int64), 1, columns)
    run = BatchHeaders(columns)
    table = decode_v2.describe_batches(run)
    if header.is_compressed:
        decompressor.buffer.clear()
        stream, codec = decode_v2.stream_of(run, 0, batch[RECORDS_OFFSET:])
        start, end = decompressor.append(codec, stream, header.magic)
        table[0, BATCH_START], table[0, BATCH_END] = start, end
        view = decompressor.buffer.view(0, max(1, end))
        buffer = np.frombuffer(view, dtype=np.uint8)
    request = GroupRequest(
        buffer,
        header.offset,
        _ALL_OFFSETS[1],
        WANT_KEY | WANT_TIMESTAMP,
        pa.timestamp("ms"),
        "",
        0,
    )
    found = decode_v2.decode_group(request, run, table)
    if found.rows != header.record_count:
        reason = f"{header.record_count - found.rows} records lie before the batch's base offset"
        raise InvalidRecordError(reason)
    stamps = found.timestamps[: found.rows]
    without = int((stamps == NO_TIMESTAMP).sum())
    stamped = stamps[stamps != NO_TIMESTAMP] if without else stamps
    offsets = found.offsets[: found.rows]
    return RecordSummary(
        found.rows,
        bool((np.diff(offsets) == 1).all()) and int(offsets[0]) == header.offset,
        found.arrays["key"].null_count,
        int(stamped.min()) if stamped.size else None,
        int(stamps.max()),
        without,
    )
