"""Which pages of a file the system holds in memory, as ``mincore`` tells their owner."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

PAGE_BYTES = mmap.PAGESIZE
_C = ctypes.CDLL(None, use_errno=True)


def cached_pages(path: Path) -> list[int]:
    """Return the numbers of the pages that are cached; bringing none in."""
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapping:
        address = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
        answer = np.zeros(-(-size // PAGE_BYTES), dtype=np.uint8)
        done = _C.mincore(
            ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(answer.ctypes.data)
        )
        assert done == 0, os.strerror(ctypes.get_errno())
    return np.flatnonzero(answer & 1).tolist()


def can_be_dropped(path: Path) -> bool:
    """Whether pages of this file leave the cache when that is asked for: not those of a tmpfs."""
    if sys.platform != "linux":
        return False
    drop(path)
    return not cached_pages(path)


def drop(path: Path) -> None:
    """Have no page of a file in the cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bring_in(path: Path, pages: range) -> None:
    """Have some pages in the cache, and no others beside them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for page in pages:
            os.pread(descriptor, PAGE_BYTES, page * PAGE_BYTES)
    finally:
        os.close(descriptor)
