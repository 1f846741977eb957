"""The kernels that count keys, against dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import key_tables as kernel

# Hashes of few values, so that keys meet in a slot.
HASHES = st.sampled_from((0, 1, -1, 2**62, -(2**63), 2**32)) | st.integers(-(2**63), 2**63 - 1)
RECORDS = st.lists(st.tuples(HASHES, st.integers(0, 1000)), max_size=60)


def count(
    table: np.ndarray[Any, Any], used: int, usable: int, records: list[tuple[int, int]], first: int
) -> tuple[int, int]:
    hashes = np.array([(each, 0) for each, _ in records], dtype=np.int64).reshape(-1, 2)
    sizes = np.array([size for _, size in records], dtype=np.int64)
    offsets = 100 + np.arange(len(records), dtype=np.int64)
    rows = np.arange(len(records), dtype=np.int64)
    place, used = kernel.count_keys(
        table, used, usable, hashes, sizes, offsets, rows, first, 7, 70, 3
    )
    return int(place), int(used)


def held(table: np.ndarray[Any, Any]) -> dict[int, list[int]]:
    rows = table[table[:, kernel.ENTRY_RECORDS] != 0]
    return {row[0]: row[1:7] for row in rows.tolist()}


@given(RECORDS, st.integers(1, 40))
def test_records_are_counted_until_a_key_comes_that_has_no_slot(
    records: list[tuple[int, int]], usable: int
) -> None:
    table = np.zeros((usable + 1, kernel.ENTRY_FIELDS), dtype=np.int64)
    expected: dict[int, list[int]] = {}
    done = 0
    for hashed, size in records:
        if hashed not in expected and len(expected) == usable:
            break
        entry = expected.setdefault(hashed, [0, 0, 7, 70, 0, 3])
        entry[0] += 1
        entry[1] += size
        entry[4] = 100 + done
        done += 1
    assert count(table, 0, usable, records, 0) == (done, len(expected))
    assert held(table) == expected


def test_counting_goes_on_at_a_place_in_the_rows() -> None:
    table = np.zeros((9, kernel.ENTRY_FIELDS), dtype=np.int64)
    assert count(table, 0, 8, [(1, 10), (2, 20), (1, 30)], 1) == (3, 2)
    assert held(table) == {2: [1, 20, 7, 70, 101, 3], 1: [1, 30, 7, 70, 102, 3]}


@given(st.sets(HASHES, max_size=30))
def test_entries_are_found_again_in_the_table_that_they_were_put_into(hashes: set[int]) -> None:
    entries = np.zeros((len(hashes), kernel.ENTRY_FIELDS), dtype=np.int64)
    entries[:, kernel.ENTRY_HASH] = sorted(hashes)
    entries[:, kernel.ENTRY_RECORDS] = 5
    table = np.zeros((31, kernel.ENTRY_FIELDS), dtype=np.int64)
    kernel.put_entries(table, entries)
    assert count(table, len(hashes), 30, [(each, 1) for each in hashes], 0)[1] == len(hashes)
    assert {hashed: entry[0] for hashed, entry in held(table).items()} == dict.fromkeys(hashes, 6)
