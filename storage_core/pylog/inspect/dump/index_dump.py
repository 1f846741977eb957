"""``.index`` files: the entries, each held against the batch that it points to."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptIndexError, LogStorageError
from pylog.files.file_names import LOG_FILE_SUFFIX
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.storage import open_file
from pylog.inspect.dump.index_file import OFFSET_INDEX, read_entries
from pylog.inspect.dump.index_lines import number_lines
from pylog.inspect.dump.line_writer import write_lines
from pylog.inspect.dump.record_arrays import no_records
from pylog.record.batch_layout import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    RECORD_OVERHEAD_V0,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.byte_source import ByteSource
    from pylog.inspect.dump.dump_file import DumpFile
    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.file_report import FileReport

_LINES_AT_ONCE = 1 << 14
_HEADER_BYTES = 27
_OFFSET_SIZE_MAGIC = struct.Struct(">qi4xb")
_LAST_OFFSET_DELTA = struct.Struct(">23xi")


class IndexDump:
    """The lines of one offset index. A part of a dump, see `pylog.inspect.dump.dump_part`.

    The index's segment is needed: without its ``.log`` the tool fails, and so does this after the
    entries, which are printed as they are.
    """

    size_bytes = 0

    def __init__(self, file: DumpFile, options: DumpOptions) -> None:
        self._file = file
        self._options = options
        self._mismatches: list[tuple[int, int]] = []
        self._errors: list[str] = []

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the lines.

        Raises
        ------
        LogStorageError
            The index or its ``.log`` cannot be read, or the sanity check fails.
        """
        file, options = self._file, self._options
        with open_file(file.location) as source:
            if source.size() < OFFSET_INDEX.dtype.itemsize:
                if not options.is_json:
                    yield _line(f"{file.path} is empty.")
                return
            if options.only_checks_sanity:
                yield from self._check_sanity()
                return
            template = number_lines(("offset", "position"), "indexEntry", file.path, options)
            log, missing = _open_log(file.sibling(LOG_FILE_SUFFIX))
            try:
                for relative, positions in read_entries(source, OFFSET_INDEX):
                    table = np.column_stack((file.base_offset + relative, positions))
                    table = table[options.wanted.has_offsets(table[:, 0])]
                    for start in range(0, len(table), _LINES_AT_ONCE):
                        rows = table[start : start + _LINES_AT_ONCE]
                        if log is not None:
                            self._verify(rows, log)
                        if not options.only_verifies_indexes:
                            none = np.zeros(len(rows), dtype=np.int64)
                            yield from write_lines(template, rows, none, no_records())
            finally:
                if log is not None:
                    log.close()
        if missing is not None:
            raise missing

    def report_to(self, report: FileReport) -> None:
        """Add the entries that point to another batch than they say."""
        report.index_mismatches += self._mismatches
        report.errors += self._errors

    def _check_sanity(self) -> Iterator[memoryview]:
        with OffsetIndexEntries.open(self._file.location, self._file.base_offset) as index:
            defect = index.find_defect()
        if defect is not None:
            raise CorruptIndexError(defect, self._file.location)
        if not self._options.is_json:
            yield _line(f"{self._file.path} passed sanity check.")

    def _verify(self, table: npt.NDArray[np.int64], log: ByteSource) -> None:
        for offset, position in table.tolist():
            found = last_offset_at(log, position, self._options.max_message_bytes)
            if found is None:
                if not self._errors:
                    self._errors.append(
                        f"{self._file.path}: entry for offset {offset} leads to byte {position} "
                        "of the .log, where no whole batch begins"
                    )
            elif found != offset:
                self._mismatches.append((offset, found))


def _line(text: str) -> memoryview:
    return memoryview(f"{text}\n".encode("utf-8", "surrogateescape"))


def _open_log(log: DumpFile) -> tuple[ByteSource | None, LogStorageError | None]:
    try:
        return open_file(log.location), None
    except LogStorageError as error:
        error.add_note("without it the entries could not be verified")
        return None, error


def last_offset_at(log: ByteSource, position: int, most_bytes: int) -> int | None:
    """Return the last offset of the batch at a byte of a ``.log``, whatever stands there.

    Parameters
    ----------
    log
        The file.
    position
        Where the batch begins.
    most_bytes
        How many bytes from there on are looked at.

    Returns
    -------
    int or None
        None where no whole batch begins.

    Notes
    -----
    FileLogInputStream: any magic below 2 is of a message, any other of a batch.
    """
    if position < 0:
        return None
    left = min(log.size() - position, most_bytes)
    if left <= HEADER_SIZE_UP_TO_MAGIC:
        return None
    head = log.read_at(position, _HEADER_BYTES)
    if len(head) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    offset, size, magic = _OFFSET_SIZE_MAGIC.unpack_from(head)
    if size < RECORD_OVERHEAD_V0 or LOG_OVERHEAD + size > left:
        return None
    if magic < MAGIC_VALUE_V2:
        return int(offset)
    if len(head) < _HEADER_BYTES:
        return None
    (delta,) = _LAST_OFFSET_DELTA.unpack(head)
    return int(offset + delta)
