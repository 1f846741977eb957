"""Kernels: malformed UTF-8 in header keys, replaced as Java's decoder does.

The rules are stated in `pylog.record.record`, the readable reference. A replacement takes three
bytes, so keys may become three times as long: sizes are measured before memory is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import helper, kernel
from pylog.kernels.helpers import character, unsigned_varint

if TYPE_CHECKING:
    import numpy.typing as npt

REPLACEMENT_SIZE = 3

KEY_BYTES = 0
REPLACED_KEY_BYTES = 1
VALUE_BYTES = 2
MEASURES = 3


@helper
def _replaced_size(buf: npt.NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return the size of the text ``[start, end)`` with malformed parts replaced; how many."""
    size = np.int64(0)
    malformed = np.int64(0)
    at = np.int64(start)
    while at < end:
        length, is_well_formed = character(buf, at, end)
        if is_well_formed:
            size += length
        else:
            size += REPLACEMENT_SIZE
            malformed += 1
        at += length
    return size, malformed


@helper
def _varint(buf: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the number at ``at``, which has been found sound, and the position after it."""
    raw, at = unsigned_varint(buf, at)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), at


@kernel(writes=("measures",))
def measure_headers(
    buf: npt.NDArray[np.uint8], position: int, count: int, measures: npt.NDArray[np.int64]
) -> None:
    """Measure the ``count`` headers at ``position``, which ``decode_records`` has found sound."""
    at = np.int64(position)
    key_bytes = np.int64(0)
    replaced_bytes = np.int64(0)
    malformed = np.int64(0)
    value_bytes = np.int64(0)
    for _ in range(count):
        length, at = _varint(buf, at)
        key_bytes += length
        size, malformed_parts = _replaced_size(buf, at, at + length)
        replaced_bytes += size
        malformed += malformed_parts
        at += length
        length, at = _varint(buf, at)
        if length > 0:
            value_bytes += length
            at += length
    measures[KEY_BYTES] = key_bytes
    measures[REPLACED_KEY_BYTES] = replaced_bytes if malformed else 0
    measures[VALUE_BYTES] = value_bytes


@kernel()
def measure_keys(data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> int:
    """Return the bytes of all keys once malformed UTF-8 is replaced."""
    size = np.int64(0)
    for i in range(ends.size - 1):
        key_bytes, _ = _replaced_size(data, np.int64(ends[i]), np.int64(ends[i + 1]))
        size += key_bytes
    return size


@kernel(writes=("replaced_data", "replaced_ends"))
def replace_malformed(
    data: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int32],
    replaced_data: npt.NDArray[np.uint8],
    replaced_ends: npt.NDArray[np.int32],
) -> None:
    """Copy keys, each malformed part replaced by U+FFFD."""
    to = np.int64(0)
    replaced_ends[0] = 0
    for i in range(ends.size - 1):
        at = np.int64(ends[i])
        end = np.int64(ends[i + 1])
        while at < end:
            length, is_well_formed = character(data, at, end)
            if is_well_formed:
                for j in range(length):
                    replaced_data[to + j] = data[at + j]
                to += length
            else:
                replaced_data[to] = 0xEF
                replaced_data[to + 1] = 0xBF
                replaced_data[to + 2] = 0xBD
                to += REPLACEMENT_SIZE
            at += length
        replaced_ends[i + 1] = to
