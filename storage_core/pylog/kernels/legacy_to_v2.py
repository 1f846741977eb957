"""Kernel: the records of v0 and v1 messages as records of v2 batches.

A *set* is either one plain message or the decompressed content of one wrapper. The rules for inner
offsets and timestamps are stated in `pylog.record.legacy_batch`, the readable reference. Checksums
are not looked at: that of the message, or of the wrapper, covers all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel
from pylog.kernels.helpers import (
    add_words,
    copy_bytes,
    load_big_half,
    load_big_word,
    put_varint,
    size_of_varint,
)

STATUS_OK = 0
STATUS_BAD_MESSAGE = 1
"""A size, format or length is impossible, or a message in a wrapper is itself compressed."""
STATUS_EMPTY_SET = 2
STATUS_BAD_OFFSET = 3
STATUS_NO_ROOM = 4

# One row of the per-set input.
SET_START = 0
SET_END = 1
SET_IS_WRAPPED = 2
SET_OFFSET = 3
"""The offset field of the message or wrapper."""
SET_MAGIC = 4
SET_APPEND_TIME = 5
"""1 where it says LogAppendTime."""
SET_TIMESTAMP = 6
SET_FIELDS = 7

# One row of the per-set output.
BATCH_START = 0
BATCH_END = 1
BATCH_BASE_OFFSET = 2
BATCH_BASE_TIMESTAMP = 3
BATCH_RECORD_COUNT = 4
BATCH_FIELDS = 5

LOG_OVERHEAD = 12
SIZE_OFFSET = 8
MAGIC_OFFSET = 16
MIN_SIZE_V0 = 14
MIN_SIZE_V1 = 22
NO_TIMESTAMP = -1
COMPRESSION_CODEC_MASK = 0x07

MOST_OVERHEAD = 40
"""What a record takes beside its key and value, at the most, and room to write."""


@helper
def _message_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position after the message at ``at``; -1 if it is cut short, -2 if impossible."""
    if end - at < LOG_OVERHEAD:
        return np.int64(-1)
    size = load_big_half(buf, at + SIZE_OFFSET)
    if size < MIN_SIZE_V0:
        return np.int64(-2)
    if size > end - at - LOG_OVERHEAD:
        return np.int64(-1)
    return np.int64(at + LOG_OVERHEAD + size)


@helper
def _field_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position after the field whose length lies at ``at``; -1 if it does not fit."""
    if end - at < 4:
        return np.int64(-1)
    length = load_big_half(buf, at)
    if length > end - at - 4:
        return np.int64(-1)
    return np.int64(at + 4 + max(length, np.int64(0)))


@helper
def _put_field(out: npt.NDArray[np.uint8], at: int, buf: npt.NDArray[np.uint8], field: int) -> int:
    """Write the field whose length lies at ``field``; return the position after it."""
    length = load_big_half(buf, field)
    if length < 0:
        out[at] = 1
        return at + 1
    at = put_varint(out, at, length << 1)
    copy_bytes(out, at, buf, field + 4, length)
    return np.int64(at + length)


@kernel(writes=("out", "batches"), tables=("sets", "batches"))
def legacy_to_v2(
    buf: npt.NDArray[np.uint8],
    sets: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    batches: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Write the records of each set as those of a v2 batch, without a header."""
    at = np.int64(0)
    for index in range(sets.shape[0]):
        start = sets[index, SET_START]
        end = sets[index, SET_END]
        is_wrapped = sets[index, SET_IS_WRAPPED] != 0
        outer = sets[index, SET_OFFSET]
        base = np.int64(0)
        count = np.int64(0)
        last_inner = np.int64(0)
        message = start
        while True:  # a last message that is cut short does not count
            following = _message_end(buf, message, end)
            if following == -2:
                return STATUS_BAD_MESSAGE, index
            if following < 0:
                break
            last_inner = load_big_word(buf, message)
            count += 1
            message = following
        if count == 0:
            return STATUS_EMPTY_SET, index
        if is_wrapped and outer != 0:
            if outer < last_inner:
                return STATUS_BAD_OFFSET, index
            if sets[index, SET_MAGIC] == 1:
                if last_inner < 0:
                    return STATUS_BAD_OFFSET, index
                base = outer - last_inner
        batches[index, BATCH_START] = at
        batches[index, BATCH_RECORD_COUNT] = count
        first_offset = np.int64(0)
        first_timestamp = np.int64(0)
        before = np.int64(-1)
        message = start
        for number in range(count):
            following = _message_end(buf, message, end)
            magic = np.int64(buf[message + MAGIC_OFFSET])
            key = message + 18
            timestamp = np.int64(NO_TIMESTAMP)
            if magic == 1:
                if following - message < LOG_OVERHEAD + MIN_SIZE_V1:
                    return STATUS_BAD_MESSAGE, index
                timestamp = load_big_word(buf, key)
                key += 8
                if is_wrapped and sets[index, SET_APPEND_TIME] != 0:
                    timestamp = sets[index, SET_TIMESTAMP]
            elif magic != 0:
                return STATUS_BAD_MESSAGE, index
            if np.int64(buf[message + MAGIC_OFFSET + 1]) & COMPRESSION_CODEC_MASK != 0:
                return STATUS_BAD_MESSAGE, index
            value = _field_end(buf, key, following)
            if value < 0 or _field_end(buf, value, following) < 0:
                return STATUS_BAD_MESSAGE, index
            offset = load_big_word(buf, message)
            if offset < 0:
                return STATUS_BAD_OFFSET, index
            offset += base
            if offset <= before or offset > outer:
                return STATUS_BAD_OFFSET, index
            before = offset
            if number == 0:
                first_offset = offset
                first_timestamp = timestamp
            if offset - first_offset > 0x7FFFFFFF:
                return STATUS_BAD_OFFSET, index
            if out.size - at < MOST_OVERHEAD + following - message:
                return STATUS_NO_ROOM, index
            delta = add_words(timestamp, add_words(~first_timestamp, 1))
            raw_timestamp = (delta << 1) ^ (delta >> 63)
            raw_offset = (offset - first_offset) << 1
            fields = np.int64(0)
            for field in (key, value):
                length = load_big_half(buf, field)
                fields += 1 if length < 0 else size_of_varint(length << 1) + length
            raw = (2 + size_of_varint(raw_timestamp) + size_of_varint(raw_offset) + fields) << 1
            at = put_varint(out, at, raw)
            out[at] = 0
            at = put_varint(out, at + 1, raw_timestamp)
            at = put_varint(out, at, raw_offset)
            at = _put_field(out, at, buf, key)
            at = _put_field(out, at, buf, value)
            out[at] = 0
            at += 1
            message = following
        batches[index, BATCH_END] = at
        batches[index, BATCH_BASE_OFFSET] = first_offset
        batches[index, BATCH_BASE_TIMESTAMP] = first_timestamp
    return STATUS_OK, np.int64(0)
