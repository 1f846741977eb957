"""Which records of a log are left out: those of producers, and those that a filter finds.

Batches are looked at window by window, as a search does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_buffers import int64_values
from pylog.columnar.arrow_schema import record_schema
from pylog.reading.filtered_decode import FilteredDecoder, SearchDecoder
from pylog.record.batch_writer import MAX_INT64
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.model import TopicPartition
    from pylog.reading.record_filter import RecordFilter
    from pylog.record.batch_scan import BatchHeaders, Window

    BoolArray = npt.NDArray[np.bool_]
    Int64Array = npt.NDArray[np.int64]

_NONE = np.empty(0, dtype=np.int64)


class FoundOffsets:
    """The offsets of those records of a window that a filter finds, but for control records.

    One thread.
    """

    def __init__(self, topic_partition: TopicPartition, where: RecordFilter) -> None:
        self._covers = where.covers(topic_partition)
        self._range = where.clip(0, MAX_INT64)
        kind = SearchDecoder if where.needs_content else FilteredDecoder
        schema = record_schema(("offset",))
        decompressor = Decompressor(DEFAULT_MAX_DECOMPRESSED_BYTES)
        self._decoder = kind(topic_partition, schema, where, decompressor)

    def of(self, window: Window) -> Int64Array:
        """Return the offsets of the found records of a window, ascending."""
        headers = window.headers
        chosen = window.select(~headers.is_control & (headers.record_counts != 0))
        if not self._covers or not len(chosen.headers):
            return _NONE
        found = [
            int64_values(each.column("offset"))
            for each in self._decoder.decode(chosen, *self._range)
        ]
        return np.concatenate(found) if found else _NONE


class OmittedRecords:
    """The records that one filter does not find, or that another one finds, or of producers.

    Control records are never among them. One thread.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        where: RecordFilter | None = None,
        exclude: RecordFilter | None = None,
        producers: Iterable[int] = (),
    ) -> None:
        self._only = None if where is None else FoundOffsets(topic_partition, where)
        self._without = None if exclude is None else FoundOffsets(topic_partition, exclude)
        self._producers = np.array(sorted(producers), dtype=np.int64)
        self._kept = self._left_out = _NONE  # of the window

    def batches(self, window: Window) -> BoolArray:
        """Return in which batches of a window there may be one."""
        headers = window.headers
        found = np.isin(headers.producer_ids, self._producers)
        if self._without is not None:
            self._left_out = self._without.of(window)
            found |= _counts(self._left_out, headers) > 0
        if self._only is not None:
            self._kept = self._only.of(window)
            found |= _counts(self._kept, headers) != headers.record_counts
        has_some: BoolArray = (headers.record_counts != 0) & ~headers.is_control
        return found & has_some

    def records(self, records: KeyedRecords) -> BoolArray:
        """Return which records of such batches are left out."""
        of_producers = np.isin(records.headers.producer_ids, self._producers)
        left_out = np.repeat(of_producers, records.batch_ends - records.batch_starts)
        if self._without is not None:
            left_out |= np.isin(records.offsets, self._left_out)
        if self._only is not None:
            left_out |= ~np.isin(records.offsets, self._kept)
        return left_out


def _counts(offsets: Int64Array, headers: BatchHeaders) -> Int64Array:
    """Return how many of some offsets are in each batch of a window; they lie in its batches."""
    ends = np.searchsorted(offsets, headers.last_offsets, side="right")
    counted: Int64Array = np.diff(ends, prepend=0)
    return counted
