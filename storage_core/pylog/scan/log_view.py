"""One partition as it lies on disk: its segments, where it begins and where it ends.

The view is taken once. Everything in it comes from file names, side files and a few batch headers;
no record is decoded.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError, CorruptRecordError, SegmentVanishedError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
)
from pylog.files.leader_epoch_checkpoint import EpochEntry, read_leader_epoch_checkpoint
from pylog.files.partition_metadata import PartitionMetadata, read_partition_metadata
from pylog.locations import join, shown
from pylog.log_file.batch_walk import WholeBatches
from pylog.scan.log_end import find_log_end
from pylog.scan.segment_listing import list_segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.model import TopicPartition
    from pylog.scan.damage import DamageReport
    from pylog.scan.discovery import PartitionDirectory
    from pylog.scan.log_segment_view import LogSegmentView

_LOGGER = logging.getLogger(__name__)


class LogView:
    """A snapshot of one partition directory, for reading.

    Invariant: `segments` are in offset order and never change. Values that need file access are
    read at first use and kept; make a new view to see what has been appended since. Any number of
    threads may read.

    Parameters
    ----------
    directory
        What `discover_partitions` found.
    log_start_offsets
        The log directory's ``log-start-offset-checkpoint``, so that a directory of a thousand
        partitions reads it once; a reader of its own if None.
    damage
        Where damaged ranges that planning comes upon are noted; None for an error at the first.

    Raises
    ------
    LogDirectoryError
        The directory cannot be listed.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        log_start_offsets: LogStartOffsets | None = None,
        damage: DamageReport | None = None,
    ) -> None:
        self.directory = directory
        self.topic_partition = directory.topic_partition
        self._log_start_offsets = log_start_offsets or LogStartOffsets(directory.log_directory)
        self.damage = damage
        listing = list_segments(directory.path)
        self.segments: Sequence[LogSegmentView] = listing.segments
        if not directory.uses_indexes:
            self.segments = [replace(each, uses_indexes=False) for each in listing.segments]
        self.producer_snapshot_offsets = listing.producer_snapshot_offsets
        self.file_count = listing.file_count
        self.leftover_file_count = listing.leftover_file_count

    def __repr__(self) -> str:
        return f"LogView({shown(self.directory.path)!r}, {len(self.segments)} segments)"

    def taken_anew(
        self, damage: DamageReport | None = None, *, uses_indexes: bool | None = None
    ) -> LogView:
        """Return a view of the same directory as it is now.

        Parameters
        ----------
        damage
            As of the class.
        uses_indexes
            Whether look-ups may ask index files; None to leave it as it is.
        """
        directory = self.directory
        if uses_indexes is not None:
            directory = replace(directory, uses_indexes=uses_indexes)
        return LogView(directory, LogStartOffsets(directory.log_directory), damage)

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        """Number of the partition."""
        return self.topic_partition.partition

    @property
    def size_bytes(self) -> int:
        """Bytes of all ``.log`` files."""
        return sum(segment.size_bytes for segment in self.segments)

    @cached_property
    def log_start_offset(self) -> int:
        """The first offset that a broker serves.

        The larger of the first segment's base offset and what the log directory's
        ``log-start-offset-checkpoint`` says of this partition; 0 where there is no segment.
        """
        base = self.segments[0].base_offset if self.segments else 0
        try:
            return max(base, self._log_start_offsets.of(self.topic_partition))
        except CorruptCheckpointError as error:
            if self.damage is None:
                raise
            _LOGGER.warning("%s: the log starts with its first segment", error)
            return base

    @cached_property
    def end(self) -> WholeBatches:
        """How far whole batches reach in the last segment, see `pylog.scan.log_end`."""
        if not self.segments:
            return WholeBatches(0, None, None)
        return find_log_end(self.segments[-1], skips_damage=self.damage is not None)

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last whole batch.

        Never below `log_start_offset`: Kafka, too, starts an empty log there when the checkpoint
        lies beyond the files' content.

        Raises
        ------
        CorruptRecordError
            The last segment holds an impossible header: where the log ends cannot be told.
        """
        if self.end.defect is not None:
            raise CorruptRecordError(
                self.end.defect, self.segments[-1].file_path(), self.end.end_position
            )
        if self.end.last is not None:
            return max(self.log_start_offset, self.end.last.header.next_offset)
        base = self.segments[-1].base_offset if self.segments else 0
        return max(self.log_start_offset, base)

    def segment_end(self, index: int) -> int:
        """Return how many bytes of segment ``index`` are to be read: of the last, whole batches."""
        if index == len(self.segments) - 1:
            return self.end.end_position
        return self.segments[index].size_bytes

    def next_base_offset(self, index: int) -> int | None:
        """Return the base offset of the segment after ``index``; None for the last one."""
        if index + 1 < len(self.segments):
            return self.segments[index + 1].base_offset
        return None

    def find_segment(self, offset: int) -> int | None:
        """Return the index of the last segment whose base offset is not above ``offset``."""
        found = None
        for index, segment in enumerate(self.segments):
            if segment.base_offset > offset:
                break
            found = index
        return found

    @cached_property
    def leader_epochs(self) -> list[EpochEntry]:
        """Content of ``leader-epoch-checkpoint``; empty where there is none."""
        return read_leader_epoch_checkpoint(join(self.directory.path, LEADER_EPOCH_CHECKPOINT))

    @cached_property
    def metadata(self) -> PartitionMetadata | None:
        """Content of ``partition.metadata``; None where there is none (brokers before 2.8)."""
        try:
            return read_partition_metadata(join(self.directory.path, PARTITION_METADATA))
        except SegmentVanishedError:
            return None


class LogStartOffsets:
    """What a log directory's ``log-start-offset-checkpoint`` says; read at the first question."""

    def __init__(self, log_directory: str) -> None:
        self._path = join(log_directory, LOG_START_OFFSET_CHECKPOINT)

    @cached_property
    def _offsets(self) -> dict[TopicPartition, int]:
        return read_offset_checkpoint(self._path)

    def of(self, topic_partition: TopicPartition) -> int:
        """Return the offset that the checkpoint has for a partition, 0 if it has none.

        Raises
        ------
        CorruptCheckpointError
            The file does not follow its format.
        """
        return self._offsets.get(topic_partition, 0)
