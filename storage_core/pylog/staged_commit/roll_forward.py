"""Carrying out what a manifest announces: by the commit itself, or by whoever opens the log next.

Both do the same, from the same place: `pylog.writing.job_commit` has the table of what a crash in
each step leaves. The log directory is locked, and its logs are loaded, and recovered if its last
owner did not close them.

Which batches were appended before is found in the logs themselves (`find_applied_batches`), not in
a note that could be older or newer than they are. A broker may have opened the directory in
between: it passes over the manifest and appends where it finds the ends. What was not appended by
then goes to the present end, under a manifest that is written anew and says so.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pylog.errors import KafkaStorageError, SegmentVanishedError
from pylog.files import disk
from pylog.files.commit_manifest import manifest_path, read_manifest, write_manifest
from pylog.files.ledger import LedgerEntry, ask_ledger, enter_in_ledger
from pylog.locations import printable_location
from pylog.staged_commit.applied_batches import find_applied_batches
from pylog.staged_commit.staged_batches import StagedBatches

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.files.commit_manifest import AnnouncedPartition, Manifest, NewTopic
    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition
    from pylog.record.batch_scan import BatchHeaders

    Int64Array = npt.NDArray[np.int64]


_THREADS = 8
_LEAST_BYTES_FOR_THREADS = 256 << 10

_LOGGER = logging.getLogger(__name__)


class OwnedLog(Protocol):
    """What is asked of a log; `pylog.log.unified_log.UnifiedLog` is one."""

    @property
    def directory(self) -> str:
        """The partition directory."""
        ...

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        ...

    @property
    def log_start_offset(self) -> int:
        """First offset served."""
        ...

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch."""
        ...

    def append_finished(self, records: memoryview, headers: BatchHeaders) -> None:
        """Append batches that are as the log is to have them."""
        ...

    def adopt_segment(self, path: str, headers: BatchHeaders) -> None:
        """Make a file of such batches the newest segment."""
        ...

    def flush(self) -> None:
        """Force everything to disk."""
        ...


class OwnedDirectory(Protocol):
    """What is asked of the owner of a log directory."""

    @property
    def path(self) -> str:
        """The log directory."""
        ...

    def find_log(self, topic_partition: TopicPartition) -> OwnedLog | None:
        """Return a log of the directory, None if it has none."""
        ...

    def ensure_topic(self, topic: NewTopic) -> None:
        """Make a topic's partitions, as far as they are not there, in the directory."""
        ...


