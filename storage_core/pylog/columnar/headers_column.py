"""The ``headers`` column: a list of (key, value) structs a record, null where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import (
    all_valid_bitmap,
    allocate,
    allocate_together,
    binary_array,
)
from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.kernels.decode_records import copy_headers
from pylog.record.record import decode_header_key

if TYPE_CHECKING:
    import numpy.typing as npt

_KEY_TOTAL, _VALUE_TOTAL, _NULL_VALUES = range(3)


def headers_array(
    buffer: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
) -> pa.Array:
    """Return the headers column of the records whose headers begin at ``positions``.

    Parameters
    ----------
    buffer
        The decompressed records; the headers in it have been checked by ``decode_records``.
    positions, counts
        Where each record's first header begins, and how many it has; shape (rows,).
    """
    ends = np.zeros(counts.size + 1, dtype=np.int32)
    np.cumsum(counts, out=ends[1:])
    total = int(ends[-1])
    if total == 0:
        return pa.nulls(counts.size, HEADERS_TYPE)
    (key_ends, key_ends_view), (value_ends, value_ends_view) = allocate_together(
        (total + 1, np.int32), (total + 1, np.int32)
    )
    key_data, key_view = allocate(buffer.size)
    value_data, value_view = allocate(buffer.size)
    validity = all_valid_bitmap(total)
    totals = np.zeros(3, dtype=np.int64)
    copy_headers(
        buffer,
        positions,
        counts,
        key_ends_view,
        key_view,
        value_ends_view,
        value_view,
        validity,
        totals,
    )
    keys = pa.Array.from_buffers(
        pa.string(), total, [None, key_ends, key_data.slice(0, int(totals[_KEY_TOTAL]))]
    )
    if totals[_KEY_TOTAL] and key_view[: totals[_KEY_TOTAL]].max() > 0x7F:
        keys = _well_formed(keys)
    values = binary_array(
        total,
        (value_ends, value_data.slice(0, int(totals[_VALUE_TOTAL]))),
        validity,
        int(totals[_NULL_VALUES]),
    )
    entries = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS_TYPE.value_type))
    has_none = counts == 0
    bitmap = pa.py_buffer(np.packbits(~has_none, bitorder="little"))
    return pa.Array.from_buffers(
        HEADERS_TYPE,
        counts.size,
        [bitmap, pa.py_buffer(ends)],
        null_count=int(has_none.sum()),
        children=[entries],
    )


def _well_formed(keys: pa.Array) -> pa.Array:
    """Replace malformed UTF-8 as Java's decoder does; Arrow strings must be valid."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.cast(pa.binary())
        return pa.array([decode_header_key(key.as_py()) for key in raw], pa.string())
    return keys
