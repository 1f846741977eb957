"""The map from keys to the offset of each key's last record, in memory of a fixed size.

An entry takes 24 bytes whatever the key's length: 16 of a hash of the key, 8 of the offset. So a
map is full at the same record as Kafka's of the same size. Two keys with the same hash would be
taken for one, and one of them be lost. Kafka hashes with MD5, for which such keys can be made; here
the hash depends on a random key of each map (SipHash with 128 bits of output), so that whoever
writes records cannot choose them. By chance, a billion keys hold such a pair once in 10^20 maps.

Source: OffsetMap, SkimpyOffsetMap (Kafka 4.3).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from pylog.kernels.key_tables import ENTRY_WORDS, find_offsets, put_offsets

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.config import CleanerConfig

BYTES_PER_ENTRY = 24
_MOST_SLOTS = 2**31 - 2
_HALF_KEY_BITS = 64
_NO_OFFSET = -1


class HashKey(NamedTuple):
    """What the hash of a record's key depends on beside the key; both halves are int64."""

    first: int
    second: int

    @classmethod
    def random(cls) -> HashKey:
        """Return a key that nobody can guess."""
        halves = (secrets.randbits(_HALF_KEY_BITS) - 2 ** (_HALF_KEY_BITS - 1) for _ in range(2))
        return cls(*halves)


class OffsetMap:
    """A hash table that entries are never removed from. One thread."""

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        self.slots = min(memory_bytes // BYTES_PER_ENTRY, _MOST_SLOTS)
        self.usable_slots = int(self.slots * load_factor)
        if self.slots * load_factor <= 1:
            msg = (
                f"an offset map of {memory_bytes} bytes with load factor {load_factor} holds no "
                "key, so that cleaning would never get on: raise log.cleaner.dedupe.buffer.size "
                "or lower log.cleaner.threads"
            )
            raise ValueError(msg)
        self.clear()

    @classmethod
    def of(cls, config: CleanerConfig) -> Self:
        """Return the map of one of a cleaner's threads, which share the buffer."""
        memory_bytes = config.dedupe_buffer_size // config.threads
        return cls(memory_bytes, config.dedupe_buffer_load_factor)

    def clear(self, most_keys: int | None = None) -> None:
        """Forget all keys, and take another hash key."""
        self.size = 0
        self.latest_offset = _NO_OFFSET
        self.hash_key = HashKey.random()
        # One slot more than may be used: a search ends at an empty one.
        slots = self.slots if most_keys is None else min(self.slots, 2 * most_keys)
        self._table = np.zeros((slots + 1, ENTRY_WORDS), dtype=np.int64)

    @property
    def utilization(self) -> float:
        """Load factor, from 0 to 1."""
        return self.size / self.slots

    def put(
        self,
        hashes: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> int:
        """Put the offsets of some records under their keys, until the map is full."""
        count, self.size = put_offsets(
            self._table, self.size, self.usable_slots, hashes, offsets, rows
        )
        if count:
            self.latest_offset = int(offsets[rows[count - 1]])
        return int(count)

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the offsets of all keys, sorted."""
        found: npt.NDArray[np.int64] = np.sort(self._table[self._table[:, -1] != 0, -1] - 1)
        return found

    def are_latest(
        self,
        offsets: npt.NDArray[np.int64],
        hashes: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return for some records whether the map has no later one of the same key."""
        latest: npt.NDArray[np.bool_] = offsets[rows] >= self.find(hashes, rows)
        return latest

    def find(
        self, hashes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the offset under each key, -1 where the key is not in the map."""
        found = np.empty(rows.size, dtype=np.int64)
        find_offsets(self._table, hashes, rows, found)
        return found


class SupersededOffsets:
    """Which records of a group are superseded, in the place of an offset map."""

    def __init__(self, offsets: npt.NDArray[np.int64], end_offset: int) -> None:
        self.latest_offset = end_offset - 1
        self.hash_key = HashKey(0, 0)
        self._offsets = np.sort(offsets)

    def are_latest(
        self,
        offsets: npt.NDArray[np.int64],
        hashes: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return for some records whether they are not superseded; ``hashes`` do not matter."""
        asked = offsets[rows]
        if self._offsets.size == 0:
            return np.ones(asked.size, dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._offsets, asked), self._offsets.size - 1)
        latest: npt.NDArray[np.bool_] = self._offsets[places] != asked
        return latest


LatestRecords = OffsetMap | SupersededOffsets
"""What knows the last record of each key."""
