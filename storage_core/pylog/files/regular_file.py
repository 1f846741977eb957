"""The one way by which a local file is opened for reading: only if it is a regular file.

What lies in a directory is whatever somebody put there. To open a FIFO waits for a writer that may
never come, a device has no end, and a link can lead to either, in a circle, or nowhere. So files
are opened without waiting and looked at before the first byte is read. Links to regular files are
followed: operators keep partitions, and single segments, on other disks that way.
"""

from __future__ import annotations

import os
import stat

from pylog.errors import SegmentVanishedError, UnreadableFileError

# O_NONBLOCK: the opening of a FIFO or of a terminal does not wait. It means nothing to a regular
# file. O_NOCTTY: a terminal does not become that of this process.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def open_regular_file(path: str) -> int:
    """Return a descriptor from which the regular file at ``path`` can be read; never waits.

    Raises
    ------
    SegmentVanishedError
        There is nothing of that name (any more).
    UnreadableFileError
        It is not a regular file, a link that leads nowhere, or cannot be opened.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise _cannot_open(path, error) from error
    try:
        ensure_regular(os.fstat(descriptor), path)
    except UnreadableFileError:
        os.close(descriptor)
        raise
    return descriptor


def ensure_regular(status: os.stat_result, path: str) -> None:
    """Raise `UnreadableFileError` unless ``status`` is that of a regular file."""
    if stat.S_ISREG(status.st_mode):
        return
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
    reason = f"not a regular file but {kind}: move it away, and put the file back if there was one"
    raise UnreadableFileError(reason, path)


def missing_or_unreadable(path: str, error: OSError) -> SegmentVanishedError | UnreadableFileError:
    """Return the error to raise where the system could not find or look at the file at ``path``."""
    if not isinstance(error, FileNotFoundError):
        return UnreadableFileError(f"cannot open file: {error.strerror}", path)
    if os.path.islink(path):  # noqa: PTH114 - kept as text
        reason = "link leads to a file that does not exist (is its disk mounted on this host?)"
        return UnreadableFileError(reason, path)
    reason = "file is gone (deleted or renamed since the directory was listed)"
    return SegmentVanishedError(reason, path)


def _cannot_open(path: str, error: OSError) -> SegmentVanishedError | UnreadableFileError:
    """Return the error to raise; a socket cannot be opened, so that its status has to tell."""
    try:
        ensure_regular(os.stat(path), path)  # noqa: PTH116 - kept as text
    except UnreadableFileError as irregular:
        return irregular
    except OSError:
        pass
    return missing_or_unreadable(path, error)
