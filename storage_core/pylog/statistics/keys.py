"""The most frequent keys and the largest records.

A table holds some keys with the records and bytes that were counted since the key came in. When it
is full, those with the smallest upper bound are dropped, half of the table; what they may have had
becomes the *floor*: no key that is not in the table has had more. A key that comes in, or comes
back, may have had as much as the floor before, so that is its error. The true number lies between
``records`` and ``records + error_records``, and the same for bytes.

With room for 2k keys the floor is at most 1/k of all records: a key with a larger share is always
found. Source: the frequent items sketch of Metwally, Agrawal and El Abbadi (Space-Saving, 2005),
with the purge of Anderson et al. (2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.kernels.key_tables import (
    ENTRY_BYTES,
    ENTRY_ERROR_BYTES,
    ENTRY_ERROR_RECORDS,
    ENTRY_FIELDS,
    ENTRY_HASH,
    ENTRY_OFFSET,
    ENTRY_RECORDS,
    ENTRY_SOURCE,
    count_keys,
    put_entries,
)
from pylog.statistics.recompression import Bounds, share_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords

    Int64Array = npt.NDArray[np.int64]


MOST_KEYS = 1 << 16
"""With 64 bytes an entry and half of the slots empty: 8 MiB."""
_FIRST_KEYS = 1 << 10


class FrequentKeys:
    """Counts keys by a hash of each. One thread."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._room = min(_FIRST_KEYS, most_keys)
        self._table = _empty_table(self._room)
        self._used = 0
        # Of all records that were counted, those with a key and those without
        self.records = 0
        self.bytes = 0
        # Of those that have none
        self.records_without_key = 0
        self.bytes_without_key = 0
        # The most that a key may have had which is not in the table
        self.floor_records = 0
        self.floor_bytes = 0

    def add(
        self,
        hashes: Int64Array,
        sizes: Int64Array,
        offsets: Int64Array,
        has_key: npt.NDArray[np.bool_],
        source: int,
    ) -> None:
        """Count some records."""
        rows = np.flatnonzero(has_key)
        self.records += sizes.size
        self.bytes += int(sizes.sum())
        self.records_without_key += sizes.size - rows.size
        self.bytes_without_key += int(sizes[~has_key].sum())
        place = 0
        while place < rows.size:
            place, self._used = count_keys(
                self._table,
                self._used,
                self._room,
                hashes,
                sizes,
                offsets,
                rows,
                place,
                self.floor_records,
                self.floor_bytes,
                source,
            )
            if place < rows.size:
                self._make_room()

    def entries(self) -> Int64Array:
        """Return the entries, rows of `pylog.kernels.key_tables`, the most frequent first."""
        found = self._held()
        order = np.lexsort(
            (found[:, ENTRY_OFFSET], found[:, ENTRY_SOURCE], -found[:, ENTRY_RECORDS])
        )
        return found[order]

    def merge(self, other: FrequentKeys) -> None:
        """Count all that another one has counted, by hashes of the same key."""
        both = np.concatenate(
            [
                _with_floor(self._held(), other),
                _with_floor(other._held(), self),
            ]
        )
        merged = _sum_by_hash(both, self, other)
        self.records += other.records
        self.bytes += other.bytes
        self.records_without_key += other.records_without_key
        self.bytes_without_key += other.bytes_without_key
        self.floor_records += other.floor_records
        self.floor_bytes += other.floor_bytes
        if len(merged) > self._most_keys:
            merged = self._without_rarest(merged)
        self._room = min(self._most_keys, max(self._room, 2 * len(merged)))
        self._put(merged)

    def _held(self) -> Int64Array:
        held: Int64Array = self._table[self._table[:, ENTRY_RECORDS] != 0]
        return held

    def _make_room(self) -> None:
        held = self._held()
        if self._room < self._most_keys:
            self._room = min(self._most_keys, 4 * self._room)
        else:
            held = self._without_rarest(held)
        self._put(held)

    def _without_rarest(self, held: Int64Array) -> Int64Array:
        """Return the half of the room with the largest upper bounds; the others make the floor."""
        upper = held[:, ENTRY_RECORDS] + held[:, ENTRY_ERROR_RECORDS]
        kept = self._most_keys // 2
        order = np.argsort(-upper, kind="stable")
        dropped = held[order[kept:]]
        upper_bytes = dropped[:, ENTRY_BYTES] + dropped[:, ENTRY_ERROR_BYTES]
        self.floor_records = max(self.floor_records, int(upper[order[kept:]].max()))
        self.floor_bytes = max(self.floor_bytes, int(upper_bytes.max()))
        return held[order[:kept]]

    def _put(self, entries: Int64Array) -> None:
        self._table = _empty_table(self._room)
        put_entries(self._table, np.ascontiguousarray(entries))
        self._used = len(entries)


