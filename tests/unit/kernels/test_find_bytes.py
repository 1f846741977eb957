from __future__ import annotations

import random

import numpy as np
import pytest

from pylog.kernels import find_bytes as kernel
from tests.support.reading import as_buffer


def find(
    data: bytes,
    stretches: list[tuple[int, int]],
    needle: bytes,
    places: tuple[int, int] = (0, -1),
) -> list[bool]:
    starts, ends = (np.array(each, dtype=np.int64) for each in zip(*stretches, strict=True))
    found = np.full(len(stretches), 7, dtype=np.uint8)
    first, second = (place % len(needle) for place in places)
    status, _ = kernel.find_bytes(
        as_buffer(data), starts, ends, as_buffer(needle), first, second, found
    )
    assert status == kernel.STATUS_OK
    return [bool(each) for each in found]


def test_stretches_that_hold_the_bytes_are_found() -> None:
    data = b"abcabd--abd"
    assert find(data, [(0, 3), (0, 6), (6, 11), (3, 3)], b"abd") == [False, True, True, False]
    assert find(data, [(0, 11), (0, 5), (10, 11)], b"d", (0, 0)) == [True, False, True]


def test_bytes_that_a_stretch_cuts_are_not_in_it() -> None:
    assert find(b"xxneedle", [(0, 8), (0, 7), (3, 8), (2, 8)], b"needle") == [
        *(True, False),
        *(False, True),
    ]


def test_any_bytes_at_any_place_of_any_block() -> None:
    chance = random.Random(20_261_123)
    for _ in range(200):
        size = chance.choice([3, 40, kernel.BLOCK_BYTES, kernel.BLOCK_BYTES + 1, 1_300])
        data = bytes(chance.choices(b"ab", k=size))
        needle = bytes(chance.choices(b"ab", k=chance.randint(1, 12)))
        places = chance.randrange(len(needle)), chance.randrange(len(needle))
        stretches = []
        for _ in range(4):
            start = chance.randint(0, size)
            stretches.append((start, chance.randint(start, size)))
        expected = [needle in data[start:end] for start, end in stretches]
        assert find(data, stretches, needle, places) == expected


@pytest.mark.parametrize("stretch", [(-1, 2), (3, 2), (0, 4), (2**62, 2**62)])
def test_a_stretch_outside_of_the_buffer_is_refused(stretch: tuple[int, int]) -> None:
    starts, ends = (np.array([0, each], dtype=np.int64) for each in stretch)
    found = np.zeros(2, dtype=np.uint8)
    outcome = kernel.find_bytes(as_buffer(b"abc"), starts, ends, as_buffer(b"b"), 0, 0, found)
    assert outcome == (kernel.STATUS_BAD_STRETCH, 1)


@pytest.mark.parametrize("places", [(-1, 0), (0, -1), (1, 0), (0, 1)])
def test_places_outside_of_the_needle_are_refused(places: tuple[int, int]) -> None:
    none = np.zeros(1, dtype=np.int64)
    found = np.zeros(1, dtype=np.uint8)
    outcome = kernel.find_bytes(as_buffer(b"abc"), none, none, as_buffer(b"b"), *places, found)
    assert outcome == (kernel.STATUS_BAD_STRETCH, 0)
