"""Arrow record batches to v2 record batches: one kernel call writes a chunk of them.

What is taken of a record batch, by name; its other columns are left alone:

========= ================================================================= =====================
column    types                                                             null, or not there
========= ================================================================= =====================
value     binary, large_binary, string, large_string, fixed_size_binary     null; must be there
key       as value                                                          null
timestamp timestamp of any unit and zone, or int64 milliseconds             the caller's
headers   list or large_list of struct<key, value>, both typed as value     none
========= ================================================================= =====================

A chunk's batches lie one after the other in a buffer that is used again for the next chunk and
small enough to stay in the processor's cache, where the checksum finds them. With a codec set, the
records of each batch are compressed from there, and its header is put before them.

Source of the rules: MemoryRecordsBuilder, DefaultRecordBatch.writeHeader (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.encode_input import NO_ENDS, NO_ROWS, Columns, columns_of, read_only
from pylog.kernels import encode_records as kernel
from pylog.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    CompressionType,
)
from pylog.record.batch_header import (
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    RECORDS_OFFSET,
)
from pylog.record.batch_writer import seal_batch, set_size
from pylog.record.compressor import Compressor, ensure_level
from pylog.record.record_sizes import OversizedRecord, find_large_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


CHUNK_BYTES = 1 << 19
"""Bytes of batches that one kernel call writes; a larger batch makes the buffer grow."""


class OpenBatch:
    """What `RecordEncoder` adds records to, one partition's after the other. One thread."""

    __slots__ = ("buffer", "fields")

    def __init__(self) -> None:
        self.buffer: npt.NDArray[np.uint8] = np.empty(CHUNK_BYTES, dtype=np.uint8)
        self.fields: npt.NDArray[np.int64] = np.zeros(kernel.OPEN_FIELDS, dtype=np.int64)

    @property
    def record_count(self) -> int:
        """How many records it has; without any there is no batch."""
        return int(self.fields[kernel.OPEN_RECORDS])

    @property
    def size_bytes(self) -> int:
        """Size of the open batch."""
        if not self.record_count:
            return 0
        return int(self.fields[kernel.OPEN_END] - self.fields[kernel.OPEN_START])

    def move_to_front(self) -> None:
        """Put it at the start of the buffer, where it can grow: over batches that were written."""
        start = int(self.fields[kernel.OPEN_START])
        if self.record_count and start:
            size = self.size_bytes
            self.buffer[:size] = self.buffer[start : start + size]
            self.fields[kernel.OPEN_START] = 0
            self.fields[kernel.OPEN_END] = size

    def make_room(self, size_bytes: int) -> None:
        """Have a larger buffer, for a batch of at least ``size_bytes``; this one is in front."""
        grown = np.empty(max(2 * self.buffer.size, size_bytes + kernel.SPARE_BYTES), dtype=np.uint8)
        size = self.size_bytes
        grown[:size] = self.buffer[:size]
        self.buffer = grown

    def give_back_memory(self) -> None:
        """Have a new buffer, none of which is in memory yet; nothing may be open."""
        self.buffer = np.empty(CHUNK_BYTES, dtype=np.uint8)


DEFAULT_BATCH_SIZE_BYTES = 16_384
"""The default of producer property ``batch.size``."""
_MOST_BATCHES = 4_096  # that one kernel call writes
_INT32_MAX = 2**31 - 1
_ALL_ROWS = NO_ENDS


class EncodedBatch(NamedTuple):
    """One whole batch, checksum included; ``data`` is overwritten when the next is asked for."""

    data: memoryview
    record_count: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    size_bytes: int
    base_offset: int
    crc: int


class EncodedChunk(NamedTuple):
    """Whole batches one after the other, a row a batch."""

    data: memoryview
    positions: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    record_counts: npt.NDArray[np.int64]
    max_timestamps: npt.NDArray[np.int64]
    crcs: npt.NDArray[np.int64]
    # The first record of compressed batches above `RecordEncoder`'s ``max_record_bytes``; its place
    # counts the records of the chunk.
    large_record: OversizedRecord | None


