"""Kernels: a hash table of fixed size, from the 128-bit hash of a key to an offset.

An entry is three words: both halves of the hash, and the offset plus one, which is 0 where the slot
is empty. Probing is linear, so that most looks after the first fall into the same cache line.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel

ENTRY_WORDS = 3
NO_OFFSET = -1


@helper
def _slot_of(slots: npt.NDArray[np.int64], first: int, second: int) -> int:
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
        slot = _slot_of(slots, first, second)
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
        found[i] = slots[_slot_of(slots, hashes[row, 0], hashes[row, 1]), 2] - 1
