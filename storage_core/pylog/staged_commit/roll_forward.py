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
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pylog.errors import CorruptRecordError, KafkaStorageError, SegmentVanishedError
from pylog.files import disk
from pylog.files.commit_manifest import manifest_path, read_manifest, write_manifest
from pylog.files.file_names import LOG_FILE_SUFFIX, find_segment_file_name
from pylog.files.ledger import LedgerEntry, ask_ledger, enter_in_ledger
from pylog.files.staged_files import StagedEntries, read_staged_entries
from pylog.files.storage import list_directory, open_file
from pylog.kernels import decode_headers as fields
from pylog.locations import printable_location
from pylog.log_file.batch_walk import walk_headers
from pylog.model import NO_PRODUCER_ID
from pylog.native.checksum import crc32c
from pylog.record.batch_header import LOG_OVERHEAD, MAGIC_VALUE_V2, V2_START
from pylog.record.batch_scan import BatchHeaders, find_bad_checksum, find_batches
from pylog.record.batch_writer import (
    set_append_times,
    set_base_offsets,
    set_partition_leader_epochs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.files.commit_manifest import AnnouncedPartition, Manifest, NewTopic
    from pylog.files.durable_io import DurableIO
    from pylog.files.staged_files import StagedFile
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import TopicPartition

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


# The batches of one staged file: read in windows, or given their offsets where they lie.


_WINDOW_BYTES = 4 << 20


class StagedWindow(NamedTuple):
    """Neighbouring batches of a staged file."""

    first: int
    position: int
    records: memoryview
    headers: BatchHeaders


class StagedBatches:
    """A staged file with its entries. One thread."""

    def __init__(self, log_directory: str, staged: StagedFile) -> None:
        self.staged = staged
        self.path = os.path.join(log_directory, staged.name)  # noqa: PTH118 - kept as text
        self.entries: StagedEntries = read_staged_entries(
            os.path.join(log_directory, staged.entries_name),  # noqa: PTH118 - kept as text
            staged,
        )
        self._ends = np.cumsum(self.entries.sizes_bytes)

    def ensure_complete(self) -> None:
        """Raise unless the file is there, as long as it was, with its first and last batch."""
        with open_file(self.path) as file:
            size = file.size()
            if size != self.staged.size_bytes:
                reason = f"staged file has {size} bytes, expected {self.staged.size_bytes}"
                raise CorruptRecordError(reason, self.path)
        self._window(0, 1)
        self._window(len(self.entries) - 1, len(self.entries))

    def windows(self, first: int = 0) -> Iterator[StagedWindow]:
        """Yield all batches from ``first`` on, checked, a few MiB at a time."""
        count = len(self.entries)
        while first < count:
            start = int(self._ends[first] - self.entries.sizes_bytes[first])
            fitting = int(np.searchsorted(self._ends, start + _WINDOW_BYTES, side="right"))
            stop = max(first + 1, fitting)
            yield self._window(first, stop)
            first = stop

    def _window(self, first: int, stop: int) -> StagedWindow:
        entries = self.entries
        start = int(self._ends[first] - entries.sizes_bytes[first])
        content = bytearray(int(self._ends[stop - 1]) - start)
        with open_file(self.path) as file:
            size = file.read_into(start, memoryview(content))
        view = memoryview(content)
        scan = find_batches(np.frombuffer(view[:size].toreadonly(), dtype=np.uint8))
        headers, rows = scan.headers, slice(first, stop)
        is_same = (
            len(headers) == stop - first
            and np.array_equal(headers.sizes_bytes, entries.sizes_bytes[rows])
            and np.array_equal(headers.record_counts, entries.record_counts[rows])
            and np.array_equal(headers.crcs, entries.crcs[rows])
        )
        if not is_same:
            reason = (
                f"batches {first} to {stop - 1} of the staged file are not those of its entries"
            )
            raise CorruptRecordError(reason, self.path, start)
        bad = find_bad_checksum(scan)
        if bad is not None:
            position = start + int(headers.positions[bad.index])
            raise CorruptRecordError(bad.reason, self.path, position)
        return StagedWindow(first, start, view, headers)

    def placed(self, window: StagedWindow, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Give the batches of a window their offsets; return their headers as they are then."""
        headers = _with_offsets(window.headers.columns, base_offset, leader_epoch)
        set_base_offsets(window.records, headers.positions, headers.offsets)
        set_partition_leader_epochs(window.records, headers.positions, leader_epoch)
        return headers

    def place_in_file(self, io: DurableIO, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Give all batches their offsets where they lie; return what the headers are then."""
        headers = self._headers(base_offset, leader_epoch)
        starts = zip(
            headers.positions.tolist(),
            headers.offsets.tolist(),
            (headers.sizes_bytes - LOG_OVERHEAD).tolist(),
            strict=True,
        )
        with io.open(self.path) as file:
            write = file.write_at
            for position, offset, length in starts:
                write(position, V2_START.pack(offset, length, leader_epoch))
            file.sync()
        return headers

    def _headers(self, base_offset: int, leader_epoch: int) -> BatchHeaders:
        """Return headers of what the entries say; other fields have their usual values."""
        entries = self.entries
        columns = np.zeros((fields.FIELD_COUNT, len(entries)), dtype=np.int64)
        columns[fields.POSITION] = self._ends - entries.sizes_bytes
        columns[fields.SIZE_BYTES] = entries.sizes_bytes
        columns[fields.RECORD_COUNT] = entries.record_counts
        columns[fields.MAX_TIMESTAMP] = entries.max_timestamps
        columns[fields.CRC] = entries.crcs
        columns[fields.MAGIC] = MAGIC_VALUE_V2
        columns[fields.PRODUCER_ID] = NO_PRODUCER_ID
        return _with_offsets(columns, base_offset, leader_epoch)


def _with_offsets(columns: Int64Array, base_offset: int, leader_epoch: int) -> BatchHeaders:
    columns = columns.copy()
    next_offsets = base_offset + np.cumsum(columns[fields.RECORD_COUNT])
    columns[fields.OFFSET] = next_offsets - columns[fields.RECORD_COUNT]
    columns[fields.LAST_OFFSET] = next_offsets - 1
    columns[fields.PARTITION_LEADER_EPOCH] = leader_epoch
    return BatchHeaders(columns)


# Staged batches of a topic with LogAppendTime: stamped with the time of the commit.
#
# Timestamp type and largest timestamp lie inside the checksum, so this is a pass over all bytes. It
# comes before the manifest, whose checksums are those of the stamped batches.


def stamp_append_time(batches: StagedBatches, io: DurableIO, time_ms: int) -> StagedFile:
    """Stamp all batches of a staged file; return what is known of it then."""
    crcs = []
    with io.open(batches.path) as file:
        for window in batches.windows():
            headers, records = window.headers, window.records
            ends = headers.positions + headers.sizes_bytes
            set_append_times(records, headers.positions, ends, headers.codec_ids, time_ms)
            file.write_at(window.position, records)
            stamped = find_batches(np.frombuffer(records.toreadonly(), dtype=np.uint8))
            crcs.append(stamped.headers.crcs)
        file.sync()
    before = batches.entries
    entries = StagedEntries(
        before.sizes_bytes,
        before.record_counts,
        np.full(len(before), time_ms, dtype=np.int64),
        np.concatenate(crcs),
    )
    content = entries.to_bytes()
    staged = batches.staged._replace(
        first_crc=int(entries.crcs[0]),
        last_crc=int(entries.crcs[-1]),
        entries_crc=crc32c(content),
    )
    directory = os.path.dirname(batches.path)  # noqa: PTH120 - kept as text
    path = os.path.join(directory, staged.entries_name)  # noqa: PTH118 - kept as text
    io.write_file(path, content, sync=True)
    return staged


# Which of the announced batches a log holds: found by offsets and checksums, from the files.
#
# The log is the owner's, or is looked at by a reader: nothing is written, and damage is not an
# error here but the end of what is recognised.


class AppliedBatches(NamedTuple):
    """How much of what was announced for a partition its log holds."""

    batch_count: int
    next_offset: int
    is_all: bool
    is_rewritten: bool = False


def find_applied_batches(
    log_directory: str, partition_directory: str, announced: AnnouncedPartition
) -> AppliedBatches:
    """Return which announced batches a log holds from the announced base offset on, in order."""
    expected = _expected(log_directory, announced)
    count, next_offset = 0, announced.base_offset
    try:
        for batch in _batches_from(partition_directory, announced.base_offset):
            wanted = next(expected, None)
            header = batch.header
            found = header.offset, header.next_offset - header.offset, header.crc
            if wanted is None or found != (next_offset, *wanted):
                is_rewritten = wanted is not None and _is_rewritten(batch, next_offset)
                return AppliedBatches(count, next_offset, is_all=False, is_rewritten=is_rewritten)
            count += 1
            next_offset = header.next_offset
    except CorruptRecordError:
        return AppliedBatches(count, next_offset, is_all=False)
    return AppliedBatches(count, next_offset, is_all=True)


def _is_rewritten(batch: PositionedHeader, expected_offset: int) -> bool:
    """Whether compaction or retention has taken records here: a leader leaves no gap."""
    header = batch.header
    offsets = header.next_offset - header.offset
    return header.offset != expected_offset or header.record_count != offsets


def _expected(log_directory: str, announced: AnnouncedPartition) -> Iterator[tuple[int, int]]:
    """Yield the number of records and the checksum of each batch that is not skipped."""
    counts, crcs = [], []
    for each in announced.files:
        path = os.path.join(log_directory, each.staged.entries_name)  # noqa: PTH118 - as text
        entries = read_staged_entries(path, each.staged)
        counts.append(entries.record_counts)
        crcs.append(entries.crcs)
    rest = slice(announced.skipped_batches, None)
    return zip(
        np.concatenate(counts)[rest].tolist(), np.concatenate(crcs)[rest].tolist(), strict=True
    )


def _batches_from(partition_directory: str, offset: int) -> Iterator[PositionedHeader]:
    """Yield the batches of a log with offsets from ``offset`` on; one may begin before it."""
    names = [find_segment_file_name(each.name) for each in list_directory(partition_directory)]
    bases = sorted(
        name.base_offset
        for name in names
        if name is not None and name.suffix == LOG_FILE_SUFFIX and not name.state
    )
    before = [base for base in bases if base <= offset]
    for base in before[-1:] + bases[len(before) :]:
        path = f"{partition_directory}/{base:020d}{LOG_FILE_SUFFIX}"
        with open_file(path) as file:
            for batch in walk_headers(file, 0, file.size(), lowest_offset=base):
                if batch.header.next_offset > offset:
                    yield batch
