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
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

TYPED = {b"pylog": b"typed"}
"""Metadata of the columns of keys and values that are decoded: their type may be binary, too."""

UNION_MEMBER = {b"pylog": b"member of a union"}
"""Metadata of the fields of a struct that stands for a union."""

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

    Examples
    --------
    >>> pylog.record_schema(["offset", "key"])
    offset: int64
    key: binary
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
