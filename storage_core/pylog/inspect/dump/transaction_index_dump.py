"""``.txnindex`` files: the aborted transactions of a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptIndexError
from pylog.files.storage import open_file
from pylog.files.transaction_index import ENTRY, ensure_readable_size
from pylog.inspect.dump.index_lines import number_lines
from pylog.inspect.dump.line_writer import write_lines
from pylog.inspect.dump.record_arrays import no_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.dump.dump_file import DumpFile
    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.file_report import FileReport

_ENTRIES_AT_ONCE = 4096
_NAMES = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
_HIGHEST_VERSION = 0


class TransactionIndexDump:
    """The lines of one transaction index. A part of a dump, see `pylog.inspect.dump.dump_part`."""

    size_bytes = 0

    def __init__(self, file: DumpFile, options: DumpOptions) -> None:
        self._file = file
        self._options = options

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the lines.

        Raises
        ------
        CorruptIndexError
            An entry is of a later version, after the lines of those before it; or the file is
            longer than 64 MiB.
        LogStorageError
            The file cannot be read.
        """
        wanted = self._options.wanted
        template = number_lines(_NAMES, "abortedTransaction", self._file.path, self._options)
        position = 0
        with open_file(self._file.location) as source:
            ensure_readable_size(source)
            while data := source.read_at(position, _ENTRIES_AT_ONCE * ENTRY.size):
                whole = data[: len(data) // ENTRY.size * ENTRY.size]
                table = np.array(list(ENTRY.iter_unpack(whole)), dtype=np.int64)
                table = table.reshape(-1, len(_NAMES))
                later = np.flatnonzero(table[:, 0] > _HIGHEST_VERSION)
                if later.size:
                    table, refused = table[: later[0]], table[later[0]]
                table = table[wanted.has_offsets(table[:, 2], table[:, 3])]
                none = np.zeros(len(table), dtype=np.int64)
                yield from write_lines(template, table, none, no_records())
                if later.size:
                    reason = (
                        f"Unexpected aborted transaction version {refused[0]}, "
                        f"current version is {_HIGHEST_VERSION}"
                    )
                    at = position + int(later[0]) * ENTRY.size
                    raise CorruptIndexError(reason, self._file.location, at)
                position += len(whole)
                if len(whole) < len(data):
                    return

    def report_to(self, report: FileReport) -> None:
        """Nothing else was found."""
