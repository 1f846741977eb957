"""One segment that we own: a ``.log`` file with its offset, time and transaction index.

The files and the look-ups in them are in `pylog.indexes.segment_files`; which batches get index
entries is decided in `pylog.indexes.index_entry_writer`. Here a segment is appended to, rolled,
read, cut.

Source: LogSegment (Kafka 4.3).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import KafkaStorageError
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.files.transaction_index import TRANSACTION_INDEX_VERSION, TransactionIndexEntry
from pylog.indexes.index_entry_writer import IndexEntryWriter
from pylog.indexes.segment_files import SegmentFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.config import LogConfig
    from pylog.files.durable_io import DurableIO
    from pylog.files.file_names import SegmentTarget
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import AbortedTransaction, TimestampOffset
    from pylog.producers.producer_state_entry import CompletedTransaction
    from pylog.record.batch_scan import BatchHeaders
    from pylog.scheduling.clock import Clock


# How far a read of an owned log may go, and what it gives.
#
# Source: FetchIsolation, FetchDataInfo, LogOffsetMetadata (Kafka 4.3).


class FetchIsolation(Enum):
    """The first offset that a read must not give."""

    LOG_END = auto()
    """The log's end: replicas, and whoever owns the log."""
    HIGH_WATERMARK = auto()
    """The high watermark: consumers that read uncommitted."""
    TXN_COMMITTED = auto()
    """The last stable offset: consumers that read committed."""


class LogOffsetMetadata(NamedTuple):
    """An offset and, where it is known, the place in the files that goes with it."""

    message_offset: int
    segment_base_offset: int = -1
    relative_position_in_segment: int = -1


@dataclass(frozen=True, slots=True)
class FetchDataInfo:
    """Bytes of a log from a batch boundary on.

    Attributes
    ----------
    fetch_offset_metadata
        The offset asked for, and where the bytes begin.
    records
        Whole batches, of which the last one may be cut short. The first may begin below the offset
        asked for: a batch is given as it is stored.
    first_entry_incomplete
        Even the first batch did not fit.
    aborted_transactions
        Aborted transactions that touch the bytes, None unless reading committed. May begin beyond
        them.
    """

    fetch_offset_metadata: LogOffsetMetadata
    records: bytes
    first_entry_incomplete: bool = False
    aborted_transactions: list[AbortedTransaction] | None = None


class RollParams(NamedTuple):
    """What decides whether a segment is rolled before an append.

    Source: RollParams (Kafka 4.3).
    """

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size_bytes: int
    now_ms: int


class _BeforeAppend(NamedTuple):
    """What an append changes in memory; ``next_offset`` is where its index entries begin."""

    size_bytes: int
    next_offset: int
    rolling_based_timestamp: int | None


