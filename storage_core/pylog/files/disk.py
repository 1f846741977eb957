"""Looking at local files: as `os` does, or at those of an overlay, which have paths of their own.

Whoever owns a directory may own it on an overlay (`pylog.files.overlay`): then its paths begin with
the overlay's root, and what is found there is asked of the overlay. All other paths are the
system's.
"""

from __future__ import annotations

import os
import stat as stat_module
from typing import TYPE_CHECKING, Any, Protocol

from pylog.locations import OVERLAY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager


class Entry(Protocol):
    """One entry of a directory that was listed; `os.DirEntry` is one."""

    @property
    def name(self) -> str:
        """The last component."""
        ...

    @property
    def path(self) -> str:
        """The whole path."""
        ...

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether this is a directory."""
        ...

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether this is a regular file."""
        ...

    def is_symlink(self) -> bool:
        """Whether this is a symbolic link."""
        ...

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the entry's status."""
        ...


class Disk(Protocol):
    """What can be asked of an overlay; each method raises the `OSError` that the system would."""

    def stat(self, path: str, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the status of a path."""
        ...

    def scandir(self, path: str) -> AbstractContextManager[Iterable[Entry]]:
        """Return the entries of a directory."""
        ...

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""
        ...

    def open_to_read(self, path: str) -> Any:  # noqa: ANN401
        """Open a regular file: a `ByteSource`, whose module imports this one."""
        ...


overlays: dict[str, Disk] = {}
"""Overlays in use by their roots; `pylog.files.overlay` enters and removes them."""


def find_overlay(path: str) -> Disk | None:
    """Return the overlay that a path lies on, None for a path of the system."""
    if not path.startswith(OVERLAY_PREFIX):
        return None
    return overlays.get("/" + path[1:].partition("/")[0])


def stat(path: str) -> os.stat_result:
    """Return the status of a path; follows links."""
    overlay = find_overlay(path)
    return os.stat(path) if overlay is None else overlay.stat(path)  # noqa: PTH116 - kept as text


def lstat(path: str) -> os.stat_result:
    """Return the status of a path; follows no link."""
    overlay = find_overlay(path)
    return os.lstat(path) if overlay is None else overlay.stat(path, follow_symlinks=False)


def exists(path: str) -> bool:
    """Return whether a path leads to a file or directory."""
    try:
        stat(path)
    except (OSError, ValueError):
        return False
    return True


def lexists(path: str) -> bool:
    """Whether a path is there, be it a link that leads nowhere."""
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def is_dir(path: str) -> bool:
    """Whether a path leads to a directory."""
    try:
        return stat_module.S_ISDIR(stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_file(path: str) -> bool:
    """Whether a path leads to a regular file."""
    try:
        return stat_module.S_ISREG(stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link."""
    try:
        return stat_module.S_ISLNK(lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def readlink(path: str) -> str:
    """Return the target of a symbolic link."""
    overlay = find_overlay(path)
    return os.readlink(path) if overlay is None else overlay.readlink(path)  # noqa: PTH115


def scandir(path: str) -> AbstractContextManager[Iterable[Entry]]:
    """Return the entries of a directory, in any order."""
    overlay = find_overlay(path)
    return os.scandir(path) if overlay is None else overlay.scandir(path)
