"""One segment that we own: a ``.log`` file with its offset, time and transaction index.

When entries are written. The whole set is written to the ``.log`` first, then for each batch of it,
in order:

1. its max timestamp is above all before: that is the *max timestamp so far*, with the batch's last
   offset;
2. more than ``index.interval.bytes`` have been written since the last entry: an offset entry (the
   batch's last offset, its position) and a time entry (max timestamp so far and its offset, left
   out unless the timestamp is above the last entry's), and the count begins anew;
3. the batch's size is added to the count.

So the first batch of a segment is never indexed, and the count is 0 after opening or cutting.
Brokers up to 3.9.0 and 4.0.0 did this once for each set. When the segment is rolled or closed, a
time entry of the max timestamp so far is forced, for which one slot is reserved.

Source: LogSegment (Kafka 4.3; KAFKA-17583 for entries by batch).
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import KafkaStorageError, LogSegmentOffsetOverflowError
from pylog.files.file_names import (
    DELETED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
)
from pylog.files.transaction_index import TransactionIndexEntry
from pylog.indexes.offset_index import OffsetIndex
from pylog.indexes.time_index import TimeIndex
from pylog.indexes.transaction_index import TransactionIndex
from pylog.log.fetch_data_info import FetchDataInfo, LogOffsetMetadata
from pylog.log_file.file_records import FileRecords
from pylog.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.clock import Clock
    from pylog.config import LogConfig
    from pylog.files.durable_io import DurableIO
    from pylog.log.roll_params import RollParams
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.producers.completed_transaction import CompletedTransaction

_MAX_RELATIVE_OFFSET = 2**31 - 1


class SegmentTarget(NamedTuple):
    """Where a segment's files lie: directory, base offset, and what follows their usual names."""

    directory: str
    base_offset: int
    file_suffix: str = ""

    def path(self, suffix: str) -> str:
        """Return the path of the file with ``suffix``."""
        name = f"{file_name_prefix(self.base_offset)}{suffix}{self.file_suffix}"
        return os.path.join(self.directory, name)  # noqa: PTH118 - called for every segment


class _State(NamedTuple):
    """What an append changes in memory; ``next_offset`` is where its index entries begin."""

    size_bytes: int
    next_offset: int
    max_timestamp_so_far: TimestampOffset | None
    bytes_since_last_index_entry: int
    rolling_based_timestamp: int | None


