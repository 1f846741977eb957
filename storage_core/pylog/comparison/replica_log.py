"""One replica of a partition as it lies on a disk: its intact batches, and its side files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptCheckpointError, LogStorageError
from pylog.files.byte_source import LocalFile
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.leader_epochs import read_leader_epoch_checkpoint
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.storage import list_directory
from pylog.locations import is_remote, join, name_of, printable_location
from pylog.log_file.header_rows import FOLLOWS_A_GAP, IS_REWRITTEN, HeaderRows
from pylog.log_file.segment_windows import WindowMemory
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.damage import DamageReport
from pylog.reading.discovery import PartitionDirectory, discover_partitions
from pylog.reading.log_end import find_log_end
from pylog.reading.segment_listing import SegmentListing, list_segments
from pylog.reading.slicing import open_slice
from pylog.reading.task_range import SegmentSlice
from pylog.record.header_sums import first_timestamps, has_horizon

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    import numpy.typing as npt

    from pylog.files.leader_epochs import EpochEntry
    from pylog.reading.damage import DamagedRange
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window

    Rows = npt.NDArray[np.int64]

# What is kept of a batch, a row each.
BASE, LAST, EPOCH, CRC, SIZE, FILE, POSITION, RECORDS, FIRST_MS, MAX_MS, FLAGS = range(11)
COLUMNS = 11

IS_LEGACY, IS_CLEANED, IS_MOVED, JUMPS, IS_UNPROVED = 1, 2, 4, 8, 16
"""Flags: of format v0 or v1; a cleaner has taken records out; its base offset is wrong on the disk;
it is not at the offset after the batch that is before it in the file; its header alone was read."""


class ReplicaLog:
    """The batches and side files of one replica. One thread.

    Attributes
    ----------
    path
        The partition directory, as messages name it.
    damage
        What `rows` has left out; complete once it has been walked.
    epochs
        Its leader epoch checkpoint; empty where that is missing or cannot be read.
    bases_without_log
        Base offsets of segments of which only an index is left.
    problems
        What could not be read of it, in sentences.
    """

    def __init__(self, directory: PartitionDirectory) -> None:
        self.directory = directory
        self.path = printable_location(directory.path)
        self.damage = DamageReport(is_logged=False)
        self.unreadable: str | None = None
        self.problems: list[str] = []
        listing = SegmentListing()
        try:
            listing = list_segments(directory.path)
        except LogStorageError as error:
            self.unreadable = getattr(error, "reason", str(error))
            self.problems.append(f"{self.path} cannot be read: {self.unreadable}")
        self.segments: list[LogSegmentView] = listing.segments
        self.bases_without_log = listing.base_offsets_without_log
        self.problems += [
            f"{self.path} has an index of segment {each} without its .log file"
            for each in self.bases_without_log
        ]
        self._snapshot_offsets = listing.producer_snapshot_offsets
        self.epochs = self._epochs()
        self.topic_id = _topic_id(directory.path)
        self.node_id, self.cluster_id = _identity(directory.log_directory)
        self.log_start_offset = self._checkpointed(LOG_START_OFFSET_CHECKPOINT)
        self.high_watermark = self._checkpointed(HIGH_WATERMARK_CHECKPOINT)
        self.cleaned_up_to = self._checkpointed(CLEANER_OFFSET_CHECKPOINT)
        self.recovery_point = self._checkpointed(RECOVERY_POINT_CHECKPOINT)

    @property
    def size_bytes(self) -> int:
        """Bytes of its ``.log`` files."""
        return sum(each.size_bytes for each in self.segments)

    @property
    def name(self) -> str:
        """Where it is, and of which node."""
        return self.path if self.node_id is None else f"{self.path} (node {self.node_id})"

    @property
    def reached_offset(self) -> int:
        """Up to which offset it has had batches, by what is beside them."""
        marks = [self.high_watermark, self.recovery_point, *self._snapshot_offsets]
        bases = [each.base_offset for each in self.segments[-1:]] + self.bases_without_log
        return max([0, *bases, *(each for each in marks if each is not None)])

    def damaged_end(self) -> tuple[DamagedRange, int] | None:
        """Return the damaged batches in which the log ends, and at which byte; once it was walked.

        A batch that was not written whole is none: it had been acknowledged to nobody.
        """
        damaged = next(reversed(list(self.damage)), None)
        if damaged is None or damaged.end_offset is not None or not self.segments:
            return None
        last = self.segments[-1]
        if damaged.path != last.file_path():
            return None
        end_position = find_log_end(last, skips_damage=True).end_position
        is_damaged = damaged.is_unreadable or damaged.position < end_position
        return (damaged, end_position) if is_damaged else None

    def _checkpointed(self, name: str) -> int | None:
        try:
            stored = read_offset_checkpoint(join(self.directory.log_directory, name))
        except LogStorageError as error:
            self.problems.append(f"{error}; what it says of {self.path} is not known")
            return None
        return stored.get(self.directory.topic_partition)

    def _epochs(self) -> list[EpochEntry]:
        try:
            return read_leader_epoch_checkpoint(join(self.directory.path, LEADER_EPOCH_CHECKPOINT))
        except LogStorageError as error:
            if self.unreadable is None:
                self.problems.append(str(error))
            return []

    def rows(self, *, skips_damage: bool, trusts_headers: bool = False) -> Iterator[Rows]:
        """Yield its batches, in rising offsets, some at a time: an array with a row a field.

        Intact ones with right checksums where damage is skipped; otherwise no checksum is looked
        at, and what shows by headers alone is an error. With ``trusts_headers`` no checksum is
        looked at, either, in segments whose headers show no damage: `prove` does that.
        """
        memory = WindowMemory()
        lowest = 0
        for number in range(len(self.segments)):
            by_headers = self._header_rows(number) if trusts_headers else None
            for rows in by_headers or self._segment_rows(number, memory, skips_damage=skips_damage):
                above = rows[:, rows[BASE] >= lowest]
                if above.shape[1]:
                    lowest = int(above[LAST, -1]) + 1
                    yield above

    def prove(self, rows: Rows) -> None:
        """Read batches; `CorruptRecordError` if one of them has a wrong checksum."""
        ends = rows[POSITION] + rows[SIZE]
        is_new = (rows[FILE, 1:] != rows[FILE, :-1]) | (rows[POSITION, 1:] != ends[:-1])
        for run in np.split(np.arange(ends.size), np.flatnonzero(is_new) + 1):
            first, last = int(run[0]), int(run[-1])
            segment = self.segments[int(rows[FILE, first])]
            part = SegmentSlice(
                segment.file_path(),
                int(rows[BASE, first]),
                None,
                int(rows[POSITION, first]),
                int(ends[last]),
                runs_to_segment_end=False,
            )
            with segment.open_log() as source:
                for _ in CheckedWindows(source, part):
                    pass

    def _header_rows(self, number: int) -> list[Rows] | None:
        """Return the batches of a segment by their headers, None where those show damage."""
        part = self._part(number)
        if part.defect is not None:
            return None
        try:
            with self.segments[number].open_log() as source:
                if not (isinstance(source, LocalFile) and source.is_read_by_kernels):
                    return None
                bounds = part.base_offset, part.limit_offset
                headers = HeaderRows(source, 0, part.end_position, bounds)
                found = [_of_headers(each, number) for each in headers]
        except LogStorageError:
            return None
        for rows in found:
            rows[FLAGS] |= IS_UNPROVED
        return found if headers.position == part.end_position else None

    def _part(self, number: int) -> SegmentSlice:
        segment, following = self.segments[number], self.segments[number + 1 :]
        return SegmentSlice(
            segment.file_path(),
            segment.base_offset,
            following[0].base_offset if following else None,
            0,
            segment.size_bytes,
            runs_to_segment_end=bool(following),
            defect=segment.defect,
        )

    def _segment_rows(
        self, number: int, memory: WindowMemory, *, skips_damage: bool
    ) -> Iterator[Rows]:
        part = self._part(number)
        damage = self.damage if skips_damage else None
        source = open_slice(part, damage)
        if source is None:
            return
        with source:
            if not skips_damage and isinstance(source, LocalFile) and source.is_read_by_kernels:
                headers = HeaderRows(
                    *(source, 0, part.end_position, (part.base_offset, part.limit_offset))
                )
                for found in headers:
                    yield _of_headers(found, number)
                if headers.position == part.end_position:
                    return
                part = replace(
                    part, start_position=headers.position, base_offset=headers.next_offset
                )
            windows = CheckedWindows(
                source, part, damage=damage, verifies_checksums=skips_damage, memory=memory
            )
            next_offset, end_position = part.base_offset, part.start_position
            for window in windows:
                is_moved = window.file_position in windows.moved
                rows = _rows(window, number, next_offset, end_position)
                if is_moved:
                    rows[FLAGS] |= IS_MOVED
                next_offset, end_position = int(rows[LAST, -1]) + 1, window.end_position
                yield rows


def _rows(window: Window, number: int, next_offset: int, end_position: int) -> Rows:
    headers = window.headers
    is_v2 = headers.is_v2
    rows = np.empty((COLUMNS, len(headers)), dtype=np.int64)
    rows[BASE] = np.where(is_v2, headers.offsets, headers.last_offsets)
    rows[LAST] = headers.last_offsets
    rows[EPOCH] = headers.partition_leader_epochs
    rows[CRC] = headers.crcs
    rows[SIZE] = headers.sizes_bytes
    rows[FILE] = number
    rows[POSITION] = headers.positions + window.file_position
    rows[RECORDS] = headers.record_counts.clip(min=1)
    rows[FIRST_MS] = first_timestamps(headers)
    rows[MAX_MS] = headers.max_timestamps
    spans = headers.last_offsets - headers.offsets + 1
    is_cleaned = is_v2 & (has_horizon(headers) | (headers.record_counts < spans))
    expected = np.empty(len(headers), dtype=np.int64)
    expected[0] = next_offset
    expected[1:] = headers.last_offsets[:-1] + 1
    follows = np.ones(len(headers), dtype=np.bool_)
    follows[0] = window.file_position == end_position
    jumps = is_v2 & follows & (rows[BASE] != expected)
    rows[FLAGS] = (
        np.where(is_v2, 0, IS_LEGACY)
        | np.where(is_cleaned, IS_CLEANED, 0)
        | np.where(jumps, JUMPS, 0)
    )
    return rows


def _of_headers(found: Rows, number: int) -> Rows:
    """Return rows of what a kernel has found, which has a row a batch."""
    rows = np.empty((COLUMNS, len(found)), dtype=np.int64)
    rows[[BASE, LAST, EPOCH, CRC, SIZE, POSITION, RECORDS, FIRST_MS, MAX_MS]] = found[:, :9].T
    rows[FILE] = number
    rows[RECORDS] = rows[RECORDS].clip(min=1)
    flags = found[:, 9]
    rows[FLAGS] = np.where(flags & IS_REWRITTEN, IS_CLEANED, 0)
    rows[FLAGS] |= np.where(flags & FOLLOWS_A_GAP, JUMPS, 0)
    return rows


def _topic_id(directory: str) -> uuid.UUID | None:
    try:
        return read_partition_metadata(join(directory, PARTITION_METADATA)).topic_id
    except LogStorageError:
        return None


def _identity(log_directory: str) -> tuple[int | None, str | None]:
    try:
        meta = read_meta_properties(join(log_directory, META_PROPERTIES))
    except (CorruptCheckpointError, LogStorageError):
        return None, None
    return meta.node_id, meta.cluster_id


def read_ahead(rows: Iterator[Rows]) -> Iterator[Rows]:
    """Yield what an iterator has, of which the next is made meanwhile, in a thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="pylog-headers") as worker:
        following = worker.submit(next, rows, None)
        while (found := following.result()) is not None:
            following = worker.submit(next, rows, None)
            yield found


def directories_of(path: str) -> list[PartitionDirectory]:
    """Return the partition directories of a path; also one whose files are all gone."""
    name = find_partition_directory_name(name_of(path.rstrip("/")))
    if name is not None and not is_remote(path):
        entries = list_directory(path)
        if not any(find_segment_file_name(each.name) or each.is_dir() for each in entries):
            place = os.path.abspath(path)  # noqa: PTH100 - kept as text
            return [PartitionDirectory(name.topic_partition, place, name.state, is_named=True)]
    return discover_partitions(path)
