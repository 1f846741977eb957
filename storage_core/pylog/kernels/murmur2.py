"""Kernel: Kafka's 32-bit murmur2 over a column of keys.

Austin Appleby's MurmurHash2 as Kafka's producer has it: seed 0x9747b28c, words read
little-endian, all arithmetic modulo 2^32. Every read is checked against the column's bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel

STATUS_OK = 0
STATUS_BAD_COLUMN = 1

NULL_KEY = -1
"""The partition of a null key: none, the caller chooses."""

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_UINT32 = 0xFFFFFFFF


@helper
def _mixed(word: int) -> int:
    word = (word * _MULTIPLIER) & _UINT32
    word ^= word >> 24
    return (word * _MULTIPLIER) & _UINT32


@helper
def _murmur2(data: npt.NDArray[np.uint8], start: int, length: int) -> int:
    """Return the hash of ``data[start:start + length]`` as an unsigned 32-bit integer."""
    digest = np.int64(_SEED) ^ (length & _UINT32)
    at = start
    for _ in range(length >> 2):
        word = (
            np.int64(data[at])
            | (np.int64(data[at + 1]) << 8)
            | (np.int64(data[at + 2]) << 16)
            | (np.int64(data[at + 3]) << 24)
        )
        digest = ((digest * _MULTIPLIER) & _UINT32) ^ _mixed(word)
        at += 4
    tail = length & 3
    if tail == 3:
        digest ^= np.int64(data[at + 2]) << 16
    if tail >= 2:
        digest ^= np.int64(data[at + 1]) << 8
    if tail >= 1:
        digest ^= np.int64(data[at])
        digest = (digest * _MULTIPLIER) & _UINT32
    digest ^= digest >> 13
    digest = (digest * _MULTIPLIER) & _UINT32
    return digest ^ (digest >> 15)


@kernel(writes=("partitions",))
def murmur2_partitions(
    ends: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    validity: npt.NDArray[np.uint8],
    partition_count: int,
    partitions: npt.NDArray[np.int32],
) -> tuple[int, int]:
    """Fill ``partitions`` with each key's hash, masked to 31 bits, modulo ``partition_count``."""
    for row in range(partitions.size):
        if validity.size > 0 and ((np.int64(validity[row >> 3]) >> (row & 7)) & 1) == 0:
            partitions[row] = NULL_KEY
            continue
        start = ends[row]
        length = ends[row + 1] - start
        if start < 0 or length < 0 or length > data.size - start:
            return STATUS_BAD_COLUMN, row
        partitions[row] = (_murmur2(data, start, length) & 0x7FFFFFFF) % partition_count
    return STATUS_OK, partitions.size
