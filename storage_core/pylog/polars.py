"""Records as a Polars ``LazyFrame`` that reads only what a query needs.

>>> import pylog.polars
>>> orders = pylog.polars.scan("/mnt/kafka-logs", topics="orders")
>>> orders.filter(pl.col("timestamp") >= since, pl.col("key") == b"k1").select("value").collect()

Three things are pushed down to the read:

* **columns**: no other one is decoded. Where the query needs none but ``topic`` and ``partition``,
  as to count, batch headers say how many rows there are; checksums are not verified then;
* **predicates**: comparisons of ``topic``, ``partition``, ``offset``, ``timestamp`` and ``key``
  with literals, as far as all rows have to pass them. They decide which partitions, which bytes and
  which batches are read. Polars evaluates the whole predicate on what is left. With
  ``value_format`` or ``key_format``, it does so while records are decoded: first the columns of the
  predicate are, and the others only of rows that pass;
* **a row limit**, as of ``head``: nothing after it is read.

Needs Polars: ``pip install '.[polars]'`` in a clone.
"""

from __future__ import annotations

from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.installation import missing_package
from pylog.pushdown.comparison import to_record_filter
from pylog.pushdown.engine_types import engine_schema, in_engine_types
from pylog.reading.field_filter import FieldFilter
from pylog.reading.scan import scan as scan_records
from pylog.tables.tables import latest_scan, metadata_table, read_table

try:
    import polars as pl
    from polars.io.plugins import register_io_source
except ModuleNotFoundError as error:
    raise missing_package("pylog.polars", "Polars", "polars") from error
from pylog.pushdown.polars_predicate import NOTHING_ASKED, PolarsPredicate

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.scan import Scan
    from pylog.tables import TableName

__all__ = ["scan", "table"]

_OF_LATEST = (
    *("topics", "assign", "pattern", "mode", "filesystem", "storage_options"),
    *("columns", "value_format", "key_format"),
)


def __dir__() -> list[str]:
    return __all__


def scan(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    **arguments: Any,  # noqa: ANN401 - of `pylog.scan`
) -> pl.LazyFrame:
    """Return the records under ``path`` as a lazy frame, with the columns of `pylog.scan`.

    The frame is a snapshot: however often it is collected, it covers the logs up to where they
    ended when it was first collected.

    Parameters
    ----------
    path
        As for `pylog.scan`.
    **arguments
        Those of `pylog.scan`: which topics, what range of them, ``isolation``, ``mode``,
        ``columns``, ``threads`` and the rest.

    Returns
    -------
    polars.LazyFrame
        Ordered by partition, then offset. ``key`` and ``value`` are Binary, ``timestamp`` is
        Datetime in UTC.

    Raises
    ------
    LogStorageError, ValueError, TypeError
        As of `pylog.scan`. What goes wrong while the frame is collected is Polars' ComputeError,
        with the text of pylog's error.

    Examples
    --------
    >>> orders = pylog.polars.scan("kafka/intact", topics="orders")
    >>> orders.group_by("partition").len().sort("partition").collect().rows()
    [(0, 57), (1, 49)]
    """
    records = scan_records(path, **arguments)
    records.ensure_one_schema()
    empty = pl.DataFrame(engine_schema(records.schema).empty_table())
    return register_io_source(_Source(records, empty), schema=empty.schema)


def table(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    name: TableName,
    **arguments: Any,  # noqa: ANN401 - of `pylog.read_table`
) -> pl.LazyFrame:
    """Return a metadata table, such as ``latest``, as a lazy frame that is read when collected.

    Parameters
    ----------
    path, name, **arguments
        As for `pylog.read_table`.

    Returns
    -------
    polars.LazyFrame
        Read anew by each query.

    Examples
    --------
    >>> latest = pylog.polars.table("kafka/intact", "latest", topics="orders")
    >>> latest.select("key").collect().height
    63
    """
    of_scan = {each: arguments[each] for each in _OF_LATEST if each in arguments}
    if of_scan.keys().isdisjoint(("value_format", "key_format")):
        schema = metadata_table(name).schema
    else:
        schema = latest_scan(path, **of_scan).schema
    if (columns := arguments.get("columns")) is not None:
        schema = pa.schema([schema.field(each) for each in columns])
    schema = engine_schema(schema)
    empty = pl.DataFrame(schema.empty_table())

    def read(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        row_count: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        # A frame without columns would have no rows.
        given = empty.columns if columns is None else columns or empty.columns[:1]
        tested = [] if predicate is None else predicate.meta.root_names()
        needed = list(dict.fromkeys([*given, *tested]))
        found = read_table(path, name, **{**arguments, "columns": needed})
        own = pa.schema([schema.field(each) for each in needed])
        rows = pl.DataFrame(pa.Table.from_batches(in_engine_types(found.to_batches(), own), own))
        rows = rows.head(row_count) if row_count is not None else rows
        rows = rows if predicate is None else rows.filter(predicate)
        yield rows.select(given)

    return register_io_source(read, schema=empty.schema)


class _Source:
    """Reads for Polars what a query needs of a scan."""

    def __init__(self, records: Scan, empty: pl.DataFrame) -> None:
        self._records = records
        self._empty = empty
        self._planning = Lock()

    def __call__(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        row_count: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows that pass, of the first ``row_count`` rows; see ``register_io_source``."""
        asked = NOTHING_ASKED if predicate is None else PolarsPredicate.of(predicate)
        # A frame without columns would have no rows.
        given = self._empty.columns if columns is None else columns or ["partition"]
        where = None
        if asked.comparisons and row_count is None and self._records.limit is None:
            where = to_record_filter(asked.comparisons, typed=self._records.typed_columns)
        needed = list(dict.fromkeys([*given, *asked.columns]))
        # One after the other: the first one that plans decides where the logs end for all.
        with self._planning:
            part = self._records.narrowed(needed, where=where, limit=row_count)
            # Polars' own threads may all wait for ours.
            schema = engine_schema(part.schema)
            # What Polars compares as text is tested when it is text.
            can_test = schema == part.schema
            if can_test and part.tests_while_decoding(asked.columns, is_for_one_thread=True):
                part = part.narrowed(where=FieldFilter(asked))
            batches = in_engine_types(part.counted_batches(), schema)
        # A frame in any case, also where nothing is read.
        for batch in chain([self._empty.select(needed)], map(pl.DataFrame, batches)):
            rows = batch if asked.expression is None else batch.filter(asked.expression)
            yield rows.select(given)
