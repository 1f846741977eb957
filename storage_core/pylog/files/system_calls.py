"""The system calls that change a disk, one method each, and the process that may make them.

`pylog.files.durable_io` and the files that it opens (`pylog.files.writable_file`) change a disk
through one `SystemCalls` and by no other way. So a test that overrides these methods records,
breaks or cuts short whatever reaches the disk.
"""

from __future__ import annotations

import ctypes
import os

from pylog.errors import KafkaStorageError, LogLockedError
from pylog.files.regular_file import open_regular_file_to_write

_DIRECTORY_MODE = 0o777  # as Java's; the umask takes from it

_process_id = os.getpid()  # kept, because it is looked at several times an append


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

    Each call raises `OSError`, which `storage_error` turns into ours. ``path`` names the file that
    a descriptor is of.

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
