"""``.lock``: who holds the file's lock owns the log directory; nobody else may write below it.

The file is empty. The lock is a POSIX record lock on all of it, the one that the JVM's
``FileChannel.tryLock`` takes, so that brokers and we keep each other out. It goes with the process
that took it, however that ends. The file itself says nothing: after a crash it is still there.

A process loses such a lock as soon as it closes *any* descriptor of the file. So a directory that
this process has locked is refused before its ``.lock`` is opened a second time, and nothing else
may open that file.

Source: FileLock, LogManager.lockLogDirs (Kafka 3.9 and 4.3); fcntl(2).
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

from pylog.errors import KafkaStorageError, LogLockedError, UnreadableFileError
from pylog.files import disk
from pylog.files.system_calls import ensure_regular, open_regular_file_to_write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

LOCK_FILE = ".lock"
# struct flock of 64-bit Linux: type, whence, (padding), start, length, process id.
_FLOCK = struct.Struct("@hhqqi4x")


class _Holder(NamedTuple):
    """What this process knows of a directory it has locked; a fork copies it, not the lock."""

    process_id: int
    lock: DirectoryLock


_holders: dict[tuple[int, int], _Holder] = {}
"""Locked directories of this process, by device and inode."""
_holders_guard = threading.Lock()


class DirectoryLock:
    """The lock of one log directory, once `try_lock` has returned, until `unlock`.

    As a context manager it is held inside the block. Any thread may call its methods.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)
        self.path = os.path.join(self.directory, LOCK_FILE)  # noqa: PTH118 - kept as text
        self._descriptor: int | None = None
        self._key: tuple[int, int] | None = None

    @property
    def is_locked(self) -> bool:
        """Whether this object holds the lock in this process."""
        return self._key is not None and _is_held(self._key, self)

    def try_lock(self) -> None:
        """Take the lock at once, or fail; on an overlay, where nobody else is, do nothing."""
        if disk.find_overlay(self.path) is not None:
            return
        with _holders_guard:
            try:
                status = os.stat(self.directory)  # noqa: PTH116 - kept as text
                key = (status.st_dev, status.st_ino)
                self._ensure_not_held_here(key)
                self._descriptor = self._open_and_lock()
            except OSError as error:
                reason = f"I/O error, cannot lock the log directory: {error.strerror}"
                raise KafkaStorageError(reason, self.path, errno=error.errno) from error
            self._key = key
            _holders[key] = _Holder(os.getpid(), self)

    def unlock(self) -> None:
        """Delete the file and give the lock back; without it, do nothing."""
        with _holders_guard:
            descriptor, self._descriptor = self._descriptor, None
            key, self._key = self._key, None
            if descriptor is None or key is None:
                return
            try:
                if _is_held(key, self):  # not in a child, whose parent holds it
                    del _holders[key]
                    # While the lock is held: the next process makes a file of its own.
                    os.unlink(self.path)  # noqa: PTH108 - kept as text
            except FileNotFoundError:
                pass
            except OSError as error:
                reason = f"I/O error, cannot delete the lock file: {error.strerror}"
                raise KafkaStorageError(reason, self.path, errno=error.errno) from error
            finally:
                os.close(descriptor)

    def __enter__(self) -> Self:
        self.try_lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unlock()

    def _ensure_not_held_here(self, key: tuple[int, int]) -> None:
        holder = _holders.get(key)
        if holder is not None and holder.process_id == os.getpid():
            reason = (
                f"log directory is locked by this process (pid {holder.process_id}): use the log "
                "manager that holds it, or close that one first"
            )
            raise LogLockedError(reason, self.path, holder.process_id)

    def _open_and_lock(self) -> int:
        """Return a descriptor of the file, which holds the lock.

        The file can be deleted by its last holder between being opened and being locked here; the
        lock of a deleted file keeps nobody out.
        """
        while True:
            descriptor = open_regular_file_to_write(self.path, create=True)
            try:
                self._lock(descriptor)
                if self._is_current(descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    @contextmanager
    def _open_to_look(self) -> Iterator[int]:
        """Give a descriptor of the file, if this process does not hold its lock; then close it."""
        status = os.stat(self.directory)  # noqa: PTH116 - kept as text
        self._ensure_not_held_here((status.st_dev, status.st_ino))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self.path, flags)
        try:
            ensure_regular(os.fstat(descriptor), self.path)
            yield descriptor
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int, kind: int = fcntl.LOCK_EX) -> None:
        try:
            fcntl.lockf(descriptor, kind | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            process_id = _find_holder(descriptor) or None
            who = "another process" if process_id is None else f"process {process_id}"
            reason = (
                f"log directory is locked by {who}: stop it, or give another directory (deleting "
                "the file would not free this one)"
            )
            raise LogLockedError(reason, self.path, process_id) from error

    def _is_current(self, descriptor: int) -> bool:
        try:
            named = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(descriptor))


def ensure_not_in_use(directory: str) -> None:
    """Raise `LogLockedError` if a process works on a log directory; change nothing in it.

    A broker that was killed leaves the file, and a broker makes it at its start. What is there
    instead of a file is an `UnreadableFileError`.
    """
    lock = DirectoryLock(directory)
    with _holders_guard:
        try:
            with lock._open_to_look() as descriptor:
                lock._lock(descriptor, fcntl.LOCK_SH)
        except FileNotFoundError:
            return
        except OSError as error:
            reason = f"I/O error, cannot tell who uses the log directory: {error.strerror}"
            raise KafkaStorageError(reason, lock.path, errno=error.errno) from error


def is_in_use(directory: str) -> bool:
    """Whether a process works on a log directory, as far as can be told without taking the lock."""
    lock = DirectoryLock(directory)
    with _holders_guard:
        try:
            with lock._open_to_look() as descriptor:
                return _find_holder(descriptor) is not None
        except LogLockedError:
            return True
        except (OSError, UnreadableFileError):
            return False


def _is_held(key: tuple[int, int], lock: DirectoryLock) -> bool:
    return _holders.get(key) == _Holder(os.getpid(), lock)


def _find_holder(descriptor: int) -> int | None:
    """Return the process that keeps the file locked; 0 if it runs on another host or elsewhere.

    None if no process does, or none that can be known.
    """
    if sys.platform != "linux" or sys.maxsize <= 2**32:
        return None
    question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, question)
    except OSError:
        return None
    lock_type, _, _, _, process_id = _FLOCK.unpack(answer)
    return max(0, process_id) if lock_type != fcntl.F_UNLCK else None
