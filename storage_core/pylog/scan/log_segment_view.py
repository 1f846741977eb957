"""One segment of a log that is being read: its files, and look-ups inside it.

Indexes are hints: whatever they say is checked against the batch at that position, so that a
missing, stale, zero-tailed or lying index costs time and never rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.offset_index import OffsetIndex
from pylog.files.storage import open_file
from pylog.locations import join
from pylog.log_file.batch_walk import (
    PositionedHeader,
    find_whole_batches,
    is_sound_batch,
    walk_headers,
)

if TYPE_CHECKING:
    from pylog.files.byte_source import ByteSource
    from pylog.model import OffsetPosition

_INDEX_TRIES = 4


def open_segment(path: str, file_id: int) -> ByteSource:
    """Open a ``.log`` file that is to be the one which was listed.

    Parameters
    ----------
    path
        The file.
    file_id
        From the listing; 0 where the storage tells nothing.

    Raises
    ------
    SegmentVanishedError
        It is gone, or another file has its name: compaction puts new files in place of old ones.
    """
    source = open_file(path)
    if file_id and source.file_id() not in (file_id, 0):
        source.close()
        reason = "file was replaced (by compaction, say) since the directory was listed"
        raise SegmentVanishedError(reason, path)
    return source


@dataclass(frozen=True, slots=True)
class LogSegmentView:
    """The files of one segment as the directory listing showed them.

    Attributes
    ----------
    directory
        The partition directory.
    base_offset
        What the file name says.
    size_bytes
        Length of the ``.log`` file when it was listed.
    suffixes
        Which files there are.
    state
        ``.swap`` for a segment that compaction has put in place but not renamed yet, else "".
    file_id
        Which file the ``.log`` was when it was listed; 0 where the storage tells nothing.
    defect
        Why the ``.log`` cannot be read at all: it is not a regular file, or a link that leads
        nowhere. Its size is 0 then, and not known.
    """

    directory: str
    base_offset: int
    size_bytes: int
    suffixes: frozenset[str]
    state: str = ""
    file_id: int = 0
    defect: str | None = None

    def file_path(self, suffix: str = LOG_FILE_SUFFIX) -> str:
        """Return the path of the segment's file of that kind."""
        return join(self.directory, f"{file_name_prefix(self.base_offset)}{suffix}{self.state}")

    def ensure_readable(self) -> None:
        """Raise `UnreadableFileError` if the listing told that the ``.log`` cannot be read."""
        if self.defect is not None:
            raise UnreadableFileError(self.defect, self.file_path())

    @property
    def has_transaction_index(self) -> bool:
        """Whether a ``.txnindex`` was listed."""
        return TXN_INDEX_FILE_SUFFIX in self.suffixes

    @property
    def has_time_index(self) -> bool:
        """Whether a ``.timeindex`` was listed."""
        return TIME_INDEX_FILE_SUFFIX in self.suffixes

    def open_log(self) -> ByteSource:
        """Open the ``.log`` file.

        Raises
        ------
        SegmentVanishedError
            It is gone, or another file has its name.
        UnreadableFileError
            It is not a regular file, or cannot be opened.
        """
        return open_segment(self.file_path(), self.file_id)

    def find_batch(self, source: ByteSource, offset: int, end: int) -> PositionedHeader | None:
        """Return the first batch whose last offset is at or above ``offset``.

        Parameters
        ----------
        source
            The opened ``.log`` file.
        offset
            Log offset.
        end
            Byte behind the last whole batch to consider.

        Returns
        -------
        PositionedHeader or None
            None if all batches before ``end`` are below ``offset``.

        Raises
        ------
        CorruptRecordError
            A header on the way is impossible, or offsets go back.
        """
        start = self._position_at_or_before(source, offset, end)
        for found in walk_headers(source, start, end, lowest_offset=self.base_offset):
            if found.header.last_offset >= offset:
                return found
        return None

    def whole_end(self, source: ByteSource, offset: int, end: int) -> int:
        """Return where whole batches end, walking from the indexed position before ``offset``."""
        start = self._position_at_or_before(source, offset, end)
        return find_whole_batches(source, start, end, lowest_offset=self.base_offset).end_position

    def _position_at_or_before(self, source: ByteSource, offset: int, end: int) -> int:
        """Return where a batch begins that is not behind the one holding ``offset``."""
        if offset <= self.base_offset:
            return 0
        with OffsetIndex.open(self.file_path(INDEX_FILE_SUFFIX), self.base_offset) as index:
            target = offset
            for _ in range(_INDEX_TRIES):
                entry = index.lookup(target)
                if entry.position == 0:
                    return 0
                # Batches are in order: if this one does not begin above the offset, none before
                # it holds the offset. Whether the entry stores the first or the last offset of
                # what was appended depends on the broker's age and does not matter here.
                batch = self._sound_batch(source, entry.position, end)
                if (
                    batch is not None
                    and batch.header.offset <= offset
                    and _is_borne_out(source, entry, batch, end)
                ):
                    return entry.position
                target = min(entry.offset, target) - 1
        return 0

    def _sound_batch(self, source: ByteSource, position: int, end: int) -> PositionedHeader | None:
        batch = is_sound_batch(source, position, end)
        return batch if batch is not None and batch.header.offset >= self.base_offset else None

    def last_indexed_position(self, source: ByteSource, end: int) -> int:
        """Return where the last batch before ``end`` that the offset index knows begins.

        0 if none is sound. The index may know of more by now: a broker goes on appending.
        """
        with OffsetIndex.open(self.file_path(INDEX_FILE_SUFFIX), self.base_offset) as index:
            newest = index.entry_count - 1
            for slot in range(newest, max(-1, newest - _INDEX_TRIES), -1):
                position = index.entry(slot).position
                if position > 0 and self._sound_batch(source, position, end) is not None:
                    return position
        return 0


def _is_borne_out(
    source: ByteSource, entry: OffsetPosition, batch: PositionedHeader, end: int
) -> bool:
    """Whether the offset of an index entry is one that a broker stores for this batch.

    Its first or its last one, or the last one of the batches that were appended with it.
    """
    header = batch.header
    if entry.offset in (header.offset, header.last_offset):
        return True
    if header.base_offset is None and entry.offset < header.last_offset:
        return True  # a wrapper's first offset is known after decompression only
    for found in walk_headers(source, batch.position, end):
        if found.header.last_offset >= entry.offset:
            return found.header.last_offset == entry.offset
    return False
