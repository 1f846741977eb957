"""Arrow buffers that kernels write into, and arrays over buffers.

Memory comes from Arrow's pool, not from ``np.empty``: the pool hands the same pages out again as
soon as a consumer lets go of a batch, and faulting in fresh pages costs more than all decoding.

Arrays are made from buffers, not by ``pa.array`` and ``pa.scalar``: these import pandas at their
first call, wherever it is installed, which doubles the time that a process takes to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


_ALIGNMENT = 64  # what Arrow recommends


def allocate(size_bytes: int) -> tuple[pa.Buffer, npt.NDArray[np.uint8]]:
    """Return an uninitialised Arrow buffer and a writable view of its bytes.

    The buffer owns the memory; the view is valid while it lives. At least 8 bytes, so that a
    kernel's first write is inside whatever the caller computed.
    """
    buffer = pa.allocate_buffer(max(8, size_bytes))
    return buffer, np.frombuffer(buffer, dtype=np.uint8)


def allocate_together(
    *columns: tuple[int, npt.DTypeLike],
) -> list[tuple[pa.Buffer, npt.NDArray[Any]]]:
    """Return buffers and writable views for several columns, made by one allocation."""
    starts, at = [], 0
    for count, dtype in columns:
        starts.append(at)
        at += -(-max(1, count) * np.dtype(dtype).itemsize // _ALIGNMENT) * _ALIGNMENT
    whole, memory = allocate(at)
    made = []
    for start, (count, dtype) in zip(starts, columns, strict=True):
        size = max(1, count) * np.dtype(dtype).itemsize
        made.append((whole.slice(start, size), memory[start : start + size].view(dtype)))
    return made


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


def fixed_width_array(values: npt.NDArray[Any], null: int | None = None) -> pa.Array:
    """Return ``values`` as an Arrow array of their type; those equal to ``null`` are null."""
    bitmap = None
    null_count = 0
    if null is not None:
        is_null = values == null
        null_count = int(is_null.sum())
        bitmap = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if null_count else None
    is_boolean = values.dtype == np.bool_
    data = np.packbits(values, bitorder="little") if is_boolean else np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(
        kind, values.size, [bitmap, pa.py_buffer(data)], null_count=null_count
    )


def int64_values(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the values of 64-bit integers or timestamps, at least one; undefined where null."""
    values: npt.NDArray[np.int64] = np.frombuffer(array.buffers()[1], np.int64)
    return values[array.offset : array.offset + len(array)]


def int32_values(array: pa.Array) -> npt.NDArray[np.int32]:
    """Return the values of 32-bit integers, at least one; undefined where null."""
    values: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1], np.int32)
    return values[array.offset : array.offset + len(array)]


def boolean_values(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return the values of booleans without nulls."""
    return _flags(array.buffers()[1], array)


def present_rows(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which rows of any array are not null."""
    bitmap = array.buffers()[0]
    return np.ones(len(array), dtype=np.bool_) if bitmap is None else _flags(bitmap, array)


def _flags(bitmap: pa.Buffer | None, array: pa.Array) -> npt.NDArray[np.bool_]:
    bits = np.frombuffer(bitmap or b"", dtype=np.uint8)
    first = array.offset
    return np.unpackbits(bits, bitorder="little")[first : first + len(array)].view(np.bool_)


def string_array(texts: Sequence[str]) -> pa.Array:
    """Return ``texts`` as an Arrow array of strings."""
    return bytes_array([text.encode() for text in texts], pa.string())


def bytes_array(values: Sequence[bytes], kind: pa.DataType | None = None) -> pa.Array:
    """Return ``values`` as an Arrow array of binaries, or of another type with int32 offsets."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    kind = pa.binary() if kind is None else kind
    return pa.Array.from_buffers(kind, len(values), buffers, null_count=0)
