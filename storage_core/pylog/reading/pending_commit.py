"""A commit that is under way in a log directory: up to where its partitions may be read meanwhile.

A job is visible whole or not at all. While a manifest is there that the ledger does not have,
each of its partitions ends at the offset where the manifest puts the job's first record;
unless the log holds something from there on that was not announced: then a broker has taken
the directory over, its consumers see all of it, and so do readers of ours.

What is known is of one moment, for all partitions: `PendingCommit.has_changed` says whether a
commit has begun or ended since, so that whoever has looked at several logs looks again.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    SegmentVanishedError,
)
from pylog.files import disk
from pylog.files.file_names import (
    LEDGER,
    MANIFEST,
)
from pylog.files.looks import Looks
from pylog.lazy_modules import LazyModule
from pylog.locations import is_remote, join

if TYPE_CHECKING:
    from pylog.files import commit_manifest, ledger
    from pylog.files.commit_manifest import AnnouncedPartition, Manifest
    from pylog.model import TopicPartition
    from pylog.staged_commit import applied_batches  # imports NumPy
else:
    commit_manifest = LazyModule("pylog.files.commit_manifest")
    ledger = LazyModule("pylog.files.ledger")
    applied_batches = LazyModule("pylog.staged_commit.applied_batches")


class PendingCommit:
    """What the manifest of a log directory hides, as it was when this was made.

    It costs two looks for files that are seldom there. Any number of threads may ask. In an object
    store nothing is hidden: nobody commits there.
    """

    def __init__(self, log_directory: str) -> None:
        self.log_directory = log_directory
        self._seen = _state_of(log_directory)

    def end_offset_of(self, topic_partition: TopicPartition) -> int | None:
        """Return where a partition ends for readers; None where its log says it."""
        return self._end_offsets.get(topic_partition)

    def has_changed(self) -> bool:
        """Return whether a commit has begun or ended since the last look."""
        return _state_of(self.log_directory) != self._seen

    @cached_property
    def _end_offsets(self) -> dict[TopicPartition, int]:
        if self._seen is None or self._seen[0] is None:
            return {}
        looks = Looks()
        while True:
            before = _state_of(self.log_directory)
            try:
                ends = self._look()
            except (SegmentVanishedError, CorruptRecordError):
                if before == _state_of(self.log_directory):
                    raise
            else:
                if before == _state_of(self.log_directory):
                    return ends
            reason = "commits come and go faster than they can be looked at"
            looks.again(LogDirectoryError(reason, join(self.log_directory, MANIFEST)))

    def _look(self) -> dict[TopicPartition, int]:
        manifest = commit_manifest.read_manifest(self.log_directory)
        if manifest is None:
            return {}
        if ledger.ask_ledger(self.log_directory, lambda known: manifest.key in known):
            return {}
        return {
            each.topic_partition: each.base_offset
            for each in manifest.partitions
            if self._is_hidden(each)
        }

    def _is_hidden(self, announced: AnnouncedPartition) -> bool:
        directory = os.path.join(self.log_directory, str(announced.topic_partition))  # noqa: PTH118
        if not disk.is_dir(directory):
            return True  # a topic that the commit is about to make
        return applied_batches.find_applied_batches(self.log_directory, directory, announced).is_all

    def manifest(self) -> Manifest | None:
        """Return the manifest that hides something; None if there is none."""
        return commit_manifest.read_manifest(self.log_directory) if self._end_offsets else None


class NoPendingCommit(PendingCommit):
    """Hides nothing: for those who look at files, not at records. It costs no look."""

    def __init__(self, log_directory: str) -> None:
        self.log_directory = log_directory

    def has_changed(self) -> bool:
        """Return False."""
        return False

    def end_offset_of(self, topic_partition: TopicPartition) -> int | None:
        """Return None."""
        return None


def _state_of(log_directory: str) -> tuple[object, object] | None:
    """Return what changes with every commit that begins or ends; None for an object store."""
    if is_remote(log_directory):
        return None
    return _identity(join(log_directory, MANIFEST)), _identity(join(log_directory, LEDGER))


def _identity(path: str) -> object:
    """Return what tells a file from the one that replaces it; None if there is none."""
    try:
        status = disk.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
