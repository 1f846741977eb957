"""The ids of schemas that keys or values start with: a zero byte, then four bytes, big-endian.

Source: SchemaId of Confluent's serializers (8.5); Apicurio's Default4ByteIdHandler writes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

PREFIX_BYTES = 5


def prefixed_ids(column: pa.Array) -> npt.NDArray[np.int32]:
    """Return the ids in a column of binary values, those of values without a prefix left out."""
    if not len(column):
        return np.empty(0, dtype=np.int32)
    values = column.cast(pa.large_binary())
    if values.null_count:
        values = values.drop_null()
    _, offsets_buffer, data_buffer = values.buffers()
    if data_buffer is None or not len(values):
        return np.empty(0, dtype=np.int32)
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)
    starts = offsets[:-1][np.diff(offsets) >= PREFIX_BYTES]
    starts = starts[data[starts] == 0]
    digits = data[starts[:, None] + np.arange(1, PREFIX_BYTES)]
    ids: npt.NDArray[np.int32] = digits.view(">i4").reshape(-1).astype(np.int32)
    return ids