class LogSegment(SegmentFiles):
    """A contiguous range of a log, from its base offset to the next segment's.

    One writer at a time (the log's lock); readers need no lock.
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
        super().__init__(target, config, io, is_new=is_new)
        self.entry_writer = IndexEntryWriter(
            self.offset_index, self.time_index, config.index_interval_bytes
        )
        self.roll_jitter_ms = roll_jitter_ms
        self._clock = clock
        self._created_ms = clock.milliseconds()
        self._rolling_based_timestamp: int | None = None
        self._before_append = _BeforeAppend(self.size_bytes, target.base_offset, None)

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that carries it."""
        return self.entry_writer.max_timestamp_so_far

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

    def read_largest_timestamp(self) -> int:
        """Return `largest_timestamp` after a look at the batches that the time index leaves out.

        Those after its last entry; where it has none, its segment is taken for one without
        timestamps, as in Kafka. `CorruptRecordError` if they are damaged. The log's lock is held.
        """
        if self.largest_record_timestamp is not None:
            self.entry_writer.load_max_timestamp(self.log)
        return self.largest_timestamp

    # ---- appending

    def append(
        self, records: bytes | bytearray | memoryview, batches: Sequence[PositionedHeader]
    ) -> int:
        """Append whole batches; return the position where they begin."""
        for batch in batches:
            self.ensure_offset_in_range(batch.header.last_offset)

        def add_entries(start: int) -> None:
            add = self.entry_writer.add
            for batch in batches:
                add(batch.header, start + batch.position)

        first = batches[0].header
        return self._append(records, first.last_offset, first.max_timestamp, add_entries)

    def append_all(self, records: memoryview, headers: BatchHeaders) -> int:
        """Append many batches with one write, and their index entries with one for each index."""
        for last_offset in headers.last_offsets[[0, -1]].tolist():
            self.ensure_offset_in_range(last_offset)
        return self._append(
            records,
            int(headers.last_offsets[0]),
            int(headers.max_timestamps[0]),
            lambda start: self.entry_writer.add_all(headers, start),
        )

    def _append(
        self,
        records: bytes | bytearray | memoryview,
        first_last_offset: int,
        first_timestamp: int,
        add_entries: Callable[[int], None],
    ) -> int:
        """Write the bytes, then the entries; of the first batch last offset and max timestamp."""
        self.entry_writer.mark()
        self._before_append = _BeforeAppend(
            self.size_bytes, first_last_offset, self._rolling_based_timestamp
        )
        if self.size_bytes == 0:
            # Of the first batch alone: so a segment that is opened again rolls at the same time.
            self._rolling_based_timestamp = first_timestamp
        start = self.log.append(records)
        try:
            add_entries(start)
        except BaseException:
            self.take_back_append()
            raise
        return start

    def take_back_append(self) -> None:
        """Undo the last append, which no reader knows of.

        Its index entries go, too: records appended later would be looked for where they point to.
        Differs from Kafka, which keeps the bytes of an append for which an index has no room,
        unknown to the log, and appends after them.
        Where the disk refuses that, the log directory is offline, and its next owner rebuilds the
        indexes.
        """
        before = self._before_append
        self.log.revert_to(before.size_bytes)
        self.entry_writer.take_back()
        self._rolling_based_timestamp = before.rolling_based_timestamp
        with suppress(KafkaStorageError):
            self.offset_index.truncate_to(before.next_offset)
            self.time_index.truncate_to(before.next_offset)
            self.transaction_index.truncate_to(before.next_offset)

    def update_transaction_index(
        self, completed: CompletedTransaction, last_stable_offset: int
    ) -> None:
        """Append an entry if the transaction was aborted."""
        if completed.is_aborted:
            entry = TransactionIndexEntry(
                TRANSACTION_INDEX_VERSION,
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

    def count_until_roll(self, params: RollParams, headers: BatchHeaders) -> int:
        """Return how many batches can be appended before a new segment is begun, at least 1."""
        sizes = headers.sizes_bytes
        should_roll = self.size_bytes + np.cumsum(sizes) > params.max_segment_bytes
        should_roll |= headers.last_offsets - self.base_offset > MAX_RELATIVE_OFFSET
        longest_ms = params.max_segment_ms - self.roll_jitter_ms
        first = self.first_batch_timestamp() if self.size_bytes else int(headers.max_timestamps[0])
        if first is None or first < 0:
            should_roll |= params.now_ms - self._created_ms > longest_ms
        else:
            should_roll |= headers.max_timestamps - first > longest_ms
        should_roll[0] = False
        count = int(should_roll.argmax()) if should_roll.any() else len(headers)
        return self.entry_writer.count_until_full(headers.select(slice(count)), self.size_bytes)

    def time_waited_for_roll(self, now_ms: int, message_timestamp: int) -> int:
        """Return the time from the max timestamp of the first batch to ``message_timestamp``."""
        first = self.first_batch_timestamp()
        return now_ms - self._created_ms if first is None else message_timestamp - first

    def first_batch_timestamp(self) -> int | None:
        """Return the timestamp that the time until the roll is counted from, None if none."""
        if self._rolling_based_timestamp is None and self.size_bytes:
            batch = next(self.log.batches_from(0), None)
            if batch is not None:
                self._rolling_based_timestamp = batch.header.max_timestamp
        first = self._rolling_based_timestamp
        return first if first is not None and first >= 0 else None

    def on_become_inactive_segment(self) -> bool:
        """Force the last time entry and cut the files to what they hold."""
        self.entry_writer.force_last_time_entry()
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        return self.log.trim()

    # ---- reading

    def read(
        self,
        start_offset: int,
        max_size_bytes: int,
        *,
        max_position: int | None = None,
        min_one_message: bool = False,
    ) -> FetchDataInfo | None:
        """Return bytes from the batch that holds ``start_offset`` on; None if all are below it."""
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

    # ---- cutting and closing

    def truncate_to(self, offset: int) -> int:
        """Remove the batch that holds ``offset`` and all after it; return how many bytes went."""
        first = self.translate_offset(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self.create_indexes()  # with room: an index of a rolled segment has been trimmed
        removed = 0 if first is None else self.log.truncate_to(first.position)
        if self.size_bytes == 0:
            self._created_ms = self._clock.milliseconds()
            self._rolling_based_timestamp = None
        self.entry_writer.restart_byte_count()
        self.entry_writer.load_max_timestamp(self.log)
        return removed

    def close(self) -> None:
        """Force the last time entry if there are timestamps, trim, and release all files."""
        self.entry_writer.maybe_force_last_time_entry()
        if self.offset_index.exists_on_disk:
            self.offset_index.trim_to_valid_size()
        if self.time_index.exists_on_disk:
            self.time_index.trim_to_valid_size()
        self.offset_index.maybe_flush()
        self.time_index.maybe_flush()
        if self.log.trim():
            self.log.sync()
        self.close_handlers()
