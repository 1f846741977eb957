from __future__ import annotations

import json
import random
from decimal import Decimal

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


def test_any_bytes_at_any_place() -> None:
    chance = random.Random(20_261_123)
    for _ in range(200):
        size = chance.choice([3, 31, 32, 33, 64, 200, 1_300])
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


def has_member(
    data: bytes, name: str, value: bytes, stretch: tuple[int, int] | None = None
) -> bool:
    start, end = stretch or (0, len(data))
    found = np.full(1, 7, dtype=np.uint8)
    status, _ = kernel.find_members(
        as_buffer(data or b" "),
        *(np.array([each], dtype=np.int64) for each in (start, end)),
        as_buffer(f'"{name}"'.encode()),
        0,
        len(name) + 1,
        as_buffer(value),
        found,
    )
    assert status == kernel.STATUS_OK
    return bool(found[0])


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ('{"id":7}', "7"),
        ('{"id" \t\r\n: \t\r\n7 }', "7"),
        ('{"id":1,"x":{"id":7}}', "7"),
        ('{"id":7.0}', "7"),
        ('{"id":7.000}', "7"),
        ('{"id":70e-1}', "7"),
        ('{"id":0.7E1}', "7"),
        ('{"id":-7}', "-7"),
        ('{"id":7.50}', "7.5"),
        ('{"id":0}', "0"),
        ('{"id":-0}', "0"),
        ('{"id":-0.00}', "0"),
        ('{"id":0e5}', "0"),
        ('{"id":"Ann"}', '"Ann"'),
        ('{"id":"\\u0041nn"}', '"Ann"'),
        ('{"id":"An\\u006e"}', '"Ann"'),
        ('{"id":"Ann\\u"}', '"Ann"'),  # any rest after an escape
        ('{"id":"größe"}', '"größe"'),
        ('{"id":true}', "t"),
        ('{"id":[1]}', "["),
        ('{"id":{}}', "{"),
        ('{"id":null}', ""),
    ],
)
def test_a_member_is_found_however_its_value_is_spelled(document: str, value: str) -> None:
    for before in ("", " " * 40):
        assert has_member((before + document).encode(), "id", value.encode())


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ('{"id":77}', "7"),
        ('{"id":17}', "7"),
        ('{"id":-7}', "7"),
        ('{"id":7}', "77"),
        ('{"id":7.5}', "7"),
        ('{"id":7.05}', "7"),
        ('{"id":75}', "7.5"),
        ('{"id":10}', "0"),
        ('{"id":-1}', "0"),
        ('{"id":"7"}', "7"),
        ('{"id":7}', '"7"'),
        ('{"id":"Anne"}', '"Ann"'),
        ('{"id":"An"}', '"Ann"'),
        ('{"id":false}', "t"),
        ('{"id":{}}', "["),
        ('{"id"}', ""),
        ('["id",7]', "7"),
        ('{"ID":7,"xid":7,"i":7}', "7"),
    ],
)
def test_another_member_is_not(document: str, value: str) -> None:
    for before in ("", " " * 40):
        assert not has_member((before + document).encode(), "id", value.encode())


def test_nothing_after_the_end_of_a_stretch_belongs_to_a_member() -> None:
    data = b'{"id" : 75}'
    for value in ("75", "t", '"75"', ""):
        for end in range(len(data) - 4):
            assert not has_member(data, "id", value.encode(), (0, end)), (value, end)
    assert has_member(data, "id", b"7", (0, len(data) - 2))
    assert not has_member(data, "id", b"75", (0, len(data) - 2))


SEED = 20_261_207


def test_every_spelling_of_a_number_is_found_and_no_other_number_without_an_exponent() -> None:
    chance = random.Random(SEED)
    texts = ["0", "-0", "1", "10", "100", "1.5", "-1.50", "0.10", "1e2", "10.0E1", "1E-1", "-10"]
    for _ in range(2_000):
        text = chance.choice(texts) if chance.random() < 0.7 else str(chance.randint(-200, 200))
        wanted = chance.choice(["0", "1", "10", "100", "-10", "1.5", "-1.5", "0.1"])
        is_equal = json.loads(text, parse_int=Decimal, parse_float=Decimal) == Decimal(wanted)
        found = has_member(f'{{"n":{text}}}'.encode(), "n", wanted.encode())
        assert found == (is_equal or "e" in text.lower()), (SEED, text, wanted)


@pytest.mark.parametrize("stretch", [(-1, 2), (3, 2), (0, 4), (2**62, 2**62)])
def test_members_outside_of_the_buffer_are_refused(stretch: tuple[int, int]) -> None:
    starts, ends = (np.array([0, each], dtype=np.int64) for each in stretch)
    found = np.zeros(2, dtype=np.uint8)
    name = as_buffer(b'""')
    outcome = kernel.find_members(as_buffer(b"abc"), starts, ends, name, 0, 1, name, found)
    assert outcome == (kernel.STATUS_BAD_STRETCH, 1)
    outcome = kernel.find_members(as_buffer(b"abc"), starts, ends, name, 0, 2, name, found)
    assert outcome == (kernel.STATUS_BAD_STRETCH, 0)
