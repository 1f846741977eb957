"""Decoding only what a `RecordFilter` lets pass.

Timestamps are compared on the decoded records, and on the batch headers first where these are that
of each record (LogAppendTime), or are trusted; keys on the decoded records. Two passes over a
window's batches: the first decodes timestamps and keys and copies no value, the second decodes the
batches in which a record has passed, and takes those records out of them. Both decompress into the
same memory.

With tests of a record's content, batches whose bytes rule a match out are skipped; of the others
all records are decoded, with their values. Values whose bytes rule a match out are skipped, too; of
the others those that pass are taken.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import bytes_array, fixed_width_array, int64_values
from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.batch_search import BatchSearch, ByteSearch
from pylog.columnar.decode import RecordDecoder
from pylog.columnar.encode_input import binary_column
from pylog.lazy_modules import LazyModule
from pylog.record.batch_header import MAGIC_VALUE_V2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt
    import pyarrow.compute as pc

    from pylog.model import TopicPartition
    from pylog.reading.record_filter import ContentTest, RecordFilter
    from pylog.record.batch_scan import BatchHeaders, Window
    from pylog.record.compression import Decompressor

    BoolArray = npt.NDArray[np.bool_]
else:
    pc = LazyModule("pyarrow.compute")  # an eighth of the start-up of what reads without a filter


_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def is_past(where: RecordFilter, headers: BatchHeaders) -> bool:
    """Whether no record after these batches can pass."""
    if where.max_timestamp is None or where.timestamp_disorder is None:
        return False
    return int(headers.max_timestamps.max()) > where.max_timestamp + where.timestamp_disorder


def candidate_batches(where: RecordFilter, headers: BatchHeaders) -> BoolArray:
    """Mask the batches that can hold a record that passes, as far as headers show."""
    latest = headers.max_timestamps
    mask: BoolArray = latest >= (_LOWEST if where.min_timestamp is None else where.min_timestamp)
    if not where.trusts_batch_timestamps:
        is_message = (headers.magics < MAGIC_VALUE_V2) & (headers.codec_ids == 0)
        mask |= ~(headers.is_append_time | is_message)
    if len(headers) and not headers.traits.all_v2:
        # A v0 wrapper has no timestamp, but the messages in it may be of v1.
        mask |= (headers.magics == 0) & (headers.codec_ids != 0)
    if where.max_timestamp is not None:
        # Every record of such a batch has the batch's timestamp.
        too_late = headers.is_append_time & (latest > where.max_timestamp)
        if len(headers) and not headers.traits.all_v2:
            # But messages of v0, which cleaners of old left in wrappers of v1, have none.
            too_late &= (headers.magics == MAGIC_VALUE_V2) | (headers.codec_ids == 0)
        mask &= ~too_late
    return mask


def passing_rows(where: RecordFilter, batch: pa.RecordBatch) -> BoolArray:
    """Mask the rows that pass; `RecordFilter.columns` are there, the timestamp in any unit."""
    passes = np.ones(batch.num_rows, dtype=np.bool_)
    if "timestamp" in where.columns:
        column = batch.column("timestamp")
        scale = 1000 if column.type.unit == "us" else 1
        stamps = int64_values(column)
        if where.min_timestamp is not None:
            passes &= stamps >= min(_HIGHEST, where.min_timestamp * scale)
        if where.max_timestamp is not None:
            passes &= stamps <= min(_HIGHEST, where.max_timestamp * scale)
    if where.keys is not None:
        wanted = bytes_array(sorted(where.keys))
        is_wanted = pc.is_in(batch.column("key"), value_set=wanted)
        passes &= _bits(is_wanted, batch.num_rows)
    return passes


def _bits(values: pa.BooleanArray, rows: int) -> BoolArray:
    """Return a boolean array without nulls as NumPy has it."""
    bits = np.frombuffer(values.buffers()[1], np.uint8)
    unpacked = np.unpackbits(bits, bitorder="little")[values.offset : values.offset + rows]
    return unpacked.astype(np.bool_)


class FilteredDecoder:
    """A `RecordDecoder` that yields the records that pass a filter. One thread."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        schema: pa.Schema,
        where: RecordFilter,
        decompressor: Decompressor,
    ) -> None:
        self.schema = schema
        self.has_given_more = False
        self._where = where
        first = record_schema(("offset", *where.columns), timestamp_unit="ms")
        self._first = RecordDecoder(topic_partition, first, decompressor=decompressor)
        both = _with_columns(schema, ("offset",))
        self._second = RecordDecoder(topic_partition, both, decompressor=decompressor)

    @property
    def finished_batches(self) -> int:
        """How many of the batches given to `decode` need not be given again."""
        return 0

    def decode(
        self, window: Window, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``window`` in the range that pass; errors as of `RecordDecoder`."""
        self.has_given_more = False
        window = window.select(candidate_batches(self._where, window.headers))
        headers = window.headers
        if not len(headers):
            return
        offset_arrays = deque(self._passing(window, start_offset, end_offset))
        if not offset_arrays:
            return
        mask = np.zeros(len(headers), dtype=np.bool_)
        for passing in offset_arrays:
            # The last offset of a batch is not below its records', that of the one before is.
            mask[np.searchsorted(headers.last_offsets, passing)] = True
        for batch in self._second.decode(window.select(mask), start_offset, end_offset):
            offsets = int64_values(batch.column("offset"))
            # Both passes give offsets in order, so what lies before this batch is done with.
            while offset_arrays and offset_arrays[0][-1] < offsets[0]:
                offset_arrays.popleft()
            rows = np.flatnonzero(
                np.isin(
                    offsets, _between(offset_arrays, offsets[0], offsets[-1]), assume_unique=True
                )
            )
            if rows.size:
                self.has_given_more = True
                yield _taken(batch, rows).select(self.schema.names)

    def _passing(
        self, window: Window, start_offset: int, end_offset: int
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the offsets of the records that pass, in order."""
        for batch in self._first.decode(window, start_offset, end_offset):
            passing = int64_values(batch.column("offset"))[passing_rows(self._where, batch)]
            if passing.size:
                yield passing


def _between(
    offset_arrays: Iterable[npt.NDArray[np.int64]], first: int, last: int
) -> npt.NDArray[np.int64]:
    """Return those of the offsets, arrays of them in order, that lie in ``[first, last]``."""
    parts = []
    for passing in offset_arrays:
        if passing[0] > last:
            break
        start, end = np.searchsorted(passing, first), np.searchsorted(passing, last, "right")
        parts.append(passing[start:end])
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _taken(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    if rows.size == batch.num_rows:
        return batch
    if rows[-1] - rows[0] + 1 == rows.size:
        return batch.slice(int(rows[0]), rows.size)
    indices = pa.Array.from_buffers(pa.int64(), rows.size, [None, pa.py_buffer(rows)], null_count=0)
    return batch.take(indices)


class RowFilter:
    """Decides about rows of record batches, whose columns have all that the filter depends on."""

    def __init__(self, where: RecordFilter) -> None:
        self._where = where
        self._tests = [(test, _search_of(test)) for test in where.content or ()]
        self._excluded = [RowFilter(each) for each in where.excluded]

    def passing(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the rows that pass, in order."""
        rows = np.flatnonzero(passing_rows(self._where, batch)).astype(np.int64, copy=False)
        for test, search in self._tests:
            column = batch.column(test.column)
            if search is not None and rows.size:
                values = binary_column(column, test.column)
                rows = rows[search.mask(values.data, values.ends[rows], values.ends[rows + 1])]
            if not rows.size:
                break
            column = column.take(fixed_width_array(rows))
            rows = rows[np.array([test.holds(value) for value in column.to_pylist()])]
        for each in self._excluded:
            if not rows.size:
                break
            rows = np.setdiff1d(rows, each.passing(batch), assume_unique=True)
        return rows


def _search_of(test: ContentTest) -> ByteSearch | None:
    """Return what looks for the bytes that a test needs, where its column is of bytes."""
    is_of_bytes = test.column in ("key", "value")
    return ByteSearch(test.required) if is_of_bytes and test.required else None


class SearchDecoder:
    """A `RecordDecoder` that yields the records that pass a filter with tests of content.

    One thread. What is wrong with the records of a batch is noticed if it is decoded, or cannot be
    decompressed.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        schema: pa.Schema,
        where: RecordFilter,
        decompressor: Decompressor,
    ) -> None:
        self.schema = schema
        self._where = where
        self._rows = RowFilter(where)
        self._search = BatchSearch(where.required_bytes, decompressor)
        columns = _with_columns(schema, where.columns)
        self._decoder = RecordDecoder(topic_partition, columns, decompressor=decompressor)
        self._candidates: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._given_after = -1

    @property
    def finished_batches(self) -> int:
        """See `RecordDecoder`."""
        done = self._decoder.finished_batches
        return int(self._candidates[done - 1]) + 1 if done else 0

    @property
    def has_given_more(self) -> bool:
        """See `RecordDecoder`."""
        return self._decoder.has_given_more and self._given_after == self._decoder.finished_batches

    def decode(
        self, window: Window, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``window`` in the range that pass; errors as of `RecordDecoder`."""
        self._decoder.finished_batches, self._decoder.has_given_more = 0, False
        self._given_after = -1
        places = np.flatnonzero(candidate_batches(self._where, window.headers))
        if places.size:
            places = places[self._search.mask(window.select(places))]
        self._candidates = places
        if not places.size:
            return
        for batch in self._decoder.decode(window.select(places), start_offset, end_offset):
            passing = self._rows.passing(batch)
            if passing.size:
                self._given_after = self._decoder.finished_batches
                is_all = passing.size == batch.num_rows
                rows = batch if is_all else batch.take(fixed_width_array(passing))
                yield rows.select(self.schema.names)


def _with_columns(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    """Return the schema with further columns of records, unless it has them."""
    for name in names:
        if name not in schema.names:
            schema = schema.append(record_schema((name,), timestamp_unit="ms").field(0))
    return schema
