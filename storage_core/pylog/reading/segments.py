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

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptRecordError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.storage import open_file
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
    from pylog.files.byte_source import ByteSource


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
