"""Decoding only the batches that may hold a record that passes the tests of a filter's content.

Batches whose bytes rule such a record out are passed over; of the others all records are decoded,
with their values, and those that pass are taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_buffers import fixed_width_array
from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.batch_search import BatchSearch
from pylog.columnar.decode import RecordDecoder
from pylog.reading.filter_evaluation import candidate_batches, passing_rows
from pylog.record.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.model import TopicPartition
    from pylog.reading.record_filter import RecordFilter
    from pylog.record.window import Window


class SearchDecoder:
    """A `RecordDecoder` that yields the records that pass a filter with tests of content.

    One thread. What is wrong with the records of a batch is noticed if it is decoded, or cannot be
    decompressed.

    Parameters
    ----------
    topic_partition, schema, max_decompressed_bytes, decompressor
        As of `RecordDecoder`.
    where
        The filter.
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
        self._where = where
        decompressor = decompressor or Decompressor(max_decompressed_bytes)
        self._search = BatchSearch(where.required_bytes, decompressor)
        self._decoder = RecordDecoder(
            topic_partition,
            _with_columns(schema, where.columns),
            max_decompressed_bytes=max_decompressed_bytes,
            decompressor=decompressor,
        )
        self._candidates: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._given_after = -1

    @property
    def finished_batches(self) -> int:
        """As of `RecordDecoder`."""
        done = self._decoder.finished_batches
        return int(self._candidates[done - 1]) + 1 if done else 0

    @property
    def has_given_more(self) -> bool:
        """As of `RecordDecoder`."""
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
            passing = self._passing(batch)
            if passing.size:
                self._given_after = self._decoder.finished_batches
                is_all = passing.size == batch.num_rows
                rows = batch if is_all else batch.take(fixed_width_array(passing))
                yield rows.select(self.schema.names)

    def _passing(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the rows that pass, in order."""
        rows = np.flatnonzero(passing_rows(self._where, batch)).astype(np.int64, copy=False)
        for test in self._where.content or ():
            if not rows.size:
                break
            column = batch.column(test.column).take(fixed_width_array(rows))
            rows = rows[np.array([test.holds(value) for value in column.to_pylist()])]
        return rows


def _with_columns(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    """Return the schema with further columns of records, unless it has them."""
    for name in names:
        if name not in schema.names:
            schema = schema.append(record_schema((name,), timestamp_unit="ms").field(0))
    return schema
