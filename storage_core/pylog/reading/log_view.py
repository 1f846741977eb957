"""A log that is being read: which segments it has, where it starts and ends.

Of a topic with ``remote.storage.enable`` a broker deletes segments from its disk that it has
uploaded, and leaves the log start offset below them. So ``log-start-offset-checkpoint`` then names
an offset below the first local segment; where that has no line for the partition (a directory that
was copied alone), the first entry of ``leader-epoch-checkpoint`` begins there. Of other topics both
are raised when segments are deleted: only a broker that crashed right after that leaves the same
picture. What remote storage holds is not read.

Source: LogManager.checkpointLogStartOffsets, UnifiedLog.maybeIncrementLogStartOffset (KIP-405;
Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    TIME_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.leader_epochs import (
    EpochEntry,
    loaded_entries,
    read_epoch_entries,
    read_leader_epoch_checkpoint,
)
from pylog.files.looks import Looks
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.partition_metadata import PartitionMetadata, read_partition_metadata
from pylog.files.time_index import TimeIndexEntries
from pylog.locations import is_remote, join, printable_location
from pylog.log_file.batch_walk import (
    HIGHEST_OFFSET,
    OFFSETS_IN_SEGMENT,
    WholeBatches,
    find_whole_batches,
)
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.reading.damage import Attempts
from pylog.reading.discovery import LogStartOffsets
from pylog.reading.html_table import segments_html
from pylog.reading.log_end import find_end_at, find_end_before, find_log_end
from pylog.reading.pending_commit import PendingCommit
from pylog.reading.segment_listing import list_segments
from pylog.reading.segments import DEFAULT_ACCESS
from pylog.text.words import counted, offsets_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylog.reading.damage import DamageReport
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.segment_listing import SegmentListing
    from pylog.reading.segments import FileAccess, LogSegmentView
    from pylog.record.batch_header import BatchHeader


def first_timestamp(view: LogView) -> int | None:
    """Return the timestamp in ms of the first batch that is served; None without one."""
    start_offset = view.log_start_offset
    for index in range(view.find_segment(start_offset) or 0, len(view.segments)):
        segment = view.segments[index]
        end = view.segment_end(index)
        try:
            with segment.open_log() as source:
                batch = segment.find_batch(source, start_offset, end)
        except (CorruptRecordError, UnreadableFileError):
            if view.damage is None:
                raise
            return None
        if batch is not None:
            return batch.header.first_timestamp
    return None


class ConsumedSegment(NamedTuple):
    """A segment, and the first offset that is taken from it; see `LogView.consumed_segments`."""

    place: int
    start_offset: int


_Value = TypeVar("_Value")


def read_steadily(view: LogView, read: Callable[[LogView], _Value]) -> _Value:
    """Return what ``read`` does of a log; of a new look at it where files change meanwhile.

    Side files of a log that was moved to another disk look as if they had never been written.
    """
    looks = Looks()
    while True:
        try:
            value = read(view)
        except SegmentVanishedError as error:
            looks.again(error)
        else:
            if not view.directory.was_moved():
                return value
            reason = "the partition is moved between disks faster than it is read"
            looks.again(LogDirectoryError(reason, view.directory.path))
        view = view.refreshed()


def view_of(
    directory: PartitionDirectory, look: Callable[[PartitionDirectory], LogView]
) -> LogView:
    """Return a view of a partition; of where it is once a broker has moved it to another disk."""
    looks = Looks()
    while True:
        view = look(directory)
        if view.unreadable is None or not directory.was_moved():
            return view
        directory = directory.now()
        looks.again(view.unreadable)


def read_unless_deleted(
    view: LogView, read: Callable[[LogView], _Value], otherwise: _Value
) -> _Value:
    """Return what `read_steadily` does; ``otherwise`` of a log that a broker deletes meanwhile."""

    def read_what_is_there(now: LogView) -> _Value:
        if now.unreadable is not None:
            now = now.refreshed()  # it may have been moved
        is_deleted = now.unreadable is not None and now.directory.was_deleted()
        return otherwise if is_deleted else read(now)

    return read_steadily(view, read_what_is_there)


class RemoteOffsets(NamedTuple):
    """Offsets ``start_offset <= offset < end_offset`` of a log that are not on this disk."""

    start_offset: int
    end_offset: int


def find_remote_offsets(view: LogView) -> RemoteOffsets | None:
    """Return the offsets from the log's start to its first local segment, None if none are."""
    end = view.local_log_start_offset
    if end == 0:
        return None
    start = None
    with suppress(CorruptCheckpointError, LogDirectoryError):
        start = view.checkpointed_log_start_offset
    with suppress(CorruptCheckpointError, LogDirectoryError):
        if start is None and view.leader_epochs:
            start = view.leader_epochs[0].start_offset
    if start is None or not 0 <= start < end:
        return None
    return RemoteOffsets(start, end)


