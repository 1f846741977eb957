"""`export`: the records of a scan in files of other formats, in bounded memory.

A file is written under a name of its own beside its place, synced, and renamed when it is complete:
at its place there is never a part of one.
"""

from __future__ import annotations

import difflib
import errno
import os
import secrets
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv

from pylog.columnar.arrow_buffers import fixed_width_array, present_rows
from pylog.columnar.arrow_schema import TYPED
from pylog.lazy_modules import LazyModule
from pylog.locations import is_remote
from pylog.record_lines.arrow_functions import if_else
from pylog.record_lines.base64_column import base64_column
from pylog.record_lines.line_format import VALUE_FORMATS, LineFormat
from pylog.record_lines.record_json import headers_as_json
from pylog.record_lines.typed_json import json_texts
from pylog.text.instants import calendar_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyarrow import parquet

    from pylog.columnar.record_masking import RecordMasking
    from pylog.reading.scan import Scan
    from pylog.reading.scan_task import ScanTask

    Write = Callable[[pa.RecordBatch], None]
else:
    parquet = LazyModule("pyarrow.parquet")


SUFFIXES = (".parquet", ".arrow", ".csv", ".jsonl")
COMPRESSIONS = ("zstd", "lz4", "none")
_ROW_GROUP_BYTES = 1 << 25
_IS_THERE = "the file exists; use overwrite=True (--overwrite) to replace it"

TOPIC_FIELD = "{topic}"
"""What stands in a file's name for the name of the topic."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that was written: its path, its rows, its bytes."""

    path: str
    rows: int
    size_bytes: int


