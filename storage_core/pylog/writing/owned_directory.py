"""The manager of a log directory that is opened for changes, and closed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.writable_directory import writable_log_directory
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager

if TYPE_CHECKING:
    import os


def own_log_directory(
    path: str | os.PathLike[str], *, must_exist: bool = False, context: LogContext | None = None
) -> LogManager:
    """Return the manager of one log directory; it owns the directory within its ``with`` block.

    Parameters
    ----------
    path
        As for `writable_log_directory`.
    must_exist
        Whether it is an error if the directory does not exist; otherwise it is created.
    context
        The clock, the disk and the background work; the real ones if None. A failure of the disk is
        then not logged as well, since whatever is done in the block raises it.

    Raises
    ------
    LogDirectoryError, ValueError
        See `writable_log_directory`. Entering the block raises what `LogManager.startup` does.
    """
    local = writable_log_directory(path, must_exist=must_exist)
    context = context or LogContext(failures=LogDirFailureChannel(is_logged=False))
    return LogManager([local], context=context)
