"""Staged files that nobody will commit: of jobs that were aborted, or died.

Which files those are, nobody knows but by what follows:

* all files of a job that was committed or aborted are left over, unless a commit of it is to be
  completed: attempts that failed, or that were repeated, left them;
* other jobs may be staging at this moment, in processes nobody can ask. Those none of whose files
  has been changed for `DEAD_MS` are dead. A job that takes longer from the end of its first task
  to its commit finds its files gone, and fails; nothing is lost in silence.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.files.commit_manifest import (
    read_manifest,
)
from pylog.files.staged_files import job_prefix_of
from pylog.files.storage import list_directory

if TYPE_CHECKING:
    from pylog.files.staged_files import JobKey
    from pylog.log.log_context import LogContext

_LOGGER = logging.getLogger(__name__)

DEAD_MS = 7 * 24 * 3_600_000


def sweep_job(directory: str, key: JobKey, context: LogContext) -> None:
    """Remove all staged files of a job, unless a commit of it is to be completed."""
    for path in _staged_by_job(directory).get(key.file_prefix, ()):
        context.io.remove(path, missing_ok=True)


def sweep_dead_jobs(directory: str, context: LogContext) -> None:
    """Remove the staged files of jobs that are dead, as of `sweep_job`."""
    now_ms = context.clock.milliseconds()
    for paths in _staged_by_job(directory).values():
        if now_ms - max(map(_changed_ms, paths), default=now_ms) <= DEAD_MS:
            continue
        _LOGGER.warning("removing %d files of a dead job, such as %s", len(paths), paths[0])
        for path in paths:
            context.io.remove(path, missing_ok=True)


def _staged_by_job(directory: str) -> dict[str, list[str]]:
    """Return the paths of all staged files, by the beginning of their names."""
    manifest = read_manifest(directory)
    needed = None if manifest is None else manifest.key.file_prefix
    by_job: dict[str, list[str]] = {}
    for entry in list_directory(directory):
        prefix = job_prefix_of(entry.name)
        if prefix is not None and prefix != needed:
            by_job.setdefault(prefix, []).append(entry.path)
    return by_job


def _changed_ms(path: str) -> int:
    """Return when a file was changed last, in ms of the epoch; far from now if nobody can tell."""
    try:
        return os.lstat(path).st_mtime_ns // 1_000_000
    except FileNotFoundError:  # its job is removing it
        return 2**62
    except OSError as error:
        reason = f"cannot stat file: {error.strerror}"
        raise KafkaStorageError(reason, path, errno=error.errno) from error
