"""Opening a file to write to it: a regular file that is not a link, or an error.

Through a symbolic link a foreign file would be changed, and a named pipe makes whoever opens it
wait. Differs from Kafka, which writes through links.
"""

from __future__ import annotations

import errno
import os
import stat

from pylog.errors import UnexpectedFileError

_FILE_MODE = 0o666  # as Java's; the umask takes from it
# Opening a link fails; opening a named pipe does not wait for somebody at its other end.
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What the system says of a link, and of a socket.
_NOT_REGULAR = frozenset({errno.ELOOP, errno.ENXIO})
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def open_regular_file(path: str, *, create: bool) -> int:
    """Return a descriptor to read and write a file; its content stays.

    Parameters
    ----------
    path
        The file. Links are followed in the directories that lead to it, not in its last component.
    create
        Make an empty one if there is none.

    Raises
    ------
    UnexpectedFileError
        A symbolic link, a named pipe, a socket or a device lies there.
    OSError
        The system's refusal.
    """
    try:
        descriptor = os.open(path, _FLAGS | (os.O_CREAT if create else 0), _FILE_MODE)
    except OSError as error:
        if error.errno in _NOT_REGULAR:
            raise not_a_regular_file(path) from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise not_a_regular_file(path)


def describe_kind(path: str) -> str:
    """Return what lies at ``path``, such as ``a symbolic link to '/data/t-0'``; follows no link."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return f"a symbolic link to {os.readlink(path)!r}"  # noqa: PTH115 - kept as text
    except OSError as error:
        return f"something that cannot be looked at ({error.strerror})"
    return next((text for is_kind, text in _KINDS if is_kind(mode)), "a regular file")


def not_a_regular_file(path: str) -> UnexpectedFileError:
    """Return the error for what lies in the place of a file that is to be written."""
    reason = (
        f"expected a regular file, found {describe_kind(path)}: nothing is written through it; "
        "remove it, or put the file itself there; found"
    )
    return UnexpectedFileError(reason, path)


def link_as_directory(path: str) -> UnexpectedFileError:
    """Return the error for a symbolic link in the place of a partition directory."""
    reason = (
        f"partition directory is {describe_kind(path)}: an owner changes nothing outside its log "
        "directory; move the partition itself here, or open the log directory that holds it; found"
    )
    return UnexpectedFileError(reason, path)