def _empty_table(keys: int) -> Int64Array:
    return np.zeros((2 * keys + 1, ENTRY_FIELDS), dtype=np.int64)


def _with_floor(entries: Int64Array, other: FrequentKeys) -> Int64Array:
    """Return the entries as they are if ``other`` does not have their keys."""
    raised = entries.copy()
    raised[:, ENTRY_ERROR_RECORDS] += other.floor_records
    raised[:, ENTRY_ERROR_BYTES] += other.floor_bytes
    return raised


def _sum_by_hash(both: Int64Array, left: FrequentKeys, right: FrequentKeys) -> Int64Array:
    """Return an entry for each hash; a key that both have needs no floor of either."""
    order = np.argsort(both[:, ENTRY_HASH], kind="stable")
    both = both[order]
    is_second = np.zeros(len(both), dtype=np.bool_)
    is_second[1:] = both[1:, ENTRY_HASH] == both[:-1, ENTRY_HASH]
    seconds = np.flatnonzero(is_second)
    firsts = seconds - 1
    summed = both[firsts]
    for field in (ENTRY_RECORDS, ENTRY_BYTES, ENTRY_ERROR_RECORDS, ENTRY_ERROR_BYTES):
        summed[:, field] += both[seconds, field]
    summed[:, ENTRY_ERROR_RECORDS] -= left.floor_records + right.floor_records
    summed[:, ENTRY_ERROR_BYTES] -= left.floor_bytes + right.floor_bytes
    both[firsts] = summed
    return both[~is_second]


class HotKey(NamedTuple):
    """A key, by a record that has it."""

    # Which of the logs, and the offset of a record with this key; None for all records without a
    # key
    source: int | None
    offset: int | None
    records: int  # how many records with it were counted
    # Its share of the topic's records, and of their bytes before compression
    of_records: Bounds
    of_bytes: Bounds


def counted_hot_keys(counted: FrequentKeys, most: int) -> Iterator[HotKey]:
    """Yield the keys with the most records, of all that were counted; the bounds are certain."""
    if not counted.records:
        return
    if counted.records_without_key:
        yield HotKey(
            None,
            None,
            counted.records_without_key,
            _exact(counted.records_without_key, counted.records),
            _exact(counted.bytes_without_key, counted.bytes),
        )
    for entry in counted.entries()[:most].tolist():
        records, size_bytes = entry[ENTRY_RECORDS], entry[ENTRY_BYTES]
        yield HotKey(
            entry[ENTRY_SOURCE],
            entry[ENTRY_OFFSET],
            records,
            _at_least(records, entry[ENTRY_ERROR_RECORDS], counted.records),
            _at_least(size_bytes, entry[ENTRY_ERROR_BYTES], counted.bytes),
        )


def _exact(part: int, whole: int) -> Bounds:
    return _at_least(part, 0, whole)


def _at_least(part: int, error: int, whole: int) -> Bounds:
    whole = max(1, whole)
    return Bounds(part / whole, part / whole, min(1.0, (part + error) / whole))


