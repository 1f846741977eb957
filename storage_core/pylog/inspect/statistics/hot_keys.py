"""The keys with the largest shares of a topic, counted over all records or over a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.inspect.statistics.sample_bounds import Bounds, share_bounds
from pylog.kernels.frequent_keys import (
    ENTRY_BYTES,
    ENTRY_ERROR_BYTES,
    ENTRY_ERROR_RECORDS,
    ENTRY_OFFSET,
    ENTRY_RECORDS,
    ENTRY_SOURCE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.inspect.statistics.frequent_keys import FrequentKeys

    Int64Array = npt.NDArray[np.int64]


class HotKey(NamedTuple):
    """A key, by a record that has it.

    Attributes
    ----------
    source, offset
        Which of the logs, and the offset of a record with this key; None for all records without a
        key.
    records
        How many records with it were counted.
    of_records, of_bytes
        Its share of the topic's records, and of their bytes before compression.
    """

    source: int | None
    offset: int | None
    records: int
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
        """Yield the keys with the most records, with 95 % bounds.

        Parameters
        ----------
        most
            How many at the most, not counted what has no key.
        sampled_share
            As of `ratio_bounds`.
        """
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
