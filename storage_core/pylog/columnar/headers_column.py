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
from pylog.kernels.decode_records import (
    HEADERS_KEY_BYTES,
    HEADERS_NULL_VALUES,
    HEADERS_TOTALS,
    HEADERS_VALUE_BYTES,
    copy_headers,
)
from pylog.kernels.header_keys import measure_keys, replace_malformed

if TYPE_CHECKING:
    import numpy.typing as npt


def headers_array(
    buffer: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    key_and_value_bytes: tuple[int, int],
) -> pa.Array:
    """Return the headers column of the records whose headers begin at ``positions``.

    The headers have been checked by ``decode_records``. Keys, and values, have at the most
    ``key_and_value_bytes``.
    """
    ends = np.zeros(counts.size + 1, dtype=np.int32)
    np.cumsum(counts, out=ends[1:])
    total = int(ends[-1])
    if total == 0:
        return pa.nulls(counts.size, HEADERS_TYPE)
    (key_ends, key_ends_view), (value_ends, value_ends_view) = allocate_together(
        (total + 1, np.int32), (total + 1, np.int32)
    )
    key_data, key_view = allocate(key_and_value_bytes[0])
    value_data, value_view = allocate(key_and_value_bytes[1])
    validity = all_valid_bitmap(total)
    totals = np.zeros(HEADERS_TOTALS, dtype=np.int64)
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
    key_bytes = int(totals[HEADERS_KEY_BYTES])
    keys = _strings(key_ends, key_data.slice(0, key_bytes), total)
    if key_bytes and key_view[:key_bytes].max() > 0x7F:
        keys = _well_formed(keys, key_ends_view, key_view)
    values = binary_array(
        total,
        (value_ends, value_data.slice(0, int(totals[HEADERS_VALUE_BYTES]))),
        validity,
        int(totals[HEADERS_NULL_VALUES]),
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


def _strings(ends: pa.Buffer, data: pa.Buffer, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), count, [None, ends, data], null_count=0)


def _well_formed(
    keys: pa.Array, ends: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]
) -> pa.Array:
    """Replace malformed UTF-8 as Java's decoder does; Arrow strings must be valid."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        data = data.view()
        data.flags.writeable = False  # as the kernels' other inputs are: one compiled form
        replaced_data, data_view = allocate(measure_keys(data, ends))
        replaced_ends, ends_view = allocate(ends.nbytes)
        replace_malformed(data, ends, data_view, ends_view[: ends.nbytes].view(np.int32))
        return _strings(
            replaced_ends,
            replaced_data.slice(0, int(ends_view[: ends.nbytes].view(np.int32)[-1])),
            len(keys),
        )
    return keys
