"""Tables of internal topics whose records are decoded: a row for each record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.columnar.rows import TableText, none_if
from pylog.errors import InvalidRecordError
from pylog.model import IsolationLevel
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.view_batches import view_batches
from pylog.tables.metadata_table import table_of_rows

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence

    from pylog.reading.log_view import LogView
    from pylog.tables.metadata_table import MetadataTable

    Decode = Callable[[str, bytes | None, bytes | None], Sequence[object]]

_COLUMNS = """
offset               int64      the record's offset
timestamp            timestamp  the record's timestamp
is_latest            bool       whether no later record has its key: a compaction keeps those
problem              string     why the record cannot be decoded; null if it can
"""
_READ = ("offset", "timestamp", "key", "value")


def decoded_table(name: str, topics: re.Pattern[str], decode: Decode, text: str) -> MetadataTable:
    """Declare a table of topics by their names.

    ``decode`` returns the values of the columns that ``text`` has, given the topic's name, a key
    and a value; `InvalidRecordError` becomes a problem.
    """
    parts = text.strip().split("\n\n")
    whole = TableText.of_partitions("\n\n".join([parts[0], parts[1] + _COLUMNS, *parts[2:]]))
    width = len(TableText.parse(text).columns)

    def rows(view: LogView) -> Iterator[tuple[object, ...]]:
        if topics.fullmatch(view.topic) is None:
            return
        latest: dict[bytes | None, int] = {}
        found = []
        for offset, timestamp, key, value in _records(view):
            values, problem = _decoded(decode, view.topic, key, value)
            latest[key] = offset
            found.append((values or [None] * width, offset, timestamp, key, problem))
        for values, offset, timestamp, key, problem in found:
            yield *values, offset, none_if(timestamp, -1), latest[key] == offset, problem

    return table_of_rows(name, whole, rows)


def _records(view: LogView) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yield the committed records: workers write some of them in transactions."""
    mode = ReadMode.FAILFAST if view.damage is None else ReadMode.DROPMALFORMED
    committed = IsolationLevel.READ_COMMITTED
    for batch in view_batches(view, _READ, mode, DamageReport(), committed):
        yield from zip(
            batch.column("offset").to_pylist(),
            batch.column("timestamp").cast("int64").to_pylist(),
            batch.column("key").to_pylist(),
            batch.column("value").to_pylist(),
            strict=True,
        )


def _decoded(
    decode: Decode, topic: str, key: bytes | None, value: bytes | None
) -> tuple[Sequence[object] | None, str | None]:
    try:
        return decode(topic, key, value), None
    except InvalidRecordError as error:
        return None, error.reason
