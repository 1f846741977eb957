"""A log as a task cleans it, read while its owner holds it still; what of it is staged, and counts.

The owner takes a snapshot (`LogSnapshot`), which travels. The task opens it (`SnapshotLog`): what
is read lies in the partition's directory and is never changed; what is written goes to staged files
(`pylog.files.staged_segments`), for the owner to put in the place of the old segments.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pylog.files.durable_io import DurableIO
from pylog.files.file_names import SegmentTarget
from pylog.files.overlay import Overlay
from pylog.files.staged_segments import SegmentStage, StagedSegment
from pylog.locations import printable_location
from pylog.log.log_context import LogContext
from pylog.log.log_segments import LogSegments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.cleaner.cleanable_offsets import LogToClean
    from pylog.config import LogConfig
    from pylog.log.log_segment import LogSegment
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.producers.producer_state_entry import LastRecord


@dataclass(slots=True, kw_only=True)
class CleanerStats:
    """Counts of one cleaning, and the first damage that it kept; they grow while it runs."""

    map_bytes_read: int = 0
    map_records_read: int = 0
    bytes_read: int = 0
    records_read: int = 0
    bytes_written: int = 0
    records_written: int = 0
    invalid_records: int = 0
    damaged_records: int = 0
    first_damage: str | None = None
    segments_read: int = 0
    segments_written: int = 0
    buffer_utilization: float = 0.0
    map_milliseconds: int = 0
    copy_milliseconds: int = 0

    def add(self, other: CleanerStats) -> None:
        """Add what another part of the cleaning has read and written."""
        for name in (
            "bytes_read",
            "records_read",
            "bytes_written",
            "records_written",
            "invalid_records",
            "damaged_records",
            "segments_read",
            "segments_written",
            "copy_milliseconds",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_damage = self.first_damage or other.first_damage


class StagedGroup(NamedTuple):
    """Segments that are to take the place of others."""

    old: tuple[tuple[int, int], ...]
    new: tuple[StagedSegment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCleaning:
    """The cleaned segments that a task has staged for a log.

    Attributes
    ----------
    topic_partition
        Whose log.
    groups
        What is to take the place of what, in order; none in a dry run.
    stats
        What was read and written.
    next_dirty_offset
        Where the next cleaning begins.
    keys_fit
        Whether the offset map had room for all keys. If not, nothing has been staged:
        `pylog.cleaner.large_cleaning` is for such logs.
    failure
        Why the log cannot be cleaned; None if it can. Nothing has been staged then.
    """

    topic_partition: TopicPartition
    groups: tuple[StagedGroup, ...] = ()
    stats: CleanerStats = field(default_factory=CleanerStats)
    next_dirty_offset: int
    keys_fit: bool = True
    failure: str | None = None


class CleanedGroup(NamedTuple):
    """What a task has made of one group: its number, what was staged, counts, why it failed."""

    number: int
    staged: tuple[StagedGroup, ...]
    stats: CleanerStats
    failure: str | None = None


class LogSnapshot(NamedTuple):
    """What a task needs to know of a log that is to be cleaned; small, and pickled."""

    topic_partition: TopicPartition
    config: LogConfig
    log_start_offset: int
    directory: str
    base_offsets: tuple[int, ...]
    last_records: dict[int, LastRecord]
    first_dirty_offset: int
    first_uncleanable_offset: int

    @classmethod
    def of(cls, log_to_clean: LogToClean) -> LogSnapshot:
        """Return a snapshot of a log as it is now."""
        log = log_to_clean.log
        return cls(
            log.topic_partition,
            log.config,
            log.log_start_offset,
            printable_location(log.directory),  # tasks know no overlay of ours
            tuple(segment.base_offset for segment in log.segments),
            dict(log.last_records_of_active_producers()),
            log_to_clean.first_dirty_offset,
            log_to_clean.first_uncleanable_offset,
        )

    @property
    def log_directory(self) -> str:
        """The log directory in which the partition directory is."""
        return os.path.dirname(self.directory)  # noqa: PTH120 - kept as text


class _Segments(NamedTuple):
    segments: LogSegments


class SnapshotLog:
    """The log of a snapshot, with the bounds of its cleaning. One thread."""

    def __init__(self, snapshot: LogSnapshot, job_token: str, io: DurableIO | None = None) -> None:
        self._snapshot = snapshot
        self._stage = SegmentStage(snapshot.log_directory, job_token)
        self._written = LogContext(io=io or DurableIO())
        self._overlay = Overlay()  # segments are opened to be written, too
        reading = LogContext(io=self._overlay)
        directory = self._overlay.path(snapshot.directory)
        self.local_log = _Segments(
            LogSegments(
                reading.open_segment(SegmentTarget(directory, base), snapshot.config)
                for base in snapshot.base_offsets
            )
        )
        self._targets: dict[int, SegmentTarget] = {}
        self.staged: list[StagedGroup] = []

    @property
    def log(self) -> SnapshotLog:
        """The log that is to be cleaned."""
        return self

    @property
    def first_dirty_offset(self) -> int:
        """Keys of all records from here on go into the offset map."""
        return self._snapshot.first_dirty_offset

    @property
    def first_uncleanable_offset(self) -> int:
        """The exclusive end offset of the cleaning."""
        return self._snapshot.first_uncleanable_offset

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the log."""
        return self._snapshot.topic_partition

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""
        return self._snapshot.config

    @property
    def log_start_offset(self) -> int:
        """First offset served."""
        return self._snapshot.log_start_offset

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """All segments, in order."""
        return tuple(self.local_log.segments)

    def segment(self, base_offset: int) -> LogSegment:
        """Return one of the segments; `ValueError` if the snapshot has no such one."""
        found = self.local_log.segments.get(base_offset)
        if found is None:
            msg = f"the snapshot of {self.topic_partition} has no segment {base_offset}"
            raise ValueError(msg)
        return found

    def last_records_of_active_producers(self) -> dict[int, LastRecord]:
        """Return what the log must not lose of each active producer, by producer id."""
        return self._snapshot.last_records

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Make an empty segment of staged files; `KafkaStorageError` if a file cannot be made."""
        target = self._stage.begin(base_offset)
        segment = self._written.open_segment(target, self.config, is_new=True)
        segment.create_indexes()
        self._targets[base_offset] = target
        return segment

    def replace_segments(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], *, is_async: bool = True
    ) -> None:
        """Note what is to take the place of what; nothing is replaced here."""
        staged = []
        for segment in new:
            segment.close_handlers()
            staged.append(StagedSegment.of(self._targets[segment.base_offset]))
        sizes = ((segment.base_offset, segment.size_bytes) for segment in old)
        self.staged.append(StagedGroup(tuple(sizes), tuple(staged)))

    def discard(self) -> None:
        """Remove what has been staged, as far as the disk lets."""
        for target in self._targets.values():
            self._stage.discard(target, self._written.io)

    def close(self) -> None:
        """Release all files that were read."""
        for segment in self.segments:
            segment.close_handlers()
        self._overlay.close()


CleanableLog: TypeAlias = "UnifiedLog | SnapshotLog"
"""The log of an owner, or a snapshot of one."""

LogWithBounds: TypeAlias = "LogToClean | SnapshotLog"
"""A log, and from where to where it is cleaned; see `pylog.cleaner.cleanable_offsets`."""
