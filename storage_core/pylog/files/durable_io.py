"""Everything that changes a disk: one object that writes, syncs, renames and removes.

Code that owns files is given a `DurableIO` and changes nothing by any other way. So what reaches
the disk, and in which order, can be recorded, broken and cut short by a test that brings its own.

What survives a power loss
    The content of a file up to its last ``sync``; a name (created, renamed, removed) once
    ``sync_directory`` was called for the directory that holds it. Everything later may be there
    or not, in any combination.

What survives the death of the process
    Everything.

`DurableIO.write_atomically` replaces a file as a whole:

==== ================================== =================================================
step what is done                       a crash after it leaves
==== ================================== =================================================
1    write ``<file>.tmp``               the old file; part of a ``.tmp`` that nobody reads
2    sync ``<file>.tmp``                the old file; a ``.tmp`` that nobody reads
3    rename it to ``<file>``            the old file or the new one, both whole
4    sync the directory                 the new file
==== ================================== =================================================

A symbolic link is never followed in a path's last component: it is removed as a link, and refused
where a file is to be written (`pylog.files.system_calls`).

Only the process that made the first change may make others (`pylog.files.system_calls`): a child
that was forked since is refused, and may read.

Source: Utils.atomicMoveWithFallback, Utils.flushDir, CheckpointFile (Kafka 3.9 and 4.3). Differs
from Kafka, which copies where the rename fails, and so may leave half a file.
"""

from __future__ import annotations

import logging
import os
import resource
import stat
import threading
import weakref
from collections import OrderedDict

from pylog.errors import KafkaStorageError, SegmentVanishedError, UnexpectedFileError
from pylog.files import disk
from pylog.files.byte_source import ByteSource
from pylog.files.system_calls import SystemCalls, not_a_directory, storage_error

TEMPORARY_SUFFIX = ".tmp"


