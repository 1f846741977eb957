"""Kernels: v0 and v1 messages, plain or unpacked from wrappers, into columns in one pass.

A *set* is either one plain message or the decompressed content of one wrapper. The rules for
inner offsets, timestamps and formats are stated in `pylog.record.legacy_batch`, the readable
reference. CRC-32 (IEEE) is computed here because messages are many and short, and a call of a
library for each would cost more than the computation: by carry-less multiplication where the
processor has it, else by tables, sixteen bytes a step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import copy_bytes, load_big_half, load_big_word, load_word

STATUS_OK = 0
STATUS_BAD_SIZE = 1
STATUS_BAD_MAGIC = 2
STATUS_BAD_CRC = 3
STATUS_BAD_KEY_LENGTH = 4
STATUS_BAD_VALUE_LENGTH = 5
STATUS_NESTED_COMPRESSION = 6
STATUS_EMPTY_SET = 7
STATUS_OFFSET_BELOW_INNER = 8
STATUS_TIMESTAMP_OVERFLOW = 9
STATUS_BAD_OFFSET = 10

WANT_KEY = 1
WANT_VALUE = 2
WANT_TIMESTAMP = 8

# One row of the per-set input.
SET_START = 0
SET_END = 1
SET_IS_WRAPPED = 2
SET_WRAPPER_OFFSET = 3
SET_WRAPPER_MAGIC = 4
SET_APPEND_TIME = 5
"""1 where the wrapper says LogAppendTime."""
SET_WRAPPER_TIMESTAMP = 6
SET_FIELDS = 7

# The output ``totals``; the first four are those of `decode_records`, too.
TOTAL_KEY_BYTES = 0
TOTAL_VALUE_BYTES = 1
TOTAL_NULL_KEYS = 2
TOTAL_NULL_VALUES = 3
# Not sums, and meant where the status is not STATUS_OK: the index of the set at fault, the offset
# of the message looked at last, and the one before it in its set.
TOTAL_BAD_SET = 4
TOTAL_OFFSET = 5
TOTAL_OFFSET_BEFORE = 6
TOTALS = 7

LOG_OVERHEAD = 12
MAGIC_OFFSET = 16
MIN_SIZE_V0 = 14
MIN_SIZE_V1 = 22
MIN_ENTRY_SIZE = 26
NO_TIMESTAMP = -1
NO_OFFSET = -(1 << 63)
"""Below every offset."""
COMPRESSION_CODEC_MASK = 0x07
CRC32_POLYNOMIAL = 0xEDB88320


def _crc32_tables() -> npt.NDArray[np.uint32]:
    tables = np.empty((16, 256), dtype=np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = (values >> 1) ^ (values & 1) * np.uint32(CRC32_POLYNOMIAL)
    tables[0] = values
    for table in range(1, 16):
        before = tables[table - 1]
        tables[table] = (before >> 8) ^ values[before & 0xFF]
    return tables


_TABLES = _crc32_tables()


@helper
def _eight_more(word: int, zeros: int) -> int:
    """Return what eight bytes with ``zeros`` bytes after them contribute to a CRC-32."""
    return (
        np.int64(_TABLES[zeros + 7, word & 0xFF])
        ^ np.int64(_TABLES[zeros + 6, (word >> 8) & 0xFF])
        ^ np.int64(_TABLES[zeros + 5, (word >> 16) & 0xFF])
        ^ np.int64(_TABLES[zeros + 4, (word >> 24) & 0xFF])
        ^ np.int64(_TABLES[zeros + 3, (word >> 32) & 0xFF])
        ^ np.int64(_TABLES[zeros + 2, (word >> 40) & 0xFF])
        ^ np.int64(_TABLES[zeros + 1, (word >> 48) & 0xFF])
        ^ np.int64(_TABLES[zeros, (word >> 56) & 0xFF])
    )


@intrinsic({"x86-64-v3": "x86_fold_crc32", "aarch64-crc": "arm_fold_crc32"})
def _fold(buf: npt.NDArray[np.uint8], start: int, blocks: int, crc: int) -> tuple[int, int, int]:
    """Return what is left to be done of ``blocks`` of 16 bytes, at least one, after ``crc``."""
    for at in range(start, start + 16 * blocks, 16):
        crc = _eight_more(load_word(buf, at) ^ crc, np.int64(8)) ^ _eight_more(
            load_word(buf, at + 8), np.int64(0)
        )
    return np.int64(0), np.int64(0), np.int64(crc)


@helper
def _crc32(buf: npt.NDArray[np.uint8], start: int, end: int) -> int:
    blocks = max(0, end - start) >> 4
    crc = np.int64(0xFFFFFFFF)
    if blocks > 0:
        low, high, rest = _fold(buf, start, blocks, crc)
        crc = _eight_more(low, np.int64(8)) ^ _eight_more(high, np.int64(0)) ^ rest
    at = start + 16 * blocks
    if end - at >= 8:
        crc = _eight_more(load_word(buf, at) ^ crc, np.int64(0))
        at += 8
    if end - at >= 4:
        for i in range(4):
            crc ^= np.int64(buf[at + i]) << (8 * i)
        crc = (
            np.int64(_TABLES[3, crc & 0xFF])
            ^ np.int64(_TABLES[2, (crc >> 8) & 0xFF])
            ^ np.int64(_TABLES[1, (crc >> 16) & 0xFF])
            ^ np.int64(_TABLES[0, (crc >> 24) & 0xFF])
        )
        at += 4
    while at < end:
        crc = (crc >> 8) ^ np.int64(_TABLES[0, (crc ^ np.int64(buf[at])) & 0xFF])
        at += 1
    return crc ^ np.int64(0xFFFFFFFF)


@kernel()
def find_bad_crc(
    buf: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Return the index of the first v0/v1 entry whose CRC is wrong, and its CRC; or -1, 0."""
    for i in range(positions.size):
        at = positions[i]
        computed = _crc32(buf, at + MAGIC_OFFSET, at + sizes[i])
        stored = np.int64(0)
        for j in range(4):
            stored = (stored << 8) | np.int64(buf[at + LOG_OVERHEAD + j])
        if stored != computed:
            return np.int64(i), computed
    return np.int64(-1), np.int64(0)