class RecordEncoder:
    """Turns the rows of one partition, in order, into v2 batches of create-time records.

    Invariant: `next_offset` is the offset after the last batch that was yielded, and the batches
    yielded have offsets without gaps. One thread.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        *,
        compression: CompressionType = CompressionType.NONE,
        level: int | None = None,
        batch_size_bytes: int = DEFAULT_BATCH_SIZE_BYTES,
        max_records: int | None = None,
        max_record_bytes: int = _INT32_MAX,
        base_offset: int = 0,
        partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    ) -> None:
        self._compression = CompressionType(compression)
        ensure_level(self._compression, level)
        self._level = level
        self._max_record_bytes = max_record_bytes
        self._is_compressed = self._compression is not CompressionType.NONE
        self._compressor = Compressor()
        settings = np.zeros(kernel.SETTINGS, dtype=np.int64)
        settings[kernel.SET_BATCH_SIZE_BYTES] = _in_range("batch_size_bytes", batch_size_bytes, 1)
        settings[kernel.SET_MAX_RECORDS] = (
            _INT32_MAX if max_records is None else _in_range("max_records", max_records, 1)
        )
        settings[kernel.SET_PARTITION_LEADER_EPOCH] = _in_range(
            "partition_leader_epoch", partition_leader_epoch, NO_PARTITION_LEADER_EPOCH
        )
        settings[kernel.SET_ATTRIBUTES] = self._compression
        self.next_offset = _in_range("base_offset", base_offset, 0, 2**63 - 1)
        self._settings = settings
        self._batches = np.zeros((_MOST_BATCHES, kernel.BATCH_FIELDS), dtype=np.int64)
        self._own_batch = OpenBatch()  # never left open
        self._compressed = np.empty(0, dtype=np.uint8)

    def encode(
        self, data: pa.RecordBatch | pa.Table, *, timestamp_ms: int = NO_TIMESTAMP
    ) -> Iterator[EncodedBatch]:
        """Yield the batches of all rows of ``data``."""
        for chunk, described in self._encoded(data, timestamp_ms):
            for row in described.tolist():
                yield self._finished(chunk, row)

    def encode_chunks(
        self, data: pa.RecordBatch | pa.Table, *, timestamp_ms: int = NO_TIMESTAMP
    ) -> Iterator[EncodedChunk]:
        """Yield the same batches, as many at a time as one kernel call writes; see `encode`."""
        for chunk, described in self._encoded(data, timestamp_ms):
            yield self._finished_chunk(chunk, described)

    def encode_selected(
        self, columns: Columns, selection: npt.NDArray[np.int64], open_batch: OpenBatch
    ) -> Iterator[EncodedChunk]:
        """Add rows to a batch that is open, and yield those that become full; the last stays open.

        So no batch ends because a call does. One encoder may serve the open batches of many
        partitions in turn; its offsets then count on over all of them.
        """
        if selection.size:  # none would mean all rows
            chosen = read_only(np.ascontiguousarray(selection, dtype=np.int64).view())
            described = self._encode_columns(columns, 0, chosen, open_batch, keep_open=True)
            for chunk, batches in described:
                yield self._finished_chunk(chunk, batches)

    def close_batch(self, open_batch: OpenBatch) -> Iterator[EncodedChunk]:
        """Yield the open batch, if it has records; it has none afterwards."""
        for chunk, described in self._encode_columns(NO_ROWS, 0, _ALL_ROWS, open_batch):
            yield self._finished_chunk(chunk, described)

    def _finished_chunk(self, chunk: memoryview, described: npt.NDArray[np.int64]) -> EncodedChunk:
        """Return batches with their checksums, compressed if there is a codec; offsets continue."""
        bounds = np.empty((2, len(described)), dtype=np.int64)
        crcs = np.empty(len(described), dtype=np.int64)
        counts = described[:, kernel.BATCH_RECORD_COUNT].copy()
        end = 0
        large: OversizedRecord | None = None
        for place, row in enumerate(described.tolist()):
            if self._is_compressed and large is None:
                large = self._large_record(chunk, row, counts[:place])
            start = end if self._is_compressed else row[kernel.BATCH_START]
            batch = self._finished(chunk, row, end)
            end = start + batch.size_bytes
            bounds[:, place] = start, end
            crcs[place] = batch.crc
        whole = self._compressed.data if self._is_compressed else chunk
        latest = described[:, kernel.BATCH_MAX_TIMESTAMP].copy()
        return EncodedChunk(whole[:end], bounds[0], bounds[1], counts, latest, crcs, large)

    def _large_record(
        self, chunk: memoryview, described: list[int], before: npt.NDArray[np.int64]
    ) -> OversizedRecord | None:
        """Return a batch's first record that is too large, counted after those ``before`` it."""
        start, end = described[kernel.BATCH_START], described[kernel.BATCH_END]
        payload = chunk[start + RECORDS_OFFSET : end]
        found = find_large_record(payload, self._max_record_bytes, is_v2=True)
        return found and found._replace(place=int(before.sum()) + found.place)

    def _encoded(
        self, data: pa.RecordBatch | pa.Table, timestamp_ms: int
    ) -> Iterator[tuple[memoryview, npt.NDArray[np.int64]]]:
        """Yield chunks of batches without codec and checksum, and what describes each batch."""
        if timestamp_ms < NO_TIMESTAMP:
            msg = f"timestamp_ms {timestamp_ms} is below 0 and not {NO_TIMESTAMP} (none)"
            raise ValueError(msg)
        first_row = 0
        for chunk in [data] if isinstance(data, pa.RecordBatch) else data.to_batches():
            columns = columns_of(chunk, timestamp_ms, first_row)
            yield from self._encode_columns(columns, first_row, _ALL_ROWS, self._own_batch)
            first_row += chunk.num_rows

    def _encode_columns(
        self,
        columns: Columns,
        first_row: int,
        selection: npt.NDArray[np.int64],
        open_batch: OpenBatch,
        *,
        keep_open: bool = False,
    ) -> Iterator[tuple[memoryview, npt.NDArray[np.int64]]]:
        row, rows = 0, selection.size or columns.timestamps.size
        if rows > 2**63 - self.next_offset:
            msg = f"no offsets are left for {rows} records from offset {self.next_offset} on"
            raise ValueError(msg)
        # Rows count from 0 in every record batch; offsets continue.
        self._settings[kernel.SET_BASE_OFFSET] = self.next_offset + open_batch.record_count
        self._settings[kernel.SET_KEEP_OPEN] = keep_open
        while row < rows or (open_batch.record_count and not keep_open):
            open_batch.move_to_front()
            out = open_batch.buffer
            written, row, status, detail = kernel.encode_records(
                row, self._settings, selection, *columns, out, self._batches, open_batch.fields
            )
            if written:
                yield out.data, self._batches[:written]
            if written or status == kernel.STATUS_OK:
                continue
            if status != kernel.STATUS_NEEDS_ROOM:
                raise _row_error(status, first_row + detail)
            open_batch.make_room(detail)

    def _finished(self, chunk: memoryview, described: list[int], at: int = 0) -> EncodedBatch:
        """Return the batch with its checksum; offsets continue."""
        start, end, count, base_timestamp, max_timestamp = described
        data = chunk[start:end]
        if self._is_compressed:
            data = self._compressed_batch(data, at)
        crc = seal_batch(data, 0, len(data))
        base_offset = self.next_offset
        self.next_offset = base_offset + count
        return EncodedBatch(
            data, count, count - 1, base_timestamp, max_timestamp, len(data), base_offset, crc
        )

    def _compressed_batch(self, plain: memoryview, at: int) -> memoryview:
        """Return the batch with its records compressed, in a buffer that is used again."""
        payload = self._compressor.compress(
            self._compression, plain[RECORDS_OFFSET:], magic=MAGIC_VALUE_V2, level=self._level
        )
        size = RECORDS_OFFSET + len(payload)
        if size - LOG_OVERHEAD > _INT32_MAX:
            msg = f"a batch of {len(plain)} bytes is too large for the format once compressed"
            raise ValueError(msg)
        if self._compressed.size < at + size:
            grown = np.empty(2 * (at + size), dtype=np.uint8)
            grown[:at] = self._compressed[:at]
            self._compressed = grown
        data = self._compressed.data[at : at + size]
        data[:RECORDS_OFFSET] = plain[:RECORDS_OFFSET]
        data[RECORDS_OFFSET:] = payload
        set_size(data)
        return data


def _in_range(name: str, value: int, lowest: int, highest: int = _INT32_MAX) -> int:
    if not lowest <= value <= highest:
        msg = f"{name} is {value}, not from {lowest} to {highest}"
        raise ValueError(msg)
    return value


def _row_error(status: int, row: int) -> ValueError:
    if status == kernel.STATUS_RECORD_TOO_LARGE:
        return ValueError(f"row {row}: the record does not fit a batch of {_INT32_MAX} bytes")
    return ValueError(f"row {row}: the offsets of a column do not lie within its bytes")