class DurableIO(SystemCalls):
    """Changes files and directories of local disks.

    Any number of threads may use it. Of two that write one path, callers let one through at a
    time. Those who test what a disk may do override the methods of `SystemCalls`, which all that
    is done here comes down to.
    """

    warning_level = logging.WARNING
    """At which level is logged what is found wrong while a log is opened."""

    def open(self, path: str | os.PathLike[str], *, create: bool = False) -> WritableFile:
        """Open a file to read and write; its content stays."""
        text = os.fspath(path)
        if create:
            self.ensure_own_process(text)
        try:
            return WritableFile(self, text, self.open_to_write(text, create=create))
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not create:
                reason = "file is gone (deleted or renamed)"
                raise SegmentVanishedError(reason, text) from error
            raise storage_error("open the file", error, text) from error

    def set_last_modified(self, path: str | os.PathLike[str], modified_ms: int) -> None:
        """Make a file say that it was changed last at ``modified_ms``; not forced to disk."""
        text = os.fspath(path)
        self.ensure_own_process(text)
        try:
            self.utime(text, modified_ms)
        except OSError as error:
            raise storage_error("set the file's time", error, text) from error

    def replace(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """Rename ``source`` to ``target``, in whose place it comes, if there is one, at once."""
        old, new = os.fspath(source), os.fspath(target)
        self.ensure_own_process(old)
        try:
            self.rename(old, new)
        except OSError as error:
            raise storage_error(f"rename the file to {new}", error, old) from error

    def remove(self, path: str | os.PathLike[str], *, missing_ok: bool = False) -> bool:
        """Remove a file, or a link and not what it points to; return whether there was one."""
        text = os.fspath(path)
        self.ensure_own_process(text)
        try:
            self.unlink(text)
        except OSError as error:
            if missing_ok and isinstance(error, FileNotFoundError):
                return False
            raise storage_error("remove the file", error, text) from error
        return True

    def make_directory(self, path: str | os.PathLike[str], *, exist_ok: bool = False) -> bool:
        """Create a directory in one that exists; return whether it is new."""
        text = os.fspath(path)
        self.ensure_own_process(text)
        try:
            self.mkdir(text)
        except OSError as error:
            if exist_ok and isinstance(error, FileExistsError):
                if stat.S_ISDIR(disk.lstat(text).st_mode):
                    return False
                raise not_a_directory(text) from error
            raise storage_error("create the directory", error, text) from error
        return True

    def remove_directory(self, path: str | os.PathLike[str]) -> None:
        """Remove an empty directory."""
        text = os.fspath(path)
        self.ensure_own_process(text)
        try:
            self.rmdir(text)
        except OSError as error:
            raise storage_error("remove the directory", error, text) from error

    def sync_directory(self, path: str | os.PathLike[str]) -> None:
        """Return when the names in a directory are on the disk."""
        text = os.fspath(path)
        self.ensure_own_process(text)
        try:
            self.fsync_directory(text)
        except OSError as error:
            raise storage_error("sync the directory", error, text) from error

    def write_file(
        self, path: str | os.PathLike[str], data: BytesLike, *, sync: bool = False
    ) -> None:
        """Make ``data`` the content of a file, in place: a crash leaves any part of it."""
        with self._open_own(os.fspath(path)) as file:
            if file.size():
                file.truncate(0)
            file.write_at(0, data)
            if sync:
                file.sync()

    def _open_own(self, path: str) -> WritableFile:
        """Return a file that has no other name; other kinds make room, unless a directory."""
        try:
            file = self.open(path, create=True)
            if not file.has_other_names:
                return file
            file.close()
        except UnexpectedFileError:
            if stat.S_ISDIR(disk.lstat(path).st_mode):
                raise
        self.remove(path)
        return self.open(path, create=True)

    def write_atomically(self, path: str | os.PathLike[str], data: BytesLike) -> None:
        """Make ``data`` the content of a file and return when it is on the disk.

        Whoever reads the file, and any crash, finds its old content or all of ``data``. See the
        module's table. ``<path>.tmp`` is overwritten, and is left where this fails.
        """
        text = os.fspath(path)
        temporary = text + TEMPORARY_SUFFIX
        self.write_file(temporary, data, sync=True)
        self.replace(temporary, text)
        self.sync_directory(os.path.dirname(text) or os.curdir)  # noqa: PTH120 - kept as text


# A file of a directory that we own: opened at its first use, renamed and removed as it is open.
#
# A manager has more segments than descriptors, so a file is opened when it is used, and may be
# released between two uses. Of all owned files of a process, no more are open than `OpenFiles`
# lets: the one that was opened first gives back its descriptor, and is opened again at its next
# use. ``.log`` files and all indexes of a segment are owned files.
#
# ==================== =====================================================================
# after                the next use
# ==================== =====================================================================
# `OwnedFile.release`  opens the file again
# `OwnedFile.close`    is refused: whoever held the lock of the directory has let go of it
# deleting             is refused, so that nobody creates the file again
# ==================== =====================================================================
#
# Source: AbstractIndex, LazyIndex, FileRecords (Kafka 4.3), which each have these methods.


class OpenFiles:
    """The owned files that are open, in the order in which they were opened.

    Half of the descriptors that the system gives a process, so that as many are left for all else.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most or max(_LEAST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._files: OrderedDict[int, weakref.ref[OwnedFile]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, file: OwnedFile) -> None:
        """Note a file that has been opened; others make room."""
        with self._lock:
            self._files[id(file)] = weakref.ref(file)
            self._files.move_to_end(id(file))
            surplus = [
                self._files.popitem(last=False) for _ in range(max(0, len(self._files) - self.most))
            ]
        for key, reference in surplus:
            other = reference()
            if other is not None and not other.give_back_descriptor():
                with self._lock:
                    self._files.setdefault(key, reference)

    def discard(self, file: OwnedFile) -> None:
        """Note that a file is no longer open."""
        with self._lock:
            self._files.pop(id(file), None)


_LEAST_OPEN = 16
open_files = OpenFiles()


class OwnedFile:
    """The name of a file and, while it is in use, its descriptor.

    One thread changes the file; any number may read meanwhile. A read that `release` overtakes
    comes to its end.
    """

    __slots__ = (
        "__weakref__",
        "_handle",
        "_has_given_back",
        "_io",
        "_is_closed",
        "_is_deleted",
        "_lock",
        "path",
    )

    def __init__(self, path: str | os.PathLike[str], io: DurableIO) -> None:
        self.path = str(path)
        self._io = io
        self._handle: WritableFile | None = None
        self._has_given_back = False
        self._is_closed = False
        self._is_deleted = False
        self._lock = threading.RLock()

    @property
    def exists_on_disk(self) -> bool:
        """Whether there is a file; asks the disk."""
        return disk.exists(self.path)

    def rename_to(self, path: str | os.PathLike[str], *, missing_ok: bool = False) -> None:
        """Rename the file over another one of that name; it stays open."""
        target = str(path)
        with self._lock:
            if target != self.path and (not missing_ok or self.exists_on_disk):
                self._io.replace(self.path, target)
            self.path = target
            if self._handle is not None:
                self._handle.path = target

    def delete_if_exists(self) -> bool:
        """Close and remove the file for good; return whether there was one."""
        with self._lock:
            self._is_deleted = True
            self.close()
        return self._io.remove(self.path, missing_ok=True)

    def release(self) -> None:
        """Give descriptor and memory back, changing nothing; the next use takes them again."""
        with self._lock:
            if self._is_in_use:
                open_files.discard(self)
            self._handle = None
            self._has_given_back = False

    def give_back_descriptor(self) -> bool:
        """Close the file until its next use, unless it is busy; return whether it is closed.

        It counts as in use all the same. One whose sync has failed keeps the descriptor that knows.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._handle is not None and not self._handle.is_trusted:
                return False
            self._has_given_back = self._has_given_back or self._handle is not None
            self._handle = None
            return True
        finally:
            self._lock.release()

    @property
    def _is_in_use(self) -> bool:
        """Whether the file has been opened since it was released."""
        return self._handle is not None or self._has_given_back

    def close(self) -> None:
        """Release the file for good, changing nothing; a second call does nothing."""
        with self._lock:
            self._is_closed = True
            if self._handle is not None:
                self._handle.close()
            self.release()

    @property
    def _file(self) -> WritableFile:
        """The file that is there, opened at its first use."""
        handle = self._handle
        return self._open() if handle is None else handle

    def _open(self, *, create: bool = False) -> WritableFile:
        """Return the file, opened if it is not; with ``create``, an empty one if there is none."""
        with self._lock:
            if self._handle is None:
                self._ensure_usable()
                self._handle = self._io.open(self.path, create=create)
                open_files.add(self)
            return self._handle

    def _ensure_usable(self) -> None:
        if self._is_closed:
            msg = f"{self.path} {'has been deleted' if self._is_deleted else 'is closed'}"
            raise ValueError(msg)


# A file that is read and written by position, and synced: what `OwnedFile` opens.
#
# Positions are the caller's: the file has none of its own. Python itself repeats a system call that
# a signal interrupted.


BytesLike = bytes | bytearray | memoryview


class _Descriptor:
    """A file descriptor that is closed when its last holder releases it."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class WritableFile(ByteSource):
    """A file that is read and written by position. Made by `DurableIO.open`.

    One thread writes; any number may read meanwhile, and see of what is being written a part or
    nothing. A read that another thread's `close` overtakes ends as if it had come before.
    """

    __slots__ = ("_calls", "_descriptor", "_sync_failed", "path")

    def __init__(self, calls: SystemCalls, path: str, descriptor: int) -> None:
        self.path = path
        self._calls = calls
        self._descriptor: _Descriptor | None = _Descriptor(descriptor)
        self._sync_failed = False

    @property
    def descriptor(self) -> int:
        """The file descriptor, this object's own."""
        return self._opened().number

    @property
    def is_trusted(self) -> bool:
        """Whether every sync of the file has succeeded."""
        return not self._sync_failed

    @property
    def has_other_names(self) -> bool:
        """Whether what is written here would show under another name, too."""
        return self._status().st_nlink > 1

    def size(self) -> int:
        """Return the file's length in bytes, now."""
        return self._status().st_size

    def file_id(self) -> int:
        """Return the inode number."""
        return self._status().st_ino

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        descriptor = self._opened()
        try:
            return os.pread(descriptor.number, length, position)
        except OSError as error:
            raise storage_error(f"read {length} bytes", error, self.path, position) from error

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        descriptor = self._opened()
        filled = 0
        try:
            while filled < len(buffer):
                count = os.preadv(descriptor.number, [buffer[filled:]], position + filled)
                if count == 0:
                    break
                filled += count
        except OSError as error:
            doing = f"read {len(buffer)} bytes"
            raise storage_error(doing, error, self.path, position) from error
        return filled

    def next_data(self, position: int) -> int | None:
        """Return ``position``, or None at the end of the file: holes are not looked for."""
        return position if position < self.size() else None

    def write_at(self, position: int, data: BytesLike) -> None:
        """Write all of ``data`` at ``position``; what lies between the old end and it is zeros."""
        descriptor = self._opened()
        self._calls.ensure_own_process(self.path)
        view = memoryview(data)
        remaining = view.cast("B") if view.nbytes else memoryview(b"")
        while remaining:
            written = self._write_some(descriptor, position, remaining)
            position += written
            remaining = remaining[written:]

    def truncate(self, size_bytes: int) -> None:
        """Make the file ``size_bytes`` long: cut it, or extend it by a hole that reads as zeros."""
        descriptor = self._opened()
        self._calls.ensure_own_process(self.path)
        try:
            self._calls.ftruncate(self.path, descriptor.number, size_bytes)
        except OSError as error:
            doing = f"make the file {size_bytes} bytes long"
            raise storage_error(doing, error, self.path) from error

    def sync(self) -> None:
        """Return when content and length are on the disk (``fsync``)."""
        descriptor = self._opened()
        self._calls.ensure_own_process(self.path)
        if self._sync_failed:
            reason = "I/O error, cannot sync the file: an earlier sync of it failed, data is lost"
            raise KafkaStorageError(reason, self.path)
        try:
            self._calls.fsync(self.path, descriptor.number)
        except OSError as error:
            self._sync_failed = True
            raise storage_error("sync the file", error, self.path) from error

    def start_write_back(self, position: int, length: int) -> None:
        """Have the system begin to write a range to the disk, where it can, and do not wait."""
        descriptor = self._opened()
        self._calls.ensure_own_process(self.path)
        self._calls.start_write_back(descriptor.number, position, length)

    def close(self) -> None:
        """Release the file, once reads under way are done; a second call does nothing."""
        self._descriptor = None

    def _write_some(self, descriptor: _Descriptor, position: int, data: memoryview) -> int:
        try:
            written = self._calls.pwrite(self.path, descriptor.number, position, data)
        except OSError as error:
            raise storage_error(f"write {len(data)} bytes", error, self.path, position) from error
        if written <= 0:
            reason = f"I/O error, cannot write {len(data)} bytes: the system took none of them"
            raise KafkaStorageError(reason, self.path, position)
        return written

    def _status(self) -> os.stat_result:
        descriptor = self._opened()  # one that is not held while in use may become another file's
        return os.fstat(descriptor.number)

    def _opened(self) -> _Descriptor:
        descriptor = self._descriptor
        if descriptor is None:
            msg = f"{self.path} is closed"
            raise ValueError(msg)
        return descriptor
