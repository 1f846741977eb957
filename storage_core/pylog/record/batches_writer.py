"""Change header fields of many v2 batches that lie in one buffer, a field at a time.

What `pylog.record.batch_writer` does to one batch. Offset and leader epoch lie outside the
checksum, so that batches are moved to other offsets without a pass over their records.

All functions take a writable, one-dimensional buffer of bytes and the positions of whole v2 batches
in it, which the caller has found with `pylog.record.batch_scan.find_batches`, or has written.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from pylog.native.checksum import crc32c
from pylog.record.batch_layout import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    MAX_TIMESTAMP_OFFSET,
    OFFSET_OFFSET,
    PARTITION_LEADER_EPOCH_OFFSET,
    TIMESTAMP_TYPE_MASK,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]

_INT16, _INT32, _INT64 = ">i2", ">i4", ">i8"
_put_crc = struct.Struct(">I").pack_into


def set_base_offsets(view: memoryview, positions: Int64Array, offsets: Int64Array | int) -> None:
    """Give each batch its base offset; the checksums stay right."""
    _put(view, positions + OFFSET_OFFSET, offsets, _INT64)


def set_partition_leader_epochs(view: memoryview, positions: Int64Array, epoch: int) -> None:
    """Give all batches this leader epoch; the checksums stay right."""
    _put(view, positions + PARTITION_LEADER_EPOCH_OFFSET, epoch, _INT32)


def set_append_times(
    view: memoryview, positions: Int64Array, ends: Int64Array, codec_ids: Int64Array, time_ms: int
) -> None:
    """Make all batches LogAppendTime batches of ``time_ms``, with the checksums that follow.

    Parameters
    ----------
    view, positions
        See the module.
    ends
        The byte after each batch.
    codec_ids
        Of each batch; beside timestamp type and codec they keep no attribute.
    time_ms
        Every record reports it from then on.
    """
    _put(view, positions + ATTRIBUTES_OFFSET, codec_ids | TIMESTAMP_TYPE_MASK, _INT16)
    _put(view, positions + MAX_TIMESTAMP_OFFSET, time_ms, _INT64)
    from_attributes = (positions + ATTRIBUTES_OFFSET).tolist()
    for covered, crc_at, end in zip(
        from_attributes, (positions + CRC_OFFSET).tolist(), ends.tolist(), strict=True
    ):
        _put_crc(view, crc_at, crc32c(view[covered:end]))


def _put(view: memoryview, places: Int64Array, values: Int64Array | int, dtype: str) -> None:
    """Write one big-endian number at each place."""
    stored = np.empty(places.size, dtype=dtype)
    stored[:] = values
    width = stored.dtype.itemsize
    content = np.frombuffer(view, dtype=np.uint8)
    content[places[:, None] + np.arange(width)] = stored.view(np.uint8).reshape(-1, width)
