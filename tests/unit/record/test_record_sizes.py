"""The first record of a compressed batch that is too large, against a walk in plain Python."""

from __future__ import annotations

import random
import struct

import pytest

from pylog.errors import InvalidRecordError
from pylog.record.record_sizes import OversizedRecord, ensure_record_sizes, find_large_record

SEEDS = range(40)


def varint(size: int, *, wide: bool = False) -> bytes:
    """Return a size as a record has it; ``wide``: in 5 bytes, whatever the size."""
    raw, out = size << 1, bytearray()
    while raw > 0x7F or (wide and len(out) < 4):
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def payload_of(sizes: list[int], magic: int, *, wide: bool = False) -> bytes:
    if magic == 2:
        return b"".join(varint(size, wide=wide) + bytes(size) for size in sizes)
    return b"".join(struct.pack(">qi", 7, size) + bytes(size) for size in sizes)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("magic", [1, 2])
def test_the_first_record_above_the_limit_is_found(magic: int, seed: int) -> None:
    generator = random.Random(seed)
    limit = generator.choice([1, 14, 63, 64, 100, 8_191, 8_192])
    sizes = [generator.randint(1, limit + 2) for _ in range(generator.randint(1, 60))]
    wide = generator.random() < 0.5
    expected = next(
        (OversizedRecord(place, size) for place, size in enumerate(sizes) if size > limit), None
    )
    payload = payload_of(sizes, magic, wide=wide)
    found = find_large_record(payload, limit, is_v2=magic == 2)
    assert found == expected, f"seed {seed}: limit {limit}, {len(sizes)} records, wide {wide}"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_v2", [False, True])
def test_bytes_at_random_and_cut_records_do_no_harm(seed: int, *, is_v2: bool) -> None:
    generator = random.Random(seed)
    payload = generator.randbytes(2_000)
    find_large_record(payload, 1, is_v2=is_v2)
    whole = payload_of([50] * 20, 2 if is_v2 else 1)
    assert find_large_record(whole[: generator.randrange(len(whole))], 60, is_v2=is_v2) is None


def test_a_length_below_zero_and_one_of_six_bytes_are_left_to_the_decoder() -> None:
    assert find_large_record(b"\x01" + bytes(30), 10, is_v2=True) is None
    assert find_large_record(b"\xff" * 6 + bytes(30), 10, is_v2=True) is None


def test_the_error_says_which_record_how_large_and_what_to_do() -> None:
    payload = payload_of([5, 60, 70], 2)
    with pytest.raises(InvalidRecordError) as refused:
        ensure_record_sizes(payload, 59, is_v2=True, advice=": raise it")
    assert str(refused.value) == (
        "record 1 of the batch has 60 bytes, max.decompressed.message.bytes is 59: raise it"
    )
    ensure_record_sizes(payload, 70, is_v2=True)
    ensure_record_sizes(payload, None, is_v2=True)
