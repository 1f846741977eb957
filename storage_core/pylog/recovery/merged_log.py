"""What a merged log is made of, and how it is written: batches as they are, in segments.

A batch goes into the log from the memory in which its checksum was found right. Where it is wrong
after all, the batch is another replica's that has the same one.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError, LogStorageError
from pylog.files.file_names import LOG_FILE_SUFFIX, PARTITION_METADATA, file_name_prefix
from pylog.files.partition_metadata import write_partition_metadata
from pylog.locations import join
from pylog.log_file.batch_walk import OFFSETS_IN_SEGMENT
from pylog.log_file.segment_windows import SegmentWindows, WindowMemory
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.damage import DamagedRange
from pylog.reading.task_range import SegmentSlice
from pylog.record.batch_header import OFFSET_LENGTH
from pylog.record.batch_scan import Window, find_bad_checksum, find_batches
from pylog.recovery.merge_summary import MergedRange

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import Taken
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition
    from pylog.reading.segments import LogSegmentView

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


@dataclass(slots=True)
class MergedPiece:
    """Stretches that lie one after the other in a file of a replica."""

    source: int
    segment: LogSegmentView
    start: int
    stretches: list[BatchStretch]

    @property
    def end(self) -> int:
        """The byte of the file after the last batch."""
        last = self.stretches[-1]
        return last.places[self.source].position + last.size_bytes

    def stretch_at(self, position: int) -> BatchStretch:
        """Return the stretch that has a byte of the file."""
        starts = [each.places[self.source].position for each in self.stretches]
        return self.stretches[bisect_right(starts, position) - 1]


@dataclass(slots=True)
class MergedSegment:
    """A segment of the result, and the pieces of which it consists, in order."""

    base_offset: int
    pieces: list[MergedPiece]
    size_bytes: int = 0


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
        self.segments: list[MergedSegment] = []
        self.ranges: list[MergedRange] = []
        self.size_bytes = 0
        self._start_offset = max(start_offset, self.log_start_offset)
        self._replicas = replicas
        self._last_source: int | None = None
        self._memory = WindowMemory()
        for each in taken:
            self._add(each.stretch, each.rule, root)

    def _add(self, stretch: BatchStretch, rule: str, root: int | None) -> None:
        source = self._source_of(stretch, root)
        place = stretch.places[source]
        segment = self._replicas[source].segments[place.file]
        if self._rolls(stretch, is_at_start=place.position == 0):
            self.segments.append(MergedSegment(stretch.start_offset, []))
        here = self.segments[-1]
        last = here.pieces[-1] if here.pieces else None
        if (
            last is not None
            and (last.source, last.segment, last.end) == (source, segment, place.position)
            and not (stretch.moved or last.stretches[-1].moved)
        ):
            last.stretches.append(stretch)
        else:
            here.pieces.append(MergedPiece(source, segment, place.position, [stretch]))
        here.size_bytes += stretch.size_bytes
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

    def prepare(self, io: DurableIO, log_directory: str) -> None:
        """Make the directory of a log that begins where this one does, and has nothing yet."""
        directory = join(log_directory, str(self.topic_partition))
        io.make_directory(directory)
        base_offset = self.segments[0].base_offset if self.segments else self._start_offset
        io.write_file(join(directory, f"{file_name_prefix(base_offset)}{LOG_FILE_SUFFIX}"), b"")
        if self.topic_id is not None:
            write_partition_metadata(io, join(directory, PARTITION_METADATA), self.topic_id)
        io.sync_directory(directory)

    def write(self, log: UnifiedLog) -> None:
        """Append all batches to the log of such a directory.

        `CorruptRecordError` if one is intact in no replica.
        """
        for number, segment in enumerate(self.segments):
            if number:
                log.roll(segment.base_offset)
            for piece in segment.pieces:
                for window in self._windows(piece):
                    log.append_copied(window.buffer.data[: window.size_bytes], window.headers)
        if self.log_start_offset > log.log_end_offset:  # all that there is was deleted
            log.truncate_fully_and_start_at(self.log_start_offset)
        log.maybe_increment_log_start_offset(self.log_start_offset)

    def _windows(self, piece: MergedPiece) -> Iterator[Window]:
        """Yield the batches of a piece, which are intact; valid until the next window."""
        if piece.stretches[0].moved:
            yield from windows_of(self._replicas, piece.stretches[0])
            return
        position = piece.start
        with piece.segment.open_log() as source:
            while position < piece.end:
                windows = SegmentWindows(source, position, piece.end, make_memory=self._memory)
                reason = "batch cannot be read"
                try:
                    for window in windows:
                        found, wrong = _intact_head(window)
                        if len(found.headers):
                            yield found
                            position = found.end_position
                        if wrong is not None:
                            reason = wrong
                            break
                    else:
                        reason = windows.tail.defect or reason
                except LogStorageError as error:
                    reason = getattr(error, "reason", str(error))
                if position < piece.end:
                    other = self._from_elsewhere(piece, position, reason)
                    yield other
                    position += other.size_bytes

    def _from_elsewhere(self, piece: MergedPiece, position: int, reason: str) -> Window:
        """Return one batch of a piece, of another replica; note that."""
        stretch = piece.stretch_at(position)
        ahead = position - stretch.places[piece.source].position
        path = piece.segment.file_path()
        for at, place in stretch.places.items():
            if at == piece.source or at in stretch.moved:
                continue
            found = _intact_batch(
                self._replicas[at].segments[place.file],
                *(place.position + ahead, place.position + stretch.size_bytes),
            )
            if found is None:
                continue
            start = int(found.headers.offsets[0])
            end = int(found.headers.last_offsets[0]) + 1
            damaged = DamagedRange(path, position, position + found.size_bytes, start, end, reason)
            self._replicas[piece.source].damage.add(damaged)
            self._note_source(start, end, self._replicas[at].path)
            return found
        raise CorruptRecordError(reason, path, position)

    def _note_source(self, start: int, end: int, path: str) -> None:
        """Note that offsets are of another replica than was planned."""
        number = bisect_right(self.ranges, start, key=lambda each: each.start_offset) - 1
        whole = self.ranges[number]
        parts = [
            whole._replace(end_offset=start),
            whole._replace(start_offset=start, end_offset=end, source=path),
            whole._replace(start_offset=end),
        ]
        self.ranges[number : number + 1] = [
            each for each in parts if each.start_offset < each.end_offset
        ]


def _intact_head(window: Window) -> tuple[Window, str | None]:
    """Return the batches before the first one with a wrong checksum; and what that has."""
    bad = find_bad_checksum(window)
    if bad is None:
        return window, None
    headers = window.headers
    head = replace(
        window,
        headers=headers.select(slice(0, bad.index)),
        size_bytes=int(headers.positions[bad.index]),
    )
    return head, bad.reason


def _intact_batch(segment: LogSegmentView, start: int, end: int) -> Window | None:
    """Return the batch at a byte of a file, None if it is not intact."""
    try:
        with segment.open_log() as source:
            window = next(iter(SegmentWindows(source, start, end)), None)
    except LogStorageError:
        return None
    if window is None:
        return None
    size_bytes = int(window.headers.sizes_bytes[0])
    first = replace(window, headers=window.headers.select(slice(0, 1)), size_bytes=size_bytes)
    return first if find_bad_checksum(first) is None else None
