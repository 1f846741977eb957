"""Change header fields of many v2 batches that lie in one buffer, a field at a time.

What `pylog.record.batch_writer` does to one batch. Offset and leader epoch lie outside the
checksum, so that batches are moved to other offsets without a pass over their records.

All functions take a writable, one-dimensional buffer of bytes and the positions of whole v2
batches in it, which the caller has found with `pylog.record.batch_scan.find_batches`, or has
written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    MAX_TIMESTAMP_OFFSET,
    OFFSET_OFFSET,
    PARTITION_LEADER_EPOCH_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from pylog.record.batch_writer import seal_batch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]
else:
    np = LazyModule("numpy")


_BIG_INT16, _BIG_INT32, _BIG_INT64 = ">i2", ">i4", ">i8"


def set_base_offsets(view: memoryview, positions: Int64Array, offsets: Int64Array | int) -> None:
    """Give each batch its base offset; the checksums stay right."""
    _put(view, positions + OFFSET_OFFSET, offsets, _BIG_INT64)


def set_partition_leader_epochs(view: memoryview, positions: Int64Array, epoch: int) -> None:
    """Give all batches this leader epoch; the checksums stay right."""
    _put(view, positions + PARTITION_LEADER_EPOCH_OFFSET, epoch, _BIG_INT32)


def set_append_times(
    view: memoryview, positions: Int64Array, ends: Int64Array, codec_ids: Int64Array, time_ms: int
) -> None:
    """Make all batches LogAppendTime batches of ``time_ms``, with the checksums that follow."""
    _put(view, positions + ATTRIBUTES_OFFSET, codec_ids | TIMESTAMP_TYPE_MASK, _BIG_INT16)
    _put(view, positions + MAX_TIMESTAMP_OFFSET, time_ms, _BIG_INT64)
    for start, end in zip(positions.tolist(), ends.tolist(), strict=True):
        seal_batch(view, start, end)


def _put(view: memoryview, places: Int64Array, values: Int64Array | int, dtype: str) -> None:
    """Write one big-endian number at each place."""
    stored = np.empty(places.size, dtype=dtype)
    stored[:] = values
    width = stored.dtype.itemsize
    content = np.frombuffer(view, dtype=np.uint8)
    content[places[:, None] + np.arange(width)] = stored.view(np.uint8).reshape(-1, width)
