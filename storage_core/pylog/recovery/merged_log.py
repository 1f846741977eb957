"""What a merged log is made of, and how it is written: batches as they are, in segments."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from pylog.checks.repair import copy_pieces
from pylog.checks.rescue import Piece, SegmentCopy
from pylog.files.checkpoint_file import write_offset_checkpoint
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    file_name_prefix,
)
from pylog.files.leader_epochs import EpochEntry, write_leader_epoch_checkpoint
from pylog.files.partition_metadata import write_partition_metadata
from pylog.locations import join
from pylog.log_file.batch_walk import OFFSETS_IN_SEGMENT
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.task_range import SegmentSlice
from pylog.record.batch_header import OFFSET_LENGTH
from pylog.record.batch_scan import Window, find_batches
from pylog.recovery.merge_summary import MergedRange

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import Taken
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition

_SEGMENT_BYTES = 1 << 30


def windows_of(replicas: Sequence[ReplicaLog], stretch: BatchStretch) -> Iterator[Window]:
    """Yield the batches of a stretch, of a replica that has them; valid until the next window."""
    at = next((each for each in stretch.places if each not in stretch.moved), None)
    if at is None:
        yield _moved_window(replicas, stretch)
        return
    place = stretch.places[at]
    segment = replicas[at].segments[place.file]
    part = SegmentSlice(
        segment.file_path(),
        segment.base_offset,
        None,
        place.position,
        place.position + stretch.size_bytes,
        runs_to_segment_end=False,
    )
    with (
        segment.open_log() as source,
        closing(iter(CheckedWindows(source, part, verifies_checksums=False))) as windows,
    ):
        yield from windows


def _moved_window(replicas: Sequence[ReplicaLog], stretch: BatchStretch) -> Window:
    """Return the one batch of a stretch, with the base offset that it is to have."""
    at, place = next(iter(stretch.places.items()))
    with replicas[at].segments[place.file].open_log() as source:
        data = bytearray(source.read_at(place.position, stretch.size_bytes))
    data[:OFFSET_LENGTH] = stretch.start_offset.to_bytes(OFFSET_LENGTH, "big")
    buffer = np.frombuffer(bytes(data), dtype=np.uint8)
    return Window.of(find_batches(buffer), source.path, place.position)


def log_start_of(replicas: Iterable[ReplicaLog]) -> int:
    """Return the offset below which records were deleted, and are not to come back."""
    return max((each.log_start_offset or 0 for each in replicas), default=0)


class MergedLog:
    """One partition of the result, before it is written."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        replicas: Sequence[ReplicaLog],
        taken: Sequence[Taken],
        root: int | None,
        topic_id: uuid.UUID | None,
        start_offset: int = 0,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log_start_offset = log_start_of(replicas)
        self.segments: list[SegmentCopy] = []
        self.ranges: list[MergedRange] = []
        self.epochs: list[EpochEntry] = []
        self.size_bytes = 0
        self._start_offset = max(start_offset, self.log_start_offset)
        self._replicas = replicas
        self._last_source: int | None = None
        for each in taken:
            self._add(each.stretch, each.rule, root)

    def _add(self, stretch: BatchStretch, rule: str, root: int | None) -> None:
        source = self._source_of(stretch, root)
        place = stretch.places[source]
        segment = self._replicas[source].segments[place.file]
        is_moved = source in stretch.moved
        piece = Piece(
            segment,
            place.position,
            place.position + stretch.size_bytes,
            stretch.start_offset if is_moved else None,
        )
        if self._rolls(stretch, is_at_start=place.position == 0):
            self.segments.append(SegmentCopy(stretch.start_offset, []))
        pieces = self.segments[-1].pieces
        last = pieces[-1] if pieces else None
        continues = last is not None and (last.segment, last.end) == (segment, place.position)
        if last is not None and continues and piece.base_offset is last.base_offset is None:
            pieces[-1] = last._replace(end=piece.end)
        else:
            pieces.append(piece)
        self.size_bytes += stretch.size_bytes
        self._last_source = source
        self._note(stretch, rule, self._replicas[source].path)

    def _source_of(self, stretch: BatchStretch, root: int | None) -> int:
        """Return which replica's bytes are copied: the leader's, the last one's, or any."""
        for each in (root, self._last_source):
            if each in stretch.places:
                return each
        return min(stretch.places)

    def _rolls(self, stretch: BatchStretch, *, is_at_start: bool) -> bool:
        """Whether a segment begins here: as one did in the source, or for its size."""
        if not self.segments or is_at_start:
            return True
        last = self.segments[-1]
        return (
            last.size_bytes + stretch.size_bytes > _SEGMENT_BYTES
            or stretch.end_offset - last.base_offset >= OFFSETS_IN_SEGMENT
        )

    def _note(self, stretch: BatchStretch, rule: str, path: str) -> None:
        last = self.ranges[-1] if self.ranges else None
        if last and last[1:] == (stretch.start_offset, path, rule):
            self.ranges[-1] = last._replace(end_offset=stretch.end_offset)
        else:
            end = stretch.end_offset
            self.ranges.append(MergedRange(stretch.start_offset, end, path, rule))
        is_new = not self.epochs or self.epochs[-1].epoch < stretch.epoch
        if stretch.epoch != NO_PARTITION_LEADER_EPOCH and is_new:
            self.epochs.append(EpochEntry(stretch.epoch, stretch.start_offset))

    def write(self, io: DurableIO, log_directory: str) -> None:
        """Write the partition's directory; whoever owns the log makes its indexes."""
        directory = join(log_directory, str(self.topic_partition))
        io.make_directory(directory)
        for each in self.segments:
            name = f"{file_name_prefix(each.base_offset)}.log"
            copy_pieces(io, each.pieces, join(directory, name))
        if not self.segments and self._start_offset:
            io.write_file(join(directory, f"{file_name_prefix(self._start_offset)}.log"), b"")
        if self.topic_id is not None:
            write_partition_metadata(io, join(directory, PARTITION_METADATA), self.topic_id)
        if self.epochs:
            write_leader_epoch_checkpoint(io, join(directory, LEADER_EPOCH_CHECKPOINT), self.epochs)
        io.sync_directory(directory)


def write_log_starts(io: DurableIO, log_directory: str, logs: Iterable[MergedLog]) -> None:
    """Write where logs start whose records below were deleted, and are not to come back."""
    starts = {
        each.topic_partition: each.log_start_offset
        for each in logs
        if each.segments and each.log_start_offset > each.segments[0].base_offset
    }
    if starts:
        write_offset_checkpoint(io, join(log_directory, LOG_START_OFFSET_CHECKPOINT), starts)
