"""Kernel: what a leader has to know of a v2 batch's records, without copying any.

A record: length, attributes (1 byte), timestamp delta, offset delta, key length, key, value
length, value, header count, headers; numbers are zig-zag varints, a negative length is null. Every
read is bounded by the end of its record, every record by the end of the batch. See
`pylog.record.record`, the readable reference.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel

STATUS_OK = 0
STATUS_BROKEN = 1
"""A record breaks the format; the readable decoder tells how."""

NO_TIMESTAMP = -1

# What is found, by place.
NULL_KEYS = 0
LOWEST_TIMESTAMP = 1
"""Of the records that have one; 2^63-1 where none has."""
HIGHEST_TIMESTAMP = 2
WITHOUT_TIMESTAMP = 3
IS_CONSECUTIVE = 4
FACTS = 5

_INT64_MAX = np.int64(0x7FFFFFFFFFFFFFFF)


@helper
def _varlong(buf: npt.NDArray[np.uint8], at: int, end: int, most: int) -> tuple[int, int]:
    """Return the number of at most ``most`` bytes at ``at``, and the position after it or -1."""
    raw = np.uint64(0)
    shift = np.uint64(0)
    for i in range(most):
        if at + i >= end:
            return np.int64(0), np.int64(-1)
        byte = np.int64(buf[at + i])
        raw |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:
            if most == 5:
                raw &= np.uint64(0xFFFFFFFF)
            sign = -np.int64(raw & np.uint64(1))
            return np.int64(raw >> np.uint64(1)) ^ sign, at + i + 1
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@helper
def _skip_bytes(buf: npt.NDArray[np.uint8], at: int, end: int, may_be_null: int) -> int:
    """Return the position after a length and its bytes; -1 if they do not fit."""
    length, at = _varlong(buf, at, end, 5)
    if at < 0 or length > end - at or (length < 0 and may_be_null == 0):
        return np.int64(-1)
    if length > 0:
        at += length
    return at


@kernel
def summarize_records(
    buf: npt.NDArray[np.uint8],
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    facts: npt.NDArray[np.int64],
) -> int:
    """Fill ``facts`` from the ``count`` records in ``buf[start:end]``; return a status.

    Parameters
    ----------
    buf
        uint8, read-only; the records are not compressed.
    start, end
        Where they begin, and where the batch ends: not beyond the buffer.
    count
        As the header has it.
    base_timestamp
        Of the header, ms.
    facts
        int64, shape (5,); filled with what the places above say, unless the status is
        `STATUS_BROKEN`.
    """
    null_keys = np.int64(0)
    lowest = _INT64_MAX
    highest = np.int64(NO_TIMESTAMP)
    without = np.int64(0)
    consecutive = np.int64(1)
    at = np.int64(start)
    for index in range(count):
        length, at = _varlong(buf, at, end, 5)
        if at < 0 or length < 1 or length > end - at:
            return STATUS_BROKEN
        record_end = at + length
        delta, at = _varlong(buf, at + 1, record_end, 10)
        if at < 0:
            return STATUS_BROKEN
        offset_delta, at = _varlong(buf, at, record_end, 5)
        if at < 0:
            return STATUS_BROKEN
        if offset_delta != index:
            consecutive = np.int64(0)
        timestamp = np.int64(base_timestamp) + delta
        if timestamp == NO_TIMESTAMP:
            without += 1
        elif timestamp < lowest:
            lowest = timestamp
        highest = max(highest, timestamp)
        length, at = _varlong(buf, at, record_end, 5)
        if at < 0 or length > record_end - at:
            return STATUS_BROKEN
        if length < 0:
            null_keys += 1
        else:
            at += length
        at = _skip_bytes(buf, at, record_end, 1)
        if at < 0:
            return STATUS_BROKEN
        headers, at = _varlong(buf, at, record_end, 5)
        if at < 0 or headers < 0 or headers > record_end - at:
            return STATUS_BROKEN
        for _ in range(headers):
            at = _skip_bytes(buf, at, record_end, 0)
            if at < 0:
                return STATUS_BROKEN
            at = _skip_bytes(buf, at, record_end, 1)
            if at < 0:
                return STATUS_BROKEN
        if at != record_end:
            return STATUS_BROKEN
    if at != end:
        return STATUS_BROKEN
    facts[NULL_KEYS] = null_keys
    facts[LOWEST_TIMESTAMP] = lowest
    facts[HIGHEST_TIMESTAMP] = highest
    facts[WITHOUT_TIMESTAMP] = without
    facts[IS_CONSECUTIVE] = consecutive
    return STATUS_OK
