"""The columns of a record batch as the kernel `pylog.kernels.encode_records` takes them, checked.

Everything that a row can do wrong is found here, before anything of the record batch is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.model import NO_TIMESTAMP

if TYPE_CHECKING:
    import numpy.typing as npt


_INT32_OFFSETS = (pa.types.is_binary, pa.types.is_string)
_INT64_OFFSETS = (pa.types.is_large_binary, pa.types.is_large_string)
_VIEWS = (pa.types.is_binary_view, pa.types.is_string_view)
"""Columns of Polars; they are copied into one with offsets."""
ACCEPTED = "binary, large_binary, string, large_string, their views and fixed_size_binary"


class BinaryColumn(NamedTuple):
    """The bytes of each row of a column; read-only, views of the column where they can."""

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


_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_MAX_SECONDS = (2**63 - 1) // 1_000
_HEADER_FIELDS = ("key", "value")
_NO_COLUMN = BinaryColumn(NO_ENDS, NO_BYTES, NO_BYTES)


class Columns(NamedTuple):
    """The kernel's input, in its order; see there. All arrays are read-only."""

    timestamps: npt.NDArray[np.int64]
    key_ends: npt.NDArray[np.int64]
    key_data: npt.NDArray[np.uint8]
    key_validity: npt.NDArray[np.uint8]
    value_ends: npt.NDArray[np.int64]
    value_data: npt.NDArray[np.uint8]
    value_validity: npt.NDArray[np.uint8]
    header_ends: npt.NDArray[np.int64]
    header_validity: npt.NDArray[np.uint8]
    header_key_ends: npt.NDArray[np.int64]
    header_key_data: npt.NDArray[np.uint8]
    header_value_ends: npt.NDArray[np.int64]
    header_value_data: npt.NDArray[np.uint8]
    header_value_validity: npt.NDArray[np.uint8]


NO_ROWS = Columns(
    NO_ENDS,
    NO_ENDS,
    NO_BYTES,
    NO_BYTES,
    NO_ENDS,
    NO_BYTES,
    NO_BYTES,
    NO_ENDS,
    NO_BYTES,
    NO_ENDS,
    NO_BYTES,
    NO_ENDS,
    NO_BYTES,
    NO_BYTES,
)


class _Headers(NamedTuple):
    ends: npt.NDArray[np.int64]
    validity: npt.NDArray[np.uint8]
    keys: BinaryColumn
    values: BinaryColumn


_NO_HEADERS = _Headers(NO_ENDS, NO_BYTES, _NO_COLUMN, _NO_COLUMN)


def is_timestamp_type(kind: pa.DataType) -> bool:
    """Whether a column ``timestamp`` may be of that type."""
    known = (pa.types.is_timestamp, pa.types.is_int64, pa.types.is_null)
    return any(is_kind(kind) for is_kind in known)


def is_headers_type(kind: pa.DataType) -> bool:
    """Whether a column ``headers`` may be of that type."""
    if pa.types.is_null(kind):
        return True
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_struct(kind.value_type):
        return False
    places = [kind.value_type.get_field_index(name) for name in _HEADER_FIELDS]
    return all(at >= 0 and is_binary_type(kind.value_type.field(at).type) for at in places)


def columns_of(batch: pa.RecordBatch, timestamp_ms: int, first_row: int) -> Columns:
    """Return the kernel's view of ``batch``, which must outlive it."""
    names = batch.schema.names
    for name in ("key", "value", "timestamp", "headers"):
        if names.count(name) > 1:
            msg = f"there is more than one column {name!r}"
            raise ValueError(msg)
    if "value" not in names:
        msg = f"no column 'value'; the columns are: {', '.join(names)}"
        raise ValueError(msg)
    rows = batch.num_rows
    value = binary_column(batch.column("value"), "value")
    key = binary_column(batch.column("key"), "key") if "key" in names else null_column(rows)
    timestamps = (
        _timestamps_of(batch.column("timestamp"), timestamp_ms, first_row)
        if "timestamp" in names
        else _all(rows, timestamp_ms)
    )
    headers = _headers_of(batch.column("headers"), first_row) if "headers" in names else _NO_HEADERS
    return Columns(
        timestamps,
        *key,
        *value,
        headers.ends,
        headers.validity,
        headers.keys.ends,
        headers.keys.data,
        *headers.values,
    )


