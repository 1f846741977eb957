"""What `RecordDecoder` asks of a format family, v2 or v0/v1: its batches as columns.

How much memory the records of one batch may take, decompressed and as Arrow columns.

A few kilobytes can decompress to gigabytes, and seven bytes of them are a record, two a header,
each of which takes more than that in Arrow's columns. So a batch's decompressed size is limited,
and what is large within the limit becomes columns piece by piece: several Arrow record batches.

In units of the limit, decoding a batch takes at most

==== ===================================================================================
1    its bytes in the file, where they do not shrink by compression
1    its records, decompressed
0.5  the window of a zstd stream (at most 128 MiB, whatever the limit)
1.5  the columns of one piece; more where the records, decompressed, are less
==== ===================================================================================

where not all can be at their most at once: what does not shrink has no tiny headers. One record
alone cannot be cut. Its columns take what its bytes do, unless there are a great many headers of
few bytes each; where these would take more than is left, the batch is refused.

One call of a decoding kernel: what it is asked for, and the errors about what it refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from pylog.columnar.record_columns import RecordColumns, headers_array
from pylog.errors import CorruptRecordError, InvalidRecordError, TimestampOverflowError
from pylog.kernels import decode_headers as fields
from pylog.kernels import decode_records as kernel
from pylog.kernels import header_keys
from pylog.kernels.split_batch import (
    PIECE_END,
    PIECE_FIELDS,
    PIECE_RECORDS,
    PIECE_START,
    split_batch,
)
from pylog.record.batch_header import (
    MIN_RECORD_SIZE_V2,
    RECORDS_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from pylog.record.byte_buffer import over_limit
from pylog.record.record import decode_record
from pylog.record.varint import decode_varint, decode_varlong

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from pylog.errors import LogStorageError
    from pylog.model import CompressionType
    from pylog.record.batch_scan import BatchHeaders


_LEAST_PIECE_BYTES = 1 << 16
_MOST_PIECE_BYTES = 1 << 24
_LEAST_PIECE_ROWS = 1 << 10
_MOST_PIECE_ROWS = 1 << 18
_ROW_BYTES = 1 << 10
"""More than a row takes in all columns but key, value and headers; a topic's name has 249."""


