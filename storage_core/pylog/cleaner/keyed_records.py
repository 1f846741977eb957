"""Segments as a cleaning reads them: windows of sound batches; records by the hash of their key."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels import decode_headers as fields
from pylog.kernels import hash_record_keys, legacy_to_v2
from pylog.native.checksum import wrong_checksum
from pylog.record.batch_header import (
    COMPRESSION_CODEC_MASK,
    MAGIC_VALUE_V2,
    MIN_RECORD_SIZE_V2,
    RECORDS_OFFSET,
    TIMESTAMP_TYPE_MASK,
    codec_of,
)
from pylog.record.batch_scan import BatchHeaders, find_bad_checksum, find_batches
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import computed_crc, wrapped_stream
from pylog.record.record_batch import RecordBatch
from pylog.record.record_sizes import ensure_record_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.offset_map import HashKey
    from pylog.record.batch_scan import Window

    Int64Array = npt.NDArray[np.int64]

# Batches of any format and codec as uncompressed v2, in one buffer.
#
# Uncompressed v2 batches stay where they are. Others are decompressed; those of v0 and v1 are
# rewritten as v2, which they will be once they are cleaned.
#
# Source: MemoryRecords.buildRetainedRecordsInto (Kafka 4.3).

_GROUP_BYTES = 4 << 20
"""Batches are decompressed until together they have so many bytes."""
_ADVICE = "; the partition cannot be cleaned"
_LEGACY_REASONS = {
    legacy_to_v2.STATUS_BAD_MESSAGE: "a message in it is damaged, or compressed once more",
    legacy_to_v2.STATUS_EMPTY_SET: "compressed message holds no inner message",
    legacy_to_v2.STATUS_BAD_OFFSET: (
        "the messages' offsets do not go up, or are above the wrapper's"
    ),
    legacy_to_v2.STATUS_NO_ROOM: "its messages do not fit v2",
}


class PlainBatches(NamedTuple):
    """Some batches of a window; ``messages`` are those of v0 and v1 before they became v2."""

    batches: Int64Array
    headers: BatchHeaders
    buffer: npt.NDArray[np.uint8]
    starts: Int64Array
    ends: Int64Array
    messages: PlainBatches | None = None


def _as_v2(window: Window, legacy: PlainBatches) -> PlainBatches:
    headers = legacy.headers
    sets = np.empty((len(headers), legacy_to_v2.SET_FIELDS), dtype=np.int64)
    sets[:, legacy_to_v2.SET_START] = legacy.starts
    sets[:, legacy_to_v2.SET_END] = legacy.ends
    # The content of a wrapper is not compressed any more, but its header still says so.
    sets[:, legacy_to_v2.SET_IS_WRAPPED] = headers.codec_ids != 0
    sets[:, legacy_to_v2.SET_OFFSET] = headers.offsets
    sets[:, legacy_to_v2.SET_MAGIC] = headers.magics
    sets[:, legacy_to_v2.SET_APPEND_TIME] = headers.is_append_time
    sets[:, legacy_to_v2.SET_TIMESTAMP] = headers.max_timestamps
    room = 2 * int((legacy.ends - legacy.starts).sum()) + legacy_to_v2.MOST_OVERHEAD
    out = np.empty(room, dtype=np.uint8)
    table = np.empty((len(headers), legacy_to_v2.BATCH_FIELDS), dtype=np.int64)
    status, at_fault = legacy_to_v2.legacy_to_v2(legacy.buffer, sets, out, table)
    if status != legacy_to_v2.STATUS_OK:
        raise invalid_batch(
            window, int(legacy.batches[int(at_fault)]), _LEGACY_REASONS[int(status)]
        )
    columns = headers.columns.copy()
    columns[fields.ATTRIBUTES] &= np.where(
        headers.is_append_time, COMPRESSION_CODEC_MASK | TIMESTAMP_TYPE_MASK, COMPRESSION_CODEC_MASK
    )
    columns[fields.OFFSET] = table[:, legacy_to_v2.BATCH_BASE_OFFSET]
    columns[fields.BASE_TIMESTAMP] = table[:, legacy_to_v2.BATCH_BASE_TIMESTAMP]
    columns[fields.RECORD_COUNT] = table[:, legacy_to_v2.BATCH_RECORD_COUNT]
    return PlainBatches(
        legacy.batches,
        BatchHeaders(columns),
        out,
        np.ascontiguousarray(table[:, legacy_to_v2.BATCH_START]),
        np.ascontiguousarray(table[:, legacy_to_v2.BATCH_END]),
        legacy,
    )


def invalid_batch(window: Window, batch: int, reason: str) -> InvalidRecordError:
    """Return the error for a batch: ``reason``, unless the readable reference knows it better."""
    try:
        for _ in RecordBatch(window.bytes_of(batch)).records():
            pass
    except (CorruptRecordError, InvalidRecordError) as error:
        reason = error.reason
    return InvalidRecordError(reason, window.path, window.position_of(batch))


_REASONS = {
    hash_record_keys.STATUS_BAD_RECORD: "a record's length and its fields disagree",
    hash_record_keys.STATUS_BYTES_REMAIN: (
        "bytes remain after the last record that the batch counts"
    ),
    hash_record_keys.STATUS_BAD_OFFSET: (
        "the records' offsets do not go up, or are not those of the batch"
    ),
}


class WrongChecksum(NamedTuple):
    """A message in a wrapper of v0 or v1, by its row, whose checksum is not the computed one."""

    row: int
    batch: int
    reason: str


class KeyedRecords(NamedTuple):
    """Some batches of a window, and their records, a row a record."""

    batches: Int64Array
    headers: BatchHeaders
    buffer: npt.NDArray[np.uint8]
    offsets: Int64Array
    hashes: Int64Array
    traits: npt.NDArray[np.uint8]
    positions: Int64Array
    batch_ends: Int64Array
    ends: Int64Array
    messages: PlainBatches | None = None

    def wrong_checksums(self) -> Iterator[WrongChecksum]:
        """Yield the messages that a wrapper's own checksum covers, and theirs does not.

        To be asked for before the reader's next group, which takes the place of the messages.
        """
        if self.messages is None:
            return
        _, headers, buffer, starts, ends, _ = self.messages
        firsts = self.batch_starts
        for place in np.flatnonzero(headers.codec_ids).tolist():
            scan = find_batches(buffer[starts[place] : ends[place]])
            bad = find_bad_checksum(scan)
            if bad is None:
                continue
            first, batch = int(firsts[place]), int(self.batches[place])
            for number in range(bad.index, len(scan.headers)):
                at, size = scan.headers.positions[number], scan.headers.sizes_bytes[number]
                stored = int(scan.headers.crcs[number])
                computed = computed_crc(scan.buffer.data[at : at + size])
                if computed != stored:
                    reason = wrong_checksum("message", stored, computed)
                    yield WrongChecksum(first + number, batch, reason)

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
        mask: npt.NDArray[np.bool_] = self.traits & hash_record_keys.TRAIT_KEY != 0
        return mask

    @property
    def has_value(self) -> npt.NDArray[np.bool_]:
        """Whether each record has a value; a record without one is a tombstone."""
        mask: npt.NDArray[np.bool_] = self.traits & hash_record_keys.TRAIT_VALUE != 0
        return mask

    def counts(self, which: npt.NDArray[np.bool_]) -> Int64Array:
        """Return how many records of each batch a mask picks."""
        sums = np.concatenate([[0], np.cumsum(which)])
        counted: Int64Array = sums[self.batch_ends] - sums[self.batch_starts]
        return counted


class KeyedRecordReader:
    """Reads the records of batches in groups that take a bounded memory. One thread.

    A compressed batch with a record above ``max_record_bytes`` is refused, see
    `pylog.record.record_sizes`; ``advice`` ends the sentence about one that is too large.
    """

    def __init__(self, max_record_bytes: int | None = None, *, advice: str = _ADVICE) -> None:
        self._advice = advice
        self._decompressor = Decompressor(DEFAULT_MAX_DECOMPRESSED_BYTES, advice)
        self._max_record_bytes = max_record_bytes

    def read(
        self, window: Window, batches: Int64Array, hash_key: HashKey, hashed: range
    ) -> Iterator[KeyedRecords]:
        """Yield the records of some batches of a window, in order."""
        is_v2 = window.headers.is_v2[batches]
        bounds = [0, *(np.flatnonzero(np.diff(is_v2)) + 1).tolist(), batches.size]
        for start, end in itertools.pairwise(bounds):
            rest = batches[start:end]
            while rest.size:
                group = self._next_group(window, rest)
                plain = group if is_v2[start] else _as_v2(window, group)
                yield _keyed(window, plain, hash_key, hashed)
                rest = rest[group.batches.size :]

    def _next_group(self, window: Window, batches: Int64Array) -> PlainBatches:
        """Return the first of some batches of one format family, decompressed."""
        headers = window.headers.select(batches)
        starts = headers.positions + np.where(headers.is_v2, RECORDS_OFFSET, 0)
        ends = headers.positions + headers.sizes_bytes
        # As in Kafka, which does not look at what follows the header of an empty batch.
        ends = np.where((headers.record_counts == 0) & (headers.codec_ids == 0), starts, ends)
        if not headers.codec_ids.any():
            return PlainBatches(batches, headers, window.buffer, starts, ends)
        stored = PlainBatches(batches, headers, window.buffer, starts, ends)
        return self._decompressed(window, stored)

    def _decompressed(self, window: Window, stored: PlainBatches) -> PlainBatches:
        decompressor, headers = self._decompressor, stored.headers
        decompressor.buffer.clear()
        data = window.buffer.data
        bounds = []
        columns = (stored.starts, stored.ends, headers.magics, headers.codec_ids)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        for place, (start, end, magic, codec_id) in enumerate(rows):
            stream = data[start:end]
            try:
                codec = codec_of(codec_id, magic)
                if codec and magic < MAGIC_VALUE_V2:
                    stream = wrapped_stream(stream, magic)
                bounds.append(decompressor.append(codec, stream, magic))
                if codec:
                    ensure_record_sizes(
                        decompressor.buffer.view(*bounds[-1]),
                        self._max_record_bytes,
                        is_v2=magic == MAGIC_VALUE_V2,
                        advice=self._advice,
                    )
            except (CorruptRecordError, InvalidRecordError) as error:
                position = window.position_of(int(stored.batches[place]))
                raise type(error)(error.reason, window.path, position) from error
            if decompressor.buffer.length >= _GROUP_BYTES:
                break
        count = len(bounds)
        view = decompressor.buffer.view(0, max(1, decompressor.buffer.length))
        return PlainBatches(
            stored.batches[:count],
            headers.select(slice(count)),
            np.frombuffer(view, dtype=np.uint8),
            *np.array(bounds, dtype=np.int64).T.copy(),
        )


def _keyed(window: Window, group: PlainBatches, hash_key: HashKey, hashed: range) -> KeyedRecords:
    headers = group.headers
    counts = headers.record_counts
    # Counts that the bytes cannot hold are refused before memory is made for them.
    is_impossible = (counts < 0) | (counts * MIN_RECORD_SIZE_V2 > group.ends - group.starts)
    if is_impossible.any():
        batch = int(group.batches[int(is_impossible.argmax())])
        raise invalid_batch(window, batch, _REASONS[hash_record_keys.STATUS_BAD_RECORD])
    table = np.empty((counts.size, hash_record_keys.BATCH_FIELDS), dtype=np.int64)
    table[:, hash_record_keys.BATCH_START] = group.starts
    table[:, hash_record_keys.BATCH_END] = group.ends
    table[:, hash_record_keys.BATCH_BASE_OFFSET] = headers.offsets
    table[:, hash_record_keys.BATCH_LAST_OFFSET] = headers.last_offsets
    table[:, hash_record_keys.BATCH_RECORD_COUNT] = counts
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
        messages=group.messages,
    )
    _, status, at_fault = hash_record_keys.hash_record_keys(
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
    if status != hash_record_keys.STATUS_OK:
        batch = int(group.batches[int(at_fault)])
        raise invalid_batch(window, batch, _REASONS[int(status)])
    return records
