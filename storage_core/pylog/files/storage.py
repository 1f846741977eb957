"""Opening and listing by location: local files, or an object store through ``pyarrow.fs``."""

from __future__ import annotations

import os
import time
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from pylog.errors import LogDirectoryError
from pylog.files import disk
from pylog.files.byte_source import LocalFile
from pylog.files.system_calls import (
    ensure_regular,
    ensure_room_for_files,
    missing_or_unreadable,
)
from pylog.files.uncached_file import UncachedFile
from pylog.lazy_modules import LazyModule
from pylog.locations import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.files import remote_storage  # imports Arrow
    from pylog.files.byte_source import ByteSource
else:
    remote_storage = LazyModule("pylog.files.remote_storage")

_CLOCK_STEP_NS = 10_000_000


class FileStatus(Protocol):
    """What is known of a file; the names are those of `os.stat_result`."""

    @property
    def st_size(self) -> int:
        """Length in bytes."""
        ...

    @property
    def st_ino(self) -> int:
        """Number that tells the file from others, or 0."""
        ...


class DirectoryEntry(Protocol):
    """One entry of a listed directory; `os.DirEntry` is one."""

    @property
    def name(self) -> str:
        """The last component."""
        ...

    @property
    def path(self) -> str:
        """The whole location."""
        ...

    def is_dir(self) -> bool:
        """Whether this is a directory."""
        ...

    def stat(self) -> FileStatus:
        """Return size and identity; `OSError` if the file is gone or cannot be looked at."""
        ...


def open_file(location: str | os.PathLike[str], *, leaves_page_cache: bool = False) -> ByteSource:
    """Open a file for positional reading."""
    text = os.fspath(location)
    if is_remote(text):
        return remote_storage.RemoteFile(text)
    overlay = disk.find_overlay(text)
    if overlay is not None:
        opened: ByteSource = overlay.open_to_read(text)
        return opened
    return UncachedFile(text) if leaves_page_cache else LocalFile(text)


def stat_file(entry: DirectoryEntry) -> FileStatus:
    """Return size and identity of an entry that is to be read as a file."""
    try:
        status = entry.stat()
    except OSError as error:
        raise missing_or_unreadable(entry.path, error) from error
    if isinstance(status, os.stat_result):  # an object store has nothing but files
        ensure_regular(status, entry.path)
    return status


def is_folder(entry: DirectoryEntry) -> bool:
    """Whether an entry is a directory, which a broker takes for no file, whatever its name is."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def settled_since(location: str) -> int:
    """Return when a directory last changed, in ns of the epoch; waits if that is just now.

    The clock of a file system is coarse: what changes within one of its steps looks unchanged. 0
    for a remote directory, whose listing is one answer of one server.
    """
    if is_remote(location):
        return 0
    try:
        changed = disk.stat(location).st_mtime_ns
        is_coarse = disk.find_overlay(location) is None
        if is_coarse and 0 <= time.time_ns() - changed < _CLOCK_STEP_NS:
            time.sleep(_CLOCK_STEP_NS / 1e9)
            changed = disk.stat(location).st_mtime_ns
    except OSError as error:
        reason = f"cannot look at directory: {error.strerror}"
        raise LogDirectoryError(reason, location) from error
    return changed


def change_mark(location: str) -> tuple[int, ...] | None:
    """Return what differs once a local file or directory has changed: inode, size, times in ns.

    A file has changed if its bytes have, a directory if a file has come or gone in it. None where
    nothing tells: it is remote, is not there, or changed within the last step of the clock, so that
    another change might leave the same time.
    """
    if is_remote(location):
        return None
    try:
        status = disk.stat(location)
    except OSError:
        return None
    # A program that copies over a file can set the first time back, and not the second.
    times = status.st_mtime_ns, status.st_ctime_ns
    if 0 <= time.time_ns() - max(times) < _CLOCK_STEP_NS:
        return None
    return status.st_ino, status.st_size, *times


_NAME = attrgetter("name")


def list_directory(location: str) -> Sequence[DirectoryEntry]:
    """Return the entries of a directory, sorted by name."""
    if is_remote(location):
        return remote_storage.list_remote(location)
    try:
        with disk.scandir(location) as entries:
            return sorted(entries, key=_NAME)
    except FileNotFoundError as error:
        reason = "no such directory (is it mounted on this host?)"
        if location.startswith("~"):
            reason = "no such directory; '~' is taken as it is, os.path.expanduser() resolves it"
        raise LogDirectoryError(reason, location) from error
    except NotADirectoryError as error:
        reason = "not a directory; give a log directory or a <topic>-<partition> directory"
        raise LogDirectoryError(reason, location) from error
    except OSError as error:
        ensure_room_for_files(location, error)
        reason = f"cannot list directory: {error.strerror}"
        raise LogDirectoryError(reason, location) from error
