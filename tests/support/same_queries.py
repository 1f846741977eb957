"""Queries that every tool is asked, over one log directory: their conditions in each tool's words.

A condition is a list of terms that all hold. `Query.rows_of` picks the expected rows from the
records that were written, without any reader.
"""

from __future__ import annotations

import datetime as dt
import operator
import random
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    marker,
    wrapper,
)
from tests.support.log_files import Transactions, segment_path, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.support.s3_proxy import Traffic
    from tests.support.s3_server import Bucket

NOON = 1_704_110_400_000
"""The timestamp of offset 0; one second later for each offset."""

PLANNING = 0.1
"""The part of the bytes that finding the ends of the logs takes, two requests of 8 KiB each, and
those of the segments: they may overlap."""

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")
_BATCH = 20
_SEGMENT = 4 * _BATCH
_END = 3 * _SEGMENT
_VALUE_BYTES = 2_000
_CODECS = ("none", "lz4", "zstd")
_COMPARISONS: dict[str, Callable[[pl.Expr, Any], pl.Expr]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    ">=": operator.ge,
}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Row(NamedTuple):
    """A record; ``timestamp`` in milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    is_committed: bool = True


class Term(NamedTuple):
    """``column operator value``; ``in`` and ``between`` have several values, ``is null`` none."""

    column: str
    operator: str
    value: Any = None


@dataclass(frozen=True)
class Query:
    """What is asked, and how much may be read for it.

    Attributes
    ----------
    name
        What kind of query it is.
    most_read
        The largest part of all bytes of ``.log`` files that an answer may take, besides `PLANNING`.
    terms
        What each row fulfils.
    columns
        What is selected.
    limit
        How many rows are wanted, whichever; None for all.
    isolation
        Kafka's word.
    """

    name: str
    most_read: float
    terms: tuple[Term, ...] = ()
    columns: tuple[str, ...] = COLUMNS
    limit: int | None = None
    isolation: str = "read_uncommitted"

    def rows_of(self, rows: Sequence[Row]) -> list[tuple[object, ...]]:
        """Return the columns of the rows that pass, sorted; without regard to `limit`."""
        passing = [row for row in rows if all(_holds(term, row) for term in self.terms)]
        if self.isolation == "read_committed":
            passing = [row for row in passing if row.is_committed]
        passing.sort(key=lambda row: (row.topic, row.partition, row.offset))
        return [tuple(getattr(row, name) for name in self.columns) for row in passing]

    def duckdb(self) -> str:
        """Return the statement for DuckDB."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        where = " AND ".join(f'"{each.column}" {_in_sql(each, _duckdb)}' for each in self.terms)
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return f"SELECT {names} FROM records{where and f' WHERE {where}'}{limit}"  # noqa: S608

    def spark(self) -> str:
        """Return the condition for Spark; ``true`` for none."""
        terms = [f"{each.column} {_in_sql(each, _spark)}" for each in self.terms]
        return " AND ".join(terms) or "true"

    def polars(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Return the query of a lazy frame."""
        if self.terms:
            frame = frame.filter(reduce(operator.and_, map(_in_polars, self.terms)))
        return (frame if self.limit is None else frame.head(self.limit)).select(self.columns)

    def filter_arguments(self) -> dict[str, Any]:
        """Return the terms as arguments of ``pylog.RecordFilter``, which has none for nulls."""
        arguments: dict[str, Any] = {}
        for term in self.terms:
            if term.operator != "is null":
                arguments |= _filter_arguments(term)
        return arguments


QUERIES = (
    Query("range of offsets", 0.25, (Term("offset", "between", (90, 110)),)),
    # In a store, a request for each header would cost more than reading all.
    Query(
        "range of timestamps",
        1,
        (
            Term("timestamp", ">=", NOON + 205_000),
            Term("timestamp", "<", NOON + 231_000),
        ),
    ),
    Query("one partition", 0.3, (Term("partition", "=", 1),)),
    # Twice: first for where transactions begin and end.
    Query("one topic", 0.55, (Term("topic", "=", "payments"),), isolation="read_committed"),
    Query("no value", 1, columns=("topic", "partition", "offset", "key")),
    Query("limit", 0.4, limit=5),
    Query("key", 1, (Term("key", "=", b"k3"),)),
    Query("list of keys", 1, (Term("key", "in", (b"k3", b"k7", b"nobody")),)),
    Query(
        "lists of places",
        0.3,
        (Term("partition", "in", (0, 2)), Term("offset", "in", (163, 170, 175))),
    ),
    Query("no key", 1, (Term("key", "is null"),)),
    Query(
        "all of it",
        0.15,
        (
            Term("topic", "=", "orders"),
            Term("partition", "=", 0),
            Term("offset", ">=", 150),
            Term("timestamp", "<", NOON + 190_000),
            Term("key", "in", (b"k3", b"k4")),
        ),
    ),
    Query("contradiction", 0, (Term("offset", "<", 50), Term("offset", ">", 200))),
)


class BucketOfLogs:
    """The log directory of `write_logs`, in a bucket.

    Attributes
    ----------
    rows
        What a consumer gets of it.
    """

    PREFIX = "same-query"

    def __init__(self, directory: Path, bucket: Bucket) -> None:
        self.rows = write_logs(directory)
        self._size_bytes = sum(path.stat().st_size for path in directory.rglob("*.log"))
        bucket.upload(directory, self.PREFIX)

    def share(self, traffic: Traffic) -> float:
        """Return which part of the bytes of all ``.log`` files was fetched."""
        return traffic.bytes_of(".log") / self._size_bytes


def write_logs(directory: Path) -> list[Row]:
    """Write topic ``orders`` with three partitions, and ``payments``, which has transactions.

    ``orders-1`` has been compacted, ``orders-2`` begins at its second segment, and a segment of
    ``orders-0`` is of format v1. Return the rows that consumers get.
    """
    chance = random.Random(20_261_123)
    rows: list[Row] = []
    for partition in range(3):
        batches = []
        for first in range(_SEGMENT if partition == 2 else 0, _END, _BATCH):
            records = _records(chance, first)
            if partition == 1 and first < 2 * _SEGMENT:
                records = [each for each in records if chance.random() < 0.7]
            batches.append(_batch(records, first, is_old=partition == 0 and first < _SEGMENT))
        if partition == 1:
            batches[3] = empty_batch_v2(batches[3].base_offset, batches[3].last_offset)
        _write(directory, "orders", partition, batches)
        rows += [Row("orders", partition, *each[:4]) for one in batches for each in one.records]
    rows += _write_payments(chance, directory)
    return rows


def _write_payments(chance: random.Random, directory: Path) -> list[Row]:
    """Write transactions of two producers side by side, of which one commits and one aborts."""
    batches, rows = [], []
    for first in range(0, _END, _BATCH):
        records = _records(chance, first)
        kept, lost = records[: _BATCH // 2], records[_BATCH // 2 : -2]
        batches += [
            batch_v2(kept, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
            batch_v2(lost, producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True),
            marker(records[-2].offset, COMMIT, producer_id=1),
            marker(records[-1].offset, ABORT, producer_id=2),
        ]
        rows += [Row("payments", 0, *each[:4]) for each in kept]
        rows += [Row("payments", 0, *each[:4], is_committed=False) for each in lost]
    _write(directory, "payments", 0, batches)
    entries = Transactions(batches)
    for base in range(0, _END, _SEGMENT):
        path = segment_path(directory / "payments-0", base, ".txnindex")
        path.write_bytes(entries.index_bytes(base, base + _SEGMENT))
    return rows


def _records(chance: random.Random, first: int) -> list[Stored]:
    return [
        Stored(
            offset,
            NOON + 1_000 * offset + chance.randint(-2_000, 2_000),
            None if offset % 7 == 0 else b"k%d" % (offset % 10),
            chance.randbytes(_VALUE_BYTES),
        )
        for offset in range(first, first + _BATCH)
    ]


def _batch(records: Sequence[Stored], first: int, *, is_old: bool) -> Built:
    if is_old:
        return wrapper(records, magic=1, codec="gzip")
    codec = _CODECS[first // _SEGMENT]
    return batch_v2(records, base_offset=first, last_offset=first + _BATCH - 1, codec=codec)


def _write(directory: Path, topic: str, partition: int, batches: Sequence[Built]) -> None:
    segments: dict[int, list[Built]] = {}
    for batch in batches:
        segments.setdefault(batch.base_offset // _SEGMENT * _SEGMENT, []).append(batch)
    write_partition(directory, segments, name=f"{topic}-{partition}")


def _holds(term: Term, row: Row) -> bool:
    found = getattr(row, term.column)
    if term.operator == "is null":
        return found is None
    if found is None:
        return False
    match term.operator:
        case "in":
            return found in term.value
        case "between":
            low, high = term.value
            return bool(low <= found <= high)
        case "=":
            return bool(found == term.value)
        case "<":
            return bool(found < term.value)
        case ">":
            return bool(found > term.value)
    return bool(found >= term.value)


def _in_sql(term: Term, literal: Any) -> str:  # noqa: ANN401 - a function
    match term.operator:
        case "is null":
            return "IS NULL"
        case "in":
            return f"IN ({', '.join(literal(term.column, each) for each in term.value)})"
        case "between":
            low, high = term.value
            return f"BETWEEN {literal(term.column, low)} AND {literal(term.column, high)}"
    return f"{term.operator} {literal(term.column, term.value)}"


def _duckdb(column: str, value: Any) -> str:  # noqa: ANN401 - of any column
    if column == "timestamp":
        return f"TIMESTAMPTZ '{_instant(value).isoformat()}'"
    return str(value) if isinstance(value, int) else f"'{_text(value)}'"


def _spark(column: str, value: Any) -> str:  # noqa: ANN401 - of any column
    if column == "timestamp":
        return f"timestamp_millis({value})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(value) if isinstance(value, int) else f"'{value}'"


def _in_polars(term: Term) -> pl.Expr:
    column, value = pl.col(term.column), term.value
    if term.column == "timestamp":
        value = _instant(value)
    match term.operator:
        case "is null":
            return column.is_null()
        case "in":
            return column.is_in(list(value))
        case "between":
            return column.is_between(*value)
    return _COMPARISONS[term.operator](column, value)


def _filter_arguments(term: Term) -> dict[str, Any]:
    column, value = term.column, term.value
    match term.operator:
        case "=" | "in" if column != "offset":
            return {f"{column}s": value}
        case "in":
            return {"min_offset": min(value), "max_offset": max(value)}
        case "between":
            return {f"min_{column}": value[0], f"max_{column}": value[1]}
        case "<":
            return {f"max_{column}": value - 1}
        case ">":
            return {f"min_{column}": value + 1}
    return {f"min_{column}": value}


def _instant(milliseconds: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=milliseconds)


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
