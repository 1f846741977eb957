"""Cleaned segments that tasks have staged: their names, and what the driver learns of them.

They lie in the log directory itself, as plain files that brokers pass over, like what write jobs
stage (`pylog.files.staged_files`):

================================================= ================================================
name                                              what it is
================================================= ================================================
``.pylog-cleaned-<job>-<random>-<number>.log``    a segment that is to take the place of others;
                                                  also ``.index``, ``.timeindex``, ``.txnindex``
================================================= ================================================

``<job>`` is drawn by each compaction, ``<random>`` by each attempt of a task, so that no two ever
write to one file: a task that outlives its driver harms nobody. A compaction holds the log
directory's lock from its planning to its end. Whoever else holds the lock therefore knows that all
such files are left over.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import KafkaStorageError, LogDirectoryError
from pylog.files import disk
from pylog.files.file_names import SEGMENT_FILE_SUFFIXES, SegmentTarget
from pylog.files.storage import list_directory

if TYPE_CHECKING:
    from pylog.files.durable_io import DurableIO

_PREFIX = ".pylog-cleaned-"
_NAME = re.compile(
    r"\.pylog-cleaned-[0-9a-f]{16}-[0-9a-f]{8}-[0-9]{1,9}\.(?:log|index|timeindex|txnindex)"
)

_ONE_DIRECTORY = "the driver and all executors must see one and the same directory under this path"


class StagedSegment(NamedTuple):
    """One cleaned segment, whole and on the disk."""

    target: SegmentTarget  # where its files lie
    sizes_bytes: dict[str, int]  # of each file that it has, by suffix

    @classmethod
    def of(cls, target: SegmentTarget) -> StagedSegment:
        """Return the segment that is staged for a target, as it is on disk."""
        paths = {suffix: target.path(suffix) for suffix in SEGMENT_FILE_SUFFIXES}
        return cls(
            target,
            {
                suffix: disk.stat(path).st_size
                for suffix, path in paths.items()
                if disk.exists(path)
            },
        )

    def ensure_there(self) -> None:
        """Raise `LogDirectoryError` if a file is not there, or not as long as it was."""
        for suffix, expected in self.sizes_bytes.items():
            path = self.target.path(suffix)
            try:
                found = disk.stat(path).st_size
            except OSError as error:
                reason = (
                    f"a task has staged this file, and it cannot be seen here ({error.strerror}); "
                    f"{_ONE_DIRECTORY}. Nothing was changed"
                )
                raise LogDirectoryError(reason, path) from error
            if found != expected:
                reason = (
                    f"staged file has {found} bytes, expected {expected}: the task that has "
                    f"staged it sees another file; {_ONE_DIRECTORY}. Nothing was changed"
                )
                raise LogDirectoryError(reason, path)


class SegmentStage:
    """Gives the files of one attempt their names. One thread."""

    def __init__(self, log_directory: str, job_token: str) -> None:
        self.log_directory = log_directory
        self._stem = f"{_PREFIX}{job_token}-{secrets.token_hex(4)}"
        self._count = 0

    def begin(self, base_offset: int) -> SegmentTarget:
        """Return where a segment may be written that nobody else writes to."""
        stem = f"{self._stem}-{self._count}"
        self._count += 1
        return SegmentTarget(self.log_directory, base_offset, stem=stem)

    def discard(self, target: SegmentTarget, io: DurableIO) -> None:
        """Remove the files of a segment, as far as the disk lets; the job's end does the rest."""
        for suffix in SEGMENT_FILE_SUFFIXES:
            with suppress(KafkaStorageError):
                io.remove(target.path(suffix), missing_ok=True)


def new_job_token() -> str:
    """Return what tells a job's files from those of others."""
    return secrets.token_hex(8)


def remove_staged_segments(log_directory: str, io: DurableIO) -> int:
    """Remove the staged segments of a log directory that the caller owns; return how many files."""
    left = [entry.path for entry in list_directory(log_directory) if _NAME.fullmatch(entry.name)]
    return sum(io.remove(path, missing_ok=True) for path in left)