@helper
def _last_entry(buf: npt.NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return the position of the last whole entry of a set (-1: none) and a status."""
    at = start
    last = np.int64(-1)
    while end - at >= LOG_OVERHEAD:
        size = load_big_half(buf, at + 8)
        if size < MIN_SIZE_V0:
            return last, STATUS_BAD_SIZE
        if size > end - at - LOG_OVERHEAD:
            break
        last = at
        at += LOG_OVERHEAD + size
    return last, STATUS_OK


@helper
def _base_offset(
    buf: npt.NDArray[np.uint8], sets: npt.NDArray[np.int64], i: int
) -> tuple[int, int]:
    """Return what is added to the offsets stored in set ``i``, and a status."""
    if sets[i, SET_IS_WRAPPED] == 0:
        return np.int64(0), STATUS_OK
    last, status = _last_entry(buf, sets[i, SET_START], sets[i, SET_END])
    if status != STATUS_OK:
        return np.int64(0), status
    if last < 0:
        return np.int64(0), STATUS_EMPTY_SET
    wrapper_offset = sets[i, SET_WRAPPER_OFFSET]
    last_inner = load_big_word(buf, last)
    if wrapper_offset == 0:
        return np.int64(0), STATUS_OK
    if wrapper_offset < last_inner:
        return np.int64(0), STATUS_OFFSET_BELOW_INNER
    return wrapper_offset - last_inner if sets[i, SET_WRAPPER_MAGIC] else np.int64(0), STATUS_OK


@helper
def _check_inner(buf: npt.NDArray[np.uint8], at: int, size: int) -> int:
    """Return the status of an unpacked message of ``size`` bytes after its 12-byte prefix."""
    magic = np.int64(buf[at + MAGIC_OFFSET])
    if magic > 1:
        return STATUS_BAD_MAGIC
    if magic == 1 and size < MIN_SIZE_V1:
        return STATUS_BAD_SIZE
    if (np.int64(buf[at + 17]) & COMPRESSION_CODEC_MASK) != 0:
        return STATUS_NESTED_COMPRESSION
    stored = load_big_half(buf, at + LOG_OVERHEAD) & 0xFFFFFFFF
    if stored != _crc32(buf, at + MAGIC_OFFSET, at + LOG_OVERHEAD + size):
        return STATUS_BAD_CRC
    return STATUS_OK


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
        "set_rows",
        "set_base_offsets",
        "latest_timestamps",
        "totals",
    ),
    tables=("sets",),
)
def decode_legacy(
    buf: npt.NDArray[np.uint8],
    sets: npt.NDArray[np.int64],
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
    set_rows: npt.NDArray[np.int64],
    set_base_offsets: npt.NDArray[np.int64],
    latest_timestamps: npt.NDArray[np.int64],
    totals: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Decode every message with ``start_offset <= offset < end_offset`` of ``sets``.

    ``latest_timestamps`` are of all messages of a set; `NO_TIMESTAMP` where none has one.
    """
    row = np.int64(0)
    key_at = np.int64(0)
    value_at = np.int64(0)
    null_keys = np.int64(0)
    null_values = np.int64(0)
    status = STATUS_OK
    bad_set = np.int64(0)
    offset = np.int64(0)
    offset_before = np.int64(0)
    at = np.int64(0)
    want_key = (want & WANT_KEY) != 0
    want_value = (want & WANT_VALUE) != 0
    want_timestamp = (want & WANT_TIMESTAMP) != 0
    highest = np.int64(0x7FFFFFFFFFFFFFFF) // timestamp_scale
    lowest = -highest - np.int64(timestamp_scale == 1)
    key_ends[0] = 0
    value_ends[0] = 0
    for i in range(sets.shape[0]):
        at = sets[i, SET_START]
        set_end = sets[i, SET_END]
        wrapped = sets[i, SET_IS_WRAPPED] != 0
        wrapper_offset = sets[i, SET_WRAPPER_OFFSET]
        offset_before = np.int64(NO_OFFSET)
        first_row = row
        latest = np.int64(NO_TIMESTAMP)
        base, status = _base_offset(buf, sets, i)
        set_base_offsets[i] = base + load_big_word(buf, at) if status == STATUS_OK else -1
        while status == STATUS_OK and set_end - at >= LOG_OVERHEAD:
            size = load_big_half(buf, at + 8)
            if size < MIN_SIZE_V0:
                status = STATUS_BAD_SIZE
                break
            end = at + LOG_OVERHEAD + size
            if end > set_end:
                break
            if wrapped:
                status = _check_inner(buf, at, size)
                if status != STATUS_OK:
                    break
            magic = np.int64(buf[at + MAGIC_OFFSET])
            key_from = at + (30 if magic == 1 else 22)
            key_length = load_big_half(buf, key_from - 4)
            after_key = key_from + max(key_length, 0)
            if after_key + 4 > end:
                status = STATUS_BAD_KEY_LENGTH
                break
            value_length = load_big_half(buf, after_key)
            if value_length > end - after_key - 4:
                status = STATUS_BAD_VALUE_LENGTH
                break
            offset = base + load_big_word(buf, at)
            if offset <= offset_before or offset > wrapper_offset:
                status = STATUS_BAD_OFFSET
                break
            offset_before = offset
            timestamp = np.int64(NO_TIMESTAMP)
            if magic == 1:
                timestamp = load_big_word(buf, at + 18)
                if wrapped and sets[i, SET_APPEND_TIME] != 0:
                    timestamp = sets[i, SET_WRAPPER_TIMESTAMP]
            latest = max(latest, timestamp)
            if offset < start_offset or offset >= end_offset:
                at = end
                continue
            offsets[row] = offset
            if want_timestamp:
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
                    copy_bytes(value_data, value_at, buf, after_key + 4, value_length)
                    value_at += value_length
                else:
                    value_validity[row >> 3] &= np.uint8(0xFF ^ (1 << (row & 7)))
                    null_values += 1
                value_ends[row + 1] = value_at
            row += 1
            at = end
        if status != STATUS_OK:
            bad_set = np.int64(i)
            break
        set_rows[i] = row - first_row
        latest_timestamps[i] = latest
    totals[TOTAL_KEY_BYTES] = key_at
    totals[TOTAL_VALUE_BYTES] = value_at
    totals[TOTAL_NULL_KEYS] = null_keys
    totals[TOTAL_NULL_VALUES] = null_values
    totals[TOTAL_BAD_SET] = bad_set
    totals[TOTAL_OFFSET] = offset
    totals[TOTAL_OFFSET_BEFORE] = offset_before
    return row, status, at
