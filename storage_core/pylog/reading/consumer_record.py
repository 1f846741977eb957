"""Record batches as records of plain Python, in the words of Kafka's ``ConsumerRecord``."""

from __future__ import annotations

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
