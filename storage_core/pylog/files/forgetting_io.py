"""A disk that takes every change and forgets it: what a run would do is tried out on what is there.

Files are opened to be read only. What is written is lost, also for whoever wrote it; that is enough
for logs, which keep in memory where they end and what their indexes hold.
"""

from __future__ import annotations

import os

from pylog.errors import SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.files.regular_file import open_regular_file


class ForgettingIO(DurableIO):
    """A `DurableIO` that says that all is done, and does nothing. Any number of threads."""

    def open_to_write(self, path: str, *, create: bool) -> int:
        """Return the descriptor of a file that can be read; of an empty one if it is to be made."""
        try:
            return open_regular_file(path)
        except SegmentVanishedError:
            if not create:
                raise
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        """Say that all of ``data`` is written."""
        return len(data)

    def ftruncate(self, path: str, descriptor: int, size_bytes: int) -> None:
        """Do nothing."""

    def fsync(self, path: str, descriptor: int) -> None:
        """Do nothing."""

    def utime(self, path: str, modified_ms: int) -> None:
        """Do nothing."""

    def rename(self, source: str, target: str) -> None:
        """Do nothing."""

    def unlink(self, path: str) -> None:
        """Do nothing."""

    def mkdir(self, path: str) -> None:
        """Do nothing."""

    def rmdir(self, path: str) -> None:
        """Do nothing."""

    def fsync_directory(self, path: str) -> None:
        """Do nothing."""
