"""A column of bytes in base64: one call encodes all its values.

Each value is filled up to a multiple of three bytes first, so that in the base64 of all of them
each begins where a group of four characters does. The characters that stand for nothing but the
filling then become ``=``.
"""

from __future__ import annotations

from binascii import b2a_base64

import numpy as np
import pyarrow as pa

from pylog.record_lines.arrow_functions import (
    binary_join_element_wise,
    cast,
    take,
)

_FILLINGS = pa.Array.from_buffers(
    pa.large_binary(),
    3,
    [None, pa.py_buffer(np.array([0, 0, 2, 3], dtype=np.int64)), pa.py_buffer(bytes(3))],
)
"""What is missing, by the bytes that a value has more than a multiple of three."""


def base64_column(column: pa.Array) -> pa.Array:
    """Return the values of a binary column in base64 (padded); nulls stay null."""
    column = cast(column, pa.large_binary())
    ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
    over = np.diff(ends) % 3
    rows = pa.Array.from_buffers(pa.int64(), over.size, [None, pa.py_buffer(over)])
    filled = binary_join_element_wise(column, take(_FILLINGS, rows), _FILLINGS[0])
    validity, filled_ends, filled_data = filled.buffers()
    encoded = bytearray(b2a_base64(filled_data or b"", newline=False))
    encoded_ends = np.frombuffer(filled_ends, np.int64)[: len(column) + 1] // 3 * 4
    characters = np.frombuffer(encoded, np.uint8)
    over[np.diff(encoded_ends) == 0] = 0  # bytes under a null
    characters[encoded_ends[1:][over > 0] - 1] = ord("=")
    characters[encoded_ends[1:][over == 1] - 2] = ord("=")
    buffers = [validity, pa.py_buffer(encoded_ends), pa.py_buffer(encoded)]
    return pa.Array.from_buffers(pa.large_string(), len(column), buffers)
