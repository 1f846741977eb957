"""The parts of one file's dump, by what its name ends in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)
from pylog.inspect.dump.checkpoint_dump import checkpoint_heading
from pylog.inspect.dump.dump_file import CHECKPOINT_SUFFIX, DumpFile
from pylog.inspect.dump.dump_part import DumpPart, TextPart, UnknownFile
from pylog.inspect.dump.index_dump import IndexDump
from pylog.inspect.dump.json_line import json_line
from pylog.inspect.dump.log_dump import LogDump, log_heading
from pylog.inspect.dump.snapshot_dump import SnapshotDump
from pylog.inspect.dump.time_index_dump import TimeIndexDump
from pylog.inspect.dump.transaction_index_dump import TransactionIndexDump

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.log_context import Decoders


def file_parts(file: DumpFile, options: DumpOptions, decoders: Decoders) -> Iterator[DumpPart]:
    """Yield the parts of a file's dump, in order.

    Raises
    ------
    LogStorageError
        The file cannot be read on.
    """
    if options.is_json:
        yield TextPart(json_line({"type": "file", "path": file.path}))
    else:
        yield TextPart(f"Dumping {file.path}\n")
    if file.suffix == LOG_FILE_SUFFIX:
        yield from _log_parts(file, log_heading(file), options, decoders)
    elif file.suffix == CHECKPOINT_SUFFIX:
        yield from _log_parts(file, checkpoint_heading(file), options, decoders)
    elif file.suffix == INDEX_FILE_SUFFIX:
        yield IndexDump(file, options)
    elif file.suffix == TIME_INDEX_FILE_SUFFIX:
        yield TimeIndexDump(file, options, decoders)
    elif file.suffix == PRODUCER_SNAPSHOT_FILE_SUFFIX:
        yield SnapshotDump(file, options)
    elif file.suffix == TXN_INDEX_FILE_SUFFIX:
        yield TransactionIndexDump(file, options)
    else:
        yield UnknownFile(file.path)


def _log_parts(
    file: DumpFile, heading: str, options: DumpOptions, decoders: Decoders
) -> Iterator[DumpPart]:
    if not options.is_json:
        yield TextPart(heading)
    yield from LogDump(file, options, decoders).parts()
