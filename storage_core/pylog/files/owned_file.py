"""A file of a directory that we own: opened at its first use, renamed and removed as it is open.

A manager has more segments than descriptors, so a file is opened when it is used, and may be
released between two uses. ``.log`` files and all indexes of a segment are owned files.

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

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from pylog.files.durable_io import DurableIO
    from pylog.files.writable_file import WritableFile


class OwnedFile:
    """The name of a file and, while it is in use, its descriptor.

    One thread changes the file; any number may read meanwhile. A read that `release` overtakes
    comes to its end.

    Attributes
    ----------
    path
        Its name now.
    """

    __slots__ = ("_handle", "_io", "_is_closed", "_is_deleted", "_lock", "path")

    def __init__(self, path: str | os.PathLike[str], io: DurableIO) -> None:
        self.path = str(path)
        self._io = io
        self._handle: WritableFile | None = None
        self._is_closed = False
        self._is_deleted = False
        self._lock = threading.RLock()

    @property
    def exists_on_disk(self) -> bool:
        """Whether there is a file; asks the disk."""
        return Path(self.path).exists()

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
            self._handle = None

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
            return self._handle

    def _ensure_usable(self) -> None:
        if self._is_closed:
            msg = f"{self.path} {'has been deleted' if self._is_deleted else 'is closed'}"
            raise ValueError(msg)
