"""What a leader has to know of the records of many v2 batches, in one walk over all of them.

Columns of what `pylog.validation.record_summary` says of one batch. A batch that keeps to no usual
form is not described here but left to that module, which says what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.kernels import decode_records as kernel
from pylog.record.batch_header import codec_of
from pylog.record.batch_layout import (
    COMPRESSION_CODEC_MASK,
    MAGIC_VALUE_V2,
    MIN_RECORD_SIZE_V2,
    RECORDS_OFFSET,
)
from pylog.validation.record_summary import LARGE_BYTES, MANY_RECORDS, walk_records

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.compression import Decompressor

    Int64Array = npt.NDArray[np.int64]

_MOST_DECOMPRESSED_BYTES = 1 << 22
"""Decompressed bytes after which no further batch is taken."""


class BatchSummaries(NamedTuple):
    """Facts about the records of batches, a row a batch; int64.

    Attributes
    ----------
    null_keys
        How many records have no key.
    lowest_timestamps, highest_timestamps
        Of all records, ms, `NO_TIMESTAMP` included.
    """

    null_keys: Int64Array
    lowest_timestamps: Int64Array
    highest_timestamps: Int64Array

    def __len__(self) -> int:
        return int(self.null_keys.size)


def summarize_batches(
    records: memoryview, headers: BatchHeaders, decompressor: Decompressor
) -> BatchSummaries:
    """Return the facts about the first of some batches, every record of which is looked at.

    They end before the first batch that is large, or whose records are not as many as it counts,
    break their format, or do not have the offsets 0, 1, 2 … of the batch; and where many bytes have
    been decompressed.

    Parameters
    ----------
    records
        The bytes.
    headers
        Of v2 create-time batches, at least one, with positions in ``records``, base offset 0, known
        codecs, right checksums, and as many offsets as records, at least one.
    decompressor
        Its buffer is cleared and used.
    """
    starts = headers.positions + RECORDS_OFFSET
    ends = headers.positions + headers.sizes_bytes
    if headers.traits.any_has(COMPRESSION_CODEC_MASK):
        starts, ends = _decompressed(records, starts, ends, headers.codec_ids, decompressor)
        records = decompressor.buffer.view(0, max(1, decompressor.buffer.length))
    sizes = ends - starts
    counts = headers.record_counts[: sizes.size]
    is_other = (
        (counts * MIN_RECORD_SIZE_V2 > sizes) | (sizes > LARGE_BYTES) | (counts > MANY_RECORDS)
    )
    count = int(is_other.argmax()) if is_other.any() else sizes.size
    if count == 0:
        nothing = np.empty(0, dtype=np.int64)
        return BatchSummaries(nothing, nothing, nothing)
    counts = counts[:count]
    table = np.zeros((count, kernel.BATCH_FIELDS), dtype=np.int64)
    table[:, kernel.BATCH_START] = starts[:count]
    table[:, kernel.BATCH_END] = ends[:count]
    table[:, kernel.BATCH_BASE_TIMESTAMP] = headers.base_timestamps[:count]
    table[:, kernel.BATCH_RECORD_COUNT] = counts
    # As many offsets as records, which go up from record to record: they are consecutive.
    table[:, kernel.BATCH_LAST_OFFSET] = counts - 1
    walked = walk_records(np.frombuffer(records.toreadonly(), dtype=np.uint8), table)
    counts = counts[: walked.sound_batches]
    rows = int(counts.sum())
    first_rows = np.cumsum(counts) - counts
    timestamps = walked.timestamps[:rows]
    null_keys = np.zeros(counts.size, dtype=np.int64)
    if walked.null_keys and rows:
        has_key = np.unpackbits(walked.key_validity, count=rows, bitorder="little")
        null_keys = counts - np.add.reduceat(has_key, first_rows, dtype=np.int64)
    return BatchSummaries(
        null_keys,
        np.minimum.reduceat(timestamps, first_rows) if rows else timestamps,
        np.maximum.reduceat(timestamps, first_rows) if rows else timestamps,
    )


def _decompressed(
    records: memoryview,
    starts: Int64Array,
    ends: Int64Array,
    codec_ids: Int64Array,
    decompressor: Decompressor,
) -> tuple[Int64Array, Int64Array]:
    """Decompress the first batches, and return where the records of each lie in the buffer."""
    buffer = decompressor.buffer
    buffer.clear()
    placed: list[tuple[int, int]] = []
    streams = zip(starts.tolist(), ends.tolist(), codec_ids.tolist(), strict=True)
    for start, end, codec_id in streams:
        codec = codec_of(codec_id, MAGIC_VALUE_V2)
        try:
            placed.append(decompressor.append(codec, records[start:end], MAGIC_VALUE_V2))
        except (CorruptRecordError, InvalidRecordError):  # which is said of this batch alone
            break
        if buffer.length >= _MOST_DECOMPRESSED_BYTES:
            break
    bounds = np.array(placed, dtype=np.int64).reshape(-1, 2)
    return bounds[:, 0], bounds[:, 1]
