"""Kernels: the records of v2 batches, walked and copied into columns in one pass.

A record: length, attributes (1 byte), timestamp delta, offset delta, key length, key, value
length, value, header count, headers; numbers are zig-zag varints, a negative length is null. See
`pylog.record.record`, the readable reference.

The copies go through LLVM's memcpy: a slice assignment in compiled code is three times slower.
Helpers are left to LLVM to inline: Numba's own ``inline="always"`` makes the walk three times
slower.
Every read is bounded by the end of its record, every record by the end of its batch; the caller
sizes the outputs so that no input can overrun them (see `decode_records`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel
from pylog.kernels.helpers import copy_bytes, load_word, skip_headers, varint

STATUS_OK = 0
STATUS_BAD_VARINT = 1
STATUS_BAD_RECORD_LENGTH = 2
STATUS_BAD_KEY_LENGTH = 3
STATUS_BAD_VALUE_LENGTH = 4
STATUS_BAD_HEADER = 5
STATUS_LENGTH_MISMATCH = 6
STATUS_BYTES_REMAIN = 7
STATUS_TIMESTAMP_OVERFLOW = 8
STATUS_BAD_OFFSET = 9

WANT_KEY = 1
WANT_VALUE = 2
WANT_HEADERS = 4
WANT_TIMESTAMP = 8

# One row of the per-batch input.
BATCH_START = 0
BATCH_END = 1
BATCH_BASE_OFFSET = 2
BATCH_BASE_TIMESTAMP = 3
BATCH_APPEND_TIME = 4
"""1 where every record reports BATCH_MAX_TIMESTAMP."""
BATCH_MAX_TIMESTAMP = 5
BATCH_RECORD_COUNT = 6
BATCH_LAST_OFFSET = 7
BATCH_FIELDS = 8

NO_RECORD = -(1 << 63)
"""The latest timestamp of a batch without records."""

# The output ``totals`` of `decode_records`; the first four are those of `decode_legacy`, too.
TOTAL_KEY_BYTES = 0
TOTAL_VALUE_BYTES = 1
TOTAL_NULL_KEYS = 2
TOTAL_NULL_VALUES = 3
TOTAL_HEADERS = 4
TOTAL_BAD_BATCH = 5
"""Not a sum: the index of the batch at fault, where the status is not STATUS_OK."""
TOTALS = 6

# The output ``totals`` of `copy_headers`.
HEADERS_KEY_BYTES = 0
HEADERS_VALUE_BYTES = 1
HEADERS_NULL_VALUES = 2
HEADERS_TOTALS = 3

COMMON_HEADER_BYTES = 16
"""Bytes that the common form may read before it knows a length: at most 2 + 1 + 3 + 2 for length,
attributes and deltas, 1 for the key length, or one word of 8."""


@helper
def _varlong(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the int64 at ``at`` and the position after it; position -1 if it does not fit."""
    if at >= end:
        return np.int64(0), np.int64(-1)
    byte = np.int64(buf[at])
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = np.uint64(byte & 0x7F)
    shift = np.uint64(7)
    for i in range(1, 10):
        if at + i >= end:
            return np.int64(0), np.int64(-1)
        byte = np.int64(buf[at + i])
        raw |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:
            sign = -np.int64(raw & np.uint64(1))
            return np.int64(raw >> np.uint64(1)) ^ sign, at + i + 1
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@kernel(
    writes=(
        "offsets",
        "timestamps",
        "key_ends",
        "key_data",
        "key_validity",
        "value_ends",
        "value_data",
        "value_validity",
        "header_positions",
        "header_counts",
        "batch_rows",
        "latest_timestamps",
        "totals",
    ),
    tables=("batches",),
)
def decode_records(
    buf: npt.NDArray[np.uint8],
    batches: npt.NDArray[np.int64],
    start_offset: int,
    end_offset: int,
    want: int,
    timestamp_scale: int,
    offsets: npt.NDArray[np.int64],
    timestamps: npt.NDArray[np.int64],
    key_ends: npt.NDArray[np.int32],
    key_data: npt.NDArray[np.uint8],
    key_validity: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int32],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
    header_positions: npt.NDArray[np.int64],
    header_counts: npt.NDArray[np.int32],
    batch_rows: npt.NDArray[np.int64],
    latest_timestamps: npt.NDArray[np.int64],
    totals: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Decode every record with ``start_offset <= offset < end_offset`` of ``batches``.

    ``latest_timestamps`` are of all records of a batch, in ms; `NO_RECORD` of a batch without any.
    """
    row = np.int64(0)
    key_at = np.int64(0)
    value_at = np.int64(0)
    null_keys = np.int64(0)
    null_values = np.int64(0)
    header_total = np.int64(0)
    status = STATUS_OK
    record_start = np.int64(0)
    bad_batch = np.int64(0)
    want_key = (want & WANT_KEY) != 0
    want_value = (want & WANT_VALUE) != 0
    want_headers = (want & WANT_HEADERS) != 0
    want_timestamp = (want & WANT_TIMESTAMP) != 0
    highest = np.int64(0x7FFFFFFFFFFFFFFF) // timestamp_scale
    lowest = -highest - np.int64(timestamp_scale == 1)
    key_ends[0] = 0
    value_ends[0] = 0
    for batch in range(batches.shape[0]):
        at = batches[batch, BATCH_START]
        batch_end = batches[batch, BATCH_END]
        base_offset = batches[batch, BATCH_BASE_OFFSET]
        base_timestamp = batches[batch, BATCH_BASE_TIMESTAMP]
        last_offset = batches[batch, BATCH_LAST_OFFSET]
        append_time = batches[batch, BATCH_APPEND_TIME] != 0
        disorder = np.int64(0)  # negative from the first delta on that is not above its neighbour
        delta_before = np.int64(-1)
        latest_delta = np.int64(NO_RECORD)
        first_row = row
        for _ in range(batches[batch, BATCH_RECORD_COUNT]):
            record_start = at
            # The common form: a length below 2^13, deltas of at most 3 and 2 bytes, a key below 64
            # bytes, a value below 8 KB, no headers. All numbers but two come from one word, without
            # a function call or a loop, which doubles the speed of the walk.
            is_common = False
            if batch_end - at >= COMMON_HEADER_BYTES:
                word = load_word(buf, at)
                raw = word & 0x7F
                at += 1
                is_common = True
                if word & 0x80 != 0:
                    is_common = word & 0x8000 == 0
                    raw |= (word >> 1) & 0x3F80
                    word >>= 8
                    at += 1
                record_end = at + ((raw >> 1) ^ -(raw & 1))
                word >>= 16
                at += 1
                raw = word & 0x7F
                if word & 0x80 == 0:
                    word >>= 8
                    at += 1
                elif word & 0x8000 == 0:
                    raw |= (word >> 1) & 0x3F80
                    word >>= 16
                    at += 2
                else:
                    is_common = is_common and word & 0x800000 == 0
                    raw |= (word >> 1) & 0x3F80
                    raw |= (word >> 2) & 0x1FC000
                    word >>= 24
                    at += 3
                timestamp_delta = (raw >> 1) ^ -(raw & 1)
                raw = word & 0x7F
                at += 1
                if word & 0x80 != 0:
                    is_common = is_common and word & 0x8000 == 0
                    raw |= (word >> 1) & 0x3F80
                    at += 1
                offset_delta = (raw >> 1) ^ -(raw & 1)
                raw = np.int64(buf[at])
                key_length = (raw >> 1) ^ -(raw & 1)
                key_from = at + 1
                at = key_from + (key_length if key_length > 0 else 0)
                if is_common and raw < 0x80 and record_end <= batch_end and at + 2 <= record_end:
                    raw = np.int64(buf[at])
                    at += 1
                    if raw >= 0x80:
                        more = np.int64(buf[at])
                        is_common = more < 0x80
                        raw = (raw & 0x7F) | (more << 7)
                        at += 1
                    value_length = (raw >> 1) ^ -(raw & 1)
                    value_from = at
                    at += value_length if value_length > 0 else 0
                    is_common = is_common and at + 1 == record_end and buf[at] == 0
                    header_count = np.int64(0)
                    headers_from = record_end
                else:
                    is_common = False
            if is_common:
                at = record_end
            else:
                at = record_start
                length, at = varint(buf, at, batch_end)
                if at < 0:
                    status = STATUS_BAD_VARINT
                    break
                if length <= 0 or length > batch_end - at:
                    status = STATUS_BAD_RECORD_LENGTH
                    break
                record_end = at + length
                timestamp_delta, at = _varlong(buf, at + 1, record_end)
                if at < 0:
                    status = STATUS_BAD_VARINT
                    break
                offset_delta, at = varint(buf, at, record_end)
                if at < 0:
                    status = STATUS_BAD_VARINT
                    break
                key_length, key_from = varint(buf, at, record_end)
                if key_from < 0 or key_length > record_end - key_from:
                    status = STATUS_BAD_KEY_LENGTH
                    break
                at = key_from
                if key_length > 0:
                    at += key_length
                value_length, value_from = varint(buf, at, record_end)
                if value_from < 0 or value_length > record_end - value_from:
                    status = STATUS_BAD_VALUE_LENGTH
                    break
                at = value_from
                if value_length > 0:
                    at += value_length
                header_count, at = varint(buf, at, record_end)
                if at < 0 or header_count < 0 or header_count > record_end - at:
                    status = STATUS_BAD_HEADER
                    break
                headers_from = at
                if header_count > 0:
                    at = skip_headers(buf, at, record_end, header_count)
                    if at < 0:
                        status = STATUS_BAD_HEADER
                        break
                if at != record_end:
                    status = STATUS_LENGTH_MISMATCH
                    break
            latest_delta = max(latest_delta, timestamp_delta)
            disorder |= offset_delta - delta_before - 1
            delta_before = offset_delta
            offset = base_offset + offset_delta
            if offset < start_offset or offset >= end_offset:
                continue
            offsets[row] = offset
            if want_timestamp:
                timestamp = base_timestamp + timestamp_delta
                if append_time:
                    timestamp = batches[batch, BATCH_MAX_TIMESTAMP]
                if timestamp > highest or timestamp < lowest:
                    status = STATUS_TIMESTAMP_OVERFLOW
                    break
                timestamps[row] = timestamp * timestamp_scale
            if want_key:
                if key_length >= 0:
                    copy_bytes(key_data, key_at, buf, key_from, key_length)
                    key_at += key_length
                else:
                    key_validity[row >> 3] &= np.uint8(0xFF ^ (1 << (row & 7)))
                    null_keys += 1
                key_ends[row + 1] = key_at
            if want_value:
                if value_length >= 0:
                    copy_bytes(value_data, value_at, buf, value_from, value_length)
                    value_at += value_length
                else:
                    value_validity[row >> 3] &= np.uint8(0xFF ^ (1 << (row & 7)))
                    null_values += 1
                value_ends[row + 1] = value_at
            if want_headers:
                header_positions[row] = headers_from
                header_counts[row] = header_count
                header_total += header_count
            row += 1
        has_records = batches[batch, BATCH_RECORD_COUNT] > 0  # else there is nothing out of order
        is_in_order = disorder >= 0 and delta_before <= last_offset - base_offset
        if status == STATUS_OK and has_records and not is_in_order:
            status = STATUS_BAD_OFFSET  # which record it is, the readable reference finds
            record_start = batches[batch, BATCH_START]
        if status == STATUS_OK and at != batch_end:
            status = STATUS_BYTES_REMAIN
            record_start = at
        if status != STATUS_OK:
            bad_batch = batch
            break
        batch_rows[batch] = row - first_row
        latest = latest_delta
        if has_records:
            latest = batches[batch, BATCH_MAX_TIMESTAMP] if append_time else base_timestamp + latest
        latest_timestamps[batch] = latest
    totals[TOTAL_KEY_BYTES] = key_at
    totals[TOTAL_VALUE_BYTES] = value_at
    totals[TOTAL_NULL_KEYS] = null_keys
    totals[TOTAL_NULL_VALUES] = null_values
    totals[TOTAL_HEADERS] = header_total
    totals[TOTAL_BAD_BATCH] = bad_batch
    return row, status, record_start


@kernel(writes=("key_ends", "key_data", "value_ends", "value_data", "value_validity", "totals"))
def copy_headers(
    buf: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    key_ends: npt.NDArray[np.int32],
    key_data: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int32],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
    totals: npt.NDArray[np.int64],
) -> None:
    """Copy the headers at ``positions``, which `decode_records` has walked over and found sound."""
    entry = np.int64(0)
    key_at = np.int64(0)
    value_at = np.int64(0)
    null_values = np.int64(0)
    key_ends[0] = 0
    value_ends[0] = 0
    for row in range(positions.size):
        at = positions[row]
        for _ in range(counts[row]):
            length, at = varint(buf, at, buf.size)
            copy_bytes(key_data, key_at, buf, at, length)
            key_at += length
            at += length
            key_ends[entry + 1] = key_at
            length, at = varint(buf, at, buf.size)
            if length >= 0:
                copy_bytes(value_data, value_at, buf, at, length)
                value_at += length
                at += length
            else:
                value_validity[entry >> 3] &= np.uint8(0xFF ^ (1 << (entry & 7)))
                null_values += 1
            value_ends[entry + 1] = value_at
            entry += 1
    totals[HEADERS_KEY_BYTES] = key_at
    totals[HEADERS_VALUE_BYTES] = value_at
    totals[HEADERS_NULL_VALUES] = null_values
