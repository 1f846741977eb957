"""Kernel: the records of v2 batches by offset, with a 128-bit hash of each key.

What compaction asks of a record: its offset, its key, and whether it has a value. Values are passed
over, keys are hashed where they lie. The hash is SipHash-1-3 with 128 bits of output: who does not
know its key cannot choose records whose keys collide. Source: J.-P. Aumasson, D. J. Bernstein,
"SipHash: a fast short-input PRF" (2012), and the 128-bit variant of its reference code.

Every read is bounded by the end of its record, every record by the end of its batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel
from pylog.kernels.helpers import add_words, load_word, skip_headers, skip_varlong, varint

STATUS_OK = 0
STATUS_BAD_RECORD = 1
"""A length does not fit, or the record's own length and its fields disagree."""
STATUS_BYTES_REMAIN = 2
STATUS_BAD_OFFSET = 3
"""Offsets do not go up, or are not within those of the batch."""

# One row of the per-batch input.
BATCH_START = 0
BATCH_END = 1
BATCH_BASE_OFFSET = 2
BATCH_LAST_OFFSET = 3
BATCH_RECORD_COUNT = 4
BATCH_FIELDS = 5

TRAIT_KEY = 1
"""The record has a key."""
TRAIT_VALUE = 2
"""The record has a value."""


@helper
def _rotated(word: int, bits: int) -> int:
    return (word << bits) | ((word >> (64 - bits)) & ((1 << bits) - 1))


@helper
def _mixed(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    """Return the state after one SipRound."""
    v0 = add_words(v0, v1)
    v1 = _rotated(v1, 13) ^ v0
    v0 = _rotated(v0, 32)
    v2 = add_words(v2, v3)
    v3 = _rotated(v3, 16) ^ v2
    v0 = add_words(v0, v3)
    v3 = _rotated(v3, 21) ^ v0
    v2 = add_words(v2, v1)
    v1 = _rotated(v1, 17) ^ v2
    v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


@helper
def _siphash(
    buf: npt.NDArray[np.uint8], start: int, length: int, key_0: int, key_1: int
) -> tuple[int, int]:
    """Return both halves of the hash of ``buf[start:start + length]``."""
    v0 = np.int64(key_0) ^ np.int64(0x736F6D6570736575)
    v1 = np.int64(key_1) ^ np.int64(0x646F72616E646F6D) ^ np.int64(0xEE)
    v2 = np.int64(key_0) ^ np.int64(0x6C7967656E657261)
    v3 = np.int64(key_1) ^ np.int64(0x7465646279746573)
    at = start
    end = start + length
    while end - at >= 8:
        word = load_word(buf, at)
        v3 ^= word
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3)
        v0 ^= word
        at += 8
    word = np.int64(length & 0xFF) << 56
    if at < end:
        if at + 8 <= buf.size:
            word |= load_word(buf, at) & ((np.int64(1) << (8 * (end - at))) - 1)
        else:
            for i in range(end - at):
                word |= np.int64(buf[at + i]) << (8 * i)
    v3 ^= word
    v0, v1, v2, v3 = _mixed(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.int64(0xEE)
    for _ in range(3):
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.int64(0xDD)
    for _ in range(3):
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@kernel(
    writes=("offsets", "hashes", "traits", "positions", "batch_ends"),
    tables=("batches", "hashes"),
)
def hash_record_keys(
    buf: npt.NDArray[np.uint8],
    batches: npt.NDArray[np.int64],
    first_hashed: int,
    last_hashed: int,
    key_0: int,
    key_1: int,
    offsets: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.int64],
    traits: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    batch_ends: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Walk through all records of ``batches``, a row a record."""
    row = np.int64(0)
    for batch in range(batches.shape[0]):
        at = batches[batch, BATCH_START]
        batch_end = batches[batch, BATCH_END]
        base_offset = batches[batch, BATCH_BASE_OFFSET]
        lowest = base_offset
        last_offset = batches[batch, BATCH_LAST_OFFSET]
        for _ in range(batches[batch, BATCH_RECORD_COUNT]):
            positions[row] = at
            length, at = varint(buf, at, batch_end)
            if at < 0 or length <= 0 or length > batch_end - at:
                return row, STATUS_BAD_RECORD, batch
            record_end = at + length
            at = skip_varlong(buf, at + 1, record_end)
            if at < 0:
                return row, STATUS_BAD_RECORD, batch
            offset_delta, at = varint(buf, at, record_end)
            if at < 0:
                return row, STATUS_BAD_RECORD, batch
            key_length, key_from = varint(buf, at, record_end)
            if key_from < 0 or key_length > record_end - key_from:
                return row, STATUS_BAD_RECORD, batch
            at = key_from
            if key_length > 0:
                at += key_length
            value_length, at = varint(buf, at, record_end)
            if at < 0 or value_length > record_end - at:
                return row, STATUS_BAD_RECORD, batch
            if value_length > 0:
                at += value_length
            header_count, at = varint(buf, at, record_end)
            if at < 0 or header_count < 0 or header_count > record_end - at:
                return row, STATUS_BAD_RECORD, batch
            if header_count > 0:
                at = skip_headers(buf, at, record_end, header_count)
            if at != record_end:
                return row, STATUS_BAD_RECORD, batch
            offset = base_offset + offset_delta
            if offset < lowest or offset > last_offset:
                return row, STATUS_BAD_OFFSET, batch
            lowest = offset + 1
            offsets[row] = offset
            trait = np.int64(0)
            if value_length >= 0:
                trait = np.int64(TRAIT_VALUE)
            if key_length >= 0:
                trait |= TRAIT_KEY
                if offset >= first_hashed and offset <= last_hashed:
                    first, second = _siphash(buf, key_from, key_length, key_0, key_1)
                    hashes[row, 0] = first
                    hashes[row, 1] = second
            traits[row] = trait
            row += 1
        if at != batch_end:
            return row, STATUS_BYTES_REMAIN, batch
        batch_ends[batch] = row
    return row, STATUS_OK, np.int64(0)
