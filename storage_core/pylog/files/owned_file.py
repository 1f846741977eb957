"""A file of a directory that we own: opened at its first use, renamed and removed as it is open.

A manager has more segments than descriptors, so a file is opened when it is used, and may be
released between two uses. Of all owned files of a process, no more are open than `OpenFiles`
lets: the one that was opened first gives back its descriptor, and is opened again at its next
use. ``.log`` files and all indexes of a segment are owned files.

==================== =====================================================================
after                the next use
==================== =====================================================================
`OwnedFile.release`  opens the file again
`OwnedFile.close`    is refused: whoever held the lock of the directory has let go of it
deleting             is refused, so that nobody creates the file again
==================== =====================================================================

Source: AbstractIndex, LazyIndex, FileRecords (Kafka 4.3), which each have these methods.
"""

from __future__ import annotations

import resource
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

from pylog.files import disk

if TYPE_CHECKING:
    import os

    from pylog.files.durable_io import DurableIO
    from pylog.files.writable_file import WritableFile


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
        """Return whether the file exists; asks the disk."""
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
