"""Decoding only what a `RecordFilter` lets pass.

Two passes over a window's batches. The first decodes what the filter looks at, timestamps and keys;
it copies no value. The second decodes the batches in which a record has passed, and takes those
records out of them. Both decompress into the same memory, one after the other.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.reading.filter_evaluation import candidate_batches, passing_rows
from pylog.record.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from pylog.model import TopicPartition
    from pylog.reading.record_filter import RecordFilter
    from pylog.record.window import Window


class FilteredDecoder:
    """A `RecordDecoder` that yields the records that pass a filter. One thread.

    Parameters
    ----------
    topic_partition, schema, max_decompressed_bytes, decompressor
        As of `RecordDecoder`.
    where
        The filter.

    Attributes
    ----------
    has_given_more
        As of `RecordDecoder`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        schema: pa.Schema,
        where: RecordFilter,
        *,
        max_decompressed_bytes: int,
        decompressor: Decompressor | None = None,
    ) -> None:
        self.schema = schema
        self.has_given_more = False
        self._where = where
        first = record_schema(("offset", *where.columns), timestamp_unit="ms")
        decompressor = decompressor or Decompressor(max_decompressed_bytes)
        self._first = RecordDecoder(
            topic_partition,
            first,
            max_decompressed_bytes=max_decompressed_bytes,
            decompressor=decompressor,
        )
        self._second = RecordDecoder(
            topic_partition,
            _with_offset(schema),
            max_decompressed_bytes=max_decompressed_bytes,
            decompressor=decompressor,
        )

    @property
    def finished_batches(self) -> int:
        """How many of the batches given to `decode` need not be given again."""
        return 0

    def decode(
        self, window: Window, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``window`` in the range that pass; errors as of `RecordDecoder`.

        All batches that may hold one are decoded before the first record is yielded.
        """
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
            offsets = _int64s(batch, "offset")
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
            passing = _int64s(batch, "offset")[passing_rows(self._where, batch)]
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


def _with_offset(schema: pa.Schema) -> pa.Schema:
    if "offset" in schema.names:
        return schema
    return schema.append(record_schema(("offset",)).field(0))


def _int64s(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    column = batch.column(name)
    values: npt.NDArray[np.int64] = np.frombuffer(column.buffers()[1], np.int64)
    return values[column.offset : column.offset + len(column)]


def _taken(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    if rows.size == batch.num_rows:
        return batch
    if rows[-1] - rows[0] + 1 == rows.size:
        return batch.slice(int(rows[0]), rows.size)
    indices = pa.Array.from_buffers(pa.int64(), rows.size, [None, pa.py_buffer(rows)], null_count=0)
    return batch.take(indices)
