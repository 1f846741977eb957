"""Kernel: columns to whole v2 batches, cut and written in one pass.

All rows are written, or those of a selection, in its order: of the rows of many partitions, one
partition's need no copy of their own. The last batch may be left open, and be gone on with.

For each record its size is computed first, which decides whether it still belongs to the batch at
hand; then it is written once, at its place. A batch's 61 header bytes are left free when it is
begun and filled when it is closed, all but the CRC.

A record: length, attributes (1 byte), timestamp delta, offset delta, key length, key, value
length, value, header count, headers; numbers are zig-zag varints, length -1 is null. See
`pylog.record.record`.

The copies go through LLVM's memcpy: a slice assignment in compiled code is three times slower.
Every read is checked against its column's bytes, every write against the output, before it is made.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import copy_bytes, put_integer, put_varint, size_of_varint, store_word

STATUS_OK = 0
STATUS_NEEDS_ROOM = 1
STATUS_RECORD_TOO_LARGE = 2
STATUS_BAD_COLUMN = 3

# Places in ``settings``.
SET_BATCH_SIZE_BYTES = 0
SET_MAX_RECORDS = 1
SET_BASE_OFFSET = 2
SET_PARTITION_LEADER_EPOCH = 3
SET_ATTRIBUTES = 4
SET_KEEP_OPEN = 5
SETTINGS = 6

# A batch that more records are added to by the next call.
OPEN_RECORDS = 0
OPEN_START = 1
OPEN_END = 2
OPEN_BASE_TIMESTAMP = 3
OPEN_MAX_TIMESTAMP = 4
OPEN_FIELDS = 5

# One row of the per-batch output.
BATCH_START = 0
BATCH_END = 1
BATCH_RECORD_COUNT = 2
BATCH_BASE_TIMESTAMP = 3
BATCH_MAX_TIMESTAMP = 4
BATCH_FIELDS = 5

SPARE_BYTES = 8
"""Bytes that ``out`` has after the end of any batch: short fields are written as one word."""

FETCHED_AHEAD = 12
"""Of selected rows, values are fetched so many rows before they are copied. The processor itself
foresees only what lies one after the other: it would wait for each of them."""
CACHE_LINE_BYTES = 64

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
LOG_OVERHEAD = 12
MAGIC_VALUE_V2 = 2
RECORDS_OFFSET = 61
MAX_BATCH_BYTES = 0x7FFFFFFF


@intrinsic("prefetch")
def _prefetch(buf: npt.NDArray[np.uint8], at: int) -> None:
    """Have the processor fetch ``buf[at]``, which will be read soon. It may lie outside."""


@helper
def _is_valid(validity: npt.NDArray[np.uint8], row: int) -> bool:
    """Return bit ``row`` of an Arrow bitmap; an empty bitmap has no nulls."""
    return validity.size == 0 or ((np.int64(validity[row >> 3]) >> (row & 7)) & 1) != 0


@helper
def _put_batch_header(
    out: npt.NDArray[np.uint8],
    start: int,
    end: int,
    settings: npt.NDArray[np.int64],
    first_row: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
) -> None:
    put_integer(out, start, settings[SET_BASE_OFFSET] + first_row, 8)
    put_integer(out, start + 8, end - start - LOG_OVERHEAD, 4)
    put_integer(out, start + 12, settings[SET_PARTITION_LEADER_EPOCH], 4)
    out[start + 16] = MAGIC_VALUE_V2
    put_integer(out, start + 17, 0, 4)
    put_integer(out, start + 21, settings[SET_ATTRIBUTES], 2)
    put_integer(out, start + 23, count - 1, 4)
    put_integer(out, start + 27, base_timestamp, 8)
    put_integer(out, start + 35, max_timestamp, 8)
    put_integer(out, start + 43, NO_PRODUCER_ID, 8)
    put_integer(out, start + 51, NO_PRODUCER_EPOCH, 2)
    put_integer(out, start + 53, NO_SEQUENCE, 4)
    put_integer(out, start + 57, count, 4)


@helper
def _size_of_headers(
    first: int,
    end: int,
    key_ends: npt.NDArray[np.int64],
    key_data: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int64],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
) -> int:
    """Return the bytes of the headers without their count; -1 if one is out of bounds."""
    size = np.int64(0)
    for entry in range(first, end):
        start = key_ends[entry]
        length = key_ends[entry + 1] - start
        if start < 0 or length < 0 or length > key_data.size - start:
            return np.int64(-1)
        size += size_of_varint(length << 1) + length
        length = np.int64(0)
        if _is_valid(value_validity, entry):
            start = value_ends[entry]
            length = value_ends[entry + 1] - start
            if start < 0 or length < 0 or length > value_data.size - start:
                return np.int64(-1)
        size += size_of_varint(length << 1) + length
    return size


@helper
def _put_headers(
    out: npt.NDArray[np.uint8],
    at: int,
    first: int,
    end: int,
    key_ends: npt.NDArray[np.int64],
    key_data: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int64],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
) -> int:
    """Write the headers without their count; return the position after them."""
    for entry in range(first, end):
        start = key_ends[entry]
        length = key_ends[entry + 1] - start
        at = put_varint(out, at, length << 1)
        copy_bytes(out, at, key_data, start, length)
        at += length
        if _is_valid(value_validity, entry):
            start = value_ends[entry]
            length = value_ends[entry + 1] - start
            at = put_varint(out, at, length << 1)
            copy_bytes(out, at, value_data, start, length)
            at += length
        else:
            out[at] = 1
            at += 1
    return at


@kernel(writes=("out", "batches", "open_batch"), tables=("batches",))
def encode_records(
    first_row: int,
    settings: npt.NDArray[np.int64],
    selection: npt.NDArray[np.int64],
    timestamps: npt.NDArray[np.int64],
    key_ends: npt.NDArray[np.int64],
    key_data: npt.NDArray[np.uint8],
    key_validity: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int64],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
    header_ends: npt.NDArray[np.int64],
    header_validity: npt.NDArray[np.uint8],
    header_key_ends: npt.NDArray[np.int64],
    header_key_data: npt.NDArray[np.uint8],
    header_value_ends: npt.NDArray[np.int64],
    header_value_data: npt.NDArray[np.uint8],
    header_value_validity: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    batches: npt.NDArray[np.int64],
    open_batch: npt.NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Write the batches of the rows from ``first_row`` on, as many as there is room for."""
    is_selection = selection.size > 0
    rows = selection.size if is_selection else timestamps.size
    batch_bytes = min(settings[SET_BATCH_SIZE_BYTES], np.int64(MAX_BATCH_BYTES))
    max_records = settings[SET_MAX_RECORDS]
    room = out.size - SPARE_BYTES
    has_headers = header_ends.size > 0
    headers_bytes = np.int64(0)
    header_first = np.int64(0)
    header_count = np.int64(0)
    row = np.int64(first_row)
    source = row  # the row of the columns
    end = np.int64(0)
    written = np.int64(0)
    status = STATUS_OK
    detail = np.int64(0)
    keeps_open = settings[SET_KEEP_OPEN] != 0
    while (row < rows or open_batch[OPEN_RECORDS] > 0) and written < batches.shape[0]:
        start = end
        at = start + RECORDS_OFFSET
        record_end = at
        first = row
        base_timestamp = np.int64(0)
        max_timestamp = np.int64(NO_TIMESTAMP)
        if open_batch[OPEN_RECORDS] > 0:
            at = open_batch[OPEN_END]
            if at < RECORDS_OFFSET or at > room:
                status = STATUS_NEEDS_ROOM
                detail = at
                break
            first = row - open_batch[OPEN_RECORDS]
            base_timestamp = open_batch[OPEN_BASE_TIMESTAMP]
            max_timestamp = open_batch[OPEN_MAX_TIMESTAMP]
            open_batch[OPEN_RECORDS] = 0
        while row < rows and row - first < max_records:
            source = row
            if is_selection:
                source = selection[row]
                if row + FETCHED_AHEAD < rows:
                    ahead = selection[row + FETCHED_AHEAD]
                    if 0 <= ahead < value_ends.size:
                        _prefetch(value_data, value_ends[ahead])
                        _prefetch(value_data, value_ends[ahead] + CACHE_LINE_BYTES)
                if source < 0 or source >= timestamps.size:
                    status = STATUS_BAD_COLUMN
                    break
            timestamp = timestamps[source]
            if row == first:
                base_timestamp = timestamp
            delta = timestamp - base_timestamp
            raw_timestamp = (delta << 1) ^ (delta >> 63)
            raw_offset = (row - first) << 1
            raw_key = np.int64(1)
            key_length = np.int64(0)
            key_from = np.int64(0)
            if _is_valid(key_validity, source):
                key_from = key_ends[source]
                key_length = key_ends[source + 1] - key_from
                raw_key = key_length << 1
            raw_value = np.int64(1)
            value_length = np.int64(0)
            value_from = np.int64(0)
            if _is_valid(value_validity, source):
                value_from = value_ends[source]
                value_length = value_ends[source + 1] - value_from
                raw_value = value_length << 1
            if (
                key_from < 0
                or key_length < 0
                or key_length > key_data.size - key_from
                or value_from < 0
                or value_length < 0
                or value_length > value_data.size - value_from
            ):
                status = STATUS_BAD_COLUMN
                break
            if has_headers:
                header_count = np.int64(0)
                headers_bytes = np.int64(0)
                if _is_valid(header_validity, source):
                    header_first = header_ends[source]
                    header_count = header_ends[source + 1] - header_first
                    most = header_key_ends.size - 1
                    if header_first < 0 or header_count < 0 or header_count > most - header_first:
                        status = STATUS_BAD_COLUMN
                        break
                    headers_bytes = _size_of_headers(
                        header_first,
                        header_first + header_count,
                        header_key_ends,
                        header_key_data,
                        header_value_ends,
                        header_value_data,
                        header_value_validity,
                    )
                    if headers_bytes < 0:
                        status = STATUS_BAD_COLUMN
                        break
            # The common form: deltas of at most 3 and 2 bytes, a key below 64 bytes, a value below
            # 8 KB less its surroundings, no headers. All that comes before the key but for its
            # length is put together in one word, without a loop.
            is_common = (
                header_count == 0
                and raw_key < 0x80
                and raw_value < 0x3E00
                and raw_offset < 0x4000
                and raw_timestamp >= 0
                and raw_timestamp < 0x200000
            )
            if is_common:
                word = np.int64(0)
                size = np.int64(0)
                if raw_offset < 0x80:
                    word = raw_offset
                    size = np.int64(1)
                else:
                    word = (raw_offset & 0x7F) | 0x80 | (raw_offset >> 7 << 8)
                    size = np.int64(2)
                if raw_timestamp < 0x80:
                    word = raw_timestamp | (word << 8)
                    size += 1
                elif raw_timestamp < 0x4000:
                    word = (raw_timestamp & 0x7F) | 0x80 | (raw_timestamp >> 7 << 8) | (word << 16)
                    size += 2
                else:
                    word = (
                        (raw_timestamp & 0x7F)
                        | 0x8080
                        | ((raw_timestamp & 0x3F80) << 1)
                        | (raw_timestamp >> 14 << 16)
                        | (word << 24)
                    )
                    size += 3
                word <<= 8  # attributes
                body = size + 4 + key_length + value_length + np.int64(raw_value > 0x7F)
                raw_body = body << 1
                if raw_body < 0x80:
                    word = raw_body | (word << 8)
                    size += 2
                    record_end = at + 1 + body
                else:
                    word = (raw_body & 0x7F) | 0x80 | (raw_body >> 7 << 8) | (word << 16)
                    size += 3
                    record_end = at + 2 + body
            else:
                word = np.int64(0)
                size = np.int64(0)
                body = (
                    1
                    + size_of_varint(raw_timestamp)
                    + size_of_varint(raw_offset)
                    + size_of_varint(raw_key)
                    + key_length
                    + size_of_varint(raw_value)
                    + value_length
                    + size_of_varint(header_count << 1)
                    + headers_bytes
                )
                raw_body = body << 1
                record_end = at + size_of_varint(raw_body) + body
            if record_end - start > batch_bytes:
                if row > first:
                    break
                if record_end - start > MAX_BATCH_BYTES:
                    status = STATUS_RECORD_TOO_LARGE
                    break
            if record_end > room:
                status = STATUS_NEEDS_ROOM
                break
            if is_common:
                store_word(out, at, word)
                at += size
                out[at] = raw_key
                at += 1
                if key_length > 0:
                    copy_bytes(out, at, key_data, key_from, key_length)
                    at += key_length
                if raw_value < 0x80:
                    out[at] = raw_value
                    at += 1
                else:
                    out[at] = (raw_value & 0x7F) | 0x80
                    out[at + 1] = raw_value >> 7
                    at += 2
                copy_bytes(out, at, value_data, value_from, value_length)
                out[record_end - 1] = 0
            else:
                at = put_varint(out, at, raw_body)
                out[at] = 0
                at = put_varint(out, at + 1, raw_timestamp)
                at = put_varint(out, at, raw_offset)
                at = put_varint(out, at, raw_key)
                copy_bytes(out, at, key_data, key_from, key_length)
                at += key_length
                at = put_varint(out, at, raw_value)
                copy_bytes(out, at, value_data, value_from, value_length)
                at += value_length
                at = put_varint(out, at, header_count << 1)
                if header_count > 0:
                    at = _put_headers(
                        out,
                        at,
                        header_first,
                        header_first + header_count,
                        header_key_ends,
                        header_key_data,
                        header_value_ends,
                        header_value_data,
                        header_value_validity,
                    )
            at = record_end
            max_timestamp = max(max_timestamp, timestamp)
            row += 1
        is_cut = status == STATUS_NEEDS_ROOM and (keeps_open or first < first_row)
        if row > first and (is_cut or (keeps_open and status == STATUS_OK and row == rows)):
            open_batch[OPEN_RECORDS] = row - first
            open_batch[OPEN_START] = start
            open_batch[OPEN_END] = at
            open_batch[OPEN_BASE_TIMESTAMP] = base_timestamp
            open_batch[OPEN_MAX_TIMESTAMP] = max_timestamp
            detail = record_end - start
            break
        if status != STATUS_OK:
            detail = record_end - start if status == STATUS_NEEDS_ROOM else source
            row = max(first, np.int64(first_row))
            break
        end = at
        _put_batch_header(
            out, start, end, settings, first, row - first, base_timestamp, max_timestamp
        )
        batches[written, BATCH_START] = start
        batches[written, BATCH_END] = end
        batches[written, BATCH_RECORD_COUNT] = row - first
        batches[written, BATCH_BASE_TIMESTAMP] = base_timestamp
        batches[written, BATCH_MAX_TIMESTAMP] = max_timestamp
        written += 1
    return written, row, status, detail
