"""Files of records, written by Spark's tasks under names that are never used again.

A task says which files it completed; what others left (attempts that failed, speculative ones,
executors that outlived their driver) nobody lists, so that it is in no output.
"""

from __future__ import annotations

import json
import os
import uuid
from bisect import bisect_right
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

import pylog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

PARQUET, CSV, JSONL = "parquet", "csv", "jsonl"
"""The formats of files."""

_TASK_RESULT = "path string, rows long, bytes long, partition string, bounds string"
_BOUNDED = ("partition", "offset", "timestamp")
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder into which tasks write; travels to executors."""

    path: str  # as the file system has it
    prefix: str = ""  # before a file's path makes it the one that others know: ``s3://bucket``
    open: Callable[[], fs.FileSystem] = fs.LocalFileSystem

    @contextmanager
    def new_file(self, name: str) -> Iterator[pa.NativeFile]:
        """Give a stream that writes a file, which is on disk afterwards; no file after an error."""
        system = self.open()
        is_local = isinstance(system, fs.LocalFileSystem)
        if is_local:
            system.create_dir(self.path)  # stores have none
        path = f"{self.path}/{name}"
        try:
            with system.open_output_stream(path) as stream:
                yield stream
            if is_local:
                sync(Path(path))
        except BaseException as error:
            with suppress(OSError):  # nobody lists it, and the first error says why
                system.delete_file(path)
            if isinstance(error, OSError) and error.errno is not None and error.filename is None:
                reason = os.strerror(error.errno)  # Arrow's own text names no file
                raise OSError(error.errno, reason, self.prefix + path) from error
            raise

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        system = self.open()
        if system.get_file_info(self.path).type == fs.FileType.Directory:
            system.delete_dir(self.path)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a task completed."""

    path: str  # with the prefix of its folder
    rows: int
    bytes: int
    partition: dict[str, str | None]  # partition columns and their values, as text
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)  # smallest and largest


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFiles:
    """What a task does with its rows; travels to executors."""

    folder: Folder
    schema: pa.Schema  # columns of ``partition_by`` may be missing: they are then left out
    partition_by: tuple[
        str, ...
    ] = ()  # the columns that all rows of a file have the same values of
    format: str = PARQUET
    compression: str = "none"
    values: str = "text"

    def write(self, rows: DataFrame) -> list[WrittenFile]:
        """Write the rows, which are sorted by the partition columns first; return the files."""
        written = rows.mapInArrow(self.write_batches, _TASK_RESULT).collect()
        return [
            WrittenFile(
                row.path,
                row.rows,
                row.bytes,
                json.loads(row.partition),
                {name: tuple(bounds) for name, bounds in json.loads(row.bounds).items()},
            )
            for row in sorted(written, key=lambda row: str(row.path))
        ]

    def write_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the batches of one task; yield a row for each file."""
        with ExitStack() as stack:
            current: _File | None = None
            for batch in batches:
                for values, part in _parts(batch, self.partition_by):
                    if current is None or current.partition != values:
                        stack.close()
                        if current is not None:
                            yield self._result(current)
                        current = stack.enter_context(self._new_file(values))
                    current.add(part.select(self.schema.names).cast(self.schema))
            stack.close()
            if current is not None:
                yield self._result(current)

    def _result(self, file: _File) -> pa.RecordBatch:
        partition = dict(zip(self.partition_by, file.partition, strict=True))
        return pa.RecordBatch.from_pydict(
            {
                "path": [file.path],
                "rows": [file.rows],
                "bytes": [file.size_bytes],
                "partition": [json.dumps(partition)],
                "bounds": [json.dumps(file.bounds)],
            }
        )

    @contextmanager
    def _new_file(self, values: tuple[str | None, ...]) -> Iterator[_File]:
        name = f"part-{uuid.uuid4().hex}.{self.format}"
        # Lines are made of batches of one topic-partition.
        split_by = ("topic", "partition") if self.format == JSONL else ()
        with self.folder.new_file(name) as stream:
            with pylog.jobs.open_sink(
                f".{self.format}", stream, self.schema, self.values, self.compression
            ) as write:
                path = f"{self.folder.prefix}{self.folder.path}/{name}"
                file = _File(path, values, write, split_by)
                yield file
            file.size_bytes = stream.tell()


class _File:
    def __init__(
        self,
        path: str,
        partition: tuple[str | None, ...],
        write: Callable[[pa.RecordBatch], None],
        split_by: Sequence[str],
    ) -> None:
        self.path = path
        self.partition = partition
        self.size_bytes = 0
        self.rows = 0
        self.bounds: dict[str, tuple[int, int]] = {}
        self._write = write
        self._split_by = split_by

    def add(self, batch: pa.RecordBatch) -> None:
        for _, part in _parts(batch, self._split_by):
            self._write(part)
        self.rows += batch.num_rows
        for name in set(_BOUNDED) & set(batch.schema.names):
            found = pc.min_max(batch.column(name).cast(pa.int64())).as_py()
            if found["min"] is not None:
                low, high = self.bounds.get(name, (found["min"], found["max"]))
                self.bounds[name] = min(low, found["min"]), max(high, found["max"])


def _parts(
    batch: pa.RecordBatch, names: Sequence[str]
) -> Iterator[tuple[tuple[str | None, ...], pa.RecordBatch]]:
    """Yield the rows of a sorted batch, split where the values of the columns change."""
    columns = [batch.column(name) for name in names]

    def values_at(row: int) -> tuple[str | None, ...]:
        return tuple(_text(column[row]) for column in columns)

    start = 0
    while start < batch.num_rows:
        values = values_at(start)
        rest = range(start, batch.num_rows)
        end = start + bisect_right(rest, 0, key=lambda row: int(values_at(row) != values))
        yield values, batch.slice(start, end - start)
        start = end


def _text(value: pa.Scalar) -> str | None:
    """Return a value of a partition column as Spark writes it, a day of any year."""
    if not value.is_valid:
        return None
    if isinstance(value, pa.Date32Scalar):
        return str(pylog.jobs.calendar_text(value.value * _DAY_SECONDS, 1).partition("T")[0])
    return str(value.as_py())


def sync(path: Path) -> None:
    """Have a file or directory on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