class LogSegment:
    """A contiguous range of a log, from its base offset to the next segment's.

    One writer at a time (the log's lock); readers need no lock.

    Parameters
    ----------
    target
        Where the files lie.
    config
        Of the topic.
    io, clock
        What everything is changed through, and the time.
    is_new
        Whether the ``.log`` file is to be made; otherwise it must be there.
    roll_jitter_ms
        How much earlier than ``segment.ms`` this segment is rolled.
    """

    def __init__(
        self,
        target: SegmentTarget,
        config: LogConfig,
        *,
        io: DurableIO,
        clock: Clock,
        is_new: bool = False,
        roll_jitter_ms: int = 0,
    ) -> None:
        self.base_offset = target.base_offset
        self.roll_jitter_ms = roll_jitter_ms
        self._target = target
        self._config = config
        self._clock = clock
        preallocated = config.segment_bytes if is_new and config.preallocate else 0
        self.log = FileRecords(
            io, target.path(LOG_FILE_SUFFIX), is_new=is_new, preallocated_bytes=preallocated
        )
        size = config.segment_index_bytes
        base_offset = target.base_offset
        self.offset_index = OffsetIndex(target.path(INDEX_FILE_SUFFIX), base_offset, size, io)
        self.time_index = TimeIndex(target.path(TIME_INDEX_FILE_SUFFIX), base_offset, size, io)
        self.transaction_index = TransactionIndex(
            target.path(TXN_INDEX_FILE_SUFFIX), base_offset, io
        )
        self._bytes_since_last_index_entry = 0
        self._rolling_based_timestamp: int | None = None
        self._max_timestamp_so_far: TimestampOffset | None = None
        self._created_ms = clock.milliseconds()
        self._before_append = _State(self.size_bytes, base_offset, None, 0, None)
        # A flush in the background must not make files anew that are being deleted.
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

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that carries it.

        Taken from the time index of a segment that has been opened: its last entry is the forced
        one of a roll or close.
        """
        if self._max_timestamp_so_far is None:
            self._max_timestamp_so_far = self.time_index.last_entry
        return self._max_timestamp_so_far

    @property
    def largest_record_timestamp(self) -> int | None:
        """The largest timestamp of a record, None if no record has one."""
        largest = self.max_timestamp_so_far.timestamp
        return largest if largest >= 0 else None

    @property
    def largest_timestamp(self) -> int:
        """The same; where no record has one, when the file was changed last (ms)."""
        largest = self.largest_record_timestamp
        return self.last_modified_ms() if largest is None else largest

    def last_modified_ms(self) -> int:
        """Return when the ``.log`` file was changed last."""
        try:
            return os.stat(self.log.path).st_mtime_ns // 1_000_000  # noqa: PTH116
        except OSError as error:
            reason = f"cannot stat file: {error.strerror}"
            raise KafkaStorageError(reason, self.log.path, errno=error.errno) from error

    def has_overflow(self) -> bool:
        """Whether the last offset does not fit into 32 bits relative to the base offset.

        Possible in files of brokers before 2.0 (KAFKA-5413).
        """
        next_offset = self.read_next_offset()
        return next_offset > self.base_offset and not self.can_hold(next_offset - 1)

    def can_hold(self, offset: int) -> bool:
        """Whether an offset fits into 32 bits relative to the base offset."""
        return 0 <= offset - self.base_offset <= _MAX_RELATIVE_OFFSET

    # ---- appending

    def append(
        self, records: bytes | bytearray | memoryview, batches: Sequence[PositionedHeader]
    ) -> int:
        """Append whole batches; return the position where they begin.

        Parameters
        ----------
        records
            The bytes.
        batches
            Their headers with positions in ``records``; offsets go up.

        Raises
        ------
        LogSegmentOffsetOverflowError
            An offset does not fit; nothing is written.
        ValueError
            The file or an index would be too large; nothing is written.
        KafkaStorageError
            Writing failed; nothing of it is seen by readers.
        """
        for found in batches:
            self.ensure_offset_in_range(found.header.last_offset)
        self._before_append = _State(
            self.size_bytes,
            batches[0].header.last_offset,
            self._max_timestamp_so_far,
            self._bytes_since_last_index_entry,
            self._rolling_based_timestamp,
        )
        if self.size_bytes == 0:
            # Of the first batch alone: so a segment that is opened again rolls at the same time.
            self._rolling_based_timestamp = batches[0].header.max_timestamp
        start = self.log.append(records)
        try:
            for found in batches:
                self._index(start + found.position, found)
        except BaseException:
            self.take_back_append()
            raise
        return start

    def take_back_append(self) -> None:
        """Undo the last append, which no reader has been told of.

        Its index entries go, too: records appended later would be looked for where they point to.
        Differs from Kafka, which keeps the bytes of an append for which an index has no room,
        unknown to the log, and appends after them.
        Where the disk refuses that, the log directory is offline, and its next owner makes the
        indexes anew.
        """
        before = self._before_append
        self.log.revert_to(before.size_bytes)
        self._max_timestamp_so_far = before.max_timestamp_so_far
        self._bytes_since_last_index_entry = before.bytes_since_last_index_entry
        self._rolling_based_timestamp = before.rolling_based_timestamp
        with suppress(KafkaStorageError):
            self.offset_index.truncate_to(before.next_offset)
            self.time_index.truncate_to(before.next_offset)
            self.transaction_index.truncate_to(before.next_offset)

    def _index(self, position: int, found: PositionedHeader) -> None:
        header = found.header
        if header.max_timestamp > self.max_timestamp_so_far.timestamp:
            self._max_timestamp_so_far = TimestampOffset(header.max_timestamp, header.last_offset)
        if self._bytes_since_last_index_entry > self._config.index_interval_bytes:
            self.offset_index.append(header.last_offset, position)
            self.time_index.maybe_append(*self.max_timestamp_so_far)
            self._bytes_since_last_index_entry = 0
        self._bytes_since_last_index_entry += header.size_bytes

    def ensure_offset_in_range(self, offset: int) -> None:
        """Raise `LogSegmentOffsetOverflowError` unless `can_hold` the offset."""
        if not self.can_hold(offset):
            reason = (
                f"offset {offset} does not fit into the segment with base offset "
                f"{self.base_offset}, which holds up to {self.base_offset + _MAX_RELATIVE_OFFSET}"
            )
            raise LogSegmentOffsetOverflowError(reason, self.log.path)

    def update_transaction_index(
        self, completed: CompletedTransaction, last_stable_offset: int
    ) -> None:
        """Append an entry if the transaction was aborted."""
        if completed.is_aborted:
            entry = TransactionIndexEntry(
                0,
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                last_stable_offset,
            )
            self.transaction_index.append(entry)

    # ---- rolling

    def should_roll(self, params: RollParams) -> bool:
        """Whether a new segment is to be begun before an append."""
        waited = self.time_waited_for_roll(params.now_ms, params.max_timestamp_in_messages)
        reached_roll_ms = waited > params.max_segment_ms - self.roll_jitter_ms
        size = self.size_bytes
        return (
            size > params.max_segment_bytes - params.messages_size_bytes
            or (size > 0 and reached_roll_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.can_hold(params.max_offset_in_messages)
        )

    def time_waited_for_roll(self, now_ms: int, message_timestamp: int) -> int:
        """Return the time from the max timestamp of the first batch to ``message_timestamp``.

        From the segment's creation to ``now_ms`` where that batch has no timestamps.
        """
        self._load_first_batch_timestamp()
        first = self._rolling_based_timestamp
        if first is not None and first >= 0:
            return message_timestamp - first
        return now_ms - self._created_ms

    def _load_first_batch_timestamp(self) -> None:
        if self._rolling_based_timestamp is None and self.size_bytes:
            first = next(self.log.batches_from(0), None)
            if first is not None:
                self._rolling_based_timestamp = first.header.max_timestamp

    def first_batch_timestamp(self) -> int | None:
        """Return the timestamp that the time until the roll is counted from, None if none."""
        self._load_first_batch_timestamp()
        first = self._rolling_based_timestamp
        return first if first is not None and first >= 0 else None

    def on_become_inactive_segment(self) -> None:
        """Force the last time entry and cut the files to what they hold."""
        self.time_index.maybe_append(*self.max_timestamp_so_far, skip_full_check=True)
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()

    # ---- reading

    def translate_offset(self, offset: int, lowest_position: int = 0) -> PositionedHeader | None:
        """Return the first batch whose last offset is at or above ``offset``, None if none is."""
        entry = self.offset_index.lookup(offset)
        return self.log.find_batch(offset, max(entry.position, lowest_position))

    def read(
        self,
        start_offset: int,
        max_size_bytes: int,
        *,
        max_position: int | None = None,
        min_one_message: bool = False,
    ) -> FetchDataInfo | None:
        """Return bytes from the batch that holds ``start_offset`` on; None if all are below it.

        Parameters
        ----------
        start_offset
            First offset wanted; the first batch may begin before it.
        max_size_bytes
            Most bytes to return, which may cut the last batch.
        max_position
            No byte at or behind it is returned; the content's end if None.
        min_one_message
            Return the first batch whole, however large it is.

        Raises
        ------
        ValueError
            ``max_size_bytes`` is negative.
        """
        if max_size_bytes < 0:
            msg = f"max_size_bytes is {max_size_bytes}, expected 0 or more"
            raise ValueError(msg)
        first = self.translate_offset(start_offset)
        if first is None:
            return None
        metadata = LogOffsetMetadata(start_offset, self.base_offset, first.position)
        size = max_size_bytes
        if min_one_message:
            size = max(size, first.header.size_bytes)
        if size == 0:
            return FetchDataInfo(metadata, b"")
        end = self.size_bytes if max_position is None else min(max_position, self.size_bytes)
        length = max(0, min(end - first.position, size))
        return FetchDataInfo(
            metadata,
            self.log.read_at(first.position, length),
            first_entry_incomplete=size < first.header.size_bytes,
        )

    def fetch_upper_bound_offset(self, start: OffsetPosition, size_bytes: int) -> int | None:
        """Return an offset at or behind the end of a range of bytes; None if none is indexed."""
        found = self.offset_index.fetch_upper_bound_offset(start, size_bytes)
        return None if found is None else found.offset

    def read_next_offset(self) -> int:
        """Return the offset after the last batch, the base offset of an empty segment.

        Reads from the last index entry on.
        """
        position = self.offset_index.lookup(self.offset_index.last_offset).position
        next_offset = self.base_offset
        for found in self.log.batches_from(position):
            next_offset = found.header.next_offset
        return next_offset

    # ---- files

    def create_indexes(self) -> None:
        """Make the index files, at their full size, where they are not there yet."""
        self.offset_index.resize(self._config.segment_index_bytes)
        self.time_index.resize(self._config.segment_index_bytes)

    def resize_indexes(self, size_bytes: int) -> None:
        """Give both indexes files of a length."""
        self.offset_index.resize(size_bytes)
        self.time_index.resize(size_bytes)

    def sanity_check(self, *, is_time_index_new: bool) -> None:
        """Check what Kafka checks when it opens a segment.

        Raises
        ------
        SegmentVanishedError
            There is no offset index.
        CorruptIndexError
            The transaction index has an entry below the base offset.
        """
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

    def truncate_to(self, offset: int) -> int:
        """Remove the batch that holds ``offset`` and all behind it; return how many bytes went.

        The batch goes as a whole, with its records below ``offset``; where the offset lies in a
        gap, the next batch goes.
        """
        found = self.translate_offset(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        # Room for new entries; an index of a rolled segment has been trimmed.
        self.resize_indexes(self._config.segment_index_bytes)
        removed = 0 if found is None else self.log.truncate_to(found.position)
        if self.size_bytes == 0:
            self._created_ms = self._clock.milliseconds()
            self._rolling_based_timestamp = None
        self._bytes_since_last_index_entry = 0
        self._load_largest_timestamp()
        return removed

    def _load_largest_timestamp(self) -> None:
        """Read on after the last time entry for a larger timestamp.

        Differs from Kafka, which does not where truncation empties the time index of a segment
        whose largest timestamp nobody has asked for since it was opened: look-ups by time would
        pass over the segment.
        """
        entry = self.time_index.last_entry
        self._max_timestamp_so_far = entry
        position = self.offset_index.lookup(entry.offset).position
        for found in self.log.batches_from(position):
            if found.header.max_timestamp > self._max_timestamp_so_far.timestamp:
                self._max_timestamp_so_far = TimestampOffset(
                    found.header.max_timestamp, found.header.last_offset
                )

    def forget_timestamps(self) -> None:
        """Begin to collect timestamps anew, as recovery does."""
        self._max_timestamp_so_far = TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def note_timestamp(self, timestamp: int, offset: int) -> None:
        """Take a batch's max timestamp and last offset into account."""
        if timestamp > self.max_timestamp_so_far.timestamp:
            self._max_timestamp_so_far = TimestampOffset(timestamp, offset)

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """Rename all files of the segment, those that are there."""
        target = SegmentTarget(self._target.directory, self.base_offset, new_suffix)
        if self._target.file_suffix != old_suffix:
            msg = f"files end in {self._target.file_suffix!r}, expected {old_suffix!r}"
            raise ValueError(msg)
        with self._files_lock:
            self._is_deleted = new_suffix == DELETED_FILE_SUFFIX
            self.log.rename_to(target.path(LOG_FILE_SUFFIX))
            self.offset_index.rename_to(target.path(INDEX_FILE_SUFFIX), missing_ok=True)
            self.time_index.rename_to(target.path(TIME_INDEX_FILE_SUFFIX), missing_ok=True)
            self.transaction_index.rename_to(target.path(TXN_INDEX_FILE_SUFFIX), missing_ok=True)
            self._target = target

    def close(self) -> None:
        """Force the last time entry if there are timestamps, trim, and release all files.

        Whatever this changes is forced to disk: whoever finds the marker of a clean shutdown trusts
        the length of every file.
        """
        if self._max_timestamp_so_far is not None:
            self.time_index.maybe_append(*self._max_timestamp_so_far, skip_full_check=True)
        if self.offset_index.exists_on_disk:
            self.offset_index.trim_to_valid_size()
        if self.time_index.exists_on_disk:
            self.time_index.trim_to_valid_size()
        self.offset_index.maybe_flush()
        self.time_index.maybe_flush()
        if self.log.trim():
            self.log.sync()
        self.close_handlers()

    def release(self) -> None:
        """Give descriptors and the indexes' memory back; the next use takes them again."""
        self.offset_index.release()
        self.time_index.release()
        self.transaction_index.release()
        self.log.release()

    def close_handlers(self) -> None:
        """Release all files, changing nothing."""
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()
        self.log.close()

    def delete_if_exists(self) -> None:
        """Remove all files of the segment."""
        with self._files_lock:
            self._is_deleted = True
            self.log.delete_if_exists()
            self.offset_index.delete_if_exists()
            self.time_index.delete_if_exists()
            self.transaction_index.delete_if_exists()
