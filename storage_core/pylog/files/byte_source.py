"""Positional, read-only access to the bytes of one file.

Reading goes by ``preadv`` into buffers the caller owns, never by mmap: a file that is truncated
under an mmap kills the process with SIGBUS, and mappings count against the memory limit that
Spark gives its Python workers. A file may grow, shrink or be unlinked while it is open; a read
past its end is short, not an error.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
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
    import numpy.typing as npt
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


# A local file that is read without leaving anything of it in the system's page cache.
#
# A broker serves its consumers from the page cache. Whoever reads a log of a terabyte beside it as
# files are usually read evicts what the broker is about to send. Two ways to read, in this order:
#
# 1. ``preadv2`` with ``RWF_DONTCACHE`` (Linux 6.14, on ext4, XFS and Btrfs, say): the system drops
#    the pages that a read has brought in, and only those.
# 2. Elsewhere on Linux ``mincore`` tells which pages are cached before a read, and
#    ``POSIX_FADV_DONTNEED`` drops the others after it. It tells only the owner of a file, and
#    users who may write to it; to other users every page looks cached.
#
# Where neither is to be had the first read is refused. ``POSIX_FADV_RANDOM`` keeps the system
# from reading ahead: what it brings in after the end of a range would stay. ``RWF_NOWAIT`` is
# not used to find out what is cached, since it begins to read what is not.
#
# ``mincore`` needs a mapping of the file. It has no access rights, so that no byte can be touched
# through it: a file that is truncated meanwhile does no harm.


RWF_DONTCACHE = 0x80
"""From Linux's ``fs.h``; Python 3.11 has no name for it."""

_REFUSED = (
    "cannot be read without filling the page cache: this system does not drop what is read (Linux "
    "6.14 does, on most local file systems), and {why}; read as the file's owner, or do not ask "
    "for the page cache to be left as it was"
)
_NOT_LINUX = "only Linux tells what was cached before"
_NOT_OWNER = "tells what was cached before only to the file's owner and to who may write to it"


class UncachedFile(LocalFile):
    """A `LocalFile` whose reads leave the page cache as it was. Any number of threads."""

    __slots__ = ("_drops_by_itself", "_lock", "_process_id")

    is_read_by_kernels = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._drops_by_itself = hasattr(os, "RWF_NOWAIT")  # so is preadv2
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def will_need(self, position: int, length: int) -> None:
        """Do nothing: what is read ahead would stay."""

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        buffer = bytearray(min(length, max(0, self.size() - position)))
        return bytes(memoryview(buffer)[: self.read_into(position, memoryview(buffer))])

    def _read_some(self, position: int, buffer: memoryview) -> int:
        if self._drops_by_itself:
            try:
                return os.preadv(self.descriptor, [buffer], position, RWF_DONTCACHE)
            except OSError as error:
                # What systems say that know no such flag, or not for this file system.
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise
                self._drops_by_itself = False
        self._ensure_cache_is_shown()
        # One read at a time: the page that two ranges share would look cached to the second.
        with self._own_lock():
            missing = self._missing_pages(position, len(buffer))
            try:
                return super()._read_some(position, buffer)
            finally:
                self._drop(missing)

    def _own_lock(self) -> threading.Lock:
        if self._process_id != os.getpid():  # a thread of the parent may have held it at the fork
            self._process_id, self._lock = os.getpid(), threading.Lock()
        return self._lock

    def _ensure_cache_is_shown(self) -> None:
        if sys.platform != "linux":
            raise LogDirectoryError(_REFUSED.format(why=_NOT_LINUX), self.path)
        user = os.geteuid()
        is_owner = user in (0, os.fstat(self.descriptor).st_uid)
        if not is_owner and not os.access(self.path, os.W_OK, effective_ids=True):
            raise LogDirectoryError(_REFUSED.format(why=_NOT_OWNER), self.path)

    def _missing_pages(self, position: int, length: int) -> npt.NDArray[np.int64]:
        """Return which runs of pages are not cached: bytes ``[start, end)``, shape (n, 2)."""
        page = mmap.PAGESIZE
        start = position // page * page
        end = min(position + length, self.size())
        if end <= start:
            return np.empty((0, 2), dtype=np.int64)
        is_cached = np.zeros(-(-(end - start) // page), dtype=np.uint8)
        try:
            mapping = mmap.mmap(
                self.descriptor, end - start, flags=mmap.MAP_SHARED, prot=_PROT_NONE, offset=start
            )
        except ValueError:  # the file has become shorter just now
            return np.empty((0, 2), dtype=np.int64)
        with mapping:
            address = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
            if _mincore(address, end - start, is_cached.ctypes.data) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        edges = np.flatnonzero(np.diff(is_cached & 1, prepend=1, append=1))
        return start + edges.reshape(-1, 2) * page

    def _drop(self, runs: npt.NDArray[np.int64]) -> None:
        for start, end in runs.tolist():
            os.posix_fadvise(self.descriptor, start, end - start, os.POSIX_FADV_DONTNEED)


_PROT_NONE = 0


def _mincore(address: int, length: int, flags: int) -> int:
    function = ctypes.CDLL(None, use_errno=True).mincore
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    result: int = function(address, length, flags)
    return result