class KeySample:
    """The keys of some runs of batches. One thread; memory by the records of the sample."""

    def __init__(self) -> None:
        self._hashes: list[Int64Array] = []
        self._sizes: list[Int64Array] = []
        self._offsets: list[Int64Array] = []
        self._has_key: list[npt.NDArray[np.bool_]] = []
        self._runs: list[tuple[int, int, int]] = []  # run, source, records
        self._run = -1

    def begin_run(self) -> None:
        """Let the records that come belong to another run."""
        self._run += 1

    def add(self, records: KeyedRecords, source: int) -> None:
        """Add records of the run; ``source`` tells which log they are of."""
        self._hashes.append(records.hashes[:, 0].copy())
        self._sizes.append(records.sizes_bytes)
        self._offsets.append(records.offsets)
        self._has_key.append(records.has_key)
        self._runs.append((self._run, source, records.offsets.size))

    def hot_keys(self, most: int, sampled_share: float) -> Iterator[HotKey]:
        """Yield the keys with the most records, with 95 % bounds."""
        if not self._hashes:
            return
        sizes, has_key = np.concatenate(self._sizes), np.concatenate(self._has_key)
        counts = np.array([each[2] for each in self._runs], dtype=np.int64)
        runs = np.repeat(np.array([each[0] for each in self._runs], dtype=np.int64), counts)
        sources = np.repeat(np.array([each[1] for each in self._runs], dtype=np.int64), counts)
        offsets = np.concatenate(self._offsets)
        records_of_run = _by_run(runs, None, self._run + 1)
        bytes_of_run = _by_run(runs, sizes, self._run + 1)

        hashes = np.concatenate(self._hashes)
        keyed, keyless = np.flatnonzero(has_key), np.flatnonzero(~has_key)
        unique, places, numbers = np.unique(hashes[keyed], return_index=True, return_counts=True)

        def hot(which: Int64Array, place: int | None) -> HotKey | None:
            shares = [
                share_bounds(
                    _by_run(
                        runs[which], None if weights is None else weights[which], self._run + 1
                    ),
                    of_run,
                    sampled_share,
                    records=sizes.size,
                )
                for weights, of_run in ((None, records_of_run), (sizes, bytes_of_run))
            ]
            if shares[0] is None or shares[1] is None:
                return None
            source = None if place is None else int(sources[place])
            offset = None if place is None else int(offsets[place])
            return HotKey(source, offset, which.size, shares[0], shares[1])

        if keyless.size and (found := hot(keyless, None)) is not None:
            yield found
        for each in np.lexsort((places, -numbers))[:most].tolist():
            which = np.flatnonzero(has_key & (hashes == unique[each]))
            if (found := hot(which, int(keyed[places[each]]))) is not None:
                yield found


def _by_run(runs: Int64Array, weights: Int64Array | None, count: int) -> Int64Array:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, runs, 1 if weights is None else weights)
    return sums


class LargeRecord(NamedTuple):
    """A record by its place; orders by size."""

    size_bytes: int  # what it takes of its batch before compression, as a record of format v2
    source: int  # which of the logs it is in
    offset: int


class LargestRecords:
    """Keeps the largest of the records that it is given. One thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[LargeRecord] = []

    def add(self, sizes: Int64Array, offsets: Int64Array, source: int) -> None:
        """Look at some records."""
        rows = np.arange(sizes.size)
        if len(self._kept) >= self._most:
            rows = np.flatnonzero(sizes > self._kept[-1].size_bytes)
        # Stable: of records of one size the first ones are kept, whenever one looks.
        rows = rows[np.argsort(-sizes[rows], kind="stable")[: self._most]]
        pairs = zip(sizes[rows].tolist(), offsets[rows].tolist(), strict=True)
        self._keep([LargeRecord(size, source, offset) for size, offset in pairs])

    def merge(self, other: LargestRecords) -> None:
        """Look at those of another one."""
        self._keep(other._kept)

    def __iter__(self) -> Iterator[LargeRecord]:
        return iter(self._kept)

    def _keep(self, found: list[LargeRecord]) -> None:
        if found:
            kept = sorted([*self._kept, *found], key=lambda each: (-each[0], each[1], each[2]))
            self._kept = kept[: self._most]
