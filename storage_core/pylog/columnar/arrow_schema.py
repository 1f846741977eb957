"""The Arrow schema of records: the columns of Spark's ``kafka`` source, their names and types.

================ ============================== ====================================================
column           type                           null
================ ============================== ====================================================
key              binary                         the record has no key
value            binary                         the record has no value (a tombstone)
topic            string                         never
partition        int32                          never
offset           int64                          never
timestamp        timestamp[us, UTC]             never; a record without one has -1 ms
timestampType    int32                          never; -1 none, 0 CreateTime, 1 LogAppendTime
headers          list<struct<key: string,       the record has no headers
                 value: binary>>
batch            struct, `BATCH_TYPE`           never; its fields where the batch has none
================ ============================== ====================================================

``headers`` and ``batch`` are there when asked for, and so is ``_corrupt_record`` (string): in mode
PERMISSIVE a damaged range is a row with that column, the topic and the partition, and all else
null.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt


HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

BATCH_TYPE = pa.struct(
    [
        ("baseOffset", pa.int64()),
        ("lastOffset", pa.int64()),
        ("leaderEpoch", pa.int32()),
        ("producerId", pa.int64()),
        ("producerEpoch", pa.int32()),
        ("sequence", pa.int32()),
        ("isTransactional", pa.bool_()),
        ("magic", pa.int32()),
        ("compression", pa.string()),
        ("sizeInBytes", pa.int64()),
        ("segment", pa.string()),
        ("position", pa.int64()),
    ]
)
"""Where a record came from. ``sequence`` is the batch's first sequence; leader epoch, producer id,
producer epoch and sequence are null where the batch has none (-1 on disk)."""

CORRUPT_RECORD = "_corrupt_record"
"""What is wrong with a damaged range; null in every row of a record."""

TIMESTAMP_UNITS = ("us", "ms")

_BASE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def _column_type(name: str, timestamp_unit: str) -> pa.DataType:
    return {
        CORRUPT_RECORD: pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp(timestamp_unit, tz="UTC"),
        "timestampType": pa.int32(),
        "headers": HEADERS_TYPE,
        "batch": BATCH_TYPE,
    }[name]


def column_names(
    *, include_headers: bool = False, include_batch_metadata: bool = False
) -> list[str]:
    """Return the columns that a scan has before projection, in Spark's order."""
    names = list(_BASE_COLUMNS)
    if include_headers:
        names.append("headers")
    if include_batch_metadata:
        names.append("batch")
    return names


def record_schema(
    columns: str | Iterable[str] | None = None,
    *,
    include_headers: bool = False,
    include_batch_metadata: bool = False,
    timestamp_unit: str = "us",
) -> pa.Schema:
    """Return the schema of a scan.

    Parameters
    ----------
    columns
        The column wanted, or several in the order wanted; None for all. Naming ``headers`` or
        ``batch`` asks for them.
    include_headers, include_batch_metadata
        Whether "all" has these columns.
    timestamp_unit
        "us" as in Spark, or "ms" as stored, which holds every int64.

    Raises
    ------
    ValueError
        A column does not exist (the error names the nearest) or is named twice.
    """
    if timestamp_unit not in TIMESTAMP_UNITS:
        msg = f"timestamp unit {timestamp_unit!r} is neither 'us' nor 'ms'"
        raise ValueError(msg)
    known = [*column_names(include_headers=True, include_batch_metadata=True), CORRUPT_RECORD]
    if columns is None:
        names = column_names(
            include_headers=include_headers, include_batch_metadata=include_batch_metadata
        )
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
    for place, name in enumerate(names):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            msg = f"no column {name!r}{hint} The columns are: {', '.join(known)}"
            raise ValueError(msg)
        if name in names[:place]:
            msg = f"column {name!r} is named twice"
            raise ValueError(msg)
    return pa.schema([pa.field(name, _column_type(name, timestamp_unit)) for name in names])


def schema_like(schema: pa.Schema, columns: Iterable[str]) -> pa.Schema:
    """Return the schema of other columns, with the timestamp unit of ``schema`` if it has one."""
    at = schema.get_field_index("timestamp")
    unit = "us" if at < 0 else schema.field(at).type.unit
    return record_schema(columns, timestamp_unit=unit)


# Arrow buffers that kernels write into, and arrays over buffers.
#
# Memory comes from Arrow's pool, not from ``np.empty``: the pool hands the same pages out again as
# soon as a consumer lets go of a batch, and faulting in fresh pages costs more than all decoding.
#
# Arrays are made from buffers, not by ``pa.array`` and ``pa.scalar``: these import pandas at their
# first call, wherever it is installed, which doubles the time that a process takes to start.


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


def string_array(texts: Sequence[str]) -> pa.Array:
    """Return ``texts`` as an Arrow array of strings."""
    return bytes_array([text.encode() for text in texts], pa.string())


def bytes_array(values: Sequence[bytes], kind: pa.DataType | None = None) -> pa.Array:
    """Return ``values`` as an Arrow array of binaries, or of another type with int32 offsets."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    kind = pa.binary() if kind is None else kind
    return pa.Array.from_buffers(kind, len(values), buffers, null_count=0)
