"""What a leader has to know of the records of one batch, before it gives them offsets.

v2 batches go through a kernel; what that refuses goes through the readable decoder, which says what
is wrong. v0 and v1 go through the readable decoder alone. Batches that decompress to a great deal
are looked at piece by piece, whatever their format: there may be millions of records in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.arrow_buffers import int64_values
from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels import decode_records as kernel
from pylog.model import NO_TIMESTAMP, TimestampType, TopicPartition
from pylog.record.batch_header import (
    MAGIC_VALUE_V2,
    MIN_RECORD_SIZE_V2,
    RECORDS_OFFSET,
    codec_of,
)
from pylog.record.batch_scan import Window, find_batches
from pylog.record.legacy_batch import wrapped_stream
from pylog.record.record_batch import RecordBatch
from pylog.record.record_sizes import ensure_record_sizes, find_large_record

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_header import BatchHeader
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.compression import Decompressor

    Int64Array = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]


_ADVICE = ": raise it, or send smaller records"
_FEW_RECORDS = 4
_FEW_BYTES = 1 << 16
LARGE_BYTES = 1 << 24
MANY_RECORDS = 1 << 18
"""A batch with more bytes of records, or more records, is looked at piece by piece."""
_NOBODY = TopicPartition("", 0)  # columns that name the partition are not asked for
_ANY_END = 2**63 - 1
_ANY_OFFSET = -(2**62)
_HIGHEST_DELTA = 2**31 - 1
# The kernel's outputs for values and headers.
_NOT_WANTED = (
    np.empty(1, dtype=np.int32),
    np.empty(0, dtype=np.uint8),
    np.empty(0, dtype=np.uint8),
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.int32),
)


class RecordSummary(NamedTuple):
    """Facts about the records of one batch."""

    record_count: int
    is_consecutive: bool
    null_keys: int
    lowest_timestamp: int | None
    highest_timestamp: int
    without_timestamp: int


def summarize(
    batch: memoryview,
    header: BatchHeader,
    decompressor: Decompressor,
    max_record_bytes: int | None = None,
) -> RecordSummary:
    """Return the facts about a batch whose checksum is right; every record is looked at."""
    is_v2 = header.magic == MAGIC_VALUE_V2
    payload = _payload(batch, header, decompressor)
    if header.is_compressed:
        ensure_record_sizes(payload, max_record_bytes, is_v2=is_v2, advice=_ADVICE)
    if len(payload) > LARGE_BYTES or header.record_count > MANY_RECORDS:
        return _summarize_in_pieces(batch, header, decompressor)
    if is_v2 and (header.record_count > _FEW_RECORDS or len(payload) > _FEW_BYTES):
        summary = _summarize_by_kernel(payload, header)
        if summary is not None:
            return summary
    offsets, timestamps, null_keys = [], [], 0
    readable = RecordBatch(batch, decompressor)
    has_payload = is_v2 and header.record_count > 0
    records = readable.records_in(payload) if has_payload else readable.unassigned_records()
    for record in records:
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


def _payload(batch: memoryview, header: BatchHeader, decompressor: Decompressor) -> memoryview:
    """Return the records of a v2 batch, or what a v0/v1 entry holds, decompressed."""
    batch = batch.toreadonly()
    is_v2 = header.magic == MAGIC_VALUE_V2
    if not header.is_compressed or (is_v2 and header.record_count <= 0):
        return batch[RECORDS_OFFSET:] if is_v2 else batch
    stream = batch[RECORDS_OFFSET:] if is_v2 else wrapped_stream(batch, header.magic)
    decompressor.buffer.clear()
    start, end = decompressor.append(header.compression, stream, header.magic)
    return decompressor.buffer.view(start, end)


def _summarize_in_pieces(
    batch: memoryview, header: BatchHeader, decompressor: Decompressor
) -> RecordSummary:
    """Return the facts; no more memory is used than for the records of a piece."""
    scan = find_batches(np.frombuffer(batch.toreadonly(), dtype=np.uint8))
    decoder = RecordDecoder(
        _NOBODY,
        record_schema(("offset", "timestamp", "key"), timestamp_unit="ms"),
        max_decompressed_bytes=decompressor.buffer.limit,
        decompressor=decompressor,
    )
    count = null_keys = without = 0
    lowest: int | None = None
    highest = NO_TIMESTAMP
    next_offset = header.offset if header.magic == MAGIC_VALUE_V2 else None
    is_consecutive = True
    window = Window.of(scan)
    try:
        for columns in decoder.decode(window, -_ANY_END, _ANY_END):
            offsets = int64_values(columns.column("offset"))
            timestamps = int64_values(columns.column("timestamp"))
            first = int(offsets[0]) if next_offset is None else next_offset
            is_consecutive = is_consecutive and bool(
                (offsets == np.arange(first, first + offsets.size)).all()
            )
            next_offset = first + offsets.size
            count += offsets.size
            null_keys += columns.column("key").null_count
            stamped = timestamps[timestamps != NO_TIMESTAMP]
            without += offsets.size - stamped.size
            if stamped.size:
                lowest = min(int(stamped.min()), int(stamped.min()) if lowest is None else lowest)
            highest = max(highest, int(timestamps.max()))
    except (CorruptRecordError, InvalidRecordError) as error:
        raise type(error)(error.reason) from error  # without a file: the records are not in one yet
    return RecordSummary(count, is_consecutive, null_keys, lowest, highest, without)


def _summarize_by_kernel(payload: memoryview, header: BatchHeader) -> RecordSummary | None:
    """Return the facts, None where a record breaks the format."""
    count = header.record_count
    if count <= 0:
        return None
    records = np.frombuffer(payload, dtype=np.uint8)
    if count * MIN_RECORD_SIZE_V2 > records.size:
        return None
    table = np.zeros((1, kernel.BATCH_FIELDS), dtype=np.int64)
    table[0, kernel.BATCH_END] = records.size
    table[0, kernel.BATCH_BASE_TIMESTAMP] = header.base_timestamp
    table[0, kernel.BATCH_RECORD_COUNT] = count
    table[0, kernel.BATCH_LAST_OFFSET] = _HIGHEST_DELTA
    walked = walk_records(records, table)
    if walked.sound_batches == 0:
        return None
    offset_deltas, timestamps = walked.offsets, walked.timestamps
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        timestamps[:] = header.max_timestamp
    without = int(np.count_nonzero(timestamps == NO_TIMESTAMP))
    stamped = timestamps[timestamps != NO_TIMESTAMP] if without else timestamps
    is_consecutive = offset_deltas[0] == 0 and bool((np.diff(offset_deltas) == 1).all())
    return RecordSummary(
        count,
        is_consecutive,
        walked.null_keys,
        int(stamped.min()) if stamped.size else None,
        int(timestamps.max()),
        without,
    )


class WalkedRecords(NamedTuple):
    """What a walk over the records of v2 batches gave, a row a record."""

    sound_batches: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    null_keys: int
    key_validity: npt.NDArray[np.uint8]


def walk_records(records: npt.NDArray[np.uint8], table: npt.NDArray[np.int64]) -> WalkedRecords:
    """Look at every record of some v2 batches, decompressed."""
    count = int(table[:, kernel.BATCH_RECORD_COUNT].sum())
    offsets, timestamps = np.empty((2, count), dtype=np.int64)
    validity = np.full(count // 8 + 1, 0xFF, dtype=np.uint8)
    totals = np.zeros(kernel.TOTALS, dtype=np.int64)
    _, status, _ = kernel.decode_records(
        records,
        table,
        _ANY_OFFSET,
        -_ANY_OFFSET,
        kernel.WANT_TIMESTAMP | kernel.WANT_KEY,
        1,
        offsets,
        timestamps,
        np.empty(count + 1, dtype=np.int32),
        np.empty(records.size, dtype=np.uint8),
        validity,
        *_NOT_WANTED,
        *np.empty((2, len(table)), dtype=np.int64),
        totals,
    )
    is_sound = status == kernel.STATUS_OK
    sound = len(table) if is_sound else int(totals[kernel.TOTAL_BAD_BATCH])
    null_keys = int(totals[kernel.TOTAL_NULL_KEYS])
    return WalkedRecords(sound, offsets, timestamps, null_keys, validity)


# What a leader has to know of the records of many v2 batches, in one walk over all of them.
#
# Columns of what is said of one batch above. A batch that keeps to no usual form is not described
# here but left to the functions above, which say what is wrong with it.


_MOST_DECOMPRESSED_BYTES = 1 << 22
"""Decompressed bytes after which no further batch is taken."""


class BatchSummaries(NamedTuple):
    """Facts about the records of batches, a row a batch; int64."""

    null_keys: Int64Array
    lowest_timestamps: Int64Array
    highest_timestamps: Int64Array

    def __len__(self) -> int:
        return int(self.null_keys.size)


def summarize_batches(
    records: memoryview,
    headers: BatchHeaders,
    decompressor: Decompressor,
    max_record_bytes: int,
) -> BatchSummaries:
    """Return the facts about the first of some batches, every record of which is looked at."""
    starts = headers.positions + RECORDS_OFFSET
    ends = headers.positions + headers.sizes_bytes
    is_compressed = headers.codec_ids != 0
    if is_compressed.any():
        starts, ends = _decompressed(records, starts, ends, headers.codec_ids, decompressor)
        records = decompressor.buffer.view(0, max(1, decompressor.buffer.length))
    sizes = ends - starts
    counts = headers.record_counts[: sizes.size]
    is_other = (
        (counts * MIN_RECORD_SIZE_V2 > sizes) | (sizes > LARGE_BYTES) | (counts > MANY_RECORDS)
    )
    for batch in np.flatnonzero(is_compressed[: sizes.size] & (sizes > max_record_bytes)).tolist():
        payload = records[starts[batch] : ends[batch]]
        is_other[batch] |= find_large_record(payload, max_record_bytes, is_v2=True) is not None
    count = int(is_other.argmax()) if is_other.any() else sizes.size
    if count == 0:
        nothing = np.empty(0, dtype=np.int64)
        return BatchSummaries(nothing, nothing, nothing)
    counts = counts[:count]
    table = np.zeros((count, kernel.BATCH_FIELDS), dtype=np.int64)
    table[:, kernel.BATCH_START] = starts[:count]
    table[:, kernel.BATCH_END] = ends[:count]
    table[:, kernel.BATCH_BASE_TIMESTAMP] = headers.base_timestamps[:count]
    table[:, kernel.BATCH_RECORD_COUNT] = counts
    # As many offsets as records, which go up from record to record: they are consecutive.
    table[:, kernel.BATCH_LAST_OFFSET] = counts - 1
    walked = walk_records(np.frombuffer(records.toreadonly(), dtype=np.uint8), table)
    counts = counts[: walked.sound_batches]
    rows = int(counts.sum())
    first_rows = np.cumsum(counts) - counts
    timestamps = walked.timestamps[:rows]
    null_keys = np.zeros(counts.size, dtype=np.int64)
    if walked.null_keys and rows:
        has_key = np.unpackbits(walked.key_validity, count=rows, bitorder="little")
        null_keys = counts - np.add.reduceat(has_key, first_rows, dtype=np.int64)
    return BatchSummaries(
        null_keys,
        np.minimum.reduceat(timestamps, first_rows) if rows else timestamps,
        np.maximum.reduceat(timestamps, first_rows) if rows else timestamps,
    )


def _decompressed(
    records: memoryview,
    starts: Int64Array,
    ends: Int64Array,
    codec_ids: Int64Array,
    decompressor: Decompressor,
) -> tuple[Int64Array, Int64Array]:
    """Decompress the first batches, and return where the records of each lie in the buffer."""
    buffer = decompressor.buffer
    buffer.clear()
    placed: list[tuple[int, int]] = []
    streams = zip(starts.tolist(), ends.tolist(), codec_ids.tolist(), strict=True)
    for start, end, codec_id in streams:
        codec = codec_of(codec_id, MAGIC_VALUE_V2)
        try:
            placed.append(decompressor.append(codec, records[start:end], MAGIC_VALUE_V2))
        except (CorruptRecordError, InvalidRecordError):  # which is said of this batch alone
            break
        if buffer.length >= _MOST_DECOMPRESSED_BYTES:
            break
    bounds = np.array(placed, dtype=np.int64).reshape(-1, 2)
    return bounds[:, 0], bounds[:, 1]