class RollForward:
    """Completes the commit of a log directory that is under way, if there is one. One thread."""

    def __init__(self, directory: OwnedDirectory, io: DurableIO) -> None:
        self._directory = directory
        self._io = io

    def complete_pending(self) -> Manifest | None:
        """Complete what another owner began; return its manifest, None if there was none."""
        manifest = read_manifest(self._directory.path)
        if manifest is None:
            return None
        if ask_ledger(self._directory.path, lambda ledger: manifest.key in ledger):
            self._clean_up(manifest)
            return manifest
        _LOGGER.warning(
            "%s: completing the commit of %s, which was interrupted",
            printable_location(self._directory.path),
            manifest.key,
        )
        self.carry_out(manifest)
        return manifest

    def carry_out(self, manifest: Manifest) -> None:
        """Append what a manifest announces that is not there yet; enter the job in the ledger."""
        for topic in manifest.new_topics:
            self._directory.ensure_topic(topic)
        current = replace(
            manifest, partitions=tuple(self._placed(each) for each in manifest.partitions)
        )
        if current != manifest:
            write_manifest(self._io, self._directory.path, current)
        self._append_all(current.partitions)
        self._publish(current)
        self._clean_up(current)

    # ---- one partition

    def _log_of(self, topic_partition: TopicPartition) -> OwnedLog:
        log = self._directory.find_log(topic_partition)
        if log is None:
            reason = (
                f"a commit is under way to partition {topic_partition}, which is gone: restore its "
                "directory, or move this file away to give the commit up"
            )
            raise KafkaStorageError(reason, manifest_path(self._directory.path))
        return log

    def _placed(self, announced: AnnouncedPartition) -> AnnouncedPartition:
        """Return what is announced with the place where the log takes it now."""
        log = self._log_of(announced.topic_partition)
        end = log.log_end_offset
        if end == announced.base_offset:
            return announced
        applied = find_applied_batches(self._directory.path, log.directory, announced)
        skipped = announced.skipped_batches + applied.batch_count
        if applied.next_offset == end or skipped == _batch_count(announced):
            return announced
        if applied.is_rewritten or log.log_start_offset > applied.next_offset:
            raise self._undecided(announced, applied.next_offset)
        _LOGGER.warning(
            "%s has other records after offset %d: the rest of the commit goes to its end, %d",
            announced.topic_partition,
            applied.next_offset,
            end,
        )
        return replace(
            announced,
            base_offset=end,
            leader_epoch=_epoch_of(log),
            skipped_batches=skipped,
        )

    def _undecided(self, announced: AnnouncedPartition, offset: int) -> KafkaStorageError:
        reason = (
            f"records of {announced.topic_partition} from offset {offset} on have been deleted or "
            "compacted since a commit to it was interrupted, so that nobody can tell whether they "
            "were the commit's, and the rest might be written twice: move this file away to "
            "give the rest of the commit up"
        )
        return KafkaStorageError(reason, manifest_path(self._directory.path))

    def _append_all(self, partitions: Sequence[AnnouncedPartition]) -> None:
        """Append what the logs do not have; side by side where that is worth threads."""
        size_bytes = sum(each.size_bytes for each in partitions)
        if len(partitions) < 2 or size_bytes < _LEAST_BYTES_FOR_THREADS:
            for each in partitions:
                self._append(each)
            return
        # Most of the time is waiting for the disk, which takes many syncs at a time.
        with ThreadPoolExecutor(_THREADS, "pylog-commit") as threads:
            list(threads.map(self._append, partitions))

    def _append(self, announced: AnnouncedPartition) -> None:
        """Append the batches that the log does not have."""
        log = self._log_of(announced.topic_partition)
        done = announced.skipped_batches
        if log.log_end_offset != announced.base_offset:
            applied = find_applied_batches(self._directory.path, log.directory, announced)
            done += applied.batch_count
        for each in announced.files:
            if done >= each.staged.batch_count:
                done -= each.staged.batch_count
                continue
            self._ensure_there(each.staged.name, announced.topic_partition)
            staged = StagedBatches(self._directory.path, each.staged)
            if each.becomes_segment and done == 0:
                headers = staged.place_in_file(self._io, log.log_end_offset, announced.leader_epoch)
                log.adopt_segment(staged.path, headers)
            else:
                self._append_windows(log, staged, done, announced.leader_epoch)
            done = 0
        log.flush()

    def _append_windows(
        self, log: OwnedLog, staged: StagedBatches, first: int, leader_epoch: int
    ) -> None:
        for window in staged.windows(first):
            headers = staged.placed(window, log.log_end_offset, leader_epoch)
            log.append_finished(window.records, headers)

    def _ensure_there(self, name: str, topic_partition: TopicPartition) -> None:
        path = os.path.join(self._directory.path, name)  # noqa: PTH118 - kept as text
        if not disk.lexists(path):
            reason = (
                f"staged file is gone, and its records are not in the log of {topic_partition}: "
                "they cannot be written any more; restore the file, or move "
                f"{manifest_path(self._directory.path)} away to give the commit up"
            )
            raise SegmentVanishedError(reason, path)

    # ---- end

    def _publish(self, manifest: Manifest) -> None:
        records = sum(each.record_count for each in manifest.partitions)
        entry = LedgerEntry(
            manifest.key,
            manifest.commit_id,
            manifest.time_ms,
            records,
            manifest.fingerprint,
            manifest.bookmark,
        )
        enter_in_ledger(self._io, self._directory.path, entry)

    def _clean_up(self, manifest: Manifest) -> None:
        """Remove the manifest, then the staged files: without it they are nobody's."""
        path = self._directory.path
        self._io.remove(manifest_path(path), missing_ok=True)
        self._io.sync_directory(path)
        for staged in manifest.files:
            for name in (staged.name, staged.entries_name):
                target = os.path.join(path, name)  # noqa: PTH118 - kept as text
                self._io.remove(target, missing_ok=True)


def _batch_count(announced: AnnouncedPartition) -> int:
    return sum(each.staged.batch_count for each in announced.files)


def _epoch_of(log: OwnedLog) -> int:
    return max(log.latest_epoch or 0, 0)
