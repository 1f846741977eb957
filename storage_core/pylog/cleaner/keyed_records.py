"""The records of batches of any format and codec, by offset and hash of their key."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.cleaner.plain_batches import PlainBatchReader, invalid_batch
from pylog.kernels import hash_record_keys as kernel
from pylog.record.batch_layout import MIN_RECORD_SIZE_V2

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.offset_map import HashKey
    from pylog.cleaner.plain_batches import PlainBatches
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.window import Window

    Int64Array = npt.NDArray[np.int64]

_REASONS = {
    kernel.STATUS_BAD_RECORD: "a record's length and its fields disagree",
    kernel.STATUS_BYTES_REMAIN: "bytes remain after the last record that the batch counts",
    kernel.STATUS_BAD_OFFSET: "the records' offsets do not go up, or are not those of the batch",
}


class KeyedRecords(NamedTuple):
    """Some batches of a window, and their records, a row a record.

    Attributes
    ----------
    batches
        int64: which batches of the window.
    headers
        Theirs. Of a v0 or v1 batch those that it has as v2, but for the magic, which tells that.
    buffer
        uint8: what the records lie in, decompressed; valid until the next group is asked for.
    offsets
        int64: of each record.
    hashes
        int64, shape (records, 2): of their keys, for those that were asked for.
    traits
        uint8: whether a record has a key and a value, see `pylog.kernels.hash_record_keys`.
    positions
        int64: where in ``buffer`` each record begins.
    batch_ends
        int64: the row after the last one of each batch.
    ends
        int64: where in ``buffer`` the records of each batch end.
    """

    batches: Int64Array
    headers: BatchHeaders
    buffer: npt.NDArray[np.uint8]
    offsets: Int64Array
    hashes: Int64Array
    traits: npt.NDArray[np.uint8]
    positions: Int64Array
    batch_ends: Int64Array
    ends: Int64Array

    @property
    def sizes_bytes(self) -> Int64Array:
        """The length of each record, decompressed."""
        nexts = np.append(self.positions[1:], 0)
        has_records = self.batch_ends > self.batch_starts
        nexts[self.batch_ends[has_records] - 1] = self.ends[has_records]
        sizes: Int64Array = nexts - self.positions
        return sizes

    @property
    def batch_starts(self) -> Int64Array:
        """The first row of each batch."""
        return np.concatenate([[0], self.batch_ends[:-1]]).astype(np.int64)

    @property
    def has_key(self) -> npt.NDArray[np.bool_]:
        """Whether each record has a key."""
        mask: npt.NDArray[np.bool_] = self.traits & kernel.TRAIT_KEY != 0
        return mask

    @property
    def has_value(self) -> npt.NDArray[np.bool_]:
        """Whether each record has a value; a record without one is a tombstone."""
        mask: npt.NDArray[np.bool_] = self.traits & kernel.TRAIT_VALUE != 0
        return mask

    def counts(self, which: npt.NDArray[np.bool_]) -> Int64Array:
        """Return how many records of each batch a mask picks."""
        sums = np.concatenate([[0], np.cumsum(which)])
        counted: Int64Array = sums[self.batch_ends] - sums[self.batch_starts]
        return counted


class KeyedRecordReader:
    """Reads the records of batches in groups that take a bounded memory. One thread."""

    def __init__(self) -> None:
        self._reader = PlainBatchReader()

    def read(
        self, window: Window, batches: Int64Array, hash_key: HashKey, hashed: range
    ) -> Iterator[KeyedRecords]:
        """Yield the records of some batches of a window, in order.

        Parameters
        ----------
        window
            Its checksums have been checked.
        batches
            Which of its batches.
        hash_key
            What keys are hashed with.
        hashed
            Offsets of the records whose keys are to be hashed.

        Raises
        ------
        CorruptRecordError, InvalidRecordError
            The records break the format, are not as many as counted, or have offsets that do not
            go up or are not the batch's.
        """
        for group in self._reader.read(window, batches):
            yield _keyed(window, group, hash_key, hashed)


def _keyed(window: Window, group: PlainBatches, hash_key: HashKey, hashed: range) -> KeyedRecords:
    """Walk through the records."""
    headers = group.headers
    counts = headers.record_counts
    # Counts that the bytes cannot hold are refused before memory is made for them.
    is_impossible = (counts < 0) | (counts * MIN_RECORD_SIZE_V2 > group.ends - group.starts)
    if is_impossible.any():
        batch = int(group.batches[int(is_impossible.argmax())])
        raise invalid_batch(window, batch, _REASONS[kernel.STATUS_BAD_RECORD])
    table = np.empty((counts.size, kernel.BATCH_FIELDS), dtype=np.int64)
    table[:, kernel.BATCH_START] = group.starts
    table[:, kernel.BATCH_END] = group.ends
    table[:, kernel.BATCH_BASE_OFFSET] = headers.offsets
    table[:, kernel.BATCH_LAST_OFFSET] = headers.last_offsets
    table[:, kernel.BATCH_RECORD_COUNT] = counts
    rows = int(counts.sum())
    records = KeyedRecords(
        group.batches,
        headers,
        group.buffer,
        offsets=np.empty(rows, dtype=np.int64),
        hashes=np.empty((rows, 2), dtype=np.int64),
        traits=np.empty(rows, dtype=np.uint8),
        positions=np.empty(rows, dtype=np.int64),
        batch_ends=np.empty(counts.size, dtype=np.int64),
        ends=group.ends,
    )
    _, status, at_fault = kernel.hash_record_keys(
        group.buffer,
        table,
        hashed.start,
        hashed.stop - 1,
        *hash_key,
        records.offsets,
        records.hashes,
        records.traits,
        records.positions,
        records.batch_ends,
    )
    if status != kernel.STATUS_OK:
        batch = int(group.batches[int(at_fault)])
        raise invalid_batch(window, batch, _REASONS[int(status)])
    return records