class DecodeLimits(NamedTuple):
    """What follows from the limit on a batch's decompressed size."""

    batch_bytes: int
    piece_bytes: int
    piece_rows: int
    record_bytes: int

    @property
    def small_bytes(self) -> int:
        """A batch with no more bytes than this is not large, however many records it has."""
        return min(self.piece_bytes, self.piece_rows * MIN_RECORD_SIZE_V2)

    @classmethod
    def of(cls, batch_bytes: int) -> DecodeLimits:
        """Return the limits for ``batch_bytes``, the most that a batch may decompress to."""
        return cls(
            batch_bytes,
            min(max(batch_bytes // 16, _LEAST_PIECE_BYTES), _MOST_PIECE_BYTES, batch_bytes),
            min(max(batch_bytes // _ROW_BYTES, _LEAST_PIECE_ROWS), _MOST_PIECE_ROWS),
            2 * batch_bytes + batch_bytes // 2,
        )

    def is_large(
        self, sizes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Mask the batches that are decoded in pieces, each a group of its own."""
        return (sizes > self.piece_bytes) | (rows > self.piece_rows)

    def pieces(
        self, buffer: npt.NDArray[np.uint8], start: int, end: int, records: int, *, is_v2: bool
    ) -> npt.NDArray[np.int64]:
        """Return the output of `split_batch` for records in ``[start, end)``, at most so many."""
        most = 2 * ((end - start) // self.piece_bytes) + records // self.piece_rows + 2
        pieces = np.empty((most, PIECE_FIELDS), dtype=np.int64)
        count = split_batch(buffer, start, end, is_v2, self.piece_bytes, self.piece_rows, pieces)
        return pieces[:count]

    def too_many_headers(self, count: int, size_bytes: int) -> str:
        """Return the text for a batch with a record that does not fit into `record_bytes`."""
        return over_limit(
            f"a record's {count} headers need {size_bytes} bytes of memory as columns, more than "
            f"{self.record_bytes}, which is 2.5 times what the batch may have",
            self.batch_bytes,
        )


BATCH_START, BATCH_END = 0, 1
"""Columns of both kernels' input tables: where in the buffer a batch's records lie."""

_BatchError = TypeVar("_BatchError", CorruptRecordError, InvalidRecordError, TimestampOverflowError)


class GroupRequest(NamedTuple):
    """The bytes of a group of batches, the offsets and columns wanted, and names for errors."""

    buffer: npt.NDArray[np.uint8]
    start_offset: int
    end_offset: int
    want: int
    timestamp_type: pa.DataType
    path: str
    file_position: int
    last_offset_before: int = -1
    large_batch_start: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the range has no offsets."""
        return self.start_offset >= self.end_offset

    def of_nothing(self) -> GroupRequest:
        """Return the request to look at every record and give none."""
        return self._replace(start_offset=0, end_offset=0, want=0)

    @property
    def timestamp_scale(self) -> int:
        """Factor from milliseconds to the unit of the timestamp column."""
        return 1000 if self.timestamp_type.unit == "us" else 1

    def error(
        self, kind: type[_BatchError], reason: str, run: BatchHeaders, index: int
    ) -> _BatchError:
        """Return the error about batch ``index`` of ``run``, with its file and position."""
        return kind(reason, self.path, self.file_position + int(run.positions[index]))


class Refusal(NamedTuple):
    """A batch that a kernel refused, and where in it."""

    request: GroupRequest
    run: BatchHeaders
    batch_index: int
    inside: int

    @classmethod
    def at(
        cls,
        request: GroupRequest,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        batch_index: int,
        position: int,
    ) -> Refusal:
        """Return the refusal of a batch for a record at ``position`` of the buffer."""
        start = request.large_batch_start
        inside = position - (int(table[batch_index, BATCH_START]) if start is None else start)
        return cls(request, run, batch_index, inside)

    def error(self, kind: type[_BatchError], reason: str) -> _BatchError:
        """Return the error with this reason."""
        return self.request.error(kind, reason, self.run, self.batch_index)

    def timestamp_overflow(self) -> TimestampOverflowError:
        """Return the error for a timestamp that does not fit the unit asked for."""
        reason = (
            f"the timestamp of the record {self.inside} bytes into this batch does not fit into "
            "64-bit microseconds; leave the column 'timestamp' out, or ask for milliseconds: "
            "option timestampUnit=milliseconds in Spark, timestamp_unit='ms' in the library"
        )
        return self.error(TimestampOverflowError, reason)


class GroupDecoder(Protocol):
    """Decodes groups of consecutive batches of one format family; without state of its own."""

    def describe_batches(self, run: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the table of these batches."""

    def stream_of(self, records: memoryview, codec: CompressionType, magic: int) -> memoryview:
        """Return the bytes to decompress of a batch."""

    def most_rows(self, run: BatchHeaders, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many records each batch has at the most."""

    def decode(
        self, request: GroupRequest, run: BatchHeaders, table: npt.NDArray[np.int64]
    ) -> RecordColumns:
        """Return the columns of the group's records."""

    def cut_into_pieces(
        self,
        request: GroupRequest,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        limits: DecodeLimits,
    ) -> npt.NDArray[np.int64]:
        """Return the table's one large batch as several rows, each for a piece of its records."""


LARGE_RECORD_BYTES = 1 << 21
"""A record from here on is measured before it is decoded."""

_END_BYTES = 4
_INT32_MAX = 2**31 - 1


class RecordMeasures(NamedTuple):
    """Bytes of one record, by where they go."""

    key_and_value: tuple[int, int]
    header_count: int
    header_keys_and_values: tuple[int, int]
    replaced_header_keys: int

    @property
    def column_bytes(self) -> int:
        """Memory that the columns of key, value and headers take while they are made."""
        ends = self.header_count * 2 * _END_BYTES + self.header_count // 8  # and a bit for null
        if self.replaced_header_keys:
            ends += self.header_count * _END_BYTES + self.replaced_header_keys
        return sum(self.key_and_value) + sum(self.header_keys_and_values) + ends

    @property
    def fits_arrow(self) -> bool:
        """Whether the header keys can be addressed by Arrow's int32 offsets."""
        return self.replaced_header_keys <= _INT32_MAX


def measure_record(buffer: npt.NDArray[np.uint8], start: int, end: int) -> RecordMeasures:
    """Return the measures of the record in ``[start, end)``, which has been found sound."""
    data = buffer.data
    _, at = decode_varint(data, start, end)
    _, at = decode_varlong(data, at + 1, end)  # after one byte of attributes
    _, at = decode_varint(data, at, end)
    key_bytes, at = decode_varint(data, at, end)
    at += max(0, key_bytes)
    value_bytes, at = decode_varint(data, at, end)
    at += max(0, value_bytes)
    header_count, at = decode_varint(data, at, end)
    measures = np.zeros(header_keys.MEASURES, dtype=np.int64)
    header_keys.measure_headers(buffer, at, header_count, measures)
    return RecordMeasures(
        (max(0, key_bytes), max(0, value_bytes)),
        header_count,
        (int(measures[header_keys.KEY_BYTES]), int(measures[header_keys.VALUE_BYTES])),
        int(measures[header_keys.REPLACED_KEY_BYTES]),
    )


_EXPLAINED_RECORDS = 100_000
"""How many records of a batch are looked at one by one to say which of them is wrong."""

_REASONS = {
    kernel.STATUS_BAD_VARINT: "a number runs past the end of the record",
    kernel.STATUS_BAD_RECORD_LENGTH: "the record's length does not fit into the batch",
    kernel.STATUS_BAD_KEY_LENGTH: "the key's length does not fit into the record",
    kernel.STATUS_BAD_VALUE_LENGTH: "the value's length does not fit into the record",
    kernel.STATUS_BAD_HEADER: "a header does not fit into the record",
    kernel.STATUS_LENGTH_MISMATCH: "the record's fields and its length disagree",
    kernel.STATUS_BYTES_REMAIN: "bytes remain after the last record that the batch counts",
}

# Rows of the headers that fill the columns of the kernel's table, some of them only for a moment.
_SOURCES = np.empty(kernel.BATCH_FIELDS, dtype=np.int64)
_SOURCES[kernel.BATCH_START] = fields.POSITION
_SOURCES[kernel.BATCH_END] = fields.POSITION
_SOURCES[kernel.BATCH_BASE_OFFSET] = fields.OFFSET
_SOURCES[kernel.BATCH_BASE_TIMESTAMP] = fields.BASE_TIMESTAMP
_SOURCES[kernel.BATCH_APPEND_TIME] = fields.ATTRIBUTES
_SOURCES[kernel.BATCH_MAX_TIMESTAMP] = fields.MAX_TIMESTAMP
_SOURCES[kernel.BATCH_RECORD_COUNT] = fields.RECORD_COUNT
_SOURCES[kernel.BATCH_LAST_OFFSET] = fields.LAST_OFFSET


class V2GroupDecoder:
    """See `pylog.columnar.group_decoder.GroupDecoder`."""

    __slots__ = ()

    def describe_batches(self, run: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the kernel's input table."""
        table = np.ascontiguousarray(run.columns[_SOURCES].T)
        table[:, kernel.BATCH_START] += RECORDS_OFFSET
        table[:, kernel.BATCH_END] += run.sizes_bytes
        table[:, kernel.BATCH_APPEND_TIME] &= TIMESTAMP_TYPE_MASK
        counts = run.record_counts
        if not counts.all():
            # As in Kafka, which opens the stream of an empty batch that is compressed. Differs from
            # Kafka: there has to be nothing in it.
            unseen = (counts == 0) & (run.codec_ids == 0)
            table[unseen, kernel.BATCH_END] = table[unseen, kernel.BATCH_START]
        return table

    def stream_of(self, records: memoryview, _codec: CompressionType, _magic: int) -> memoryview:
        """Return the bytes to decompress of a batch: all of its records."""
        return records

    def most_rows(self, _run: BatchHeaders, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many records each batch says it has."""
        return table[:, kernel.BATCH_RECORD_COUNT]

    def decode(
        self, request: GroupRequest, run: BatchHeaders, table: npt.NDArray[np.int64]
    ) -> RecordColumns:
        """Return the columns of the group's records; see `GroupDecoder.decode` for the errors."""
        sizes = table[:, kernel.BATCH_END] - table[:, kernel.BATCH_START]
        counts = table[:, kernel.BATCH_RECORD_COUNT]
        # Counts that the bytes cannot hold are refused before memory is made for them.
        if (counts * MIN_RECORD_SIZE_V2 > sizes).any() or counts.min() < 0:
            raise _count_error(request, run, counts, sizes // MIN_RECORD_SIZE_V2)
        most = 0 if request.is_empty else int(counts.sum())
        key_and_value_bytes, header_bytes = _data_bytes(request, table, int(sizes.sum()))
        columns = RecordColumns(most, key_and_value_bytes, request.want, run.offsets)
        with_headers = bool(request.want & kernel.WANT_HEADERS)
        header_positions = np.empty(most if with_headers else 0, dtype=np.int64)
        header_counts = np.empty(most if with_headers else 0, dtype=np.int32)
        totals = np.zeros(kernel.TOTALS, dtype=np.int64)
        rows, status, at = kernel.decode_records(
            request.buffer,
            table,
            request.start_offset,
            request.end_offset,
            request.want,
            request.timestamp_scale,
            *columns.outputs,
            header_positions,
            header_counts,
            columns.batch_rows,
            columns.latest_timestamps,
            totals,
        )
        if status != kernel.STATUS_OK:
            index = int(totals[kernel.TOTAL_BAD_BATCH])
            raise _error(Refusal.at(request, run, table, index, int(at)), table, status)
        columns.finish(int(rows), totals, request.timestamp_type)
        if with_headers:
            columns.arrays["headers"] = headers_array(
                request.buffer, header_positions[:rows], header_counts[:rows], header_bytes
            )
        return columns

    def cut_into_pieces(
        self,
        request: GroupRequest,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        limits: DecodeLimits,
    ) -> npt.NDArray[np.int64]:
        """Return the table's one large batch as several rows, each for a piece of its records."""
        self.decode(request.of_nothing(), run, table)
        start, end = table[0, : kernel.BATCH_END + 1].tolist()
        count = int(table[0, kernel.BATCH_RECORD_COUNT])
        cuts = limits.pieces(request.buffer, start, end, count, is_v2=True)
        pieces = np.repeat(table, len(cuts), axis=0)
        pieces[:, kernel.BATCH_START] = cuts[:, PIECE_START]
        pieces[:, kernel.BATCH_END] = cuts[:, PIECE_END]
        pieces[:, kernel.BATCH_RECORD_COUNT] = cuts[:, PIECE_RECORDS]
        if request.want & kernel.WANT_HEADERS:
            _check_headers(request, run, cuts, limits)
        return pieces


def _data_bytes(
    request: GroupRequest, table: npt.NDArray[np.int64], size_bytes: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return what keys and values, and header keys and header values, have at the most."""
    if size_bytes > LARGE_RECORD_BYTES and request.large_batch_start is not None:
        start, end = table[0, : kernel.BATCH_END + 1].tolist()
        if table[0, kernel.BATCH_RECORD_COUNT] == 1:
            measures = measure_record(request.buffer, start, end)
            return measures.key_and_value, measures.header_keys_and_values
    return (size_bytes, size_bytes), (size_bytes, size_bytes)


def _check_headers(
    request: GroupRequest, run: BatchHeaders, cuts: npt.NDArray[np.int64], limits: DecodeLimits
) -> None:
    """Refuse a batch in which one record's headers take more memory than there may be."""
    batch_bytes = int(cuts[-1, PIECE_END] - cuts[0, PIECE_START])
    for piece in cuts[cuts[:, PIECE_END] - cuts[:, PIECE_START] > limits.piece_bytes]:
        measures = measure_record(request.buffer, int(piece[PIECE_START]), int(piece[PIECE_END]))
        size_bytes = batch_bytes + measures.column_bytes
        if size_bytes > limits.record_bytes or not measures.fits_arrow:
            reason = limits.too_many_headers(measures.header_count, size_bytes)
            raise request.error(InvalidRecordError, reason, run, 0)


def _count_error(
    request: GroupRequest,
    run: BatchHeaders,
    counts: npt.NDArray[np.int64],
    room: npt.NDArray[np.int64],
) -> InvalidRecordError:
    index = int(np.argmax((counts < 0) | (counts > room)))
    reason = f"batch counts {counts[index]} records, its bytes have room for {room[index]}"
    return request.error(InvalidRecordError, reason, run, index)


def _disorder(records: memoryview, run: BatchHeaders, index: int) -> str:
    """Return which record of a batch has an offset that it cannot have."""
    base, last = int(run.offsets[index]), int(run.last_offsets[index])
    lowest, at = base, 0
    for _ in range(_EXPLAINED_RECORDS):
        if at == len(records):
            break
        inside = at
        record, at = decode_record(records, at, len(records))
        offset = base + record.offset_delta
        if not lowest <= offset <= last:
            return (
                f"the record has offset {offset}, expected {lowest} to {last} "
                f"({inside} bytes into the batch's records)"
            )
        lowest = offset + 1
    return f"the records' offsets do not go up, or are not within {base} to {last}"


def _error(refusal: Refusal, table: npt.NDArray[np.int64], status: int) -> LogStorageError:
    if status == kernel.STATUS_TIMESTAMP_OVERFLOW:
        return refusal.timestamp_overflow()
    if status == kernel.STATUS_BAD_OFFSET:
        start, end = table[refusal.batch_index, : kernel.BATCH_END + 1].tolist()
        records = refusal.request.buffer[start:end].data
        return refusal.error(
            InvalidRecordError, _disorder(records, refusal.run, refusal.batch_index)
        )
    reason = f"{_REASONS[status]} ({refusal.inside} bytes into the batch's records)"
    return refusal.error(InvalidRecordError, reason)
