"""Scanned batches to Arrow record batches: decompress, then walk and copy in one kernel call.

The batches of a window are cut into *groups* of one format family (v2, or v0/v1) and of bounded
decompressed size; each group is one kernel call and one Arrow record batch. Uncompressed groups are
decoded straight from the window; where a codec is set, the group's batches are decompressed one
after the other into one reused buffer first.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_schema import CORRUPT_RECORD, record_schema
from pylog.columnar.decode_legacy import LegacyGroupDecoder
from pylog.columnar.group_decoder import (
    BATCH_END,
    BATCH_START,
    DecodeLimits,
    GroupRequest,
    V2GroupDecoder,
)
from pylog.columnar.record_columns import ConstantColumns, batch_array
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels.decode_records import WANT_HEADERS, WANT_KEY, WANT_TIMESTAMP, WANT_VALUE
from pylog.kernels.decompress import decompress_lz4_frames, decompress_zstd_frames
from pylog.locations import name_of
from pylog.model import CompressionType, TopicPartition
from pylog.record.batch_header import COMPRESSION_CODEC_MASK, codec_of
from pylog.record.batch_scan import LEAST_KERNEL_BYTES
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES, over_limit
from pylog.record.codec_libraries import lz4_function
from pylog.record.compression import Decompressor
from pylog.record.lz4_frame import MIN_HEADER_SIZE, usual_block_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.columnar.group_decoder import GroupDecoder
    from pylog.columnar.record_columns import RecordColumns
    from pylog.record.batch_scan import BatchHeaders, Window


GROUP_BYTES = 1 << 21
"""Decompressed bytes after which a group is closed; a single larger batch makes its own group."""


def append_group(
    decompressor: Decompressor,
    codec: CompressionType,
    buf: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
) -> list[int]:
    """Decompress the first of some v2 batches by one call, without the interpreter's lock.

    ``bounds``, ``(n, 2)``, are their records in ``buf``. Returns where each begins and, last, where
    the last one ends. What follows is left to `Decompressor.append`: it is unusual or damaged, or
    there is not yet memory for it.
    """
    functions: tuple[object, ...] = ()
    if codec is CompressionType.LZ4:
        header = buf[bounds[0, 0] : bounds[0, 0] + MIN_HEADER_SIZE]
        function, block_size = lz4_function(), usual_block_size(header.data)
        if function and block_size:
            functions = header, block_size, function
    elif codec is CompressionType.ZSTD and (zstd := decompressor.zstd_context) is not None:
        functions = zstd.decompress, zstd.find_frame_size, zstd.address
    start = decompressor.buffer.length
    if not functions:
        return [start]
    decompress = decompress_lz4_frames if codec is CompressionType.LZ4 else decompress_zstd_frames
    memory = np.frombuffer(decompressor.buffer.memory, dtype=np.uint8)
    ends = np.empty(len(bounds), dtype=np.int64)
    done = decompress(
        *(buf, *np.ascontiguousarray(bounds.T), *functions),
        *(memory, start, GROUP_BYTES, decompressor.max_decompressed_bytes, ends),
    )
    return [start, *ends[:done].tolist()]


def decompressed_batches(
    window: Window,
    run: BatchHeaders,
    table: npt.NDArray[np.int64],
    decoder: GroupDecoder,
    decompressor: Decompressor,
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the place of each batch in ``run``, and where its records are, ``[start, end)``."""
    data = window.buffer.data
    bounds = table[:, BATCH_START : BATCH_END + 1].copy()  # the caller writes to the table
    codec_ids, magics = run.codec_ids, run.magics.tolist()
    is_worth_a_call = decoder is _V2 and bounds[-1, 1] - bounds[0, 0] >= LEAST_KERNEL_BYTES
    codec_ends = np.append(np.flatnonzero(np.diff(codec_ids)) + 1, len(run)).tolist()
    index = 0
    while index < len(run):
        try:
            codec = codec_of(int(codec_ids[index]), magics[index])
            if is_worth_a_call:
                end = codec_ends[bisect_right(codec_ends, index)]
                places = append_group(decompressor, codec, window.buffer, bounds[index:end])
                for placed in pairwise(places):
                    decompressor.buffer.length = placed[1]
                    yield index, placed
                    index += 1
                if len(places) > 1:
                    continue
            start, end = bounds[index].tolist()
            stream = decoder.stream_of(data[start:end], codec, magics[index])
            placed = decompressor.append(codec, stream, magics[index])
        except (CorruptRecordError, InvalidRecordError) as error:
            position = window.file_position + int(run.positions[index])
            raise type(error)(error.reason, window.path, position) from error
        yield index, placed
        index += 1