def export(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    scan: Scan,
    to: str | os.PathLike[str],
    *,
    values: str = "text",
    compression: str = "zstd",
    overwrite: bool = False,
    masking: RecordMasking | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[ExportedFile]:
    """Write the records of a scan to a file, or to one file for each topic; return the files.

    Parameters
    ----------
    scan
        What is written, with its columns. The gaps of a mode that skips damage are in its
        ``damage`` afterwards.
    to
        A local path that ends in ``.parquet``, ``.arrow``, ``.csv`` or ``.jsonl``. With ``{topic}``
        in its name, there is one file for each topic that has anything to read.
    values
        How ``.csv`` and ``.jsonl`` have keys, values and headers: "text" or "base64". As text,
        bytes that are not UTF-8 are ``{"base64": …}`` in JSON, and an error in CSV. Typed ones are
        JSON in both; a string is itself in CSV.
    compression
        Of ``.parquet`` and ``.arrow``: "zstd", "lz4" or "none".
    overwrite
        Whether a file that is there may be replaced.
    masking
        What replaces parts of the records: from `pylog.jobs.read_mask_rules`.
    progress
        Called with the bytes of ``.log`` files that have been read and those that are to be.

    Raises
    ------
    FileExistsError
        The file is there, and ``overwrite`` is false.
    LogStorageError
        As of `Scan.to_batches`; nothing is left of a file that is not complete.
    ValueError
        The name ends in something else, the scan has no columns, the format cannot hold the columns
        or values, or there would be several files of a scan with a limit.

    Examples
    --------
    >>> orders = pylog.scan("kafka/intact", topics="orders", isolation="read_committed")
    >>> [each.rows for each in pylog.export(orders, "orders.parquet")]
    [102]
    """
    path = os.fspath(to)
    if is_remote(path):
        msg = f"{path!r} is not a local path: export writes local files"
        raise ValueError(msg)
    suffix = Path(path).suffix
    _ensure_known(f"{path!r} ends in {suffix or 'nothing'}", suffix, SUFFIXES)
    _ensure_known(f"compression is {compression!r}", compression, COMPRESSIONS)
    if scan.limit is not None and TOPIC_FIELD in path:
        msg = f"a scan with a limit is written to one file, without {TOPIC_FIELD} in its name"
        raise ValueError(msg)
    if not scan.schema.names:
        msg = "no column to export: name at least one"
        raise ValueError(msg)
    if not scan.has_one_schema and TOPIC_FIELD not in path and suffix != ".jsonl":
        msg = (
            f"the topics have columns of their own, which one {suffix} cannot hold: {TOPIC_FIELD} "
            "in its name makes a file for each"
        )
        raise ValueError(msg)
    tasks = scan.plan()
    scan.scanned.report_to(progress, scan.plan)
    by_path: dict[str, list[ScanTask]] = {} if TOPIC_FIELD in path else {path: []}
    for task in tasks:
        own = path.replace(TOPIC_FIELD, task.topic_partition.topic)
        by_path.setdefault(own, []).append(task)
    for each in by_path:
        _ensure_directory(Path(each).parent)
        if not overwrite:
            _ensure_free(each)
    exported = []
    for each, own_tasks in by_path.items():
        with _complete_file(each, overwrite=overwrite) as temporary:
            rows = 0
            topic = own_tasks[0].topic_partition.topic if TOPIC_FIELD in path else None
            schema = scan.schema if topic is None else scan.schema_of(topic)
            with open_sink(suffix, temporary, schema, values, compression) as write:
                for batch in _batches(scan, own_tasks, masking):
                    write(batch)
                    rows += batch.num_rows
            size_bytes = os.stat(temporary).st_size  # noqa: PTH116 - a path as text
        exported.append(ExportedFile(each, rows, size_bytes))
    return exported


def _batches(
    scan: Scan, tasks: Sequence[ScanTask], masking: RecordMasking | None
) -> Iterator[pa.RecordBatch]:
    if masking is not None:
        if _typed_columns(scan.schema):
            msg = "masks replace parts of bytes: a scan with typed values cannot be masked"
            raise ValueError(msg)
        if scan.limit is not None:
            msg = "a scan with a limit cannot be masked while it is exported"
            raise ValueError(msg)
        for task in tasks:  # the topic is known, whatever the columns are
            for batch in scan.reader_of(task).record_batches():
                yield masking.masked(batch, task.topic_partition.topic)
        return
    if len(tasks) == len(scan.plan()):
        yield from scan.to_batches()  # with the scan's threads
        return
    for task in tasks:
        yield from scan.reader_of(task).record_batches()


def _ensure_known(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        near = difflib.get_close_matches(value, known, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        msg = f"{what}, expected one of {', '.join(known)}{meant}"
        raise ValueError(msg)


def _ensure_directory(path: Path) -> None:
    if not path.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such directory to write to", str(path))


def _ensure_free(path: str) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, _IS_THERE, path)


@contextmanager
def _complete_file(path: str, *, overwrite: bool) -> Iterator[str]:
    """Give the name of a new file that takes its place at ``path`` unless there is an error."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise _about(path, error) from error
    try:
        yield str(temporary)
        os.fsync(handle)
        if not overwrite:
            _ensure_free(path)
        temporary.replace(target)
        _sync_directory(target.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename != path:
            raise _about(path, error) from error
        raise
    finally:
        os.close(handle)


def _about(path: str, error: OSError) -> OSError:
    """Return the error with the name that was asked for, and the system's text, not Arrow's."""
    if error.errno is None:
        return OSError(f"{path}: {error}")
    return OSError(error.errno, os.strerror(error.errno), path)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def open_sink(
    suffix: str, to: str | pa.NativeFile, schema: pa.Schema, values: str, compression: str
) -> Iterator[Write]:
    """Give what writes record batches to a file, which is complete after the context.

    A batch has records of one partition. ``to`` is a path, or a stream, which stays open.

    Examples
    --------
    >>> scan = pylog.scan("kafka/intact", topics="orders")
    >>> with pylog.jobs.open_sink(".arrow", "orders.arrow", scan.schema, "text", "zstd") as write:
    ...     for batch in scan.to_batches():
    ...         write(batch)
    """
    if values not in VALUE_FORMATS:
        msg = f"values is {values!r}, expected one of {', '.join(VALUE_FORMATS)}"
        raise ValueError(msg)
    match suffix:
        case ".parquet":
            with parquet.ParquetWriter(to, schema, compression=compression) as writer:
                groups = _RowGroups(writer)
                yield groups.write
                groups.flush()
        case ".arrow":
            codec = None if compression == "none" else compression
            options = pa.ipc.IpcWriteOptions(compression=codec)
            with pa.ipc.new_file(to, schema, options=options) as writer:
                yield writer.write_batch
        case ".csv":
            with csv.CSVWriter(to, _csv_schema(schema)) as writer:
                yield lambda batch: writer.write_batch(_csv_batch(batch, values))
        case _:
            typed = _typed_columns(schema)
            lines = LineFormat.typed_json(typed) if typed else LineFormat.json(values)
            if missing := sorted(set(lines.columns) - set(schema.names)):
                msg = f"JSON lines need all columns; the scan lacks {', '.join(missing)}"
                raise ValueError(msg)
            if schema.field("timestamp").type.unit != "ms":
                msg = "JSON lines have timestamps in milliseconds; scan with timestamp_unit='ms'"
                raise ValueError(msg)
            with ExitStack() as stack:
                file = stack.enter_context(Path(to).open("wb")) if isinstance(to, str) else to
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
    for part in lines.lines_of(batch):
        write(part)


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    fields = []
    for field in schema:
        if field.name == "batch":
            msg = "CSV cannot hold the column 'batch'; leave it out"
            raise ValueError(msg)
        is_text = field.name in {"key", "value", "headers", "timestamp"}
        fields.append(pa.field(field.name, pa.large_string()) if is_text else field)
    return pa.schema(fields)


def _csv_batch(batch: pa.RecordBatch, values: str) -> pa.RecordBatch:
    schema = _csv_schema(batch.schema)
    arrays = [_csv_column(field.name, batch, values) for field in batch.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""The years 1 and 9999."""


def _times_as_text(column: pa.Array) -> pa.Array:
    """Return times as Arrow writes them; years beyond 9999 have more digits."""
    texts = column.cast(pa.large_string())
    per_second = 1_000 if column.type.unit == "ms" else 1_000_000
    counts = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    far = (counts < _FIRST_S * per_second) | (counts >= (_LAST_S + 1) * per_second)
    if not far.any():
        return texts
    rows = texts.to_pylist()
    for at in np.flatnonzero(far).tolist():
        rows[at] = calendar_text(int(counts[at]), per_second).replace("T", " ")
    return pa.array(rows, pa.large_string())


def _typed_columns(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if field.metadata == TYPED]


def _csv_column(name: str, batch: pa.RecordBatch, values: str) -> pa.Array:
    column = batch.column(name)
    if batch.schema.field(name).metadata == TYPED:
        # As JSON, but that a string is itself, and null an empty field.
        texts = (
            column
            if column.type == pa.string()
            else if_else(fixed_width_array(present_rows(column)), json_texts(column), None)
        )
        return texts.cast(pa.large_string())
    if name == "headers":
        return headers_as_json(column, values)
    if name == "timestamp":
        return _times_as_text(column)
    if name not in {"key", "value"}:
        return column
    if values == "base64":
        return base64_column(column)
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        msg = f"the {name}{_first_not_text(name, batch)} is not UTF-8, and CSV cannot mix text "
        msg += 'with bytes: values="base64" (--values base64) writes all as base64'
        raise ValueError(msg) from error


def _first_not_text(name: str, batch: pa.RecordBatch) -> str:
    """Return which record has the first value that is no text, as far as the columns tell."""
    place = dict.fromkeys(("topic", "partition", "offset"))
    for row, value in enumerate(batch.column(name)):
        if value.is_valid and not _is_text(value.as_py()):
            place |= {each: batch.column(each)[row] for each in place if each in batch.schema.names}
            break
    if place["offset"] is None:
        return " of a record"
    topic, partition = place["topic"], place["partition"]
    of_log = f"partition {partition}" if topic is None else f"{topic}-{partition}"
    return f" of {of_log if partition is not None else 'a record'}, offset {place['offset']},"


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
