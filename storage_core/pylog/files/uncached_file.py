"""A local file that is read without leaving anything of it in the system's page cache.

A broker serves its consumers from the page cache. Whoever reads a log of a terabyte beside it as
files are usually read evicts what the broker is about to send. Two ways to read, in this order:

1. ``preadv2`` with ``RWF_DONTCACHE`` (Linux 6.14, on ext4, XFS and Btrfs, say): the system drops
   the pages that a read has brought in, and only those.
2. Elsewhere on Linux ``mincore`` tells which pages are cached before a read, and
   ``POSIX_FADV_DONTNEED`` drops the others after it. It tells only the owner of a file, and
   users who may write to it; to other users every page looks cached.

Where neither is to be had the first read is refused. ``POSIX_FADV_RANDOM`` keeps the system
from reading ahead: what it brings in after the end of a range would stay. ``RWF_NOWAIT`` is
not used to find out what is cached, since it begins to read what is not.

``mincore`` needs a mapping of the file. It has no access rights, so that no byte can be touched
through it: a file that is truncated meanwhile does no harm.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from typing import TYPE_CHECKING

from pylog.errors import (
    LogDirectoryError,
)
from pylog.files.byte_source import LocalFile
from pylog.lazy_modules import LazyModule

if TYPE_CHECKING:
    import ctypes
    import mmap

    import numpy as np
    import numpy.typing as npt
else:
    # Few reads keep the page cache as it is, and ctypes takes milliseconds to import.
    ctypes = LazyModule("ctypes")
    mmap = LazyModule("mmap")
    np = LazyModule("numpy")


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
