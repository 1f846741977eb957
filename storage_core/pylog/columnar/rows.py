"""Tables of few rows: from Python values to Arrow, with a schema from the text that documents it.

A table's text is what it is about, then a line for each column with name, type and meaning (it may
continue in indented lines), then notes; empty lines are between the three.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.model import TopicPartition

TIMESTAMP = pa.timestamp("ms", tz="UTC")
"""Milliseconds as stored: holds every int64 that a file can hold."""

_TYPES = {
    **{
        name: pa.type_for_alias(name)
        for name in ["string", "binary", "bool", "int32", "int64", "double"]
    },
    "timestamp": TIMESTAMP,
    "list<int32>": pa.list_(pa.int32()),
    "list<string>": pa.list_(pa.string()),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "references": pa.list_(
        pa.struct([("name", pa.string()), ("subject", pa.string()), ("version", pa.int32())])
    ),
    "index_state": pa.struct(
        [("state", pa.string()), ("entries", pa.int64()), ("reason", pa.string())]
    ),
    "share": pa.struct([("share", pa.float64()), ("low", pa.float64()), ("high", pa.float64())]),
}
_COLUMN = re.compile(r"^(\w+) +([\w<>]+)(.*(?:\n +.*)*)", re.MULTILINE)
_ROWS_A_BATCH = 1 << 14
_TOPIC_AND_PARTITION = (
    ("topic", "string", "name of the topic"),
    ("partition", "int32", "number of the partition"),
)


@dataclass(frozen=True, slots=True)
class TableText:
    """The parts of a table's text; columns are name, type and meaning."""

    summary: str
    columns: tuple[tuple[str, str, str], ...]
    notes: str

    @classmethod
    def parse(cls, text: str) -> TableText:
        """Take a text apart."""
        summary, columns, *notes = text.strip().split("\n\n")
        parsed = _COLUMN.findall(columns)
        return cls(
            " ".join(summary.split()),
            tuple((name, kind, " ".join(meaning.split())) for name, kind, meaning in parsed),
            "\n\n".join(notes),
        )

    @classmethod
    def of_partitions(cls, text: str) -> TableText:
        """Take the text of a metadata table apart, which has topic and partition first."""
        parsed = cls.parse(text)
        return replace(parsed, columns=(*_TOPIC_AND_PARTITION, *parsed.columns))

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([(name, _TYPES[kind]) for name, kind, _ in self.columns])


def record_batches(
    topic_partition: TopicPartition, rows: Iterable[tuple[object, ...]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield ``rows`` as record batches of at most 16,384 rows; none where there is no row."""
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_A_BATCH)):
        yield from table_of_rows([(*topic_partition, *each) for each in some], schema).to_batches()


def table_of_rows(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    """Return rows that have the values of all columns as a table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [
        array_of(list(values), field.type) for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def array_of(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return values as Arrow has them, texts as of `encodable`."""
    try:
        return pa.array(values, type=kind)
    except UnicodeEncodeError:
        return pa.array([encodable(value) for value in values], type=kind)


def encodable(value: object) -> object:
    r"""Return a value whose texts UTF-8 can hold."""
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
