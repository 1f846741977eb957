"""The system calls that change a disk, one method each, and the process that may make them.

`pylog.files.durable_io` and the files that it opens change a disk through one `SystemCalls` and by
no other way. So a test that overrides these methods records, breaks or cuts short whatever reaches
the disk.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat

from pylog.errors import (
    KafkaStorageError,
    LogLockedError,
    SegmentVanishedError,
    TooManyOpenFilesError,
    UnexpectedFileError,
    UnreadableFileError,
)
from pylog.files import disk

# How a local file is opened, to be read or to be written: only if it is a regular file.
#
# What lies in a directory is whatever somebody put there. To open a FIFO waits for somebody at
# its other end, a device has no end, and a link can lead to either, in a circle, or nowhere. So
# files are opened without waiting and looked at before their first byte is read or written.
#
# Readers follow links to regular files: operators keep partitions, and single segments, on other
# disks that way. Writers follow none, since that would change a foreign file. Differs from Kafka,
# which writes through links.


_FILE_MODE = 0o666  # as Java's; the umask takes from it
# O_NONBLOCK: the opening of a FIFO or of a terminal does not wait. It means nothing to a regular
# file. O_NOCTTY: a terminal does not become that of this process.
_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FLAGS_TO_READ = _FLAGS | os.O_RDONLY
_FLAGS_TO_WRITE = _FLAGS | os.O_RDWR | os.O_NOFOLLOW
# What the system says where a process, or all of them, have as many files open as they may.
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE})
# What it says of a link that is not to be followed, of a socket, and of a directory.
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


def ensure_room_for_files(path: str, error: OSError) -> None:
    """Raise `TooManyOpenFilesError` if that is why the system could not open ``path``."""
    if error.errno in _NO_ROOM:
        reason = f"cannot open it: {error.strerror}; let the process have more (ulimit -n)"
        raise TooManyOpenFilesError(reason, path) from error


def missing_or_unreadable(path: str, error: OSError) -> SegmentVanishedError | UnreadableFileError:
    """Return the error to raise where the system could not find or look at the file at ``path``."""
    ensure_room_for_files(path, error)
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
        mode = disk.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return f"a symbolic link to {disk.readlink(path)!r}"
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
    if disk.is_link(path):
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


_DIRECTORY_MODE = 0o777  # as Java's; the umask takes from it

_process_id = os.getpid()  # kept, because it is looked at several times an append


_FICLONE = 0x40049409
"""From Linux's ``fs.h``: makes a file share all bytes of another one, until one of them changes."""
_CANNOT_CLONE = frozenset(
    {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}
)
"""What it says of file systems, or pairs of them, that cannot do so."""
_SYNC_FILE_RANGE_WRITE = 2
"""From Linux's ``fs.h``."""
_sync_file_range = getattr(ctypes.CDLL(None), "sync_file_range", None)  # Linux alone has it
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def _note_fork() -> None:
    global _process_id  # noqa: PLW0603 - it belongs to the process, as what it caches does
    _process_id = os.getpid()


os.register_at_fork(after_in_child=_note_fork)


class SystemCalls:
    """The system calls of the process that made the first of them. Any number of threads.

    Only the process that made the first change may make others. A child that was forked since has
    inherited the objects, but not the lock of the log directory: whoever is about to make a call
    asks `ensure_own_process` first.
    """

    _owner_process_id: int | None = None

    def ensure_own_process(self, path: str) -> None:
        """Raise unless this process made the first change, or nothing was changed yet."""
        owner = self._owner_process_id
        if owner == _process_id:
            return
        if owner is None:
            self._owner_process_id = _process_id
            return
        reason = (
            f"log directory was opened by process {owner}, of which this one (pid {_process_id}) "
            "is a fork without its lock: change logs there, or close them there and make a log "
            "manager here; nothing was changed"
        )
        raise LogLockedError(reason, path, owner)

    @property
    def is_own_process(self) -> bool:
        """Whether this process may change something: not if it is a fork of the one that did."""
        return self._owner_process_id in {None, _process_id}

    def open_to_write(self, path: str, *, create: bool) -> int:
        """Return the descriptor of a regular file, see `open_regular_file_to_write`."""
        return open_regular_file_to_write(path, create=create)

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        """Write ``data`` at ``position``; return how many bytes of it the system took."""
        return os.pwrite(descriptor, data, position)

    def clone(self, path: str, descriptor: int, source: int) -> bool:
        """Have a new file share all bytes of ``source``, a descriptor; False if it cannot."""
        try:
            fcntl.ioctl(descriptor, _FICLONE, source)
        except OSError as error:
            if error.errno in _CANNOT_CLONE:
                return False
            raise
        return True

    def ftruncate(self, path: str, descriptor: int, size_bytes: int) -> None:
        """Make the file ``size_bytes`` long."""
        os.ftruncate(descriptor, size_bytes)

    def start_write_back(self, descriptor: int, position: int, length: int) -> None:
        """Have the system begin to write a range to the disk; a hint, which cannot fail."""
        if _sync_file_range is not None:
            _sync_file_range(descriptor, position, length, _SYNC_FILE_RANGE_WRITE)

    def fsync(self, path: str, descriptor: int) -> None:
        """Return when content and length are on the disk."""
        os.fsync(descriptor)

    def utime(self, path: str, modified_ms: int) -> None:
        """Make a file say that it was changed last at ``modified_ms``."""
        times = (modified_ms * 1_000_000, modified_ms * 1_000_000)
        os.utime(path, ns=times, follow_symlinks=False)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, in the place of another one of that name."""
        os.replace(source, target)  # noqa: PTH105 - kept as text

    def unlink(self, path: str) -> None:
        """Remove a file, or a link and not what it points to."""
        os.unlink(path)  # noqa: PTH108 - kept as text

    def mkdir(self, path: str) -> None:
        """Create a directory."""
        os.mkdir(path, _DIRECTORY_MODE)  # noqa: PTH102 - kept as text

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)  # noqa: PTH106 - kept as text

    def fsync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def storage_error(
    doing: str, error: OSError, path: str, position: int | None = None
) -> KafkaStorageError:
    """Return the error to raise for ``error``: ``doing`` could not be done, and why."""
    reason = f"I/O error, cannot {doing}: {error.strerror}"
    return KafkaStorageError(reason, path, position, error.errno)
