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

Source: Utils.atomicMoveWithFallback, Utils.flushDir, CheckpointFile (Kafka 3.9 and 4.3). Differs
from Kafka, which copies where the rename fails, and so may leave half a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.errors import SegmentVanishedError
from pylog.files.writable_file import WritableFile, storage_error

if TYPE_CHECKING:
    from pylog.files.writable_file import BytesLike

__all__ = ["TEMPORARY_SUFFIX", "DurableIO", "WritableFile"]

TEMPORARY_SUFFIX = ".tmp"
_FILE_MODE = 0o666  # as Java's; the umask takes from it
_DIRECTORY_MODE = 0o777


class DurableIO:
    """Changes files and directories of local disks.

    Any number of threads may use it. Of two that write one path, callers let one through at a
    time. The methods whose name begins with an underscore are the system calls, one each, which
    raise `OSError`; those who test what a disk may do override them.
    """

    def open(self, path: str | os.PathLike[str], *, create: bool = False) -> WritableFile:
        """Open a file to read and write; its content stays.

        Parameters
        ----------
        path
            The file.
        create
            Make an empty one if there is none.

        Raises
        ------
        SegmentVanishedError
            There is no such file, and ``create`` is false.
        KafkaStorageError
            It cannot be opened or created.
        """
        text = os.fspath(path)
        try:
            return WritableFile(self, text, self._open(text, create=create))
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not create:
                reason = "file is gone (deleted or renamed)"
                raise SegmentVanishedError(reason, text) from error
            raise storage_error("open the file", error, text) from error

    def replace(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        """Rename ``source`` to ``target``, in whose place it comes, if there is one, at once.

        Raises
        ------
        KafkaStorageError
            It cannot be renamed; both are as they were. ``errno.ENOENT``: there is no ``source``.
        """
        old, new = os.fspath(source), os.fspath(target)
        try:
            self._replace(old, new)
        except OSError as error:
            raise storage_error(f"rename the file to {new}", error, old) from error

    def remove(self, path: str | os.PathLike[str], *, missing_ok: bool = False) -> bool:
        """Remove a file; return whether there was one.

        Raises
        ------
        KafkaStorageError
            It cannot be removed, or there is none and ``missing_ok`` is false.
        """
        text = os.fspath(path)
        try:
            self._remove(text)
        except OSError as error:
            if missing_ok and isinstance(error, FileNotFoundError):
                return False
            raise storage_error("remove the file", error, text) from error
        return True

    def make_directory(self, path: str | os.PathLike[str], *, exist_ok: bool = False) -> bool:
        """Create a directory in one that exists; return whether it is new.

        Raises
        ------
        KafkaStorageError
            It cannot be created, or there is one and ``exist_ok`` is false.
        """
        text = os.fspath(path)
        try:
            self._make_directory(text)
        except OSError as error:
            if exist_ok and isinstance(error, FileExistsError) and os.path.isdir(text):  # noqa: PTH112 - kept as text
                return False
            raise storage_error("create the directory", error, text) from error
        return True

    def remove_directory(self, path: str | os.PathLike[str]) -> None:
        """Remove an empty directory.

        Raises
        ------
        KafkaStorageError
            There is none, it is not empty, or it cannot be removed.
        """
        text = os.fspath(path)
        try:
            self._remove_directory(text)
        except OSError as error:
            raise storage_error("remove the directory", error, text) from error

    def sync_directory(self, path: str | os.PathLike[str]) -> None:
        """Return when the names in a directory are on the disk.

        Raises
        ------
        KafkaStorageError
            They are not, or there is no such directory.
        """
        text = os.fspath(path)
        try:
            self._sync_directory(text)
        except OSError as error:
            raise storage_error("sync the directory", error, text) from error

    def write_file(
        self, path: str | os.PathLike[str], data: BytesLike, *, sync: bool = False
    ) -> None:
        """Make ``data`` the content of a file, in place: a crash leaves any part of it.

        Parameters
        ----------
        path
            The file; created if there is none.
        data
            All of its new content.
        sync
            Return when the content is on the disk. The directory is not synced.

        Raises
        ------
        KafkaStorageError
            The file cannot be written; its content is unknown.
        """
        with self.open(path, create=True) as file:
            if file.size():
                file.truncate(0)
            file.write_at(0, data)
            if sync:
                file.sync()

    def write_atomically(self, path: str | os.PathLike[str], data: BytesLike) -> None:
        """Make ``data`` the content of a file and return when it is on the disk.

        Whoever reads the file, and any crash, finds its old content or all of ``data``. See the
        module's table. ``<path>.tmp`` is overwritten, and stays behind where this fails.

        Raises
        ------
        KafkaStorageError
            The file could not be replaced, or its name not be made durable.
        """
        text = os.fspath(path)
        temporary = text + TEMPORARY_SUFFIX
        self.write_file(temporary, data, sync=True)
        self.replace(temporary, text)
        self.sync_directory(os.path.dirname(text) or os.curdir)  # noqa: PTH120 - kept as text

    def _open(self, path: str, *, create: bool) -> int:
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        return os.open(path, flags, _FILE_MODE)

    def _write(self, file: WritableFile, descriptor: int, position: int, data: memoryview) -> int:
        return os.pwrite(descriptor, data, position)

    def _truncate(self, file: WritableFile, descriptor: int, size_bytes: int) -> None:
        os.ftruncate(descriptor, size_bytes)

    def _sync(self, file: WritableFile, descriptor: int) -> None:
        os.fsync(descriptor)

    def _replace(self, source: str, target: str) -> None:
        os.replace(source, target)  # noqa: PTH105 - kept as text

    def _remove(self, path: str) -> None:
        os.unlink(path)  # noqa: PTH108 - kept as text

    def _make_directory(self, path: str) -> None:
        os.mkdir(path, _DIRECTORY_MODE)  # noqa: PTH102 - kept as text

    def _remove_directory(self, path: str) -> None:
        os.rmdir(path)  # noqa: PTH106 - kept as text

    def _sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
