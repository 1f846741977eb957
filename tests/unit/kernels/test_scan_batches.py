from __future__ import annotations

import struct

import numpy as np
import pytest

from pylog.kernels import scan_batches as kernel
from tests.support.batches import batch_v2, joined, message, plain_records
from tests.support.reading import as_buffer

BATCHES = [
    batch_v2(plain_records(0, 3)),
    message(plain_records(3, 1)[0], magic=0),
    message(plain_records(4, 1)[0], magic=1),
    batch_v2(plain_records(5, 3), codec="gzip"),
]
DATA = joined(BATCHES)
STARTS = [sum(len(built.data) for built in BATCHES[:index]) for index in range(len(BATCHES))]


def scan(
    data: bytes, start: int = 0, end: int | None = None, capacity: int = 100
) -> tuple[list[int], int, int]:
    positions = np.full(capacity, -7, dtype=np.int64)
    count, at, status = kernel.scan_batches(
        as_buffer(data), start, len(data) if end is None else end, positions
    )
    assert (positions[count:] == -7).all()
    return positions[:count].tolist(), int(at), int(status)


def test_every_start_is_found() -> None:
    assert scan(DATA) == (STARTS, len(DATA), kernel.STATUS_OK)


def test_a_scan_may_begin_and_end_between_batches() -> None:
    assert scan(DATA, STARTS[1], STARTS[3]) == (STARTS[1:3], STARTS[3], kernel.STATUS_OK)


def test_nothing_is_read_past_the_end_of_the_scan() -> None:
    assert scan(DATA, 0, STARTS[1] + 16) == ([0], STARTS[1], kernel.STATUS_PARTIAL)
    assert scan(DATA, 0, STARTS[2] - 1) == ([0], STARTS[1], kernel.STATUS_PARTIAL)


def test_a_full_output_stops_the_scan_where_it_can_go_on() -> None:
    found, at, status = scan(DATA, capacity=2)
    assert (found, at, status) == (STARTS[:2], STARTS[2], kernel.STATUS_FULL)
    assert scan(DATA, at) == (STARTS[2:], len(DATA), kernel.STATUS_OK)
    assert scan(DATA, capacity=0) == ([], 0, kernel.STATUS_FULL)
    assert scan(DATA, capacity=len(STARTS)) == (STARTS, len(DATA), kernel.STATUS_OK)


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 22), (2, 49)])
def test_a_size_below_the_formats_minimum_is_bad(magic: int, least: int) -> None:
    for size in (least - 1, 0, -1, -(2**31)):
        bad = struct.pack(">qiiB", 0, size, 0, magic) + bytes(100)
        assert scan(DATA + bad) == (STARTS, len(DATA), kernel.STATUS_BAD_SIZE)
    good = struct.pack(">qiiB", 0, least, 0, magic) + bytes(least - 5)
    assert scan(DATA + good) == ([*STARTS, len(DATA)], len(DATA + good), kernel.STATUS_OK)


@pytest.mark.parametrize("magic", [3, 0x7F, 0x80, 0xFF])
def test_another_magic_is_bad(magic: int) -> None:
    bad = struct.pack(">qiiB", 0, 100, 0, magic) + bytes(200)
    assert scan(DATA + bad) == (STARTS, len(DATA), kernel.STATUS_BAD_MAGIC)


def test_the_largest_size_is_a_batch_cut_short() -> None:
    huge = struct.pack(">qiiB", 0, 2**31 - 1, 0, 2) + bytes(100)
    assert scan(DATA + huge) == (STARTS, len(DATA), kernel.STATUS_PARTIAL)
