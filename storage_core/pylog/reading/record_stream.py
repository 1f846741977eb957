"""Record batches in the shapes that users want: Arrow's, pandas', plain Python's."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.lazy_modules import LazyModule
from pylog.model import TimestampType
from pylog.record.record import RecordHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import NoReturn, Self

    import pandas as pd
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")  # a record is a value for those without Arrow


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


_NOT_A_SEQUENCE = (
    "a scan is not a sequence of records; use scan.to_batches() or scan.to_reader() to iterate "
    "over them in record batches, scan.records() one by one, scan.count() for how many there are, "
    "scan.last(n) for the last of each partition, and scan.to_table() or scan.to_pandas() for all "
    "of them in memory"
)


class RecordStream(ABC):
    """What gives record batches, as often as it is asked. Every use reads again.

    Attributes
    ----------
    schema
        The Arrow schema of the record batches.
    """

    schema: pa.Schema

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records as record batches of `schema`."""

    @abstractmethod
    def _of_whole_records(self) -> Self:
        """Return the same with the columns of `pylog.reading.record_stream`."""

    def __iter__(self) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __len__(self) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __getitem__(self, item: object) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __bool__(self) -> bool:
        """Return True: whether there are records is known only after a read."""
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a PyCapsule of a new Arrow stream of the records, as of `to_reader`."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return a PyCapsule of `schema`; nothing is read. See the Arrow PyCapsule interface."""
        return self.schema.__arrow_c_schema__()

    def records(self) -> Iterator[ConsumerRecord]:
        """Yield the records one by one, for plain Python; memory stays bounded.

        They have all fields, whatever the columns of this scan. What damage leaves out is listed in
        `damage` (modes DROPMALFORMED and PERMISSIVE).

        Raises
        ------
        LogStorageError
            As for `to_batches`, but any timestamp can be expressed.

        Examples
        --------
        >>> for record in pylog.scan("kafka/intact", topics="orders", limit=2).records():
        ...     print(record.topic, record.partition, record.offset)
        orders 0 0
        orders 0 1
        """
        return consumer_records(self._of_whole_records().to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the records as an Arrow stream; memory stays bounded. Plans now, reads later."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return all records in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:  # noqa: ANN401 - of pyarrow
        """Return all records as a pandas DataFrame (pandas must be installed).

        Parameters
        ----------
        **options
            Those of ``pyarrow.Table.to_pandas``, such as ``types_mapper=pandas.ArrowDtype``.
        """
        return self.to_table().to_pandas(**options)
