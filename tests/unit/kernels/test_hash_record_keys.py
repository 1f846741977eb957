"""The kernel that walks through records and hashes their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import hash_record_keys as kernel
from tests.support import strategies
from tests.support.batches import record_v2
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

KEYS = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
WORD = 2**64


class Walked(NamedTuple):
    rows: int
    status: int
    batch: int
    offsets: list[int]
    hashes: npt.NDArray[np.int64]
    traits: list[int]
    positions: list[int]
    batch_ends: list[int]


def walk(
    data: bytes,
    batches: Sequence[tuple[int, int, int, int, int]],
    *,
    hashed: tuple[int, int] = (0, 2**63 - 1),
    keys: tuple[int, int] = KEYS,
) -> Walked:
    """Walk through batches given as (start, end, base offset, last offset, records)."""
    table = np.array(batches, dtype=np.int64).reshape(-1, kernel.BATCH_FIELDS)
    rows = int(table[:, kernel.BATCH_RECORD_COUNT].sum())
    offsets, positions = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    hashes, traits = np.zeros((rows, 2), dtype=np.int64), np.zeros(rows, dtype=np.uint8)
    ends = np.zeros(len(table), dtype=np.int64)
    buffer = as_buffer(data)
    found = kernel.hash_record_keys(
        buffer, table, *hashed, *keys, offsets, hashes, traits, positions, ends
    )
    walked, status, batch = map(int, found)
    lists = traits.tolist(), positions.tolist(), ends.tolist()
    return Walked(walked, status, batch, offsets.tolist(), hashes, *lists)


def siphash_1_3_128(data: bytes, first: int, second: int) -> tuple[int, int]:
    """Return both halves as its inventors write it down, with numbers that do not end."""
    first, second = first % WORD, second % WORD
    v = [
        first ^ 0x736F6D6570736575,
        second ^ 0x646F72616E646F6D ^ 0xEE,
        first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    ]

    def rotate(word: int, bits: int) -> int:
        return (word << bits | word >> (64 - bits)) % WORD

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) % WORD
            v[2] = (v[2] + v[3]) % WORD
            v[1] = rotate(v[1], 13) ^ v[0]
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[1]) % WORD
            v[0] = (v[0] + v[3]) % WORD
            v[1] = rotate(v[1], 17) ^ v[2]
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        rounds(1)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(3)
    half = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(3)
    return half, v[0] ^ v[1] ^ v[2] ^ v[3]


@given(st.binary(max_size=40), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_keys_are_hashed_with_siphash(key: bytes, first: int, second: int) -> None:
    record = record_v2(0, 0, key, b"v")
    for data in (record, record + bytes(8)):  # the hash reads words, and not beyond the buffer
        walked = walk(data, [(0, len(record), 5, 5, 1)], keys=(first, second))
        assert walked.status == kernel.STATUS_OK
        halves = tuple(half % WORD for half in walked.hashes[0].tolist())
        assert halves == siphash_1_3_128(key, first, second)


@given(st.lists(strategies.bodies(), max_size=8), st.integers(0, 2**40), st.data())
def test_every_record_is_a_row(
    bodies: list[strategies.Body], base_offset: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(bodies)))
    batches, expected, payload = [], [], b""
    for chosen in (bodies[:cut], bodies[cut:]):
        start, offset = len(payload), base_offset
        for body in chosen:
            traits = (body.key is not None) + 2 * (body.value is not None)
            expected.append((offset, traits, len(payload)))
            payload += record_v2(
                body.timestamp - 7, offset - base_offset, body.key, body.value, body.headers
            )
            offset += body.gap
        last = expected[-1][0] if chosen else base_offset
        batches.append((start, len(payload), base_offset, last, len(chosen)))
    walked = walk(payload + b"\x00", batches)
    assert walked.status == kernel.STATUS_OK
    assert list(zip(walked.offsets, walked.traits, walked.positions, strict=True)) == expected
    assert walked.batch_ends == [cut, len(bodies)]


def test_only_keys_of_the_offsets_asked_for_are_hashed() -> None:
    payload = b"".join(record_v2(0, delta, b"k", b"v") for delta in range(5))
    walked = walk(payload, [(0, len(payload), 10, 14, 5)], hashed=(11, 13))
    assert [bool(row.any()) for row in walked.hashes] == [False, True, True, True, False]
    assert walked.traits == [3] * 5


@pytest.mark.parametrize(
    ("records", "bounds", "status"),
    [
        ([(1, b"k"), (1, b"k")], (0, 1), kernel.STATUS_BAD_OFFSET),
        ([(1, b"k"), (0, b"k")], (0, 1), kernel.STATUS_BAD_OFFSET),
        ([(0, b"k"), (2, b"k")], (0, 1), kernel.STATUS_BAD_OFFSET),
        ([(-1, b"k"), (0, b"k")], (0, 1), kernel.STATUS_BAD_OFFSET),
    ],
)
def test_offsets_go_up_and_are_those_of_the_batch(
    records: list[tuple[int, bytes]], bounds: tuple[int, int], status: int
) -> None:
    payload = b"".join(record_v2(0, delta, key, b"v") for delta, key in records)
    walked = walk(payload, [(0, len(payload), *bounds, 2)])
    assert walked.status == status


def test_bytes_after_the_last_record_and_records_that_are_missing_are_refused() -> None:
    payload = record_v2(0, 0, b"k", b"v") + record_v2(0, 1, b"k", b"v")
    assert walk(payload, [(0, len(payload), 0, 9, 1)]).status == kernel.STATUS_BYTES_REMAIN
    assert walk(payload, [(0, len(payload), 0, 9, 3)]).status == kernel.STATUS_BAD_RECORD


@given(st.lists(strategies.bodies(), min_size=1, max_size=5), st.data())
def test_no_bytes_lead_it_out_of_its_buffer(
    bodies: list[strategies.Body], data: st.DataObject
) -> None:
    payload = b"".join(
        record_v2(0, delta, body.key, body.value, body.headers) for delta, body in enumerate(bodies)
    )
    changed = data.draw(strategies.mutated(payload))
    walked = walk(changed, [(0, len(changed), 0, len(bodies) - 1, len(bodies))])
    if walked.status == kernel.STATUS_OK:
        assert walked.rows == len(bodies)
        assert walked.positions == sorted(walked.positions)
