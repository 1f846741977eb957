"""Batches of any format and codec as uncompressed v2, in one buffer.

Uncompressed v2 batches stay where they are. Others are decompressed; those of v0 and v1 are
rewritten as v2, which they will be once they are cleaned.

Source: MemoryRecords.buildRetainedRecordsInto (Kafka 4.3).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels import decode_headers as fields
from pylog.kernels import legacy_to_v2 as kernel
from pylog.record.batch_header import codec_of
from pylog.record.batch_layout import (
    COMPRESSION_CODEC_MASK,
    MAGIC_VALUE_V2,
    RECORDS_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from pylog.record.batch_scan import BatchHeaders
from pylog.record.compression import Decompressor
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.legacy_batch import wrapped_stream
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.record.window import Window

    Int64Array = npt.NDArray[np.int64]

_GROUP_BYTES = 4 << 20
"""Batches are decompressed until together they have so many bytes."""
_ADVICE = "; the partition cannot be cleaned"
_REASONS = {
    kernel.STATUS_BAD_MESSAGE: "a message in it is damaged, or compressed once more",
    kernel.STATUS_EMPTY_SET: "compressed message holds no inner message",
    kernel.STATUS_BAD_OFFSET: "the messages' offsets do not go up, or are above the wrapper's",
    kernel.STATUS_NO_ROOM: "its messages do not fit v2",
}


class PlainBatches(NamedTuple):
    """Some batches of a window.

    Attributes
    ----------
    batches
        int64: which batches of the window.
    headers
        Theirs. Of a v0 or v1 batch those that it has as v2, but for the magic, which tells that.
    buffer
        uint8: what their records lie in; valid until the next batches are asked for.
    starts, ends
        int64: where in ``buffer`` the records of each batch begin and end.
    """

    batches: Int64Array
    headers: BatchHeaders
    buffer: npt.NDArray[np.uint8]
    starts: Int64Array
    ends: Int64Array


class PlainBatchReader:
    """Reads batches in groups that take a bounded memory. One thread."""

    def __init__(self) -> None:
        self._decompressor = Decompressor(DEFAULT_MAX_DECOMPRESSED_BYTES, _ADVICE)

    def read(self, window: Window, batches: Int64Array) -> Iterator[PlainBatches]:
        """Yield some batches of a window, in order.

        Raises
        ------
        CorruptRecordError, InvalidRecordError
            A batch cannot be decompressed, or not be rewritten as v2.
        """
        is_v2 = window.headers.is_v2[batches]
        bounds = [0, *(np.flatnonzero(np.diff(is_v2)) + 1).tolist(), batches.size]
        for start, end in itertools.pairwise(bounds):
            rest = batches[start:end]
            while rest.size:
                group = self._next_group(window, rest)
                yield group if is_v2[start] else _as_v2(window, group)
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
        for start, end, magic, codec_id in zip(*(each.tolist() for each in columns), strict=True):
            stream = data[start:end]
            try:
                codec = codec_of(codec_id, magic)
                if codec and magic < MAGIC_VALUE_V2:
                    stream = wrapped_stream(stream, magic)
                bounds.append(decompressor.append(codec, stream, magic))
            except (CorruptRecordError, InvalidRecordError) as error:
                position = window.position_of(int(stored.batches[len(bounds)]))
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


def _as_v2(window: Window, legacy: PlainBatches) -> PlainBatches:
    """Return v0 and v1 batches with their records, and headers, as those of v2."""
    headers = legacy.headers
    sets = np.empty((len(headers), kernel.SET_FIELDS), dtype=np.int64)
    sets[:, kernel.SET_START] = legacy.starts
    sets[:, kernel.SET_END] = legacy.ends
    # The content of a wrapper is not compressed any more, but its header still says so.
    sets[:, kernel.SET_IS_WRAPPED] = headers.codec_ids != 0
    sets[:, kernel.SET_OFFSET] = headers.offsets
    sets[:, kernel.SET_MAGIC] = headers.magics
    sets[:, kernel.SET_APPEND_TIME] = headers.is_append_time
    sets[:, kernel.SET_TIMESTAMP] = headers.max_timestamps
    room = 2 * int((legacy.ends - legacy.starts).sum()) + kernel.MOST_OVERHEAD
    out = np.empty(room, dtype=np.uint8)
    table = np.empty((len(headers), kernel.BATCH_FIELDS), dtype=np.int64)
    status, at_fault = kernel.legacy_to_v2(legacy.buffer, sets, out, table)
    if status != kernel.STATUS_OK:
        raise invalid_batch(window, int(legacy.batches[int(at_fault)]), _REASONS[int(status)])
    columns = headers.columns.copy()
    columns[fields.ATTRIBUTES] &= np.where(
        headers.is_append_time, COMPRESSION_CODEC_MASK | TIMESTAMP_TYPE_MASK, COMPRESSION_CODEC_MASK
    )
    columns[fields.OFFSET] = table[:, kernel.BATCH_BASE_OFFSET]
    columns[fields.BASE_TIMESTAMP] = table[:, kernel.BATCH_BASE_TIMESTAMP]
    columns[fields.RECORD_COUNT] = table[:, kernel.BATCH_RECORD_COUNT]
    return PlainBatches(
        legacy.batches,
        BatchHeaders(columns),
        out,
        np.ascontiguousarray(table[:, kernel.BATCH_START]),
        np.ascontiguousarray(table[:, kernel.BATCH_END]),
    )


def invalid_batch(window: Window, batch: int, reason: str) -> InvalidRecordError:
    """Return the error for a batch: ``reason``, unless the readable reference knows it better."""
    try:
        for _ in RecordBatch(window.bytes_of(batch)).records():
            pass
    except (CorruptRecordError, InvalidRecordError) as error:
        reason = error.reason
    return InvalidRecordError(reason, window.path, window.position_of(batch))
