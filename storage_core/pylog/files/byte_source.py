"""Positional, read-only access to the bytes of one file.

Reading goes by ``preadv`` into buffers the caller owns, never by mmap: a file that is truncated
under an mmap kills the process with SIGBUS, and mappings count against the memory limit that
Spark gives its Python workers. A file may grow, shrink or be unlinked while it is open; a read
past its end is short, not an error.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    SegmentReplacedError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.system_calls import open_regular_file
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import ctypes
    import mmap
    from types import TracebackType

    import numpy as np
else:
    # Few reads keep the page cache as it is, and ctypes takes milliseconds to import.
    ctypes = LazyModule("ctypes")
    mmap = LazyModule("mmap")
    np = LazyModule("numpy")


class ByteSource(ABC):
    """What the readers need of a file, wherever it lies."""

    __slots__ = ()
    path: str  # names the file in errors

    @abstractmethod
    def size(self) -> int:
        """Return the file's length in bytes, now."""

    def file_id(self) -> int:
        """Return what distinguishes the file from others of its name; 0 if nothing does."""
        return 0

    def stamp(self) -> int:
        """Return what distinguishes a file that nobody writes from a later one; 0 if nothing does.

        A file system gives the inode number of a deleted file to the next one.
        """
        return 0

    def has_been_replaced(self) -> bool:
        """Whether what was read may be of another file that has the name by now."""
        return False

    def ensure_same(self) -> None:
        """Raise an error if the file was replaced while it was read."""
        if self.has_been_replaced():
            raise _replaced(self.path)

    def ensure_current(self) -> None:
        """Raise an error if the file was replaced, also since bytes were read that are kept."""
        self.ensure_same()

    @abstractmethod
    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""

    @abstractmethod
    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""

    @abstractmethod
    def next_data(self, position: int) -> int | None:
        """Return the first position at or after ``position`` that may hold non-zero bytes."""

    @abstractmethod
    def close(self) -> None:
        """Release the file; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.ensure_same()
            elif isinstance(error, CorruptRecordError | SegmentVanishedError):
                self._explain(error)
        finally:
            self.close()

    def _explain(self, error: CorruptRecordError | SegmentVanishedError) -> None:
        """Raise `SegmentReplacedError` if that is why bytes look damaged, or are missing."""
        is_replaced = False
        with suppress(SegmentVanishedError, LogDirectoryError):
            is_replaced = self.has_been_replaced()
        if is_replaced:
            raise _replaced(self.path) from error


def stamp_of(status: os.stat_result) -> int:
    """Return a number that is another one once a file has changed: of its length and time."""
    return hash((status.st_size, status.st_mtime_ns))


def _replaced(path: str) -> SegmentReplacedError:
    return SegmentReplacedError("file was replaced by another one while it was read", path)


class LocalFile(ByteSource):
    """`ByteSource` of a local file.

    One descriptor, no position of its own: any number of threads may read at once.
    """

    __slots__ = ("_descriptor", "path")

    is_read_by_kernels = True
    """Whether a kernel may read from the descriptor by itself."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._descriptor = -1
        self._descriptor = open_regular_file(self.path)

    @property
    def descriptor(self) -> int:
        """The file descriptor, this object's own."""
        return self._descriptor

    def will_need(self, position: int, length: int) -> None:
        """Let the system read ahead, where it can: scattered reads of a cold disk are slow."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, position, length, os.POSIX_FADV_WILLNEED)

    def size(self) -> int:
        """Return the file's length in bytes, now."""
        return os.fstat(self._descriptor).st_size

    def file_id(self) -> int:
        """Return the inode number."""
        return os.fstat(self._descriptor).st_ino

    def stamp(self) -> int:
        """Return what a change of the file changes; see `stamp_of`."""
        return stamp_of(os.fstat(self._descriptor))

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        try:
            return os.pread(self._descriptor, length, position)
        except OSError as error:
            reason = f"cannot read {length} bytes: {error.strerror}"
            raise UnreadableFileError(reason, self.path, position) from error

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        filled = 0
        try:
            while filled < len(buffer):
                count = self._read_some(position + filled, buffer[filled:])
                if count == 0:
                    break
                filled += count
        except OSError as error:
            reason = f"cannot read {len(buffer)} bytes: {error.strerror}"
            raise UnreadableFileError(reason, self.path, position) from error
        return filled

    def _read_some(self, position: int, buffer: memoryview) -> int:
        """Read into ``buffer``; return how many bytes came, 0 at the end of the file."""
        return os.preadv(self._descriptor, [buffer], position)

    def next_data(self, position: int) -> int | None:
        """Return the first position from ``position`` on outside a hole, None if none is."""
        if position >= self.size():
            return None
        try:
            return os.lseek(self._descriptor, position, os.SEEK_DATA)
        except AttributeError:  # a platform without SEEK_DATA
            return position
        except OSError as error:
            # ENXIO: nothing but a hole up to the end. Anything else: a file system without holes.
            return None if error.errno == errno.ENXIO else position

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if self._descriptor >= 0:  # a reader that was dropped in mid-iteration
            os.close(self._descriptor)
            self._descriptor = -1
