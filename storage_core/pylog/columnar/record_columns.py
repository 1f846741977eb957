"""The output columns of one decoded group: memory for a kernel to fill, then Arrow arrays."""

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
from pylog.kernels.decode_records import (
    TOTAL_KEY_BYTES,
    TOTAL_NULL_KEYS,
    TOTAL_NULL_VALUES,
    TOTAL_VALUE_BYTES,
    WANT_KEY,
    WANT_TIMESTAMP,
    WANT_VALUE,
)

if TYPE_CHECKING:
    import numpy.typing as npt


class RecordColumns:
    """Buffers of the upper bound of what a group can hold, trimmed once it is known.

    Attributes
    ----------
    outputs
        Writable views, in the order in which both decoding kernels take them: offsets, timestamps,
        ends, data and validity of the keys, and of the values.
    rows
        Rows that the kernel wrote; 0 before `finish`.
    batch_rows
        Rows of each batch, shape (batches,), for a kernel to fill.
    base_offsets
        As given.
    arrays
        The finished columns by name.
    """

    def __init__(
        self,
        most_rows: int,
        key_and_value_bytes: tuple[int, int],
        want: int,
        base_offsets: npt.NDArray[np.int64],
    ) -> None:
        key_rows = most_rows if want & WANT_KEY else 0
        value_rows = most_rows if want & WANT_VALUE else 0
        timestamp_rows = most_rows if want & WANT_TIMESTAMP else 0
        self._want = want
        (
            (self._offsets, offsets),
            (self._timestamps, timestamps),
            (self._key_ends, key_ends),
            (self._value_ends, value_ends),
        ) = allocate_together(
            (most_rows, np.int64),
            (timestamp_rows, np.int64),
            (key_rows + 1, np.int32),
            (value_rows + 1, np.int32),
        )
        self._key_data, key_data = allocate(key_and_value_bytes[0] if key_rows else 0)
        self._value_data, value_data = allocate(key_and_value_bytes[1] if value_rows else 0)
        self._key_validity = all_valid_bitmap(key_rows)
        self._value_validity = all_valid_bitmap(value_rows)
        self.outputs = (
            offsets,
            timestamps,
            key_ends,
            key_data,
            self._key_validity,
            value_ends,
            value_data,
            self._value_validity,
        )
        self.rows = 0
        self.batch_rows = np.zeros(base_offsets.size, dtype=np.int64)
        self.base_offsets = base_offsets
        self.arrays: dict[str, pa.Array] = {}

    def finish(
        self,
        rows: int,
        totals: npt.NDArray[np.int64],
        timestamp_type: pa.DataType,
    ) -> None:
        """Make the arrays ``offset``, ``timestamp``, ``key`` and ``value`` of what was filled."""
        self.rows = rows
        wide = 8 * rows
        self.arrays["offset"] = pa.Array.from_buffers(
            pa.int64(), rows, [None, self._offsets.slice(0, wide)], null_count=0
        )
        if self._want & WANT_TIMESTAMP:
            self.arrays["timestamp"] = pa.Array.from_buffers(
                timestamp_type, rows, [None, self._timestamps.slice(0, wide)], null_count=0
            )
        if self._want & WANT_KEY:
            self.arrays["key"] = binary_array(
                rows,
                (self._key_ends, self._key_data.slice(0, int(totals[TOTAL_KEY_BYTES]))),
                self._key_validity,
                int(totals[TOTAL_NULL_KEYS]),
            )
        if self._want & WANT_VALUE:
            self.arrays["value"] = binary_array(
                rows,
                (self._value_ends, self._value_data.slice(0, int(totals[TOTAL_VALUE_BYTES]))),
                self._value_validity,
                int(totals[TOTAL_NULL_VALUES]),
            )
