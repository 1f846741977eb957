"""Opening and listing by location: local files, or an object store through ``pyarrow.fs``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from pylog.errors import LogDirectoryError
from pylog.files.byte_source import LocalFile
from pylog.locations import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.files.byte_source import ByteSource


class FileStatus(Protocol):
    """What is known of a file; the names are those of `os.stat_result`.

    ``st_ino`` tells a file from another one that took its name; 0 where the storage has no such
    thing.
    """

    @property
    def st_size(self) -> int:
        """Length in bytes."""
        ...

    @property
    def st_ino(self) -> int:
        """Which file it is, or 0."""
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
        """Return size and identity; `FileNotFoundError` if the file is gone."""
        ...


def open_file(location: str | os.PathLike[str]) -> ByteSource:
    """Open a file for positional reading.

    Raises
    ------
    SegmentVanishedError
        There is no such file (any more).
    LogDirectoryError
        It cannot be opened; the text says why.
    """
    text = os.fspath(location)
    if is_remote(text):
        from pylog.files.remote_storage import RemoteFile  # noqa: PLC0415 - imports Arrow

        return RemoteFile(text)
    return LocalFile(text)


def list_directory(location: str) -> Sequence[DirectoryEntry]:
    """Return the entries of a directory, sorted by name.

    Raises
    ------
    LogDirectoryError
        The directory does not exist, is none, or cannot be read.
    """
    if is_remote(location):
        from pylog.files.remote_storage import list_remote  # noqa: PLC0415 - imports Arrow

        return list_remote(location)
    try:
        with os.scandir(location) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError as error:
        reason = "no such directory (is it mounted on this host?)"
        raise LogDirectoryError(reason, location) from error
    except NotADirectoryError as error:
        reason = "not a directory; give a log directory or a <topic>-<partition> directory, found"
        raise LogDirectoryError(reason, location) from error
    except OSError as error:
        reason = f"cannot list directory: {error.strerror}"
        raise LogDirectoryError(reason, location) from error
