"""The files of a segment that we own: its ``.log`` and its three indexes, and offsets in them.

They are opened when they are used, and renamed, flushed, released and removed together. Only the
``.log`` has to be there.

Source: LogSegment (Kafka 4.3).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, LogSegmentOffsetOverflowError
from pylog.files import disk
from pylog.files.file_names import (
    DELETED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.indexes.offset_index import OffsetIndex
from pylog.indexes.time_index import TimeIndex
from pylog.indexes.transaction_index import TransactionIndex
from pylog.log_file.file_records import FileRecords
from pylog.model import OffsetPosition

if TYPE_CHECKING:
    from pylog.config import LogConfig
    from pylog.files.durable_io import DurableIO
    from pylog.files.file_names import SegmentTarget
    from pylog.log_file.batch_walk import PositionedHeader


class SegmentFiles:
    """The ``.log`` of one segment and its indexes.

    One writer at a time; readers need no lock. A flush in the background may come while the
    segment is being deleted, and creates none of its files again.
    """

    def __init__(
        self, target: SegmentTarget, config: LogConfig, io: DurableIO, *, is_new: bool
    ) -> None:
        self.base_offset = target.base_offset
        self._io = io
        self._target = target
        self._index_bytes = config.segment_index_bytes
        preallocated = config.segment_bytes if is_new and config.preallocate else 0
        self.log = FileRecords(
            io, target.path(LOG_FILE_SUFFIX), is_new=is_new, preallocated_bytes=preallocated
        )
        size, base_offset = self._index_bytes, target.base_offset
        self.offset_index = OffsetIndex(target.path(INDEX_FILE_SUFFIX), base_offset, size, io)
        self.time_index = TimeIndex(target.path(TIME_INDEX_FILE_SUFFIX), base_offset, size, io)
        path = target.path(TXN_INDEX_FILE_SUFFIX)
        self.transaction_index = TransactionIndex(path, base_offset, io)
        self._files_lock = threading.Lock()
        self._is_deleted = False

    @property
    def directory(self) -> str:
        """The partition directory."""
        return self._target.directory

    @property
    def size_bytes(self) -> int:
        """Length of the ``.log`` file's content."""
        return self.log.size_bytes

    def last_modified_ms(self) -> int:
        """Return when the ``.log`` file was changed last."""
        try:
            return disk.stat(self.log.path).st_mtime_ns // 1_000_000
        except OSError as error:
            reason = f"cannot stat file: {error.strerror}"
            raise KafkaStorageError(reason, self.log.path, errno=error.errno) from error

    def set_last_modified(self, modified_ms: int) -> None:
        """Make log, offset and time index say that they were changed last at ``modified_ms``."""
        for file in (self.log, self.offset_index, self.time_index):
            self._io.set_last_modified(file.path, modified_ms)

    # ---- offsets

    def can_hold(self, offset: int) -> bool:
        """Whether an offset fits into 32 bits relative to the base offset."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def ensure_offset_in_range(self, offset: int) -> None:
        """Raise `LogSegmentOffsetOverflowError` unless `can_hold` the offset."""
        if not self.can_hold(offset):
            reason = (
                f"offset {offset} does not fit into the segment with base offset "
                f"{self.base_offset}, which holds up to {self.base_offset + MAX_RELATIVE_OFFSET}"
            )
            raise LogSegmentOffsetOverflowError(reason, self.log.path)

    def translate_offset(
        self, offset: int, *, checks_order: bool = True
    ) -> PositionedHeader | None:
        """Return the first batch whose last offset is at or above ``offset``, None if none is."""
        entry = self.offset_index.lookup(offset)
        return self.log.find_batch(offset, entry.position, checks_order=checks_order)

    def fetch_upper_bound_offset(self, start: OffsetPosition, size_bytes: int) -> int | None:
        """Return an offset at or after the end of a range of bytes; None if none is indexed."""
        entry = self.offset_index.fetch_upper_bound_offset(start, size_bytes)
        return None if entry is None else entry.offset

    def read_next_offset(self) -> int:
        """Return the offset after the last batch, the base offset of an empty segment."""
        return self.read_end().offset

    def read_end(self, *, checks_order: bool = True) -> OffsetPosition:
        """Return the same offset, and the byte after the last batch."""
        end, is_found = OffsetPosition(self.base_offset, 0), False
        indexed = self.offset_index.last_offset
        position = self.offset_index.lookup(indexed).position
        for batch in self.log.batches_from(position, checks_order=checks_order):
            # An index that leads behind all of them counts as an empty log.
            is_found = is_found or batch.header.last_offset >= indexed
            if is_found:
                end = OffsetPosition(batch.header.next_offset, batch.end_position)
        return end

    # ---- files

    def create_indexes(self) -> None:
        """Make the index files, at their full size, where they are not there yet."""
        self.offset_index.resize(self._index_bytes)
        self.time_index.resize(self._index_bytes)

    def sanity_check(self, *, is_time_index_new: bool) -> None:
        """Check what Kafka checks when it opens a segment."""
        self.offset_index.ensure_exists()
        if is_time_index_new:
            self.time_index.resize(0)
        self.transaction_index.sanity_check()

    def flush(self) -> None:
        """Force log and indexes to disk; a segment that is deleted needs it no more."""
        with self._files_lock:
            if self._is_deleted:
                return
            self.log.sync()
            self.offset_index.flush()
            self.time_index.flush()
            self.transaction_index.flush()

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """Rename all files of the segment, those that are there."""
        self._ensure_suffix(old_suffix)
        with self._files_lock:
            self._is_deleted = new_suffix == DELETED_FILE_SUFFIX
            self._rename_log(new_suffix)
            self._rename_indexes()

    def mark_deleted(self) -> None:
        """Rename all files of the segment to ``….deleted``; the ``.log`` first, and for good."""
        self._ensure_suffix("")
        with self._files_lock:
            self._is_deleted = True
            self._rename_log(DELETED_FILE_SUFFIX)
            self._io.sync_directory(self.directory)
            self._rename_indexes()

    def _ensure_suffix(self, suffix: str) -> None:
        if self._target.file_suffix != suffix:
            msg = f"files end in {self._target.file_suffix!r}, expected {suffix!r}"
            raise ValueError(msg)

    def _rename_log(self, suffix: str) -> None:
        self._target = self._target._replace(file_suffix=suffix)
        self.log.rename_to(self._target.path(LOG_FILE_SUFFIX))

    def _rename_indexes(self) -> None:
        target = self._target
        self.offset_index.rename_to(target.path(INDEX_FILE_SUFFIX), missing_ok=True)
        self.time_index.rename_to(target.path(TIME_INDEX_FILE_SUFFIX), missing_ok=True)
        self.transaction_index.rename_to(target.path(TXN_INDEX_FILE_SUFFIX), missing_ok=True)

    def release(self) -> None:
        """Give descriptors and the indexes' memory back; the next use takes them again."""
        for file in self._files:
            file.release()

    def close_handlers(self) -> None:
        """Release all files for good, changing nothing."""
        for file in self._files:
            file.close()

    def delete_if_exists(self) -> None:
        """Remove all files of the segment."""
        with self._files_lock:
            self._is_deleted = True
            for file in self._files:
                file.delete_if_exists()

    @property
    def _files(self) -> tuple[FileRecords, OffsetIndex, TimeIndex, TransactionIndex]:
        return self.log, self.offset_index, self.time_index, self.transaction_index
