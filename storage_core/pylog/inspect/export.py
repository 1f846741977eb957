"""`export`: the records of a scan in files of other formats, in bounded memory.

A file is written under a name of its own beside its place, synced, and renamed when it is complete:
at its place there is never a part of one.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyModule
from pylog.locations import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pylog.inspect import export_sinks  # imports Arrow
    from pylog.reading.scan import Scan
    from pylog.reading.scan_task import ScanTask
else:
    export_sinks = LazyModule("pylog.inspect.export_sinks")

_IS_THERE = "the file is there already; only overwrite=True (--overwrite) replaces it"

TOPIC_FIELD = "{topic}"
"""What stands in a file's name for the name of the topic."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that was written: its path, its rows, its bytes."""

    path: str
    rows: int
    size_bytes: int


def export(
    scan: Scan,
    to: str | os.PathLike[str],
    *,
    values: str = "base64",
    compression: str = "zstd",
    overwrite: bool = False,
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
        How ``.csv`` and ``.jsonl`` have keys, values and headers: "base64", or "text", their UTF-8.
    compression
        Of ``.parquet`` and ``.arrow``: "zstd", "lz4" or "none".
    overwrite
        Whether a file that is there may be replaced.
    progress
        Called with the bytes of ``.log`` files that have been read and those that are to be.

    Raises
    ------
    FileExistsError
        The file is there, and ``overwrite`` is false.
    LogStorageError
        As of `Scan.to_batches`; nothing is left of a file that is not complete.
    ValueError
        The name ends in something else, the format cannot hold the columns or values, or there
        would be several files of a scan with a limit.
    """
    path = os.fspath(to)
    if is_remote(path):
        msg = f"{path!r} is not a local path: export writes local files"
        raise ValueError(msg)
    suffix = Path(path).suffix
    if suffix not in export_sinks.SUFFIXES:
        known = ", ".join(export_sinks.SUFFIXES)
        msg = f"{path!r} ends in {suffix or 'nothing'}, expected one of {known}"
        raise ValueError(msg)
    if scan.limit is not None and TOPIC_FIELD in path:
        msg = f"a scan with a limit is written to one file, without {TOPIC_FIELD} in its name"
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
            with export_sinks.open_sink(
                suffix, temporary, scan.schema, values, compression
            ) as write:
                for batch in _batches(scan, own_tasks):
                    write(batch)
                    rows += batch.num_rows
            size_bytes = os.stat(temporary).st_size  # noqa: PTH116 - a path as text
        exported.append(ExportedFile(each, rows, size_bytes))
    return exported


def _batches(scan: Scan, tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
    if len(tasks) == len(scan.plan()):
        yield from scan.to_batches()  # with the scan's threads
        return
    for task in tasks:
        yield from scan.reader_of(task).record_batches()


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
