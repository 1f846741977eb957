"""A file that is read and written by position, and synced: what `OwnedFile` opens.

Positions are the caller's: the file has none of its own. Python itself repeats a system call that
a signal interrupted.
"""

from __future__ import annotations

import os

from pylog.errors import KafkaStorageError
from pylog.files.byte_source import ByteSource, LocalFile
from pylog.files.system_calls import SystemCalls, storage_error

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

    def clone(self, source: ByteSource) -> bool:
        """Share all bytes of a local file, if this one is new; return whether the system can."""
        if not isinstance(source, LocalFile):
            return False
        descriptor = self._opened()
        self._calls.ensure_own_process(self.path)
        try:
            return self._calls.clone(self.path, descriptor.number, source.descriptor)
        except OSError as error:
            raise storage_error(f"share the bytes of {source.path}", error, self.path) from error

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
