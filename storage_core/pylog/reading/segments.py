"""The segments of a log that is being read: which there are, their files, and look-ups inside one.

Indexes are hints: an entry is used once the batches around it have proved it
(`pylog.log_file.batch_walk`), so a missing, stale, zero-tailed or lying index costs time and
never rows.

Compaction replaces segments in steps: the new one is written as ``.cleaned``, renamed to ``.swap``,
the old ones to ``.deleted``, and at last ``.swap`` is taken off the name. From ``.swap`` on the
replacement counts, as it does for a broker that starts after a crash in between: ``.log`` files
whose base offsets lie in the range of the ``.swap`` files are left out. A ``.swap`` at or above a
``.cleaned`` file was not renamed with all its like and does not count.

Segments overlap where files of a backup lie among those of a live log. A broker asks no batch which
file it belongs to, so neither does a reader: `LogView.consumed_segments` has the order.

Source: LogLoader, LocalLog.replaceSegments, LocalLog.read (Kafka 3.9, 4.4).
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptRecordError,
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.byte_source import stamp_of
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
    find_segment_file_name,
    is_kafka_0_7_log,
)
from pylog.files.index_entries import OffsetIndexEntries
from pylog.files.java_numbers import find_offset_of
from pylog.files.looks import Looks
from pylog.files.storage import is_folder, list_directory, open_file, settled_since, stat_file
from pylog.locations import join
from pylog.log_file.batch_walk import (
    OFFSETS_IN_SEGMENT,
    PositionedHeader,
    find_last_offset,
    find_whole_batches,
    has_valid_checksum,
    walk_headers,
)
from pylog.log_file.proved_positions import ProvedPosition, ProvedPositions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.byte_source import ByteSource
    from pylog.files.file_names import SegmentFileName
    from pylog.files.storage import DirectoryEntry, FileStatus


@dataclass(frozen=True, slots=True)
class FileAccess:
    """How files are read, whatever is read of them: a value of views, segments and tasks.

    `pylog.scan` explains the two. Another way is another value on a copy of a view: it lists no
    directory again, which in an object store is a request.
    """

    use_indexes: bool = True
    leave_page_cache: bool = False


DEFAULT_ACCESS = FileAccess()


def open_segment(
    path: str, file_id: int, stamp: int, *, leaves_page_cache: bool = False
) -> ByteSource:
    """Open a listed ``.log`` file; `SegmentVanishedError` if it is gone or has been replaced."""
    source = open_file(path, leaves_page_cache=leaves_page_cache)
    is_other = file_id and source.file_id() not in (file_id, 0)
    if is_other or (stamp and source.stamp() not in (stamp, 0)):
        source.close()
        reason = "file was replaced (by compaction, say) since the directory was listed"
        raise SegmentVanishedError(reason, path)
    return source


@dataclass(frozen=True, slots=True)
class LogSegmentView:
    """The files of one segment as the directory listing showed them."""

    directory: str
    base_offset: int
    size_bytes: int
    suffixes: frozenset[str]
    state: str = ""
    file_id: int = 0
    defect: str | None = None
    access: FileAccess = DEFAULT_ACCESS
    stamp: int = 0  # of a file that does not grow, since another segment follows; see `stamp_of`

    def file_path(self, suffix: str = LOG_FILE_SUFFIX) -> str:
        """Return the path of the segment's file of that kind."""
        return join(self.directory, f"{file_name_prefix(self.base_offset)}{suffix}{self.state}")

    def ensure_readable(self) -> None:
        """Raise `UnreadableFileError` if the listing said that the ``.log`` cannot be read."""
        if self.defect is not None:
            raise UnreadableFileError(self.defect, self.file_path())

    @property
    def has_transaction_index(self) -> bool:
        """Whether a ``.txnindex`` was listed and may be used."""
        return self.access.use_indexes and TXN_INDEX_FILE_SUFFIX in self.suffixes

    @property
    def has_time_index(self) -> bool:
        """Whether a ``.timeindex`` was listed and may be used."""
        return self.access.use_indexes and TIME_INDEX_FILE_SUFFIX in self.suffixes

    def open_log(self) -> ByteSource:
        """Open the ``.log`` file."""
        return open_segment(
            self.file_path(),
            self.file_id,
            self.stamp,
            leaves_page_cache=self.access.leave_page_cache,
        )

    def find_batch(self, source: ByteSource, offset: int, end: int) -> PositionedHeader | None:
        """Return the first batch whose last offset is at or above ``offset``."""
        _, batch = self._batches_around(source, offset, end)
        return None if batch is None else batch[0]

    def find_start(
        self, source: ByteSource, offset: int, end: int, *, checks_gap: bool
    ) -> tuple[ProvedPosition, PositionedHeader | None]:
        """Return where a reader of the records from ``offset`` on begins, and `find_batch`."""
        before, found = self._batches_around(source, offset, end)
        batch, lowest_offset = (None, self.base_offset) if found is None else found
        base_offset = None if batch is None else batch.header.base_offset
        is_in_gap = base_offset is None or base_offset > offset  # or nobody knows
        if checks_gap and is_in_gap and before is not None:
            return ProvedPosition(before[0].position, before[1]), batch
        position = self._whole_end(source, offset, end) if batch is None else batch.position
        return ProvedPosition(position, lowest_offset), batch

    def _batches_around(
        self, source: ByteSource, offset: int, end: int
    ) -> tuple[_PlacedHeader | None, _PlacedHeader | None]:
        """Return the last batch below an offset and the first one that is not."""
        start = self._position_at_or_before(source, offset, end)
        before, lowest = None, start.lowest_offset
        for batch in walk_headers(source, start.position, end, lowest_offset=lowest):
            if batch.header.last_offset >= offset:
                return before, (batch, lowest)
            before, lowest = (batch, lowest), batch.header.next_offset
        return before, None

    def _whole_end(self, source: ByteSource, offset: int, end: int) -> int:
        position, lowest = self._position_at_or_before(source, offset, end)
        return find_whole_batches(source, position, end, lowest_offset=lowest).end_position

    def _position_at_or_before(self, source: ByteSource, offset: int, end: int) -> ProvedPosition:
        if offset <= self.base_offset:
            return self._beginning
        with self.open_offset_index() as index:
            return self._proved_positions(source, index, end).before_offset(offset)

    def last_indexed_position(
        self, source: ByteSource, end: int, *, is_sound: bool = False
    ) -> ProvedPosition:
        """Return where the last batch before ``end`` that the offset index proves begins.

        The segment's beginning if it proves none; with ``is_sound``, none with a right checksum.
        The index may know of more by now: a broker continues appending.
        """
        if end <= _WALKED_BYTES:
            return self._beginning
        with self.open_offset_index() as index:
            return self._proved_positions(source, index, end).last(is_sound=is_sound)

    def is_overlong(self) -> bool:
        """Whether batches lie above what a segment can hold, as cleaners before Kafka 1.1 left.

        The offset of a single one is wrong.
        """
        return self.find_overlap_end(self.base_offset + OFFSETS_IN_SEGMENT) is not None

    def find_overlap_end(self, following: int) -> int | None:
        """Return the offset after the last batch if it is above ``following``; None otherwise.

        ``following`` is the next segment's base offset. No checksum covers a base offset: a batch
        is believed to lie above it if its own checksum is right, and it follows the one before
        without a gap, or another one follows it. A segment that begins above it is misnamed.
        """
        try:
            with self.open_log() as source:
                end = source.size()
                position, lowest = self.last_indexed_position(source, end)
                if find_last_offset(source, position, end, lowest_offset=lowest) < following:
                    return None
                start = self._position_at_or_before(source, following, end)
                if not self._reaches_above(source, start, end, following):
                    return None
                last = find_whole_batches(source, position, end, lowest_offset=lowest).last
                if last is None or last.header.offset < following:
                    return None
                # What is damaged here may be intact in the next segment.
                is_sound = has_valid_checksum(source, last)
                return last.header.next_offset if is_sound else last.header.offset
        except (CorruptRecordError, UnreadableFileError):
            return None  # its reader meets it

    def _reaches_above(
        self, source: ByteSource, start: ProvedPosition, end: int, following: int
    ) -> bool:
        """Whether a batch that is believed has an offset at or above ``following``."""
        crossing, lowest = None, start.lowest_offset
        for batch in walk_headers(source, start.position, end, lowest_offset=lowest):
            if crossing is not None:
                return has_valid_checksum(source, crossing)
            if batch.header.last_offset >= following:
                if batch.header.base_offset == lowest:
                    return has_valid_checksum(source, batch)
                if batch.position == 0:
                    return False
                crossing = batch
            lowest = batch.header.next_offset
        return False

    def open_offset_index(self) -> OffsetIndexEntries:
        """Open the offset index; one without entries if there is none, or none is to be used."""
        if not self.access.use_indexes:
            return OffsetIndexEntries.empty(self.base_offset)
        return OffsetIndexEntries.open(
            self.file_path(INDEX_FILE_SUFFIX),
            self.base_offset,
            leaves_page_cache=self.access.leave_page_cache,
        )

    @property
    def _beginning(self) -> ProvedPosition:
        return ProvedPosition(0, self.base_offset)

    def _proved_positions(
        self, source: ByteSource, index: OffsetIndexEntries, end: int
    ) -> ProvedPositions:
        return ProvedPositions(source, index, self._beginning, end)


