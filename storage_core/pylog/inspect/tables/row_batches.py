"""Rows of Python values to Arrow, for the tables whose rows are few."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.model import TopicPartition

TIMESTAMP = pa.timestamp("ms", tz="UTC")
"""Milliseconds as stored: holds every int64 that a file can hold."""

_ROWS_A_BATCH = 1 << 14


def table_schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    """Return the schema of a table: ``topic`` and ``partition``, then its own columns."""
    return pa.schema([("topic", pa.string()), ("partition", pa.int32()), *columns])


def record_batches(
    topic_partition: TopicPartition, rows: Iterable[tuple[object, ...]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield ``rows`` as record batches of at most 16,384 rows; none where there is no row.

    Parameters
    ----------
    topic_partition
        Whose rows: the first two columns.
    rows
        Values of the other columns, in the schema's order; None is null, a timestamp is int ms.
    schema
        From `table_schema`.
    """
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_A_BATCH)):
        columns: list[Sequence[object]] = [
            [topic_partition.topic] * len(some),
            [topic_partition.partition] * len(some),
            *zip(*some, strict=True),
        ]
        arrays = [
            array_of(values, field.type) for values, field in zip(columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def array_of(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return values as Arrow has them, texts as of `encodable`."""
    try:
        return pa.array(values, type=kind)
    except UnicodeEncodeError:
        return pa.array([encodable(value) for value in values], type=kind)


def encodable(value: object) -> object:
    r"""Return a value whose texts UTF-8 can hold.

    Names of files may have bytes that are no UTF-8. Python keeps those as lone surrogates, which
    become such text as ``\udcff``.
    """
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case list() | tuple():
            return [encodable(each) for each in value]
        case dict():
            return {name: encodable(each) for name, each in value.items()}
    return value


def none_if(value: int, sentinel: int) -> int | None:
    """Return ``value``, or None if it is the sentinel for "none"."""
    return None if value == sentinel else value
