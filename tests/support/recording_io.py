"""Disks that keep a diary, and disks that fail on command.

`RecordingIO` does everything for real and writes down each system call that changed something;
`replay` builds what a crash after any prefix of that diary leaves. `FaultyIO` lets chosen calls
fail. The two combine: ``class Both(FaultyIO, RecordingIO)``; what failed is not in the diary.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pylog.files.durable_io import DurableIO
from tests.support.crash_replay import Kind, Operation, replay

__all__ = ["Fault", "FaultyIO", "ForgetfulIO", "Kind", "Operation", "RecordingIO", "replay"]


class ForgetfulIO(DurableIO):
    """Does not wait for the disk: these directories are thrown away."""

    def fsync(self, path: str, descriptor: int) -> None:
        pass

    def fsync_directory(self, path: str) -> None:
        pass


class RecordingIO(DurableIO):
    """A `DurableIO` that appends to `operations` whatever it did below ``root``.

    Opening a file that exists is not an operation. A write to a file that has no name any more is
    left out. One file may be known by one path only: no links, no ``..``.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self._root = Path(root).absolute()
        self._paths: dict[int, str | None] = {}  # by descriptor; None: removed or replaced
        self._guard = threading.RLock()

    @property
    def summary(self) -> list[str]:
        """The operations as text, such as ``write web-events-0/….log 0+61``."""
        return [str(operation) for operation in self.operations]

    def open_to_write(self, path: str, *, create: bool) -> int:
        with self._guard:
            is_new = not Path(path).exists()
            descriptor = super().open_to_write(path, create=create)
            self._paths[descriptor] = self._relative(path)
            if is_new:
                self._record(Kind.CREATE, path)
            return descriptor

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        with self._guard:
            written = super().pwrite(path, descriptor, position, data)
            self._record_open(Kind.WRITE, descriptor, position, bytes(data[:written]))
            return written

    def clone(self, path: str, descriptor: int, source: int) -> bool:
        """Have bytes written, whatever the file system can."""
        return False

    def ftruncate(self, path: str, descriptor: int, size_bytes: int) -> None:
        with self._guard:
            super().ftruncate(path, descriptor, size_bytes)
            self._record_open(Kind.TRUNCATE, descriptor, size_bytes)

    def fsync(self, path: str, descriptor: int) -> None:
        with self._guard:
            super().fsync(path, descriptor)
            self._record_open(Kind.SYNC, descriptor)

    def rename(self, source: str, target: str) -> None:
        with self._guard:
            super().rename(source, target)
            old, new = self._relative(source), self._relative(target)
            self._forget(new)
            for descriptor, path in self._paths.items():
                if path is not None and (path == old or path.startswith(old + "/")):
                    self._paths[descriptor] = new + path[len(old) :]
            self.operations.append(Operation(Kind.REPLACE, old, target=new))

    def unlink(self, path: str) -> None:
        with self._guard:
            super().unlink(path)
            self._forget(self._relative(path))
            self._record(Kind.REMOVE, path)

    def mkdir(self, path: str) -> None:
        with self._guard:
            super().mkdir(path)
            self._record(Kind.MAKE_DIRECTORY, path)

    def rmdir(self, path: str) -> None:
        with self._guard:
            super().rmdir(path)
            self._record(Kind.REMOVE_DIRECTORY, path)

    def fsync_directory(self, path: str) -> None:
        with self._guard:
            super().fsync_directory(path)
            self._record(Kind.SYNC_DIRECTORY, path)

    def _record(self, kind: Kind, path: str) -> None:
        self.operations.append(Operation(kind, self._relative(path)))

    def _record_open(
        self, kind: Kind, descriptor: int, position: int = 0, data: bytes = b""
    ) -> None:
        path = self._paths[descriptor]
        if path is not None:
            self.operations.append(Operation(kind, path, position, data))

    def _forget(self, removed: str) -> None:
        for descriptor, path in self._paths.items():
            if path == removed:
                self._paths[descriptor] = None

    def _relative(self, path: str) -> str:
        return Path(path).absolute().relative_to(self._root).as_posix()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Which system calls fail, and how.

    Attributes
    ----------
    kinds
        Calls of these kinds are counted.
    at
        The call that fails, counted from 1.
    forever
        All later ones fail, too.
    path_end
        Only calls whose path ends so are counted.
    error_number
        What the call fails with; it changes nothing then.
    short_bytes
        Instead of failing, a write takes this many bytes.
    """

    kinds: frozenset[Kind] = frozenset(Kind)
    at: int = 1
    forever: bool = False
    path_end: str = ""
    error_number: int = errno.EIO
    short_bytes: int | None = None


class FaultyIO(DurableIO):
    """A `DurableIO` whose system calls fail as `faults` say; `faults` may be changed at any time.

    `counts` tells how many calls of each kind there were, those that failed included, so that a
    test can let the n-th one fail for every n. Opening a file that exists is `Kind.OPEN`.
    """

    def __init__(self, *faults: Fault, root: str | os.PathLike[str] | None = None) -> None:
        if root is None:
            super().__init__()
        else:
            super().__init__(root)  # type: ignore[call-arg]  # in front of a RecordingIO
        self.faults = list(faults)
        self.counts: Counter[Kind] = Counter()
        self._seen: Counter[Fault] = Counter()
        self._fault_guard = threading.Lock()

    def open_to_write(self, path: str, *, create: bool) -> int:
        self._check(Kind.CREATE if create and not Path(path).exists() else Kind.OPEN, path)
        return super().open_to_write(path, create=create)

    def pwrite(self, path: str, descriptor: int, position: int, data: memoryview) -> int:
        length = self._check(Kind.WRITE, path, len(data))
        return super().pwrite(path, descriptor, position, data[:length]) if length else 0

    def clone(self, path: str, descriptor: int, source: int) -> bool:
        """Have bytes written, whatever the file system can."""
        return False

    def ftruncate(self, path: str, descriptor: int, size_bytes: int) -> None:
        self._check(Kind.TRUNCATE, path)
        super().ftruncate(path, descriptor, size_bytes)

    def fsync(self, path: str, descriptor: int) -> None:
        self._check(Kind.SYNC, path)
        super().fsync(path, descriptor)

    def rename(self, source: str, target: str) -> None:
        self._check(Kind.REPLACE, source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._check(Kind.REMOVE, path)
        super().unlink(path)

    def mkdir(self, path: str) -> None:
        self._check(Kind.MAKE_DIRECTORY, path)
        super().mkdir(path)

    def rmdir(self, path: str) -> None:
        self._check(Kind.REMOVE_DIRECTORY, path)
        super().rmdir(path)

    def fsync_directory(self, path: str) -> None:
        self._check(Kind.SYNC_DIRECTORY, path)
        super().fsync_directory(path)

    def _check(self, kind: Kind, path: str, length: int = 0) -> int:
        """Raise if a fault is due; return how many of ``length`` bytes a write may take."""
        with self._fault_guard:
            self.counts[kind] += 1
            due = [fault for fault in self.faults if self._is_due(fault, kind, path)]
        for fault in due:
            if fault.short_bytes is None:
                raise OSError(fault.error_number, os.strerror(fault.error_number), path)
            length = min(length, fault.short_bytes)
        return length

    def _is_due(self, fault: Fault, kind: Kind, path: str) -> bool:
        if kind not in fault.kinds or not path.endswith(fault.path_end):
            return False
        self._seen[fault] += 1
        seen = self._seen[fault]
        return seen == fault.at or (fault.forever and seen > fault.at)