def _all(rows: int, timestamp_ms: int) -> npt.NDArray[np.int64]:
    return read_only(np.full(rows, timestamp_ms, dtype=np.int64))


def _is_set(validity: npt.NDArray[np.uint8], rows: int) -> npt.NDArray[np.bool_]:
    """Return the bits of a bitmap, all True if it is empty."""
    if validity.size == 0:
        return np.ones(rows, dtype=np.bool_)
    return np.unpackbits(validity, count=rows, bitorder="little").astype(np.bool_)


def _timestamps_of(array: pa.Array, timestamp_ms: int, first_row: int) -> npt.NDArray[np.int64]:
    """Return milliseconds; fractions of one are dropped."""
    kind, rows = array.type, len(array)
    if pa.types.is_null(kind):
        return _all(rows, timestamp_ms)
    if not is_timestamp_type(kind):
        msg = f"column 'timestamp' is of type {kind}, neither a timestamp nor int64 milliseconds"
        raise ValueError(msg)
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
    stored = buffer_view(array.buffers()[1], np.int64)[array.offset : array.offset + rows]
    validity = validity_of(array)
    if validity.size:
        # The value under a null may be anything; 0 is in range.
        is_there = _is_set(validity, rows)
        stored = np.where(is_there, stored, 0)
    _ensure_in_range(stored, unit, first_row)
    if unit == "s":
        milliseconds = stored * 1_000
    elif unit == "ms":
        milliseconds = stored
    else:
        milliseconds = np.floor_divide(stored, _PER_MILLISECOND[unit], out=pool_array(rows))
    if validity.size:
        milliseconds = np.where(is_there, milliseconds, timestamp_ms)
    return read_only(milliseconds)


def _ensure_in_range(stored: npt.NDArray[np.int64], unit: str, first_row: int) -> None:
    if stored.size == 0:
        return
    if stored.min() < 0:
        is_wrong = stored < 0
        if unit != "s":
            is_wrong &= stored != NO_TIMESTAMP * _PER_MILLISECOND[unit]
        if is_wrong.any():
            row = int(is_wrong.argmax())
            msg = (
                f"row {first_row + row}: timestamp {stored[row]} {unit} is below 0 "
                f"and not {NO_TIMESTAMP} ms (none)"
            )
            raise ValueError(msg)
    if unit == "s" and stored.max() > _MAX_SECONDS:
        row = int(stored.argmax())
        msg = f"row {first_row + row}: timestamp {stored[row]} s does not fit 64 bits of ms"
        raise ValueError(msg)


def _headers_of(array: pa.Array, first_row: int) -> _Headers:
    kind, rows = array.type, len(array)
    if pa.types.is_null(kind) or array.null_count == rows:
        return _NO_HEADERS
    if not is_headers_type(kind):
        msg = f"column 'headers' is of type {kind}, not list<struct<key, value>>"
        raise ValueError(msg)
    fields = kind.value_type
    dtype = np.int32 if pa.types.is_list(kind) else np.int64
    stored = buffer_view(array.buffers()[1], dtype)[array.offset : array.offset + rows + 1]
    ends = widened(stored)
    validity = validity_of(array)
    # The fields of a null struct are null too, once it is taken apart.
    parts = array.values.flatten()
    keys, values = (parts[fields.get_field_index(name)] for name in _HEADER_FIELDS)
    if keys.null_count:
        _ensure_keys(keys, ends, _is_set(validity, rows), first_row)
    return _Headers(
        ends, validity, binary_column(keys, "headers.key"), binary_column(values, "headers.value")
    )


def _ensure_keys(
    keys: pa.Array,
    ends: npt.NDArray[np.int64],
    has_headers: npt.NDArray[np.bool_],
    first_row: int,
) -> None:
    """Raise unless the null keys are all outside of the rows' headers."""
    nulls = np.flatnonzero(~_is_set(validity_of(keys), len(keys)))
    nulls_before = np.searchsorted(nulls, ends)
    is_wrong = (np.diff(nulls_before) > 0) & has_headers
    if is_wrong.any():
        msg = f"row {first_row + int(is_wrong.argmax())}: a header, or the key of one, is null"
        raise ValueError(msg)
