"""Staged files that nobody will commit: of jobs that were aborted, or died.

Which files those are, nobody knows but by what follows:

* all files of a job that was committed or aborted are left over, unless a commit of it is to be
  completed: attempts that failed, or that were repeated, left them;
* other jobs may be staging at this moment, in processes nobody can ask. Those none of whose files
  has been changed for `DEAD_MS` are dead. A job that takes longer from the end of its first task to
  its commit finds its files gone, and fails; nothing is lost in silence.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.files.commit_manifest import read_manifest
from pylog.files.owned_directories import writable_log_directory
from pylog.files.staged_files import job_prefix_of
from pylog.files.storage import list_directory
from pylog.log.log_context import LogContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.staged_files import JobKey, StagedRecords

DEAD_MS = 7 * 24 * 3_600_000

_LOGGER = logging.getLogger(__name__)


class StagedLeftovers:
    """Removes staged files of a log directory.

    Parameters
    ----------
    directory
        The log directory.
    context
        Clock and disk.
    """

    def __init__(self, directory: str, context: LogContext) -> None:
        self._directory = directory
        self._context = context

    def _by_job(self) -> dict[str, list[str]]:
        """Return the paths of all staged files, by the beginning of their names.

        Those that a manifest needs are left out.
        """
        manifest = read_manifest(self._directory)
        needed = None if manifest is None else manifest.key.file_prefix
        by_job: dict[str, list[str]] = {}
        for entry in list_directory(self._directory):
            prefix = job_prefix_of(entry.name)
            if prefix is not None and prefix != needed:
                by_job.setdefault(prefix, []).append(entry.path)
        return by_job

    def sweep_job(self, key: JobKey) -> None:
        """Remove all staged files of a job, unless a commit of it is to be completed.

        Raises
        ------
        LogDirectoryError, CorruptCheckpointError
            The directory cannot be listed, or its manifest is malformed.
        KafkaStorageError
            A file cannot be removed.
        """
        for path in self._by_job().get(key.file_prefix, ()):
            self._context.io.remove(path, missing_ok=True)

    def sweep_dead_jobs(self) -> None:
        """Remove the staged files of jobs that are dead; see the module, and `sweep_job`."""
        now_ms = self._context.clock.milliseconds()
        for paths in self._by_job().values():
            if now_ms - max(map(_changed_ms, paths), default=now_ms) <= DEAD_MS:
                continue
            _LOGGER.warning("removing %d files of a dead job, such as %s", len(paths), paths[0])
            for path in paths:
                self._context.io.remove(path, missing_ok=True)


def _changed_ms(path: str) -> int:
    """Return when a file was changed last, in ms of the epoch; far from now if nobody can tell."""
    try:
        return os.lstat(path).st_mtime_ns // 1_000_000
    except FileNotFoundError:  # its job is removing it
        return 2**62
    except OSError as error:
        reason = f"cannot stat file: {error.strerror}"
        raise KafkaStorageError(reason, path, errno=error.errno) from error


def ensure_of_job(key: JobKey, staged: Iterable[StagedRecords]) -> None:
    """Raise `ValueError` unless all was staged for one job."""
    for each in staged:
        if each.key != key:
            msg = f"attempt {each.attempt!r} staged for {each.key}, not for {key}"
            raise ValueError(msg)


def abort(
    directory: str,
    key: JobKey,
    staged: Iterable[StagedRecords | None],
    context: LogContext | None = None,
) -> None:
    """Remove what was staged for a job; see `WriteJob.abort`."""
    local = writable_log_directory(directory)
    ensure_of_job(key, [each for each in staged if each is not None])
    if os.path.isdir(local):  # noqa: PTH112 - kept as text
        StagedLeftovers(local, context or LogContext()).sweep_job(key)
