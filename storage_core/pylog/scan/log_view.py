"""One partition as it lies on disk: its segments, where it begins and where it ends.

The view is taken once. Everything in it comes from file names, side files and a few batch headers;
no record is decoded.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    find_segment_file_name,
)
from pylog.files.leader_epoch_checkpoint import EpochEntry, read_leader_epoch_checkpoint
from pylog.files.partition_metadata import PartitionMetadata, read_partition_metadata
from pylog.files.storage import list_directory
from pylog.locations import join
from pylog.scan.batch_walk import WholeBatches, find_whole_batches
from pylog.scan.log_segment_view import LogSegmentView
from pylog.scan.torn_tail import find_tail_defect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.model import TopicPartition
    from pylog.scan.discovery import PartitionDirectory


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
        Content of the log directory's ``log-start-offset-checkpoint``, so that a directory of a
        thousand partitions reads it once; read here if None.

    Raises
    ------
    LogDirectoryError
        The directory cannot be listed.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        log_start_offsets: dict[TopicPartition, int] | None = None,
    ) -> None:
        self.directory = directory
        self.topic_partition = directory.topic_partition
        self._log_start_offsets = log_start_offsets
        self.file_count = 0
        self.leftover_file_count = 0
        self.producer_snapshot_offsets: list[int] = []
        self.segments: Sequence[LogSegmentView] = self._list_segments()

    def __repr__(self) -> str:
        return f"LogView({self.directory.path!r}, {len(self.segments)} segments)"

    def _list_segments(self) -> list[LogSegmentView]:
        suffixes: dict[int, set[str]] = {}
        sizes: dict[int, int] = {}
        for entry in list_directory(self.directory.path):
            self.file_count += 1
            name = find_segment_file_name(entry.name)
            if name is None:
                continue
            if name.state:  # .deleted, .cleaned, .swap: not part of the log
                self.leftover_file_count += 1
                continue
            if name.suffix == PRODUCER_SNAPSHOT_FILE_SUFFIX:
                self.producer_snapshot_offsets.append(name.base_offset)
                continue
            if name.suffix == LOG_FILE_SUFFIX:
                try:
                    sizes[name.base_offset] = entry.stat().st_size
                except FileNotFoundError:  # deleted between listing and stat
                    continue
            suffixes.setdefault(name.base_offset, set()).add(name.suffix)
        return [
            LogSegmentView(
                self.directory.path, base, sizes[base], frozenset(suffixes.get(base, ()))
            )
            for base in sorted(sizes)
        ]

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
        checkpoint = self._log_start_offsets
        if checkpoint is None:
            checkpoint = read_log_start_offsets(self.directory.log_directory)
        return max(base, checkpoint.get(self.topic_partition, 0))

    @cached_property
    def end(self) -> WholeBatches:
        """How far whole batches reach in the last segment.

        Found from the last sound entry of the offset index. A torn tail and a tail of zeros are
        normal ends; anything else is told as a defect (see `pylog.scan.torn_tail`).
        """
        if not self.segments:
            return WholeBatches(0, None, None)
        last = self.segments[-1]
        with last.open_log() as source:
            size = source.size()
            start = last.last_indexed_position(source)
            found = find_whole_batches(source, start, size, lowest_offset=last.base_offset)
            if found.defect is None and found.end_position < size:
                header = None if found.last is None else found.last.header
                following = last.base_offset if header is None else header.next_offset
                defect = find_tail_defect(source, found.end_position, size, following)
                found = found._replace(defect=defect)
            return found

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


def read_log_start_offsets(log_directory: str) -> dict[TopicPartition, int]:
    """Return the content of a log directory's ``log-start-offset-checkpoint``; {} if missing."""
    return read_offset_checkpoint(join(log_directory, LOG_START_OFFSET_CHECKPOINT))
