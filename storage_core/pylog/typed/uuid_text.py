"""UUIDs that are stored as 16 bytes, as the text that people know them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_TEXT_BYTES = 36
_PLACES = [place for place in range(_TEXT_BYTES) if place not in (8, 13, 18, 23)]


def uuid_texts(
    content: npt.NDArray[np.uint8], count: int, validity: pa.Buffer | None = None
) -> pa.Array:
    """Return ``count`` UUIDs, 16 bytes each, as a column of text."""
    halves = np.empty((count, 32), dtype=np.uint8)
    content = content.reshape(count, 16)
    halves[:, 0::2] = _DIGITS[content >> 4]
    halves[:, 1::2] = _DIGITS[content & 0xF]
    texts = np.full((count, _TEXT_BYTES), ord("-"), dtype=np.uint8)
    texts[:, _PLACES] = halves
    ends = np.arange(count + 1, dtype=np.int32) * _TEXT_BYTES
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.string(), count, buffers)