_WANT = {
    "key": WANT_KEY,
    "value": WANT_VALUE,
    "headers": WANT_HEADERS,
    "timestamp": WANT_TIMESTAMP,
}
_V2: GroupDecoder = V2GroupDecoder()
_LEGACY: GroupDecoder = LegacyGroupDecoder()


class DecodedGroup(NamedTuple):
    """The records of some batches, or of a part of one large batch."""

    headers: BatchHeaders
    columns: RecordColumns
    buffer: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int64]


class RecordDecoder:
    """Turns the batches of one partition, window after window, into Arrow record batches.

    Keeps codec contexts and memory between windows; one thread. The record batches it yields own
    their memory.

    Another decoder may use the same ``decompressor``, whose limit holds then, and the same
    ``constants`` of the partition, never at the same time.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        schema: pa.Schema | None = None,
        *,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        decompressor: Decompressor | None = None,
        constants: ConstantColumns | None = None,
    ) -> None:
        self.schema = record_schema() if schema is None else schema
        self.finished_batches = 0
        self.has_given_more = False
        self._last_offset = -1
        self._decompressor = decompressor or Decompressor(max_decompressed_bytes)
        self._limits = DecodeLimits.of(self._decompressor.max_decompressed_bytes)
        self._constants = constants or ConstantColumns(topic_partition)
        self._want = sum(flag for name, flag in _WANT.items() if name in self.schema.names)
        self._timestamp_type = (
            self.schema.field("timestamp").type
            if "timestamp" in self.schema.names
            else pa.timestamp("ms")
        )

    def restart(self, last_offset: int) -> None:
        """Take the batches that are given next for those after the one that ends at an offset."""
        self._last_offset = last_offset

    def decode(
        self, window: Window, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``window`` with ``start_offset <= offset < end_offset``."""
        for group in self.decode_groups(window, start_offset, end_offset):
            if group.columns.rows:
                yield self._assemble(window, group.headers, group.columns)
            del group  # before memory is made for the next ones

    def decode_groups(
        self, window: Window, start_offset: int, end_offset: int
    ) -> Iterator[DecodedGroup]:
        """Yield the same records group by group, with the batches that they are of."""
        self.finished_batches = 0
        self.has_given_more = False
        if len(window.headers) and window.headers.last_offsets[0] <= self._last_offset:
            self._last_offset = -1  # batches that were given before, once more
        for decoder, run in runs_of_a_format(window.headers):
            table = decoder.describe_batches(run)
            for group, buffer in self._groups(window, run, table, decoder):
                request = GroupRequest(
                    buffer,
                    start_offset,
                    end_offset,
                    self._want,
                    self._timestamp_type,
                    window.path,
                    window.file_position,
                    self._last_offset,
                )
                headers = run.select(group)
                for columns, rows in self._columns(decoder, request, headers, table[group]):
                    if columns.rows:
                        self.has_given_more = True
                    yield DecodedGroup(headers, columns, buffer, rows[:, : BATCH_END + 1])
                    del columns  # before memory is made for the next ones
                self.finished_batches += len(headers)
                self.has_given_more = False
                self._last_offset = int(headers.last_offsets[-1])

    def _columns(
        self,
        decoder: GroupDecoder,
        request: GroupRequest,
        headers: BatchHeaders,
        table: npt.NDArray[np.int64],
    ) -> Iterator[tuple[RecordColumns, npt.NDArray[np.int64]]]:
        """Yield the columns of a group, and the rows of the table that they are of."""
        if len(headers) > 1 or not self._is_large(decoder, headers, table).any():
            yield decoder.decode(request, headers, table), table
            return
        size = int(table[0, BATCH_END] - table[0, BATCH_START])
        if size > self._limits.batch_bytes:
            reason = over_limit(f"batch has {size} bytes of records", self._limits.batch_bytes)
            raise request.error(InvalidRecordError, reason, headers, 0)
        if request.is_empty:  # no columns are made, so there is nothing to cut
            yield decoder.decode(request, headers, table), table
            return
        pieces = decoder.cut_into_pieces(request, headers, table, self._limits)
        request = request._replace(large_batch_start=int(table[0, BATCH_START]))
        base_offsets = None
        for index in range(len(pieces)):
            piece = pieces[index : index + 1]
            columns = decoder.decode(request, headers, piece)
            if base_offsets is None:
                base_offsets = columns.base_offsets
            columns.base_offsets = base_offsets
            yield columns, piece
            del columns

    def _is_large(
        self, decoder: GroupDecoder, run: BatchHeaders, table: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        sizes = table[:, BATCH_END] - table[:, BATCH_START]
        return self._limits.is_large(sizes, decoder.most_rows(run, table))

    def _groups(
        self,
        window: Window,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        decoder: GroupDecoder,
    ) -> Iterator[tuple[slice, npt.NDArray[np.uint8]]]:
        """Yield slices of ``run`` with the buffer that their rows of ``table`` point into."""
        if not run.traits.any_has(COMPRESSION_CODEC_MASK):
            for group in self._plain_groups(run, table, decoder):
                yield group, window.buffer
            return
        scratch = self._decompressor.buffer
        scratch.clear()
        bounds = table[:, BATCH_START : BATCH_END + 1]
        first = 0
        placed: list[tuple[int, int]] = []  # from batch ``first`` on
        batches = decompressed_batches(window, run, table, decoder, self._decompressor)
        for index, (start, end) in batches:
            placed.append((start, end))
            size = end - start
            is_small = size <= self._limits.small_bytes
            is_full = scratch.length >= GROUP_BYTES
            if is_small and not is_full:
                continue
            bounds[first : index + 1] = placed
            batch = slice(index, index + 1)
            if not is_small and self._is_large(decoder, run.select(batch), table[batch]).any():
                if first < index:
                    yield slice(first, index), self._scratch_array()
                yield batch, self._scratch_array()
            elif is_full:
                yield slice(first, index + 1), self._scratch_array()
            else:
                continue
            first = index + 1
            placed.clear()
            scratch.clear()
        if first < len(run):
            bounds[first:] = placed
            yield slice(first, len(run)), self._scratch_array()

    def _plain_groups(
        self, run: BatchHeaders, table: npt.NDArray[np.int64], decoder: GroupDecoder
    ) -> Iterator[slice]:
        """Yield slices of batches without a codec: all of them, unless they are large or many."""
        rows = decoder.most_rows(run, table)
        most_rows = self._limits.piece_rows
        span_bytes = int(table[-1, BATCH_END]) - int(table[0, BATCH_START])
        if span_bytes <= self._limits.piece_bytes and rows.sum() <= most_rows:
            yield slice(0, len(run))  # the usual window
            return
        bytes_so_far = np.cumsum(table[:, BATCH_END] - table[:, BATCH_START])
        rows_so_far = np.cumsum(rows)
        most_bytes = max(self._limits.piece_bytes, GROUP_BYTES)
        is_large = self._is_large(decoder, run, table)
        number = bytes_so_far // most_bytes + rows_so_far // most_rows
        is_cut = (np.diff(number) != 0) | is_large[1:] | is_large[:-1]
        for start, end in pairwise([0, *(np.flatnonzero(is_cut) + 1).tolist(), len(run)]):
            yield slice(start, end)

    def _scratch_array(self) -> npt.NDArray[np.uint8]:
        scratch = self._decompressor.buffer
        return np.frombuffer(scratch.view(0, max(1, scratch.length)), dtype=np.uint8)

    def _assemble(
        self, window: Window, headers: BatchHeaders, columns: RecordColumns
    ) -> pa.RecordBatch:
        arrays = []
        for name in self.schema.names:
            match name:
                case "topic":
                    array = self._constants.topic(columns.rows)
                case "partition":
                    array = self._constants.partition(columns.rows)
                case "timestampType":
                    array = self._constants.timestamp_type(
                        headers, columns.batch_rows, columns.rows
                    )
                case _ if name == CORRUPT_RECORD:
                    array = pa.nulls(columns.rows, pa.string())
                case "batch":
                    array = batch_array(
                        headers,
                        columns.base_offsets,
                        columns.batch_rows,
                        name_of(window.path),
                        window.file_position,
                    )
                case _:
                    array = columns.arrays[name]
            arrays.append(array)
        if not arrays:  # Arrow takes the number of rows from a column
            return pa.RecordBatch.from_arrays([columns.arrays["offset"]], ["offset"]).select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def runs_of_a_format(headers: BatchHeaders) -> Iterator[tuple[GroupDecoder, BatchHeaders]]:
    """Yield consecutive batches of one format family, with what decodes them."""
    if not len(headers):
        return
    if headers.traits.all_v2:
        yield _V2, headers
        return
    is_v2 = headers.is_v2
    edges = [0, *(np.flatnonzero(np.diff(is_v2)) + 1).tolist(), len(headers)]
    for start, end in pairwise(edges):
        yield (_V2 if is_v2[start] else _LEGACY), headers.select(slice(start, end))
