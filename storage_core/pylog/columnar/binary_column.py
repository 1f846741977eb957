"""Arrow columns of bytes and text as kernels take them: offsets, bytes and a bitmap of nulls.

Nothing but offsets and bitmaps is copied: the bytes of a column stay where Arrow has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

_INT32_OFFSETS = (pa.types.is_binary, pa.types.is_string)
_INT64_OFFSETS = (pa.types.is_large_binary, pa.types.is_large_string)
_VIEWS = (pa.types.is_binary_view, pa.types.is_string_view)
"""Columns of Polars; they are copied into one with offsets."""
ACCEPTED = "binary, large_binary, string, large_string, their views and fixed_size_binary"


class BinaryColumn(NamedTuple):
    """The bytes of each row of a column; all arrays read-only, views of the column where they can.

    Attributes
    ----------
    ends
        int64, one more than rows: row ``i`` has ``data[ends[i]:ends[i + 1]]``. Empty where every
        row is null.
    data
        uint8.
    validity
        Arrow bitmap whose bit 0 is row 0; empty where no row is null.
    """

    ends: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    validity: npt.NDArray[np.uint8]


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``array``, which nothing may write to any more: kernels are compiled for these."""
    array.setflags(write=False)
    return array


NO_BYTES: npt.NDArray[np.uint8] = read_only(np.empty(0, dtype=np.uint8))
NO_ENDS: npt.NDArray[np.int64] = read_only(np.empty(0, dtype=np.int64))


def pool_array(count: int) -> npt.NDArray[np.int64]:
    """Return an uninitialised array from Arrow's pool, whose pages need no faulting in again."""
    buffer = pa.allocate_buffer(max(8, 8 * count))
    return np.frombuffer(buffer, dtype=np.int64, count=count)


def widened(stored: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return Arrow offsets as int64, read-only; copied only where they are narrower."""
    if stored.dtype == np.int64:
        return read_only(stored)
    wide = pool_array(stored.size)
    wide[:] = stored
    return read_only(wide)


def buffer_view(buffer: pa.Buffer | None, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a read-only view of an Arrow buffer, of no elements if there is none."""
    if buffer is None or buffer.size == 0:
        return read_only(np.empty(0, dtype=dtype))
    whole = buffer.size // np.dtype(dtype).itemsize
    return np.frombuffer(memoryview(buffer).toreadonly(), dtype=dtype, count=whole)


def validity_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bitmap of the rows that are not null, from bit 0 on; empty if all are."""
    if array.null_count == 0:
        return NO_BYTES
    bits = buffer_view(array.buffers()[0], np.uint8)
    skip = array.offset & 7
    bits = bits[array.offset >> 3 : (array.offset + len(array) + 7) >> 3]
    if skip == 0:
        return bits
    return read_only(np.packbits(np.unpackbits(bits, bitorder="little")[skip:], bitorder="little"))


def null_column(rows: int) -> BinaryColumn:
    """Return a column whose rows are all null."""
    return BinaryColumn(NO_ENDS, NO_BYTES, read_only(np.zeros(rows // 8 + 1, dtype=np.uint8)))


def is_binary_type(kind: pa.DataType) -> bool:
    """Whether `binary_column` takes a column of that type."""
    known = (
        *(*_INT32_OFFSETS, *_INT64_OFFSETS, *_VIEWS),
        *(pa.types.is_fixed_size_binary, pa.types.is_null),
    )
    return any(is_kind(kind) for is_kind in known)


def binary_column(array: pa.Array, name: str) -> BinaryColumn:
    """Return the bytes of ``array``; text is its UTF-8."""
    kind = array.type
    if not is_binary_type(kind):
        msg = f"column {name!r} is of type {kind}; those of bytes and text are {ACCEPTED}"
        raise ValueError(msg)
    if pa.types.is_null(kind):
        return null_column(len(array))
    if any(is_kind(kind) for is_kind in _VIEWS):
        array = array.cast(pa.large_binary())
        kind = array.type
    first, rows = array.offset, len(array)
    if any(is_kind(kind) for is_kind in _INT32_OFFSETS):
        ends = _ends(array, np.int32)
    elif any(is_kind(kind) for is_kind in _INT64_OFFSETS):
        ends = _ends(array, np.int64)
    else:
        width = kind.byte_width
        ends = read_only(np.arange(first, first + rows + 1, dtype=np.int64) * width)
    return BinaryColumn(ends, buffer_view(array.buffers()[-1], np.uint8), validity_of(array))


def _ends(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[np.int64]:
    stored = buffer_view(array.buffers()[1], dtype)
    # An array without rows may come without offsets.
    stored = stored[array.offset : array.offset + len(array) + 1]
    return widened(stored) if len(array) else NO_ENDS
