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
from pylog.kernels.decode_records import WANT_KEY, WANT_TIMESTAMP, WANT_VALUE

if TYPE_CHECKING:
    import numpy.typing as npt

# What both decoding kernels leave in the first places of their ``totals``.
KEY_BYTES, VALUE_BYTES, NULL_KEYS, NULL_VALUES = range(4)


class RecordColumns:
    """Buffers of the upper bound of what a group can hold, trimmed once it is known.

    Parameters
    ----------
    most_rows
        Rows that the group has at the most.
    key_and_value_bytes
        Bytes that its keys, and its values, have at the most.
    want
        Sum of the kernels' ``WANT_…``: columns not wanted get no memory to speak of.
    """

    def __init__(self, most_rows: int, key_and_value_bytes: tuple[int, int], want: int) -> None:
        key_rows = most_rows if want & WANT_KEY else 0
        value_rows = most_rows if want & WANT_VALUE else 0
        timestamp_rows = most_rows if want & WANT_TIMESTAMP else 0
        self._want = want
        (
            (self._offsets, self.offsets),
            (self._timestamps, self.timestamps),
            (self._key_ends, self.key_ends),
            (self._value_ends, self.value_ends),
        ) = allocate_together(
            (most_rows, np.int64),
            (timestamp_rows, np.int64),
            (key_rows + 1, np.int32),
            (value_rows + 1, np.int32),
        )
        self._key_data, self.key_data = allocate(key_and_value_bytes[0] if key_rows else 0)
        self._value_data, self.value_data = allocate(key_and_value_bytes[1] if value_rows else 0)
        self.key_validity = all_valid_bitmap(key_rows)
        self.value_validity = all_valid_bitmap(value_rows)
        self.rows = 0
        self.batch_rows = np.zeros(0, dtype=np.int64)
        self.base_offsets = np.zeros(0, dtype=np.int64)
        self.arrays: dict[str, pa.Array] = {}

    def finish(
        self,
        rows: int,
        totals: npt.NDArray[np.int64],
        timestamp_type: pa.DataType,
    ) -> None:
        """Make the arrays ``offset``, ``timestamp``, ``key`` and ``value`` of what was filled.

        Parameters
        ----------
        rows
            Rows that the kernel wrote.
        totals
            Begins with key bytes, value bytes, null keys, null values.
        timestamp_type
            Arrow type whose unit the kernel has scaled to.
        """
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
                (self._key_ends, self._key_data.slice(0, int(totals[KEY_BYTES]))),
                self.key_validity,
                int(totals[NULL_KEYS]),
            )
        if self._want & WANT_VALUE:
            self.arrays["value"] = binary_array(
                rows,
                (self._value_ends, self._value_data.slice(0, int(totals[VALUE_BYTES]))),
                self.value_validity,
                int(totals[NULL_VALUES]),
            )
