"""How a local file is opened, to be read or to be written: only if it is a regular file.

What lies in a directory is whatever somebody put there. To open a FIFO waits for somebody at its
other end, a device has no end, and a link can lead to either, in a circle, or nowhere. So files are
opened without waiting and looked at before their first byte is read or written.

Readers follow links to regular files: operators keep partitions, and single segments, on other
disks that way. Writers follow none, since that would change a foreign file. Differs from Kafka,
which writes through links.
"""

from __future__ import annotations

import errno
import os
import stat

from pylog.errors import SegmentVanishedError, UnexpectedFileError, UnreadableFileError

_FILE_MODE = 0o666  # as Java's; the umask takes from it
# O_NONBLOCK: the opening of a FIFO or of a terminal does not wait. It means nothing to a regular
# file. O_NOCTTY: a terminal does not become that of this process.
_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FLAGS_TO_READ = _FLAGS | os.O_RDONLY
_FLAGS_TO_WRITE = _FLAGS | os.O_RDWR | os.O_NOFOLLOW
# What the system says of a link that is not to be followed, of a socket, and of a directory.
_NOT_REGULAR = frozenset({errno.ELOOP, errno.ENXIO, errno.EISDIR})
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFREG: "a regular file",
}


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def open_regular_file(path: str) -> int:
    """Return a descriptor from which the regular file at ``path`` can be read; never waits."""
    try:
        descriptor = os.open(path, _FLAGS_TO_READ)
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
    reason = (
        f"not a regular file but {_kind(status.st_mode)}: move it away, and put the file back if "
        "there was one"
    )
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
    """Return the error to raise; a socket cannot be opened, so its status has to show it."""
    if not isinstance(error, FileNotFoundError):
        try:
            ensure_regular(os.stat(path), path)  # noqa: PTH116 - kept as text
        except UnreadableFileError as irregular:
            return irregular
        except OSError:
            pass
    return missing_or_unreadable(path, error)


def open_regular_file_to_write(path: str, *, create: bool) -> int:
    """Return a descriptor to read and write a file; its content stays."""
    try:
        descriptor = os.open(path, _FLAGS_TO_WRITE | (os.O_CREAT if create else 0), _FILE_MODE)
    except OSError as error:
        if error.errno in _NOT_REGULAR:
            raise not_a_regular_file(path) from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise not_a_regular_file(path)


def _describe(path: str) -> str:
    """Return what lies at ``path``, such as ``a symbolic link to '/data/t-0'``; follows no link."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return f"a symbolic link to {os.readlink(path)!r}"  # noqa: PTH115 - kept as text
    except OSError as error:
        return f"something that cannot be looked at ({error.strerror})"
    return _kind(mode)


def not_a_regular_file(path: str) -> UnexpectedFileError:
    """Return the error for what lies in the place of a file that is to be written."""
    reason = (
        f"expected a regular file, found {_describe(path)}: nothing is written through it; "
        "remove it, or put the file itself there"
    )
    return UnexpectedFileError(reason, path)


def not_a_directory(path: str) -> UnexpectedFileError:
    """Return the error for what lies in the place of a directory that is to be made."""
    if os.path.islink(path):  # noqa: PTH114 - kept as text
        return link_as_directory(path)
    reason = f"expected a directory, found {_describe(path)}: move it away"
    return UnexpectedFileError(reason, path)


def link_as_directory(path: str) -> UnexpectedFileError:
    """Return the error for a symbolic link in the place of a partition directory."""
    reason = (
        f"partition directory is {_describe(path)}: an owner changes nothing outside its log "
        "directory; move the partition itself here, or open the log directory that holds it"
    )
    return UnexpectedFileError(reason, path)
