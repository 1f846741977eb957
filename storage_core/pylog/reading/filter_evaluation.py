"""Batches and records compared with a `RecordFilter`.

Timestamps are compared on the batch headers first, which have the latest of a batch, then on the
decoded records; keys on the decoded records. Only batches with a record that passes have their
values copied (`pylog.reading.filtered_decode`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.arrow_buffers import bytes_array
from pylog.lazy_modules import LazyModule
from pylog.record.batch_layout import MAGIC_VALUE_V2

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.compute as pc

    from pylog.reading.record_filter import RecordFilter
    from pylog.record.batch_scan import BatchHeaders

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
        stamps = np.frombuffer(column.buffers()[1], np.int64)
        stamps = stamps[column.offset : column.offset + len(column)]
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
