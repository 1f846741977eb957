"""Arrow buffers that kernels write into.

Memory comes from Arrow's pool, not from ``np.empty``: the pool hands the same pages out again as
soon as a consumer lets go of a batch, and faulting in fresh pages costs more than all decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt


def allocate(size_bytes: int, dtype: npt.DTypeLike) -> tuple[pa.Buffer, npt.NDArray[Any]]:
    """Return an uninitialised Arrow buffer and a writable NumPy view of it.

    The buffer owns the memory; the view is valid while it lives. At least 8 bytes, so that a
    kernel's first write is inside whatever the caller computed.
    """
    buffer = pa.allocate_buffer(max(8, size_bytes))
    return buffer, np.frombuffer(buffer, dtype=dtype)


def all_valid_bitmap(rows: int) -> npt.NDArray[np.uint8]:
    """Return a validity bitmap for ``rows`` with every bit set."""
    return np.full(rows // 8 + 1, 0xFF, dtype=np.uint8)


def binary_array(
    rows: int,
    ends_and_data: tuple[pa.Buffer, pa.Buffer],
    validity: npt.NDArray[np.uint8],
    null_count: int,
) -> pa.Array:
    """Return a binary array over buffers that a kernel has filled; nothing is copied."""
    bitmap = pa.py_buffer(validity) if null_count else None
    ends, data = ends_and_data
    return pa.Array.from_buffers(pa.binary(), rows, [bitmap, ends, data], null_count=null_count)
