"""Batches as a cleaning writes them: as they were, with fewer records, with none, or not at all.

======================================== =======================================================
batch                                    is written
======================================== =======================================================
v2, keeps all its records, and needs no  as it was, byte for byte
new delete horizon
keeps records, otherwise                 anew, as v2: with its base and last offset, producer,
                                         sequence, epoch and codec, at the codec's default level.
                                         v0 and v1: with the offsets of the records kept
keeps none, and its header stays         as 61 bytes: without codec, base timestamp and delete
                                         horizon, with all else that the header had
keeps none, otherwise                    not
======================================== =======================================================

A batch gets a delete horizon, now + ``delete.retention.ms``, with the first tombstone it keeps,
or as a marker that may be discarded; one that has a horizon never gets another. The horizon takes
the place of the base timestamp.

Source: MemoryRecords.filterTo, buildRetainedRecordsInto, DefaultRecordBatch.writeEmptyHeader (Kafka
4.3). Differs from Kafka, which fails where a v0 or v1 batch at the end of a cleaning keeps no
record: it is written as an empty v2 batch.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.kernels import rebuild_batches as kernel
from pylog.model import NO_TIMESTAMP
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    DELETE_HORIZON_FLAG_MASK,
    MAGIC_VALUE_V2,
    RECORDS_OFFSET,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    codec_of,
)
from pylog.record.batch_writer import MAX_INT64, seal_batch, set_size
from pylog.record.compressor import Compressor
from pylog.record.header_sums import has_horizon

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.cleaner.batch_retention import BatchRetention, RetainedRecords
    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.record.batch_scan import BatchHeaders, Window

    Int64Array = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]

_KEPT_OF_EMPTY = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_FLAG_MASK | CONTROL_FLAG_MASK
_KEPT_OF_ALL = _KEPT_OF_EMPTY | COMPRESSION_CODEC_MASK | DELETE_HORIZON_FLAG_MASK


class WrittenBatches(NamedTuple):
    """What is to be written for some neighbouring batches of a window."""

    data: list[memoryview]
    record_count: int


class BatchRebuilder:
    """Writes what stays of batches. One thread."""

    def __init__(self, now_ms: int, delete_retention_ms: int) -> None:
        horizon = now_ms + delete_retention_ms
        self._delete_horizon_ms = horizon if horizon <= MAX_INT64 else None
        self._compressor = Compressor()

    def rebuild(
        self,
        window: Window,
        records: KeyedRecords,
        retention: BatchRetention,
        retained: RetainedRecords,
        *,
        has_new_header: BoolArray | None = None,
    ) -> WrittenBatches:
        """Return what is to be written for the batches of ``records``.

        ``has_new_header`` tells which of them ``records.headers`` have other fields of than the
        window: those are written anew, even if all their records stay.
        """
        headers, kept = records.headers, retained.kept
        batches = records.batches
        kept_counts = records.counts(kept)
        row_counts = records.batch_ends - records.batch_starts
        tombstone_counts = records.counts(kept & ~records.has_value)
        needs_horizon = (tombstone_counts > 0) | retention.needs_horizon[batches]
        needs_horizon &= ~has_horizon(headers) & (self._delete_horizon_ms is not None)
        has_records = kept_counts > 0
        is_copied = headers.is_v2 & (kept_counts == row_counts) & has_records & ~needs_horizon
        if has_new_header is not None:
            is_copied &= ~has_new_header
        is_built = (has_records & ~is_copied) | (~has_records & retention.keeps_header[batches])
        record_count = int(kept_counts.sum())
        if not is_built.any():
            return WrittenBatches(list(_copied(window, headers, is_copied)), record_count)
        table = self._table(records, is_built, has_records, needs_horizon)
        out, ends = _built(window, records, retained, table, is_built)
        data = self._in_order(window, headers, is_copied, is_built, out, ends)
        return WrittenBatches(list(data), record_count)

    def _table(
        self,
        records: KeyedRecords,
        is_built: BoolArray,
        has_records: BoolArray,
        needs_horizon: BoolArray,
    ) -> Int64Array:
        headers = records.headers.select(is_built)
        has_records, needs_horizon = has_records[is_built], needs_horizon[is_built]
        is_horizon_kept = has_horizon(headers)
        attributes = np.where(
            has_records, headers.attributes & _KEPT_OF_ALL, headers.attributes & _KEPT_OF_EMPTY
        )
        attributes |= np.where(needs_horizon & has_records, DELETE_HORIZON_FLAG_MASK, 0)
        horizons = np.where(is_horizon_kept, headers.base_timestamps, NO_TIMESTAMP)
        horizons[needs_horizon] = self._delete_horizon_ms or 0
        horizons[~has_records] = NO_TIMESTAMP
        table = np.empty((len(headers), kernel.BATCH_FIELDS), dtype=np.int64)
        table[:, kernel.BATCH_FIRST_ROW] = records.batch_starts[is_built]
        table[:, kernel.BATCH_END_ROW] = np.where(
            has_records, records.batch_ends[is_built], records.batch_starts[is_built]
        )
        table[:, kernel.BATCH_OLD_BASE_TIMESTAMP] = headers.base_timestamps
        table[:, kernel.BATCH_APPEND_TIME] = attributes & TIMESTAMP_TYPE_MASK
        table[:, kernel.BATCH_MAX_TIMESTAMP] = headers.max_timestamps
        table[:, kernel.BATCH_DELETE_HORIZON] = horizons
        table[:, kernel.BATCH_BASE_OFFSET] = headers.offsets
        table[:, kernel.BATCH_LAST_OFFSET] = headers.last_offsets
        table[:, kernel.BATCH_FROM_RECORDS] = ~headers.is_v2
        table[:, kernel.BATCH_PARTITION_LEADER_EPOCH] = headers.partition_leader_epochs
        table[:, kernel.BATCH_ATTRIBUTES] = attributes
        table[:, kernel.BATCH_PRODUCER_ID] = headers.producer_ids
        table[:, kernel.BATCH_PRODUCER_EPOCH] = headers.producer_epochs
        table[:, kernel.BATCH_BASE_SEQUENCE] = headers.base_sequences
        return table

    def _in_order(
        self,
        window: Window,
        headers: BatchHeaders,
        is_copied: BoolArray,
        is_built: BoolArray,
        out: memoryview,
        ends: Int64Array,
    ) -> Iterator[memoryview]:
        """Yield copied and built batches in the order of the log, neighbours of a kind as one."""
        has_codec = (headers.codec_ids != 0) & is_built
        # A batch that goes parts no neighbours in ``out``, where it never was.
        kinds = np.where(is_copied, 1, np.where(has_codec, 2, 3))[is_copied | is_built]
        built_before = np.concatenate([[0], np.cumsum(is_built)])[:-1][is_copied | is_built]
        bounds = np.flatnonzero(np.diff(kinds)) + 1
        places = np.flatnonzero(is_copied | is_built)
        starts = [0, *bounds.tolist(), kinds.size]
        positions = [0, *ends.tolist()]
        for first, end in itertools.pairwise(starts):
            if kinds[first] == 1:
                chosen = np.zeros(len(headers), dtype=np.bool_)
                chosen[places[first:end]] = True
                yield from _copied(window, headers, chosen)
                continue
            batch = int(built_before[first])
            if kinds[first] == 3:
                yield out[positions[batch] : positions[batch + end - first]]
                continue
            for index in range(batch, batch + end - first):
                yield self._compressed(out[positions[index] : positions[index + 1]])

    def _compressed(self, batch: memoryview) -> memoryview:
        codec_id = batch[ATTRIBUTES_OFFSET + 1] & COMPRESSION_CODEC_MASK
        if codec_id == 0:  # emptied
            return batch
        payload = self._compressor.compress(
            codec_of(codec_id, MAGIC_VALUE_V2), batch[RECORDS_OFFSET:], magic=MAGIC_VALUE_V2
        )
        whole = bytearray(RECORDS_OFFSET + len(payload))
        whole[:RECORDS_OFFSET] = batch[:RECORDS_OFFSET]
        whole[RECORDS_OFFSET:] = payload
        data = memoryview(whole)
        set_size(data)
        seal_batch(data, 0, len(data))
        return data


def _built(
    window: Window,
    records: KeyedRecords,
    retained: RetainedRecords,
    table: Int64Array,
    is_built: BoolArray,
) -> tuple[memoryview, Int64Array]:
    """Return batches written anew, without their codec, and where each ends."""
    kept = retained.kept.view(np.uint8)
    starts, ends = table[:, kernel.BATCH_FIRST_ROW], table[:, kernel.BATCH_END_ROW]
    kept_sums = np.concatenate([[0], np.cumsum(retained.kept)])
    kept_rows = int((kept_sums[ends] - kept_sums[starts]).sum())
    size_sums = np.concatenate([[0], np.cumsum(np.where(retained.kept, records.sizes_bytes, 0))])
    kept_bytes = int((size_sums[ends] - size_sums[starts]).sum())
    room = kept_bytes + kernel.MOST_ADDED_BYTES * kept_rows + RECORDS_OFFSET * len(table)
    out = np.empty(room + kernel.MOST_ADDED_BYTES, dtype=np.uint8)
    out_ends = np.empty(len(table), dtype=np.int64)
    status, at_fault = kernel.rebuild_batches(
        records.buffer, table, records.positions, records.offsets, kept, out, out_ends
    )
    if status != kernel.STATUS_OK:
        row = int(at_fault)
        place = int(np.searchsorted(records.batch_ends, row, side="right"))
        reason = (
            f"record with offset {records.offsets[row]} has a negative timestamp, "
            f"expected {NO_TIMESTAMP} for none, or one from 0 on"
        )
        position = window.position_of(int(records.batches[place]))
        raise CorruptRecordError(reason, window.path, position)
    view = out.data
    start = 0
    for end in out_ends.tolist():
        seal_batch(view, start, end)
        start = end
    return view, out_ends


def _copied(window: Window, headers: BatchHeaders, which: BoolArray) -> Iterator[memoryview]:
    """Yield batches as they are, those that lie side by side as one."""
    starts = headers.positions[which]
    ends = starts + headers.sizes_bytes[which]
    if starts.size == 0:
        return
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    firsts = np.concatenate([[0], breaks + 1])
    lasts = np.append(breaks, starts.size - 1)
    data = window.buffer.data
    for start, end in zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True):
        yield data[start:end]
