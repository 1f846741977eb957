"""Checksums of many batches at once, against crcmod, which shares no code with them."""

from __future__ import annotations

import crcmod.predefined
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels.crc32c import find_bad_crc32c
from tests.support.reading import as_buffer

_crcmod = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
_CONTENT = np.random.default_rng(20261122).integers(0, 256, 40_000, dtype=np.uint8).tobytes()


def check(data: bytes, stretches: list[tuple[int, int, int]]) -> tuple[int, int]:
    starts, ends, stored = np.array(stretches, dtype=np.int64).reshape(-1, 3).T.copy()
    place, computed = find_bad_crc32c(as_buffer(data), starts, ends, stored)
    return int(place), int(computed)


# Below three lanes, around each number of lanes' units, the longest lanes, and every rest.
LENGTHS = [*range(33), *range(375, 400), 767, 768, 769, 1151, 1152, 12_287, 12_288, 12_289, 40_000]


def test_the_standards_check_value() -> None:
    assert check(b"123456789", [(0, 9, 0xE3069283)]) == (-1, 0)


def test_every_length_is_summed_right() -> None:
    assert check(_CONTENT, [(0, n, _crcmod(_CONTENT[:n])) for n in LENGTHS]) == (-1, 0)


@given(st.binary(max_size=2000), st.integers(0, 9))
def test_any_bytes_are_summed_right(content: bytes, start: int) -> None:
    padded = bytes(start) + content
    assert check(padded, [(start, len(padded), _crcmod(content))]) == (-1, 0)


@pytest.mark.parametrize("bad", [0, 1, 4])
def test_the_first_wrong_one_is_named_with_its_checksum(bad: int) -> None:
    stretches = [(at, at + 500, _crcmod(_CONTENT[at : at + 500])) for at in range(0, 2500, 500)]
    right = stretches[bad][2]
    for place in range(bad, 5):
        start, end, stored = stretches[place]
        stretches[place] = (start, end, stored ^ 1 << 31)
    assert check(_CONTENT, stretches) == (bad, right)


def test_nothing_to_sum() -> None:
    assert check(b"", []) == (-1, 0)
