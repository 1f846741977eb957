"""The kernels of the offset map, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import key_tables as kernel

# Hashes of few values, so that keys meet in a slot, and of halves that are the same.
HALVES = st.sampled_from((0, 1, -1, 2**62, -(2**63), 2**32, 2**33)) | st.integers(
    -(2**63), 2**63 - 1
)
HASHES = st.lists(st.tuples(HALVES, HALVES), max_size=60)


@given(HASHES, HASHES, st.integers(1, 40))
def test_it_is_a_dictionary_until_it_is_full(
    hashes: list[tuple[int, int]], others: list[tuple[int, int]], usable: int
) -> None:
    table = np.zeros((usable + 1, kernel.ENTRY_WORDS), dtype=np.int64)
    expected: dict[tuple[int, int], int] = {}
    count = 0
    for pair in hashes:
        if len(expected) >= usable:
            break
        expected[pair] = 100 + count
        count += 1
    keys = np.array(hashes, dtype=np.int64).reshape(-1, 2)
    offsets = 100 + np.arange(len(hashes), dtype=np.int64)
    rows = np.arange(len(hashes), dtype=np.int64)
    assert kernel.put_offsets(table, 0, usable, keys, offsets, rows) == (count, len(expected))
    asked = [*hashes, *others]
    found = np.empty(len(asked), dtype=np.int64)
    keys = np.array(asked, dtype=np.int64).reshape(-1, 2)
    kernel.find_offsets(table, keys, np.arange(len(asked), dtype=np.int64), found)
    assert found.tolist() == [expected.get(pair, -1) for pair in asked]


def test_only_the_rows_asked_for_are_put_in_their_order() -> None:
    table = np.zeros((9, kernel.ENTRY_WORDS), dtype=np.int64)
    hashes = np.array([(1, 1), (2, 2), (1, 1)], dtype=np.int64)
    offsets = np.array([0, 5, 7], dtype=np.int64)
    rows = np.array([0, 2], dtype=np.int64)
    assert kernel.put_offsets(table, 3, 8, hashes, offsets, rows) == (2, 4)
    found = np.empty(2, dtype=np.int64)
    kernel.find_offsets(table, hashes, np.array([0, 1], dtype=np.int64), found)
    assert found.tolist() == [7, -1]