_WALKED_BYTES = 1 << 13
"""So few are walked over sooner than the index is opened."""
_PlacedHeader = tuple[PositionedHeader, int]
"""A header, and the offset after the batch before it."""


@dataclass(slots=True)
class SegmentListing:
    """What a partition directory holds."""

    segments: list[LogSegmentView] = field(default_factory=list)
    producer_snapshot_offsets: list[int] = field(default_factory=list)
    file_count: int = 0
    leftover_file_count: int = 0
    base_offsets_without_log: list[int] = field(default_factory=list)
    misnamed_logs: list[str] = field(default_factory=list)
    other_names: list[str] = field(default_factory=list)

    @property
    def empty_segments(self) -> list[int]:
        """Where a broker makes empty segments of unusual names, such as ``-1.log``."""
        found = map(find_offset_of, self.misnamed_logs)
        return [each for each in found if each is not None]

    def add_other(self, entry: DirectoryEntry) -> None:
        """Add what is not named like a file of a segment."""
        self.other_names.append(entry.name)
        if entry.name.endswith(LOG_FILE_SUFFIX) and not is_folder(entry):
            self.misnamed_logs.append(entry.name)


class _Names:
    """The files of one state (live, or ``.swap``) by base offset."""

    def __init__(self, directory: str, state: str) -> None:
        self._directory = directory
        self._state = state
        self._suffixes: dict[int, set[str]] = {}
        self._logs: dict[int, FileStatus | UnreadableFileError] = {}

    def add(self, name: SegmentFileName, entry: DirectoryEntry) -> None:
        if name.suffix == LOG_FILE_SUFFIX:
            try:
                self._logs[name.base_offset] = stat_file(entry)
            except UnreadableFileError as error:
                self._logs[name.base_offset] = error
        self._suffixes.setdefault(name.base_offset, set()).add(name.suffix)

    def add_folders(self, folders: Iterable[tuple[SegmentFileName, DirectoryEntry]]) -> None:
        """Add folders in the places of files: of an index, or of a ``.log`` that has indexes.

        A broker ignores all others; also the latter, and its consumers pass over what is missing.
        """
        for name, entry in folders:
            others = self._suffixes.get(name.base_offset, set())
            has_others = (
                bool(others) if name.suffix == LOG_FILE_SUFFIX else LOG_FILE_SUFFIX in others
            )
            if not name.state and has_others and name.suffix != PRODUCER_SNAPSHOT_FILE_SUFFIX:
                self.add(name, entry)

    def segments(self) -> list[LogSegmentView]:
        return [self._segment(base, status) for base, status in sorted(self._logs.items())]

    def base_offsets_without_log(self) -> set[int]:
        return self._suffixes.keys() - self._logs.keys()

    def _segment(self, base: int, status: FileStatus | UnreadableFileError) -> LogSegmentView:
        suffixes = frozenset(self._suffixes[base])
        if isinstance(status, UnreadableFileError):
            return LogSegmentView(
                self._directory, base, 0, suffixes, self._state, defect=status.reason
            )
        return LogSegmentView(
            self._directory,
            base,
            status.st_size,
            suffixes,
            self._state,
            status.st_ino,
            stamp=stamp_of(status) if isinstance(status, os.stat_result) else 0,
        )


