"""The records of batches of any format and codec, by offset and hash of their key.

Batches lie decompressed in one buffer, and all as v2: those of v0 and v1 are rewritten, as they are
once they are cleaned. Uncompressed v2 batches stay where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels import decode_headers as fields
from pylog.kernels import hash_record_keys as kernel
from pylog.record.batch_header import codec_of
from pylog.record.batch_layout import (
    COMPRESSION_CODEC_MASK,
    MAGIC_VALUE_V1,
    MAGIC_VALUE_V2,
    MIN_RECORD_SIZE_V2,
    RECORDS_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from pylog.record.batch_scan import BatchHeaders
from pylog.record.compression import Decompressor
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.legacy_batch import iter_legacy_records
from pylog.record.record_batch import RecordBatch
from pylog.record.record_encoder import encode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.checked_windows import CheckedWindow
    from pylog.cleaner.offset_map import HashKey

    Int64Array = npt.NDArray[np.int64]

_GROUP_BYTES = 4 << 20
"""Batches are decompressed until together they have so many bytes."""
_PLACE = np.array([fields.POSITION, fields.SIZE_BYTES, fields.MAGIC])
_NO_ADVICE = "; the partition cannot be cleaned"
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
        self._plain = Decompressor(DEFAULT_MAX_DECOMPRESSED_BYTES, _NO_ADVICE)
        self._legacy = Decompressor(DEFAULT_MAX_DECOMPRESSED_BYTES, _NO_ADVICE)

    def read(
        self, window: CheckedWindow, batches: Int64Array, hash_key: HashKey, hashed: range
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
        headers = window.headers.select(batches)
        is_plain = headers.is_v2 & (headers.codec_ids == 0)
        if is_plain.all():
            starts = headers.positions + RECORDS_OFFSET
            ends = headers.positions + headers.sizes_bytes
            # As in Kafka, which does not look at what follows the header of an empty batch.
            ends = np.where(headers.record_counts == 0, starts, ends)
            if batches.size:
                group = _Group(window, batches, headers, window.scan.buffer, starts, ends)
                yield group.keyed(hash_key, hashed)
            return
        start = 0
        while start < batches.size:
            group = self._decompressed(window, batches, start)
            yield group.keyed(hash_key, hashed)
            start += group.batches.size

    def _decompressed(self, window: CheckedWindow, batches: Int64Array, start: int) -> _Group:
        """Return a group that begins with the batch at place ``start``."""
        plain = self._plain
        plain.buffer.clear()
        columns, bounds = [], []
        data = window.scan.buffer.data
        chosen = window.headers.columns[:, batches[start:]].T.copy()
        for batch, column in zip(batches[start:].tolist(), chosen, strict=True):
            at, size, magic = column[_PLACE].tolist()
            append = self._append_v2 if magic == MAGIC_VALUE_V2 else self._append_legacy
            try:
                bounds.append(append(data[at : at + size], column))
            except (CorruptRecordError, InvalidRecordError) as error:
                raise type(error)(error.reason, window.path, window.position_of(batch)) from error
            columns.append(column)
            if plain.buffer.length >= _GROUP_BYTES:
                break
        view = plain.buffer.view(0, max(1, plain.buffer.length))
        return _Group(
            window,
            batches[start : start + len(columns)],
            BatchHeaders(np.stack(columns, axis=1)),
            np.frombuffer(view, dtype=np.uint8),
            *np.array(bounds, dtype=np.int64).T.copy(),
        )

    def _append_v2(self, batch: memoryview, column: Int64Array) -> tuple[int, int]:
        codec = codec_of(int(column[fields.ATTRIBUTES]) & COMPRESSION_CODEC_MASK, MAGIC_VALUE_V2)
        if column[fields.RECORD_COUNT] == 0 and not codec:
            return self._plain.buffer.length, self._plain.buffer.length
        return self._plain.append(codec, batch[RECORDS_OFFSET:], MAGIC_VALUE_V2)

    def _append_legacy(self, batch: memoryview, column: Int64Array) -> tuple[int, int]:
        """Append the records of a v0 or v1 batch as v2, and make ``column`` the header of that."""
        buffer = self._plain.buffer
        start = buffer.open_batch()
        first = None
        count = 0
        for record in iter_legacy_records(batch, self._legacy):
            if first is None:
                first = record
            deltas = record.timestamp - first.timestamp, record.offset - first.offset
            buffer.append(encode_record(*deltas, record.key, record.value))
            count += 1
        if first is None:
            raise InvalidRecordError("message holds no record")
        kept = COMPRESSION_CODEC_MASK
        if column[fields.MAGIC] == MAGIC_VALUE_V1:
            kept |= TIMESTAMP_TYPE_MASK
        column[fields.ATTRIBUTES] &= kept
        column[fields.OFFSET] = first.offset
        column[fields.BASE_TIMESTAMP] = first.timestamp
        column[fields.RECORD_COUNT] = count
        return start, buffer.length


class _Group(NamedTuple):
    """Batches whose records lie decompressed in a buffer, between starts and ends."""

    window: CheckedWindow
    batches: Int64Array
    headers: BatchHeaders
    buffer: npt.NDArray[np.uint8]
    starts: Int64Array
    ends: Int64Array

    def keyed(self, hash_key: HashKey, hashed: range) -> KeyedRecords:
        """Walk through the records."""
        counts = self.headers.record_counts
        # Counts that the bytes cannot hold are refused before memory is made for them.
        is_impossible = (counts < 0) | (counts * MIN_RECORD_SIZE_V2 > self.ends - self.starts)
        if is_impossible.any():
            raise self._error(int(is_impossible.argmax()), kernel.STATUS_BAD_RECORD)
        table = np.empty((counts.size, kernel.BATCH_FIELDS), dtype=np.int64)
        table[:, kernel.BATCH_START] = self.starts
        table[:, kernel.BATCH_END] = self.ends
        table[:, kernel.BATCH_BASE_OFFSET] = self.headers.offsets
        table[:, kernel.BATCH_LAST_OFFSET] = self.headers.last_offsets
        table[:, kernel.BATCH_RECORD_COUNT] = counts
        rows = int(counts.sum())
        records = KeyedRecords(
            self.batches,
            self.headers,
            self.buffer,
            offsets=np.empty(rows, dtype=np.int64),
            hashes=np.empty((rows, 2), dtype=np.int64),
            traits=np.empty(rows, dtype=np.uint8),
            positions=np.empty(rows, dtype=np.int64),
            batch_ends=np.empty(counts.size, dtype=np.int64),
            ends=self.ends,
        )
        _, status, at_fault = kernel.hash_record_keys(
            self.buffer,
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
            raise self._error(int(at_fault), int(status))
        return records

    def _error(self, place: int, status: int) -> InvalidRecordError:
        """Return the error for a batch; what is wrong with it, the readable reference says."""
        batch = int(self.batches[place])
        reason = _REASONS[status]
        try:
            for _ in RecordBatch(self.window.bytes_of(batch)).records():
                pass
        except (CorruptRecordError, InvalidRecordError) as error:
            reason = error.reason
        return InvalidRecordError(reason, self.window.path, self.window.position_of(batch))
