"""Kernels: hash tables of fixed size: how often each key comes, and each key's last offset.

An entry of the first is a row of eight words; a slot whose RECORDS is 0 is empty. Probing is
linear. What is done when the table is full, and what the ERROR columns mean, is in
`pylog.statistics.keys`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel

ENTRY_HASH = 0
ENTRY_RECORDS = 1
ENTRY_BYTES = 2
ENTRY_ERROR_RECORDS = 3
ENTRY_ERROR_BYTES = 4
ENTRY_OFFSET = 5
ENTRY_SOURCE = 6
ENTRY_FIELDS = 8
"""One word is not used: so an entry is a line of the processor's cache."""


@helper
def _slot_of(table: npt.NDArray[np.int64], hashed: int) -> int:
    """Return the slot that holds the hash, or else the empty one that it belongs into."""
    count = np.int64(table.shape[0])
    slot = (((hashed >> 32) & 0xFFFFFFFF) * count) >> 32
    while table[slot, ENTRY_RECORDS] != 0 and table[slot, ENTRY_HASH] != hashed:
        slot += 1
        if slot == count:
            slot = np.int64(0)
    return slot


@kernel(writes=("table",), tables=("table", "hashes"))
def count_keys(
    table: npt.NDArray[np.int64],
    used_slots: int,
    usable_slots: int,
    hashes: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    first: int,
    error_records: int,
    error_bytes: int,
    source: int,
) -> tuple[int, int]:
    """Count the keys of some records until one comes that there is no slot for."""
    used = np.int64(used_slots)
    for place in range(first, rows.size):
        row = rows[place]
        hashed = hashes[row, 0]
        slot = _slot_of(table, hashed)
        if table[slot, ENTRY_RECORDS] == 0:
            if used >= usable_slots:
                return place, used
            used += 1
            table[slot, ENTRY_HASH] = hashed
            table[slot, ENTRY_ERROR_RECORDS] = error_records
            table[slot, ENTRY_ERROR_BYTES] = error_bytes
            table[slot, ENTRY_BYTES] = 0
        table[slot, ENTRY_RECORDS] += 1
        table[slot, ENTRY_BYTES] += sizes[row]
        table[slot, ENTRY_OFFSET] = offsets[row]
        table[slot, ENTRY_SOURCE] = source
    return np.int64(rows.size), used


@kernel(writes=("table",), tables=("table", "entries"))
def put_entries(table: npt.NDArray[np.int64], entries: npt.NDArray[np.int64]) -> None:
    """Put entries, each of another hash, into an empty table that has more slots than these."""
    for row in range(entries.shape[0]):
        slot = _slot_of(table, entries[row, ENTRY_HASH])
        for field in range(ENTRY_FIELDS):
            table[slot, field] = entries[row, field]


# Kernels: a hash table of fixed size, from the 128-bit hash of a key to an offset.
#
# An entry is three words: both halves of the hash, and the offset plus one, which is 0 where the
# slot is empty. Probing is linear, so that most looks after the first fall into the same cache
# line.


ENTRY_WORDS = 3
NO_OFFSET = -1


@helper
def _slot_of_key(slots: npt.NDArray[np.int64], first: int, second: int) -> int:
    """Return the slot that holds the hash, or else the empty one that it belongs into."""
    count = np.int64(slots.shape[0])
    slot = (((first >> 32) & 0xFFFFFFFF) * count) >> 32
    while slots[slot, 2] != 0 and (slots[slot, 0] != first or slots[slot, 1] != second):
        slot += 1
        if slot == count:
            slot = np.int64(0)
    return slot


@kernel(writes=("slots",), tables=("slots", "hashes"))
def put_offsets(
    slots: npt.NDArray[np.int64],
    used_slots: int,
    usable_slots: int,
    hashes: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Put the offsets of some rows under the hashes of their keys; a later one takes the place."""
    used = np.int64(used_slots)
    for i in range(rows.size):
        if used >= usable_slots:
            return i, used
        row = rows[i]
        first = hashes[row, 0]
        second = hashes[row, 1]
        slot = _slot_of_key(slots, first, second)
        if slots[slot, 2] == 0:
            slots[slot, 0] = first
            slots[slot, 1] = second
            used += 1
        slots[slot, 2] = offsets[row] + 1
    return rows.size, used


@kernel(writes=("found",), tables=("slots", "hashes"))
def find_offsets(
    slots: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> None:
    """Fill ``found`` with the offset under the hash of each of ``rows``; NO_OFFSET if none is."""
    for i in range(rows.size):
        row = rows[i]
        found[i] = slots[_slot_of_key(slots, hashes[row, 0], hashes[row, 1]), 2] - 1