def list_segments(directory: str) -> SegmentListing:
    """Return what the partition directory at ``directory`` holds."""
    looks = Looks()
    while True:
        before = settled_since(directory)
        # A file may be renamed or deleted between listing and stat, or before it is read.
        with suppress(SegmentVanishedError):
            listing = _list_once(directory)
            if before == settled_since(directory):
                return listing
        reason = "files come and go faster than the directory can be listed"
        looks.again(LogDirectoryError(reason, directory))


def _list_once(directory: str) -> SegmentListing:
    listing = SegmentListing()
    live, swap = _Names(directory, ""), _Names(directory, SWAP_FILE_SUFFIX)
    cleaned: list[int] = []
    folders: list[tuple[SegmentFileName, DirectoryEntry]] = []
    for entry in list_directory(directory):
        listing.file_count += 1
        name = find_segment_file_name(entry.name)
        if name is None:
            listing.add_other(entry)
            continue
        if is_folder(entry):
            folders.append((name, entry))
            continue
        if name.state:
            listing.leftover_file_count += 1
        if name.state == CLEANED_FILE_SUFFIX:
            cleaned.append(name.base_offset)
        elif name.state == SWAP_FILE_SUFFIX:
            swap.add(name, entry)
        elif not name.state and name.suffix == PRODUCER_SNAPSHOT_FILE_SUFFIX:
            listing.producer_snapshot_offsets.append(name.base_offset)
        elif not name.state:
            live.add(name, entry)
    live.add_folders(folders)
    replacing = [
        segment for segment in swap.segments() if not cleaned or segment.base_offset < min(cleaned)
    ]
    replaced = _Replaced(replacing)
    kept = [each for each in live.segments() if each.base_offset not in replaced]
    listing.segments = sorted([*kept, *replacing], key=lambda each: each.base_offset)
    listing.segments[-1:] = [replace(last, stamp=0) for last in listing.segments[-1:]]
    if not listing.segments and any(map(is_kafka_0_7_log, listing.other_names)):
        reason = (
            "cannot read segments of Kafka 0.7 (.kafka files), only those of Kafka 0.8 and later "
            "(.log files); the KafkaMigrationTool of Kafka 0.8 copies topics of 0.7"
        )
        raise LogDirectoryError(reason, directory)
    without_log = live.base_offsets_without_log()
    listing.base_offsets_without_log = sorted(base for base in without_log if base not in replaced)
    return listing


class _Replaced:
    """The base offsets of segments whose places those of a compaction have taken."""

    def __init__(self, replacing: list[LogSegmentView]) -> None:
        # One that compaction left empty has no range, and still takes its name.
        self._names = {segment.base_offset for segment in replacing}
        self._start = min(self._names, default=0)
        self._end = max(map(_next_offset, replacing), default=0)

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._names or self._start <= base_offset < self._end


def _next_offset(segment: LogSegmentView) -> int:
    with segment.open_log() as source:
        last = find_whole_batches(source, 0, source.size(), lowest_offset=segment.base_offset).last
    return segment.base_offset if last is None else last.header.next_offset
