"""The files of one attempt to stage rows: made, written, forced to the disk, or removed.

The disk is kept busy while rows are encoded: what has been written is handed to it every few MiB,
so that little is left to wait for in the end. Such a file stays open until it has been synced: of
one that was closed meanwhile, the system may forget that it could not be written.
"""

from __future__ import annotations

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import (
    KafkaStorageError,
)
from pylog.files.staged_files import (
    JobKey,
    entries_name,
    staged_file_name,
)

if TYPE_CHECKING:
    from pylog.files.durable_io import DurableIO
    from pylog.files.writable_file import WritableFile


_MOST_OPEN = 64
"""Files that are kept open: an attempt may write to more partitions than it may open files."""


_WRITE_BACK_BYTES = 8 << 20


_SYNCING_THREADS = 8


_LEAST_BYTES_FOR_THREADS = 256 << 10
"""Files that are smaller together are synced by the caller: threads gain nothing there."""


class StageFiles:
    """Makes and writes the staged files of one attempt. One thread."""

    def __init__(self, directory: str, io: DurableIO, key: JobKey) -> None:
        self.directory = directory
        self.io = io
        self._key = key
        self._token = secrets.token_hex(4)
        self._names: list[str] = []
        self._size_bytes = 0
        self._open: dict[str, WritableFile] = {}
        self._handed_over: dict[str, int] = {}  # up to where, of those that are open

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return os.path.join(self.directory, name)  # noqa: PTH118 - kept as text

    def begin(self) -> str:
        """Return a name that no file has."""
        name = staged_file_name(self._key, self._token, len(self._names))
        self._names.append(name)
        return name

    def write(self, name: str, position: int, data: memoryview) -> None:
        """Write ``data`` at the end of a file, which is made if there is none."""
        file = self._open.get(name)
        if file is not None:
            file.write_at(position, data)
            self._hand_over(name, file, position + len(data))
        else:
            file = self.io.open(self.path(name), create=True)
            file.write_at(position, data)
            if len(self._open) < _MOST_OPEN:
                self._open[name], self._handed_over[name] = file, position
            else:
                file.close()
        self._size_bytes += len(data)

    def _hand_over(self, name: str, file: WritableFile, end: int) -> None:
        """Have the disk begin to write a file up to ``end``, if that is enough to be worth it."""
        start = self._handed_over[name]
        if end - start >= _WRITE_BACK_BYTES:
            file.start_write_back(start, end - start)
            self._handed_over[name] = end

    def write_entries(self, name: str, content: bytes) -> None:
        """Write the entries of a file."""
        self.io.write_file(self.path(entries_name(name)), content)

    def sync(self) -> None:
        """Return when all files, their entries and their names are on the disk."""
        if not self._names:
            return
        names = [each for name in self._names for each in (name, entries_name(name))]
        if self._size_bytes < _LEAST_BYTES_FOR_THREADS:
            for name in names:
                self._sync_file(name)
        else:
            # Side by side: a file system forces its journal to the disk once for all syncs that
            # wait for it at the same time.
            with ThreadPoolExecutor(_SYNCING_THREADS, "pylog-stage") as threads:
                list(threads.map(self._sync_file, names))
        self.io.sync_directory(self.directory)

    def _sync_file(self, name: str) -> None:
        with self._open.pop(name, None) or self.io.open(self.path(name)) as file:
            file.sync()

    def discard(self) -> None:
        """Remove all files; what the disk refuses is left for an abort."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        for name in self._names:
            for each in (name, entries_name(name)):
                with suppress(KafkaStorageError):
                    self.io.remove(self.path(each), missing_ok=True)
