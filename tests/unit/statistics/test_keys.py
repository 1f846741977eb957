"""Frequent keys in a table that is too small for all keys: the bounds hold, whatever comes."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels.key_tables import (
    ENTRY_BYTES,
    ENTRY_ERROR_BYTES,
    ENTRY_ERROR_RECORDS,
    ENTRY_HASH,
    ENTRY_RECORDS,
)
from pylog.statistics.keys import FrequentKeys, counted_hot_keys

KEYS = st.one_of(
    st.lists(st.integers(0, 9), max_size=300),
    st.lists(st.integers(0, 10_000) | st.just(3), max_size=300),
)


def add(into: FrequentKeys, keys: list[int | None], source: int = 0) -> None:
    """Count records of keys; each takes as many bytes as its key says, and one more."""
    hashes = np.array([(key or 0, 0) for key in keys], dtype=np.int64).reshape(-1, 2)
    sizes = np.array([(key or 0) + 1 for key in keys], dtype=np.int64)
    has_key = np.array([key is not None for key in keys], dtype=np.bool_)
    into.add(hashes, sizes, np.arange(len(keys), dtype=np.int64), has_key, source)


def ensure_bounds(found: FrequentKeys, keys: list[int]) -> None:
    counts = Counter(keys)
    entries = {int(row[ENTRY_HASH]): row for row in found.entries()}
    for key, records in counts.items():
        if key not in entries:
            assert records <= found.floor_records
            assert records * (key + 1) <= found.floor_bytes
            continue
        row = entries[key]
        low, low_bytes = int(row[ENTRY_RECORDS]), int(row[ENTRY_BYTES])
        assert low <= records <= low + int(row[ENTRY_ERROR_RECORDS])
        assert low_bytes <= records * (key + 1) <= low_bytes + int(row[ENTRY_ERROR_BYTES])
    assert entries.keys() <= counts.keys()
    assert (found.records, found.bytes) == (len(keys), sum(keys) + len(keys))


@given(KEYS, st.integers(2, 40), st.integers(1, 5))
def test_the_truth_lies_within_the_bounds(keys: list[int], room: int, parts: int) -> None:
    found = FrequentKeys(room)
    step = max(1, len(keys) // parts)
    for start in range(0, len(keys), step):
        add(found, list(keys[start : start + step]))
    ensure_bounds(found, keys)
    # What may be wrong is at most a share of all records, by the room that there is.
    assert found.floor_records * (room // 2) <= len(keys)


@given(KEYS, KEYS, st.integers(2, 40))
def test_the_truth_lies_within_the_bounds_of_two_that_were_merged(
    left: list[int], right: list[int], room: int
) -> None:
    merged, other = FrequentKeys(room), FrequentKeys(room)
    add(merged, list(left))
    add(other, list(right))
    merged.merge(other)
    ensure_bounds(merged, left + right)
    add(merged, list(left))
    ensure_bounds(merged, left + right + left)


def test_with_room_for_all_keys_nothing_is_uncertain_and_memory_grows() -> None:
    keys = [random.Random(4).randrange(30_000) for _ in range(60_000)]
    found = FrequentKeys()
    add(found, list(keys))
    entries = found.entries()
    assert not entries[:, ENTRY_ERROR_RECORDS].any()
    assert dict(entries[:, [ENTRY_HASH, ENTRY_RECORDS]].tolist()) == Counter(keys)


def test_what_has_no_key_is_counted_by_itself_and_shown_first() -> None:
    found = FrequentKeys()
    add(found, [5, None, None, 5, 5, 1])
    keyless, first, second = counted_hot_keys(found, 10)
    assert (keyless.offset, keyless.records, keyless.of_records) == (None, 2, (1 / 3,) * 3)
    assert (first.records, first.of_records, first.offset) == (3, (0.5,) * 3, 4)
    assert (second.records, second.of_bytes) == (1, (2 / 22,) * 3)


def test_of_nothing_there_are_no_hot_keys() -> None:
    assert list(counted_hot_keys(FrequentKeys(), 10)) == []
