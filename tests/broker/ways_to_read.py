"""Ways to read partitions: a scan by itself, or through a tool that makes scans.

Each takes a path and the arguments of `pylog.scan`, among which `COLUMNS` and milliseconds are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

import pylog
import pylog.duckdb
import pylog.polars

if TYPE_CHECKING:
    from pathlib import Path

    Options = dict[str, Any]

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")

_SELECT = 'SELECT topic, partition, "offset", timestamp, key, value FROM records'


def read_table(path: Path, options: Options) -> pa.Table:
    return pylog.scan(path, **options).to_table()


def count(path: Path, options: Options) -> int:
    return pylog.scan(path, **options).count()


@dataclass(frozen=True, slots=True)
class Pauses:
    """How slowly rows are taken: files go away meanwhile. Seconds."""

    before_rows: float
    after_batch: float

    def read(self, reader: pa.RecordBatchReader) -> pa.Table:
        time.sleep(self.before_rows)
        batches = []
        for batch in reader:
            batches.append(batch)
            time.sleep(self.after_batch)
        return pa.Table.from_batches(batches, schema=reader.schema)


@dataclass(frozen=True, slots=True)
class DuckDBQuery:
    """A statement as ``pylog sql`` runs it, whose rows are taken at once or slowly."""

    where: str = ""
    pauses: Pauses | None = None

    def __call__(self, path: Path, options: Options) -> pa.Table:
        with pylog.duckdb.LogDatabase(path, **options) as database:
            rows = database.query(_SELECT + self.where)
            return _in_milliseconds(
                rows.read_all() if self.pauses is None else self.pauses.read(rows)
            )


def count_by_duckdb(path: Path, options: Options) -> int:
    with pylog.duckdb.LogDatabase(path, **options) as database:
        return int(database.query("SELECT count(*) FROM records").read_all()[0][0].as_py())


@dataclass(frozen=True, slots=True)
class PolarsFrame:
    """A lazy frame, collected once it is filtered."""

    first: int = 0
    end: int = 1 << 62

    def __call__(self, path: Path, options: Options) -> pa.Table:
        frame = pylog.polars.scan(path, **options)
        offset = pl.col("offset")
        rows = frame.filter((offset >= self.first) & (offset < self.end)).collect()
        return _in_milliseconds(rows.to_arrow())


def _in_milliseconds(table: pa.Table) -> pa.Table:
    """Return the table with the time unit of the scan, which a tool may have changed."""
    at = table.schema.get_field_index("timestamp")
    stamps = table.column(at).cast(pa.timestamp("ms", "UTC"))
    return table.set_column(at, "timestamp", stamps)
