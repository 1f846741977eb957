"""The formats that `export` writes, batch by batch; at most a row group of 32 MiB is held."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

from pylog.lazy_modules import LazyModule
from pylog.record_lines.base64_column import base64_column
from pylog.record_lines.line_format import VALUE_FORMATS, LineFormat
from pylog.record_lines.record_json import headers_as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyarrow import parquet

    Write = Callable[[pa.RecordBatch], None]
else:
    parquet = LazyModule("pyarrow.parquet")

SUFFIXES = (".parquet", ".arrow", ".csv", ".jsonl")
COMPRESSIONS = ("zstd", "lz4", "none")
_ROW_GROUP_BYTES = 1 << 25


@contextmanager
def open_sink(
    suffix: str, path: str, schema: pa.Schema, values: str, compression: str
) -> Iterator[Write]:
    """Give what writes record batches to a file, which is complete after the context.

    Parameters
    ----------
    suffix
        One of `SUFFIXES`.
    path
        The file.
    schema
        Of the record batches.
    values, compression
        As of `pylog.export`.

    Raises
    ------
    ValueError
        The format cannot hold these columns or, while it is written, a value.
    """
    if values not in VALUE_FORMATS:
        msg = f"values is {values!r}, expected one of {', '.join(VALUE_FORMATS)}"
        raise ValueError(msg)
    if compression not in COMPRESSIONS:
        msg = f"compression is {compression!r}, expected one of {', '.join(COMPRESSIONS)}"
        raise ValueError(msg)
    match suffix:
        case ".parquet":
            with parquet.ParquetWriter(path, schema, compression=compression) as writer:
                groups = _RowGroups(writer)
                yield groups.write
                groups.flush()
        case ".arrow":
            codec = None if compression == "none" else compression
            options = pa.ipc.IpcWriteOptions(compression=codec)
            with pa.ipc.new_file(path, schema, options=options) as writer:
                yield writer.write_batch
        case ".csv":
            with csv.CSVWriter(path, _csv_schema(schema)) as writer:
                yield lambda batch: writer.write_batch(_csv_batch(batch, values))
        case _:
            lines = LineFormat.json(values)
            if missing := sorted(set(lines.columns) - set(schema.names)):
                msg = f"JSON lines need all columns; the scan lacks {', '.join(missing)}"
                raise ValueError(msg)
            if schema.field("timestamp").type.unit != "ms":
                msg = "JSON lines have timestamps in milliseconds; scan with timestamp_unit='ms'"
                raise ValueError(msg)
            with Path(path).open("wb") as file:
                yield lambda batch: _write_lines(file.write, lines, batch)


class _RowGroups:
    """Gathers record batches until they make a row group: small ones compress badly."""

    def __init__(self, writer: parquet.ParquetWriter) -> None:
        self._writer = writer
        self._batches: list[pa.RecordBatch] = []
        self._size_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._size_bytes += batch.nbytes
        if self._size_bytes >= _ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
        self._batches.clear()
        self._size_bytes = 0


def _write_lines(
    write: Callable[[memoryview], int], lines: LineFormat, batch: pa.RecordBatch
) -> None:
    write(lines.lines_of(batch))


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    fields = []
    for field in schema:
        if field.name == "batch":
            msg = "CSV cannot hold the column 'batch'; leave it out"
            raise ValueError(msg)
        is_text = field.name in {"key", "value", "headers"}
        fields.append(pa.field(field.name, pa.large_string()) if is_text else field)
    return pa.schema(fields)


def _csv_batch(batch: pa.RecordBatch, values: str) -> pa.RecordBatch:
    schema = _csv_schema(batch.schema)
    arrays = [_csv_column(field.name, batch.column(field.name), values) for field in batch.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _csv_column(name: str, column: pa.Array, values: str) -> pa.Array:
    if name == "headers":
        return headers_as_json(column, values)
    if name not in {"key", "value"}:
        return column
    if values == "base64":
        return base64_column(column)
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        msg = f"a {name} is not UTF-8, and CSV has nothing else for text; ask for base64"
        raise ValueError(msg) from error