def remote_offsets_note(remote: RemoteOffsets) -> str:
    """Return a line about offsets that only remote storage has."""
    return (
        f"{offsets_text(remote.start_offset, remote.end_offset)} are only in remote storage, which "
        "is not read (or side files are older than the last retention)"
    )


_LOGGER = logging.getLogger(__name__)

_INDEXES: tuple[tuple[type[OffsetIndexEntries | TimeIndexEntries], str], ...] = (
    (OffsetIndexEntries, INDEX_FILE_SUFFIX),
    (TimeIndexEntries, TIME_INDEX_FILE_SUFFIX),
)


def _size_of(segments: Sequence[LogSegmentView]) -> int:
    return sum(segment.size_bytes for segment in segments)


# What a view remembers that another end or start of the log changes.
_OF_OFFSETS = (
    "segments",
    "checkpointed_log_start_offset",
    "log_start_offset",
    "log_end_offset",
    "last_header",
)
# What it remembers that another way of reading finds in another way.
_OF_ACCESS = (*_OF_OFFSETS, "end", "_first_consumed")


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
        The log directory's ``log-start-offset-checkpoint``, so that it is read once for a thousand
        partitions. If None, the view reads it by itself.
    damage
        Where planning notes damaged ranges. If None, the first one is an error.
    pending
        The commit that is under way in the log directory, whose records the view does not have. If
        None, the view looks for one by itself.
    access
        How its files are read.

    Attributes
    ----------
    known_last_stable_offset
        The last stable offset where somebody who follows the log has found it, else None.

    Notes
    -----
    If the directory cannot be listed, whatever asks for its content raises `LogDirectoryError`. The
    other partitions of the log directory can still be read.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        log_start_offsets: LogStartOffsets | None = None,
        damage: DamageReport | None = None,
        pending: PendingCommit | None = None,
        access: FileAccess = DEFAULT_ACCESS,
    ) -> None:
        # Before the directory is listed: what a commit appends after this look is noticed.
        self.pending = pending or PendingCommit(directory.log_directory)
        self.directory = directory
        self.topic_partition = directory.topic_partition
        self.log_start_offsets = log_start_offsets or LogStartOffsets(directory.log_directory)
        self.damage = damage
        self.access = access
        self.known_last_stable_offset: int | None = None
        self._limits: dict[int, int] = {}
        self._listed: SegmentListing | LogDirectoryError
        try:
            self._listed = list_segments(directory.path)
        except LogDirectoryError as error:
            self._listed = error

    def __repr__(self) -> str:
        # What the listing holds: a repr opens no file, and so fails for no damage.
        path = printable_location(self.directory.path)
        if isinstance(self._listed, LogDirectoryError):
            return f"LogView({path!r}, unreadable: {self._listed.reason})"
        segments = self._listed.segments
        return (
            f"LogView({path!r}, segments={len(segments)}, size_bytes={_size_of(segments)}, "
            f"local_log_start_offset={segments[0].base_offset if segments else 0})"
        )

    def _repr_html_(self) -> str:
        attempts = Attempts()
        segments = attempts.read(lambda: self.segments) or ()
        # The files of an object store are not opened for a look: every one is a request.
        opens_files = not is_remote(self.directory.path)
        start = attempts.read(lambda: self.log_start_offset) if opens_files else None
        end = attempts.read(lambda: self.log_end_offset) if opens_files else None
        many = counted(len(segments), "segment", digits=",")
        title = f"LogView {printable_location(self.directory.path)}: {many}"
        if start is not None and end is not None:
            title += f", start offset {start:,}, end offset {end:,}"
        return segments_html(title, segments, end, attempts, opens_files=opens_files)

    def refreshed(self, *, pending: PendingCommit | None = None) -> LogView:
        """Return a view of the partition as it is now, and where it is now, read in the same way.

        Parameters
        ----------
        pending
            See the class; None for the one that this view has.
        """

        def look(directory: PartitionDirectory) -> LogView:
            above = directory.log_directory
            hidden = pending or self.pending
            if hidden.log_directory != above:
                hidden = type(hidden)(above)
            return LogView(directory, LogStartOffsets(above), self.damage, hidden, self.access)

        return view_of(self.directory, look)

    def with_damage(self, damage: DamageReport | None) -> LogView:
        """Return the view with another report of damage, or with none."""
        return self.read_as(self.access, damage)

    def read_as(self, access: FileAccess, damage: DamageReport | None) -> LogView:
        """Return the view, or a copy that reads in another way; no directory is listed again."""
        is_same = access == self.access and (damage is None) == (self.damage is None)
        if is_same and damage is self.damage:
            return self
        view = copy(self)
        view.access, view.damage = access, damage
        if not is_same:
            view._limits = {}
            view._forget(_OF_ACCESS)
        return view

    def with_end(self, end: WholeBatches) -> LogView:
        """Return the view with an `end` that was found later. No file has come or gone since."""
        view = copy(self)
        listing = self.listing
        last = listing.segments[-1]
        last = replace(last, size_bytes=max(last.size_bytes, end.end_position))
        view._listed = replace(listing, segments=[*listing.segments[:-1], last])
        view._forget(_OF_OFFSETS)
        view.end = end
        return view

    def before_damage(self, error: CorruptRecordError) -> LogView | None:
        """Return the log as if it ended in front of damage; None if that is in no segment of it."""
        paths = [printable_location(each.file_path()) for each in self.segments]
        place = paths.index(error.path) if error.path in paths else None
        if place is None or error.position is None:
            return None
        end = find_end_at(self.segments[place], error.position)
        if end is None:
            return None
        view = copy(self)
        last = self.segments[place].base_offset
        listing = self.listing
        segments = [each for each in listing.segments if each.base_offset <= last]
        view._listed = replace(listing, segments=segments)
        view._limits = {}
        view._forget(_OF_ACCESS)
        view.end = end
        return view

    def with_log_start_offsets(self, log_start_offsets: LogStartOffsets) -> LogView:
        """Return the view with what the log directory's checkpoint says by now."""
        view = copy(self)
        view.log_start_offsets = log_start_offsets
        view._forget(_OF_OFFSETS)
        return view

    def with_pending(self, pending: PendingCommit) -> LogView:
        """Return a copy that asks ``pending``, which must not hide any segment of this log."""
        if pending is self.pending:
            return self
        view = copy(self)
        view.pending = pending
        return view

    def _forget(self, names: Sequence[str]) -> None:
        self.known_last_stable_offset = None
        for name in names:
            self.__dict__.pop(name, None)

    @property
    def unreadable(self) -> LogDirectoryError | None:
        """Why the directory could not be listed; None if it could."""
        return self._listed if isinstance(self._listed, LogDirectoryError) else None

    @property
    def listing(self) -> SegmentListing:
        """The segments and side files of the directory.

        Raises
        ------
        LogDirectoryError
            The directory could not be listed.
        """
        if isinstance(self._listed, LogDirectoryError):
            raise self._listed
        return self._listed

    @cached_property
    def segments(self) -> Sequence[LogSegmentView]:
        """The segments in offset order; without those that a pending commit has put there."""
        segments, end = self.listing.segments, self.pending_end_offset
        if self.access != DEFAULT_ACCESS:
            segments = [replace(each, access=self.access) for each in segments]
        if end is None:
            return segments
        return [each for each in segments if each.base_offset < end] or segments[:1]

    @property
    def pending_end_offset(self) -> int | None:
        """Where the log ends for readers while a commit to it is pending; None if none is.

        See `PendingCommit.end_offset_of` for the errors.
        """
        return self.pending.end_offset_of(self.topic_partition)

    @property
    def producer_snapshot_offsets(self) -> list[int]:
        """The offsets in the names of ``.snapshot`` files, in no particular order."""
        return self.listing.producer_snapshot_offsets

    @property
    def file_count(self) -> int:
        """How many files and directories of any kind there are."""
        return self.listing.file_count

    @property
    def leftover_file_count(self) -> int:
        """How many files end in ``.deleted``, ``.cleaned`` or ``.swap``."""
        return self.listing.leftover_file_count

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        """The number of the partition."""
        return self.topic_partition.partition

    @property
    def size_bytes(self) -> int:
        """The size of all ``.log`` files."""
        return _size_of(self.segments)

    @cached_property
    def log_start_offset(self) -> int:
        """The first offset that a broker serves from this disk.

        This is the larger of the first segment's base offset and the partition's offset in the log
        directory's ``log-start-offset-checkpoint``; 0 if there is neither. For the earlier records
        of a tiered topic see the top of this module.
        """
        first = min([self.local_log_start_offset, *self.listing.empty_segments])
        return max(first, self.checkpointed_log_start_offset or 0)

    @property
    def local_log_start_offset(self) -> int:
        """The first segment's base offset, from the name of its file; 0 without a segment."""
        return self.segments[0].base_offset if self.segments else 0

    @cached_property
    def checkpointed_log_start_offset(self) -> int | None:
        """What the log directory's checkpoint says of this partition; None if it says nothing.

        Raises
        ------
        CorruptCheckpointError, UnreadableFileError
            The checkpoint does not follow its format, or cannot be read; where the view has a
            damage report, a warning is logged instead.
        """
        try:
            return self.log_start_offsets.find(self.topic_partition)
        except (CorruptCheckpointError, UnreadableFileError) as error:
            if self.damage is None:
                raise
            _LOGGER.warning("%s: the log starts with its first segment", error)
            return None

    @cached_property
    def end(self) -> WholeBatches:
        """How far whole batches reach in the last segment; see `pylog.reading.log_end`."""
        if not self.segments:
            return WholeBatches(0, None, self._missing_logs())
        if self.pending_end_offset is not None:
            return find_end_before(self.segments[-1], self.pending_end_offset)
        return find_log_end(self.segments[-1], skips_damage=self.damage is not None)

    @cached_property
    def last_header(self) -> BatchHeader | None:
        """Of the last batch; the last segments may be empty."""
        if self.end.last is not None:
            return self.end.last.header
        for segment in reversed(self.segments[:-1]):
            # All headers of one segment, where the next one has just been rolled.
            with segment.open_log() as source:
                batches = find_whole_batches(
                    source, 0, segment.size_bytes, lowest_offset=segment.base_offset
                )
            if batches.last is not None:
                return batches.last.header
        return None

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last whole batch.

        Never below `log_start_offset`: Kafka, too, starts an empty log there when the checkpoint
        lies beyond the files' content.

        Raises
        ------
        CorruptRecordError
            The last segment holds an impossible header, or no ``.log`` file is left, so that the
            end of the log is unknown.
        UnreadableFileError
            The last ``.log`` file cannot be read.
        """
        return max(self.log_start_offset, self.next_offset)

    @property
    def next_offset(self) -> int:
        """The offset after the last whole batch of the files, whatever the log starts with.

        See `log_end_offset` for the errors.
        """
        if self.end.defect is not None:
            if not self.segments:
                raise CorruptRecordError(self.end.defect, self.directory.path)
            raise CorruptRecordError(
                self.end.defect, self.segments[-1].file_path(), self.end.end_position
            )
        if self.end.last is not None:
            return self.end.last.header.next_offset
        return self.segments[-1].base_offset if self.segments else 0

    @cached_property
    def was_being_created(self) -> bool:
        """Whether all that is here are index files from offset 0 that were made for an empty log.

        Names that were not synced may be lost in a crash in any order, that of the ``.log`` first.
        An index that a log was closed with has no room left; one that was in use has entries, or
        there are other files beside it: before the first record there are leader epochs.
        """
        others = self.listing.other_names
        if self.listing.base_offsets_without_log != [0] or set(others) - {PARTITION_METADATA}:
            return False
        files = len(others)
        for kind, suffix in _INDEXES:
            path = join(self.directory.path, file_name_prefix(0) + suffix)
            with kind.open(path, 0) as entries:
                if entries.entry_count:
                    return False
                files += entries.slot_count > 0
        return not self.segments and files == self.listing.file_count

    def _missing_logs(self) -> str | None:
        """Return what is wrong with a log of which index files are there, and no ``.log``."""
        bases = self.listing.base_offsets_without_log
        if not bases or self.was_being_created:
            return None
        reason = (
            f"no .log file is here, but index files are, the first of base offset {bases[0]}: the "
            "records are gone; look for the files, or read another replica"
        )
        if self.damage is None:
            return reason
        _LOGGER.warning("%s", CorruptRecordError(reason, self.directory.path))
        return None

    def segment_end(self, index: int) -> int:
        """Return how many bytes of segment ``index`` to read; in the last one, whole batches."""
        if index == len(self.segments) - 1:
            return self.end.end_position
        return self.segments[index].size_bytes

    def next_base_offset(self, index: int) -> int | None:
        """Return the base offset of the segment after ``index``; None for the last one."""
        if index + 1 < len(self.segments):
            return self.segments[index + 1].base_offset
        return None

    def limit_offset(self, index: int) -> int | None:
        """Return the offset that the batches of segment ``index`` lie below; None for the last one.

        The next segment's base offset, or what is after its last batch where the two overlap.
        """
        following = self.next_base_offset(index)
        if following is None:
            return None
        if index not in self._limits:
            end = self.segments[index].find_overlap_end(following)
            self._limits[index] = following if end is None else end
        return self._limits[index]

    def is_overlong(self, index: int) -> bool:
        """Whether a segment has more offsets than one can hold; see `LogSegmentView`."""
        segment, limit = self.segments[index], self.limit_offset(index)
        if limit is None:
            limit = self.next_offset if self.end.defect is None else 0
        return limit - segment.base_offset > OFFSETS_IN_SEGMENT and segment.is_overlong()

    def consumed_segments(self, start_offset: int) -> Iterator[ConsumedSegment]:
        """Yield the segments that a consumer reads which begins at an offset.

        A fetch looks for the last segment whose base offset is not above its offset, and reads it
        to its end, whatever other segments hold; the next fetch begins after the last batch. Where
        the segment found has nothing from there on, the next ones are read. So of an offset that
        two segments hold, a consumer from the start gets the record of the first, and one that
        begins at it gets that of the last. (A consumer whose fetch ends in the middle of such a
        range, since it has no more room, continues with the last, too.)
        """
        index, offset = self.find_segment(start_offset) or 0, start_offset
        while index < len(self.segments):
            yield ConsumedSegment(index, offset)
            limit, following = self.limit_offset(index), self.next_base_offset(index)
            index += 1
            if limit is not None and following is not None and limit > following:
                offset = max(offset, limit)
                index = max(index, self.find_segment(offset) or 0)

    def first_consumed(self, index: int) -> int:
        """Return the first offset that a reader from the log's start takes from a segment.

        Above all offsets where it passes over the segment.
        """
        return self._first_consumed.get(index, HIGHEST_OFFSET)

    @cached_property
    def _first_consumed(self) -> dict[int, int]:
        return dict(self.consumed_segments(self.local_log_start_offset))

    def find_segment(self, offset: int) -> int | None:
        """Return the index of the last segment whose base offset is not above ``offset``."""
        last_index = None
        for index, segment in enumerate(self.segments):
            if segment.base_offset > offset:
                break
            last_index = index
        return last_index

    @cached_property
    def leader_epochs(self) -> list[EpochEntry]:
        """The content of ``leader-epoch-checkpoint``; empty if there is no such file.

        Raises
        ------
        CorruptCheckpointError, UnreadableFileError
            The file does not follow its format, or cannot be read.
        """
        known = read_leader_epoch_checkpoint(join(self.directory.path, LEADER_EPOCH_CHECKPOINT))
        if known or not self.directory.was_moved():
            return known
        return self.refreshed().leader_epochs

    @property
    def latest_leader_epoch(self) -> int | None:
        """The epoch that a broker resumes with; None if neither checkpoint nor batch has one.

        A checkpoint that contradicts itself says what a broker has that has loaded it.

        Raises
        ------
        CorruptCheckpointError, UnreadableFileError
            The checkpoint does not follow its format, or cannot be read.
        """
        try:
            epochs = self.leader_epochs
        except CorruptCheckpointError:
            path = join(self.directory.path, LEADER_EPOCH_CHECKPOINT)
            epochs = loaded_entries(read_epoch_entries(path))
        if epochs:
            return epochs[-1].epoch
        if self.last_header is None:
            return None
        epoch = self.last_header.partition_leader_epoch
        return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch

    @cached_property
    def metadata(self) -> PartitionMetadata | None:
        """The content of ``partition.metadata``; None if there is no such file (before Kafka 2.8).

        Raises
        ------
        CorruptCheckpointError, UnreadableFileError
            The file does not follow its format, or cannot be read.
        """
        try:
            return read_partition_metadata(join(self.directory.path, PARTITION_METADATA))
        except SegmentVanishedError:
            return self.refreshed().metadata if self.directory.was_moved() else None
