"""A disk on which everything can be done and nothing happens: changes are kept, files stay.

An `Overlay` shows what lies on the real disk, under a root of its own, and keeps what is changed
there: names, bytes, times. Whatever owns log directories does the same on it as on the disk, and
reads back what it wrote. So what a start, a removal or a cleaning would do is found out by doing
it.

What is kept
    Of each changed file which ranges have been written, and where they are in the spool: memory up
    to `SPOOLED_BYTES`, beyond that a temporary file without a name. What a file had before is read
    from it, so it must not change meanwhile. Of each directory that was changed in, the names that
    differ. A directory of the disk is listed once.

A path on the overlay is its root before the real path. Errors and messages have the real one
(`pylog.locations.without_overlay`).
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import stat as stat_module
import tempfile
import threading
import time
from bisect import bisect_right
from contextlib import nullcontext, suppress
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from pylog.errors import SegmentVanishedError
from pylog.files import disk
from pylog.files.durable_io import DurableIO
from pylog.files.file_user import READ, SEARCH, WRITE
from pylog.files.system_calls import (
    missing_or_unreadable,
    not_a_regular_file,
    open_regular_file,
    storage_error,
)
from pylog.files.writable_file import WritableFile
from pylog.locations import OVERLAY_PREFIX, join, without_overlay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from pylog.files.byte_source import ByteSource
    from pylog.files.file_user import FileUser
    from pylog.files.writable_file import BytesLike

SPOOLED_BYTES = 32 * 1024 * 1024
"""How much of what was written is kept in memory."""
_numbers = itertools.count(1)
_NO_NAMES = ("", ".", "..")
_inodes = itertools.count(2**62)
"""Of files that were made here; no file system goes as far."""


class _Spool:
    """What was written, in the order in which it was. Any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memory: bytearray | None = bytearray()
        self._number = -1
        self._file: IO[bytes] | None = None
        self._size_bytes = 0

    def add(self, data: memoryview) -> int:
        """Keep bytes; return where they are."""
        with self._lock:
            position = self._size_bytes
            if self._memory is not None and position + len(data) > SPOOLED_BYTES:
                self._file = tempfile.TemporaryFile(prefix="pylog-")  # noqa: SIM115 - see close
                self._number = self._file.fileno()
                self._write(0, memoryview(self._memory))
                self._memory = None
            if self._memory is None:
                self._write(position, data)
            else:
                self._memory += data
            self._size_bytes = position + len(data)
            return position

    def read_into(self, position: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with what was kept from ``position`` on."""
        with self._lock:
            if self._memory is not None:
                buffer[:] = self._memory[position : position + len(buffer)]
                return
        filled = 0
        while filled < len(buffer):
            filled += os.preadv(self._number, [buffer[filled:]], position + filled)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._memory = bytearray()
            if self._file is not None:
                self._file.close()

    def _write(self, position: int, data: memoryview) -> None:
        while data:
            written = os.pwrite(self._number, data, position)
            position, data = position + written, data[written:]


class _Extent(NamedTuple):
    """Bytes ``[start, end)`` of a file, and where they are in the spool."""

    start: int
    end: int
    spooled: int


class _File:
    """A regular file: of what was there before the first ``base_bytes``, and what was written."""

    __slots__ = ("base", "base_bytes", "extents", "inode", "lock", "mode", "modified_ns", "size")

    def __init__(self, base: str | None, status: os.stat_result | None = None) -> None:
        self.base = base
        self.extents: list[_Extent] = []
        self.lock = threading.Lock()
        if status is None and base is not None:
            status = os.lstat(base)
        self.size = self.base_bytes = 0 if status is None else status.st_size
        self.mode = stat_module.S_IFREG | 0o644 if status is None else status.st_mode
        self.inode = next(_inodes) if status is None else status.st_ino
        self.modified_ns = time.time_ns() if status is None else status.st_mtime_ns

    def status(self) -> os.stat_result:
        seconds = self.modified_ns // 1_000_000_000
        fields = (self.mode, self.inode, 0, 1, 0, 0, self.size, seconds, seconds, seconds)
        return os.stat_result(fields, {"st_mtime_ns": self.modified_ns})

    def write(self, position: int, data: memoryview, spool: _Spool) -> None:
        with self.lock:
            end = position + len(data)
            self._forget(position, end)
            new = _Extent(position, end, spool.add(data))
            at = bisect_right(self.extents, new)
            last = self.extents[at - 1] if at else None
            if (
                last
                and last.end == position
                and last.spooled + position - last.start == new.spooled
            ):
                self.extents[at - 1] = last._replace(end=end)
            else:
                self.extents.insert(at, new)
            self.size = max(self.size, end)
            self.modified_ns = time.time_ns()

    def truncate(self, size: int) -> None:
        with self.lock:
            self._forget(size, max(self.size, size))
            self.base_bytes = min(self.base_bytes, size)
            self.size = size
            self.modified_ns = time.time_ns()

    def _forget(self, start: int, end: int) -> None:
        """Cut ``[start, end)`` out of what was written."""
        first = bisect_right(self.extents, start, key=lambda each: each.start)
        if first and self.extents[first - 1].end > start:
            first -= 1
        last = first
        left = []
        while last < len(self.extents) and self.extents[last].start < end:
            each = self.extents[last]
            if each.start < start:
                left.append(each._replace(end=start))
            if each.end > end:
                left.append(_Extent(end, each.end, each.spooled + end - each.start))
            last += 1
        self.extents[first:last] = left

    def overlapping(self, start: int, end: int) -> list[_Extent]:
        first = bisect_right(self.extents, start, key=lambda each: each.start)
        found = itertools.takewhile(
            lambda each: each.start < end, self.extents[max(0, first - 1) :]
        )
        return [each for each in found if each.end > start]


class _Other:
    """What is neither file nor directory, as it lies on the disk: it can be moved and removed."""

    __slots__ = ("base",)

    def __init__(self, base: str) -> None:
        self.base = base


class _Directory:
    """A directory: what was there before, and the names that differ; None for what is gone."""

    __slots__ = ("_listed", "base", "changed", "modified_ns")

    def __init__(self, base: str | None) -> None:
        self.base = base
        self.changed: dict[str, _Node | None] = {}
        self.modified_ns = time.time_ns() if base is None else None
        self._listed: dict[str, os.DirEntry[str]] | None = None

    def listed(self) -> dict[str, os.DirEntry[str]]:
        """Return the entries of what was there before, looked for once."""
        if self._listed is None:
            if self.base is None:
                return {}
            with os.scandir(self.base) as found:
                self._listed = {each.name: each for each in found}
        return self._listed

    def child(self, name: str) -> _Node | None:
        """Return what has a name: what was kept, or what lies on the disk."""
        if name in self.changed or self.base is None:
            return self.changed.get(name)
        path = join(self.base, name)
        try:
            if self._listed is None:
                status = os.lstat(path)
            elif name in self._listed:
                status = self._listed[name].stat(follow_symlinks=False)
            else:
                return None
        except FileNotFoundError:
            return None
        if stat_module.S_ISDIR(status.st_mode):
            # Not by `set`, which changes the time of this directory.
            found = self.changed[name] = _Directory(path)
            return found
        return _File(path, status) if stat_module.S_ISREG(status.st_mode) else _Other(path)

    def names(self) -> list[str]:
        """Return the names of all that is in it."""
        kept = [name for name in self.listed() if name not in self.changed]
        return kept + [name for name, node in self.changed.items() if node is not None]

    def set(self, name: str, node: _Node | None) -> None:
        """Give a name to something, or take it away."""
        if node is None and self.base is None:
            self.changed.pop(name, None)
        else:
            self.changed[name] = node
        self.modified_ns = time.time_ns()

    def status(self) -> os.stat_result:
        if self.base is not None and self.modified_ns is None:
            return os.lstat(self.base)
        modified_ns = self.modified_ns or 0
        seconds = modified_ns // 1_000_000_000
        fields = (stat_module.S_IFDIR | 0o755, id(self), 0, 2, 0, 0, 0, seconds, seconds, seconds)
        return os.stat_result(fields, {"st_mtime_ns": modified_ns})


_Node = _Directory | _File | _Other


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class _Entry:
    """One entry of a listed directory, see `pylog.files.disk.Entry`."""

    __slots__ = ("_found", "name", "path")

    def __init__(self, directory: str, name: str, found: _Node | os.DirEntry[str]) -> None:
        self.name = name
        self.path = f"{directory}/{name}"
        self._found = found

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        try:
            if isinstance(self._found, os.DirEntry):  # which knows it without a look at the disk
                return self._found.is_dir(follow_symlinks=follow_symlinks)
            return stat_module.S_ISDIR(self.stat(follow_symlinks=follow_symlinks).st_mode)
        except OSError:
            return False

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        try:
            if isinstance(self._found, os.DirEntry):
                return self._found.is_file(follow_symlinks=follow_symlinks)
            return stat_module.S_ISREG(self.stat(follow_symlinks=follow_symlinks).st_mode)
        except OSError:
            return False

    def is_symlink(self) -> bool:
        if isinstance(self._found, os.DirEntry):
            return self._found.is_symlink()
        return stat_module.S_ISLNK(self.stat(follow_symlinks=False).st_mode)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if isinstance(self._found, os.DirEntry):
            return self._found.stat(follow_symlinks=follow_symlinks)
        return _status_of(self._found, follow_symlinks=follow_symlinks)


def _status_of(node: _Node, *, follow_symlinks: bool) -> os.stat_result:
    if isinstance(node, _Other):
        return os.stat(node.base, follow_symlinks=follow_symlinks)  # noqa: PTH116 - kept as text
    return node.status()


class Overlay(DurableIO):
    """A `DurableIO` whose changes are kept, and reach no disk; a context manager.

    Any number of threads. Once it is closed nothing is left of it.

    Parameters
    ----------
    is_quiet
        Whether what is found wrong is no warning, since whoever asks says it.
    user
        Who does it all: what he may not do on the disk fails here, too. None for a user who may do
        anything that the process may.
    """

    def __init__(self, *, is_quiet: bool = False, user: FileUser | None = None) -> None:
        self._user = user
        self._allowed: set[tuple[str, int]] = set()
        self.warning_level = logging.DEBUG if is_quiet else logging.WARNING
        self.root = f"{OVERLAY_PREFIX}{os.getpid()}-{next(_numbers)}"
        self._lock = threading.RLock()
        self._top = _Directory("/")
        # Directories that were looked for, by their paths; of none that a link leads to.
        self._known: dict[str, _Directory] = {}
        self._spool = _Spool()
        disk.overlays[self.root] = self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget all changes; no path on the overlay leads anywhere from then on."""
        disk.overlays.pop(self.root, None)
        self._top = _Directory(None)
        self._known.clear()
        self._spool.close()

    def path(self, real: str | os.PathLike[str]) -> str:
        """Return the path on the overlay of what lies on the disk at ``real``."""
        return self.root + os.path.realpath(without_overlay(os.fspath(real)))

    # ---- looking

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""
        node = self._get(path)
        if not isinstance(node, _Other):
            raise _error(errno.EINVAL, path)
        return os.readlink(node.base)  # noqa: PTH115 - kept as text

    def stat(self, path: str, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the status of a path."""
        return _status_of(self._get(path), follow_symlinks=follow_symlinks)

    def scandir(self, path: str) -> AbstractContextManager[Iterable[disk.Entry]]:
        """Return the entries of a directory."""
        with self._lock:
            node = _as_directory(self._get(path), path)
            self._ensure_may(node, READ)
            return nullcontext(list(self._entries(path, node)))

    def open_to_read(self, path: str) -> ByteSource:
        """Open a regular file, or one that a link leads to."""
        try:
            node = self._get(path)
            if isinstance(node, _Other):
                node = _File(os.path.realpath(node.base))
            self._ensure_may(node, READ)
        except OSError as error:
            raise missing_or_unreadable(path, error) from error
        if isinstance(node, _Directory):
            raise missing_or_unreadable(path, _error(errno.EISDIR, path))
        return OverlayFile(self, path, node, self._spool)

    def has_vanished(self, real: str | os.PathLike[str]) -> bool:
        """Return whether a file of a listed directory is gone from the disk, by another's hand."""
        with self._lock, suppress(OSError):
            parent, name = self._parent(self.path(real))
            return name not in parent.changed and name in parent.listed() and not parent.child(name)
        return False

    # ---- changing

    def open(self, path: str | os.PathLike[str], *, create: bool = False) -> WritableFile:
        """Open a file to read and write; its content stays."""
        text = os.fspath(path)
        with self._lock:
            try:
                parent, name = self._parent(text)
                node = parent.child(name)
                if isinstance(node, _Directory | _Other):
                    raise not_a_regular_file(text)
                if node is None:
                    if not create:
                        raise _error(errno.ENOENT, text)
                    self._ensure_may(parent, WRITE | SEARCH)
                    node = _File(None)
                self._ensure_may(node, READ | WRITE)
                if parent.changed.get(name) is not node:
                    parent.set(name, node)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and not create:
                    reason = "file is gone (deleted or renamed)"
                    raise SegmentVanishedError(reason, text) from error
                raise storage_error("open the file", error, text) from error
            return OverlayFile(self, text, node, self._spool)

    def follow_links(self, path: str) -> None:
        """Put the files that links in a directory lead to in their place."""
        with self._lock:
            directory = _as_directory(self._get(path), path)
            self._ensure_may(directory, READ | SEARCH)
            for entry in list(self._entries(path, directory)):
                if not entry.is_symlink():
                    continue
                parent, name = self._parent(entry.path)
                node = parent.child(name)
                if isinstance(node, _Other) and os.path.isfile(node.base):  # noqa: PTH113
                    parent.set(name, _File(os.path.realpath(node.base)))

    def ensure_own_process(self, path: str) -> None:
        """Do nothing: what a fork changes is its own."""

    def utime(self, path: str, modified_ms: int) -> None:
        """Make a file say that it was changed last at ``modified_ms``."""
        with self._lock:
            parent, name = self._parent(path)
            node = parent.child(name)
            if node is None:
                raise _error(errno.ENOENT, path)
            self._ensure_may(node, WRITE)
            if isinstance(node, _File | _Directory):
                parent.changed[name] = node
                node.modified_ns = modified_ms * 1_000_000

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory, in the place of another one of that name."""
        with self._lock:
            node = self._get(source)
            old, new = self._parts(source), self._parts(target)
            if old == new:
                return
            if new[: len(old)] == old:
                raise _error(errno.EINVAL, target)
            new_parent, new_name = self._parent(target)
            there = new_parent.child(new_name)
            if isinstance(there, _Directory) != isinstance(node, _Directory) and there is not None:
                is_directory = isinstance(there, _Directory)
                raise _error(errno.EISDIR if is_directory else errno.ENOTDIR, target)
            if isinstance(there, _Directory) and there.names():
                raise _error(errno.ENOTEMPTY, target)
            old_parent, old_name = self._parent(source)
            self._ensure_may(old_parent, WRITE | SEARCH)
            self._ensure_may(new_parent, WRITE | SEARCH)
            old_parent.set(old_name, None)
            new_parent.set(new_name, node)
            if isinstance(node, _Directory):
                self._known.clear()

    def unlink(self, path: str) -> None:
        """Remove a file, or a link and not what it points to."""
        with self._lock:
            parent, name = self._parent(path)
            node = parent.child(name)
            if node is None:
                raise _error(errno.ENOENT, path)
            if isinstance(node, _Directory):
                raise _error(errno.EISDIR, path)
            self._ensure_may(parent, WRITE | SEARCH)
            parent.set(name, None)

    def mkdir(self, path: str) -> None:
        """Create a directory."""
        with self._lock:
            parent, name = self._parent(path)
            if parent.child(name) is not None:
                raise _error(errno.EEXIST, path)
            self._ensure_may(parent, WRITE | SEARCH)
            parent.set(name, _Directory(None))

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        with self._lock:
            parent, name = self._parent(path)
            node = parent.child(name)
            if node is None:
                raise _error(errno.ENOENT, path)
            if not isinstance(node, _Directory):
                raise _error(errno.ENOTDIR, path)
            if node.names():
                raise _error(errno.ENOTEMPTY, path)
            self._ensure_may(parent, WRITE | SEARCH)
            parent.set(name, None)
            self._known.clear()

    def fsync_directory(self, path: str) -> None:
        """Do nothing, if there is such a directory."""
        if not stat_module.S_ISDIR(self.stat(path).st_mode):
            raise _error(errno.ENOTDIR, path)

    # ---- what the user may do

    def ensure_readable(self, directory: str, names: Iterable[str]) -> None:
        """Raise unless the user may read these files of a directory."""
        for name in names if self._user is not None else ():
            path = join(directory, name)
            try:
                self._ensure_may(self._get(path), READ)
            except OSError as error:
                raise missing_or_unreadable(path, error) from error

    def _ensure_may(self, node: _Node, wanted: int) -> None:
        """Raise `DeniedError` where the disk would refuse; what was made here is the user's."""
        if self._user is None or node.base is None or (node.base, wanted) in self._allowed:
            return
        self._user.ensure_may(node.base, wanted)
        self._allowed.add((node.base, wanted))

    # ---- names

    def _parts(self, path: str) -> list[str]:
        inside = path.removeprefix(self.root)
        return [part for part in os.path.normpath("/" + inside).split("/") if part]

    def _get(self, path: str) -> _Node:
        """Return what lies at a path; `FileNotFoundError` if nothing does."""
        with self._lock:
            if path in self._known:
                return self._known[path]
            known = self._known_parent(path)
            node: _Node = self._top if known is None else known[0]
            has_links = False
            for part in self._parts(path) if known is None else (known[1],):
                directory = _as_directory(node, path)
                has_links = has_links or directory is not node
                self._ensure_may(directory, SEARCH)
                found = directory.child(part)
                if found is None:
                    raise _error(errno.ENOENT, path)
                node = found
            if isinstance(node, _Directory) and not has_links:
                self._known[path] = node
            return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        """Return the directory that a path lies in, kept from now on, and the last component."""
        known = self._known_parent(path)
        if known is not None:
            self._ensure_may(known[0], SEARCH)
            return known
        *parts, name = self._parts(path)
        directory = self._top
        for part in parts:
            self._ensure_may(directory, SEARCH)
            found = directory.child(part)
            if found is None:
                raise _error(errno.ENOENT, path)
            below = directory.changed[part] = _as_directory(found, path)
            directory = below
        self._ensure_may(directory, SEARCH)
        return directory, name

    def _known_parent(self, path: str) -> tuple[_Directory, str] | None:
        """Return what `_parent` does if that directory was looked for before."""
        head, _, name = path.rpartition("/")
        directory = self._known.get(head)
        return None if directory is None or name in _NO_NAMES else (directory, name)

    def _entries(self, path: str, directory: _Directory) -> Iterator[disk.Entry]:
        for name, entry in directory.listed().items():
            if name not in directory.changed:
                yield _Entry(path, name, entry)
        for name, node in directory.changed.items():
            if node is not None:
                yield _Entry(path, name, node)


def _as_directory(node: _Node, path: str) -> _Directory:
    if isinstance(node, _Directory):
        return node
    if isinstance(node, _Other) and os.path.isdir(node.base):  # noqa: PTH112 - kept as text
        return _Directory(os.path.realpath(node.base))
    raise _error(errno.ENOTDIR, path)


class OverlayFile(WritableFile):
    """A file on an overlay; made by `Overlay.open`, or `Overlay.open_to_read`."""

    __slots__ = ("_base", "_node", "_overlay", "_spool")

    def __init__(self, overlay: Overlay, path: str, node: _File, spool: _Spool) -> None:
        self.path = path
        self._overlay = overlay
        self._spool = spool
        self._node: _File | None = node
        self._base = -1

    def __del__(self) -> None:
        self._close_base()

    @property
    def is_trusted(self) -> bool:
        """Whether no sync of it has failed: none can."""
        return True

    def _opened_node(self) -> _File:
        if self._node is None:
            msg = f"{self.path} is closed"
            raise ValueError(msg)
        return self._node

    def clone(self, source: ByteSource) -> bool:
        """Share nothing: bytes are written."""
        return False

    @property
    def has_other_names(self) -> bool:
        """Whether the file has other names: what is changed is never shared with them."""
        return False

    def size(self) -> int:
        """Return the file's length in bytes, now."""
        return self._opened_node().size

    def file_id(self) -> int:
        """Return the inode number."""
        return self._opened_node().inode

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        buffer = bytearray(max(0, min(length, self.size() - position)))
        return bytes(buffer[: self.read_into(position, memoryview(buffer))])

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        node = self._opened_node()
        with node.lock:
            end = min(position + len(buffer), node.size)
            base_end = min(end, node.base_bytes)
            written = node.overlapping(position, end)
        if end <= position:
            return 0
        into = buffer[: end - position].cast("B")
        is_all_written = (
            len(written) == 1 and written[0].start <= position and written[0].end >= end
        )
        if not is_all_written:
            filled = self._read_base(node, position, into[: max(0, base_end - position)])
            into[filled:] = bytes(len(into) - filled)
        for each in written:
            start, stop = max(each.start, position), min(each.end, end)
            part = into[start - position : stop - position]
            self._spool.read_into(each.spooled + start - each.start, part)
        return len(into)

    def write_at(self, position: int, data: BytesLike) -> None:
        """Write all of ``data`` at ``position``; what lies between the old end and it is zeros."""
        view = memoryview(data)
        if view.nbytes:
            self._opened_node().write(position, view.cast("B"), self._spool)

    def truncate(self, size_bytes: int) -> None:
        """Make the file ``size_bytes`` long."""
        self._opened_node().truncate(size_bytes)

    def sync(self) -> None:
        """Do nothing."""
        self._opened_node()

    def start_write_back(self, position: int, length: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._node = None
        self._close_base()

    def _close_base(self) -> None:
        base, self._base = self._base, -1
        if base >= 0:
            os.close(base)

    def _read_base(self, node: _File, position: int, into: memoryview) -> int:
        if not into or node.base is None:
            return 0
        if self._base < 0:
            with node.lock:
                if self._base < 0:
                    self._base = open_regular_file(node.base)
        filled = 0
        try:
            while filled < len(into):
                count = os.preadv(self._base, [into[filled:]], position + filled)
                if count == 0:
                    break
                filled += count
        except OSError as error:
            doing = f"read {len(into)} bytes"
            raise storage_error(doing, error, node.base, position) from error
        return filled
