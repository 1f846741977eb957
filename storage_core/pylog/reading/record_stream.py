"""Limits of rows, and record batches as records of plain Python."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

from pylog.model import TimestampType
from pylog.record.record import RecordHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


RECORD_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
)
"""The columns that a record is made of, in the order of its fields."""

_TIMESTAMP_TYPES = {int(each): each for each in TimestampType}


def check_limit(limit: int | None) -> None:
    """Raise `ValueError` for a limit that is negative; None stands for no limit."""
    if limit is None:
        return
    try:
        operator.index(limit)
    except TypeError:
        msg = f"limit is {limit!r}, expected a whole number, or None for all"
        raise TypeError(msg) from None
    if limit < 0:
        msg = f"limit is {limit}, expected 0 or more"
        raise ValueError(msg)


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first ``limit`` rows, all if it is None, and ask for no batch after them."""
    if limit is None:
        yield from batches
        return
    if limit <= 0:
        return
    for batch in batches:
        yield batch.slice(0, min(limit, batch.num_rows))
        limit -= batch.num_rows
        if limit <= 0:
            return


def limited_count(counts: Iterable[int], limit: int | None) -> int:
    """Return the sum of ``counts``, at most ``limit``; counts that cannot matter are not asked."""
    total = 0
    for count in counts:
        total += count
        if limit is not None and total >= limit:
            return limit
    return total


class ConsumerRecord(NamedTuple):
    """A record and where it lies; the words are those of Kafka's class.

    Attributes
    ----------
    topic, partition, offset
        Where it lies.
    timestamp
        Milliseconds since 1970-01-01 UTC; `NO_TIMESTAMP` where there is none.
    timestamp_type
        Who set the timestamp.
    key, value
        Bytes, or None.
    headers
        In their order; a name may come more than once.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...]


def consumer_records(batches: Iterable[pa.RecordBatch]) -> Iterator[ConsumerRecord]:
    """Yield the records of record batches with `RECORD_COLUMNS`, timestamps in milliseconds."""
    for batch in batches:
        stamps = batch.column("timestamp").cast("int64")
        columns = {name: batch.column(name) for name in RECORD_COLUMNS} | {"timestamp": stamps}
        rows = zip(*(each.to_pylist() for each in columns.values()), strict=True)
        for topic, partition, offset, timestamp, kind, key, value, headers in rows:
            if offset is not None:
                yield ConsumerRecord(
                    topic,
                    partition,
                    offset,
                    timestamp,
                    _TIMESTAMP_TYPES[kind],
                    key,
                    value,
                    tuple(RecordHeader(each["key"], each["value"]) for each in headers or ()),
                )
