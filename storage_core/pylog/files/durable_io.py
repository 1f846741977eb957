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
import stat

from pylog.errors import SegmentVanishedError, UnexpectedFileError
from pylog.files import disk
from pylog.files.system_calls import SystemCalls, not_a_directory, storage_error
from pylog.files.writable_file import BytesLike, WritableFile

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
