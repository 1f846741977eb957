"""What can be asked of an owned log without its lock: offsets, bytes, offsets by time.

Source: UnifiedLog.read, fetchOffsetByTimestamp (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.decode import RecordTimes
from pylog.errors import KafkaStorageError, OffsetOutOfRangeError
from pylog.log.log_segment import FetchIsolation
from pylog.log.metrics import LogMetrics
from pylog.model import NO_TIMESTAMP
from pylog.record.batch_header import MAGIC_VALUE_V0
from pylog.record.batch_scan import Window, find_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.config import LogConfig
    from pylog.log.log_segment import FetchDataInfo, LogOffsetMetadata, LogSegment
    from pylog.log.log_state import LogState
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import TopicPartition


# Offsets by timestamp, as an owned log answers them.
#
# ===== ======================= =============================================================
# value name                    answer
# ===== ======================= =============================================================
# -1    LATEST_TIMESTAMP        the log's end
# -2    EARLIEST_TIMESTAMP      the log start offset
# -3    MAX_TIMESTAMP           the first record of the log's largest timestamp; the first one
#                               of the log where none has a timestamp, but not of format v0
# -4    EARLIEST_LOCAL_…        the log start offset: nothing lies on tiered storage
# -5    LATEST_TIERED_…         none
# >= 0                          the first record, by offset, with that timestamp or a later one
# ===== ======================= =============================================================
#
# The segment is the first one whose largest timestamp is not below; where a segment has no
# timestamps (format v0), the time its file was changed counts. Later segments are not tried if that
# one gives nothing. Timestamps need not be ordered.
#
# Source: UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp (Kafka 4.3).


LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


class OffsetForTime(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch if that has one."""

    timestamp: int
    offset: int
    leader_epoch: int | None


def find_offset_by_timestamp(state: LogState, timestamp: int) -> OffsetForTime | None:
    """Return the answer for ``timestamp``, ms or a special value; None if there is none."""
    if timestamp < LATEST_TIERED_TIMESTAMP:
        msg = f"timestamp {timestamp} is neither a time nor one of -1 to {LATEST_TIERED_TIMESTAMP}"
        raise ValueError(msg)
    epochs = state.leader_epochs
    start = state.log_start_offset
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        earliest = epochs.earliest_entry
        is_known = earliest is not None and earliest.start_offset <= start
        return OffsetForTime(
            NO_TIMESTAMP, start, earliest.epoch if is_known and earliest is not None else None
        )
    if timestamp == LATEST_TIMESTAMP:
        return OffsetForTime(NO_TIMESTAMP, state.log_end_offset, epochs.latest_epoch)
    if timestamp == LATEST_TIERED_TIMESTAMP:
        return None
    if timestamp == MAX_TIMESTAMP:
        return _find_max_timestamp(state)
    return _find_first_at(state, timestamp)


def _find_max_timestamp(state: LogState) -> OffsetForTime | None:
    latest = max(
        state.local_log.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp
    )
    timestamp, offset = latest.max_timestamp_so_far
    first = latest.translate_offset(offset)
    is_carrier = first is not None and first.header.max_timestamp == timestamp
    position = first.position if first is not None and is_carrier else 0
    for batch in latest.log.batches_from(position):
        if batch.header.max_timestamp == timestamp:
            has_timestamps = batch.header.magic > MAGIC_VALUE_V0
            records = _records_of(latest, batch, timestamp) if has_timestamps else ()
            return next((each for each in records if each.timestamp == timestamp), None)
    return None


def _find_first_at(state: LogState, timestamp: int) -> OffsetForTime | None:
    start = state.log_start_offset
    for segment in state.local_log.segments:
        if segment.largest_timestamp >= timestamp:
            entry = segment.time_index.lookup(timestamp)
            position = segment.offset_index.lookup(max(entry.offset, start)).position
            batches = segment.log.batches_from(position)
            records = (
                record
                for batch in batches
                if batch.header.max_timestamp >= timestamp
                for record in _records_of(segment, batch, timestamp)
                if record.offset >= start
            )
            return next(records, None)
    return None


def _records_of(
    segment: LogSegment, batch: PositionedHeader, timestamp: int
) -> Iterator[OffsetForTime]:
    """Yield the records of a batch that are not before ``timestamp``."""
    data = segment.log.read_at(batch.position, batch.header.size_bytes)
    scan = find_batches(np.frombuffer(memoryview(data).toreadonly(), dtype=np.uint8))
    window = Window.of(scan, str(segment.log.path), batch.position)
    epoch = batch.header.partition_leader_epoch
    for offset, stamp in RecordTimes().from_timestamp(window, timestamp):
        yield OffsetForTime(stamp, offset, epoch if epoch >= 0 else None)


class LogReader:
    """The side of a log that changes nothing.

    Any number of threads, while others append. What one property says may be outdated by the time
    the next one is asked; a read never gives half an append.

    Parameters
    ----------
    state
        Of the log.
    """

    def __init__(self, state: LogState) -> None:
        self._state = state
        self.local_log = state.local_log
        self.producer_state = state.producer_state
        self.leader_epochs = state.leader_epochs
        self.topic_partition: TopicPartition = state.local_log.topic_partition
        self._is_closed = False  # true before the first file is

    @property
    def directory(self) -> str:
        """The partition directory."""
        return self.local_log.directory

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""
        return self.local_log.config

    @property
    def log_start_offset(self) -> int:
        """First offset served."""
        return self._state.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.local_log.log_end_offset

    @property
    def recovery_point(self) -> int:
        """Everything below is on disk."""
        return self.local_log.recovery_point

    @property
    def high_watermark(self) -> int:
        """Consumers see what is below."""
        return self._state.high_watermark

    @property
    def has_raised_high_watermark(self) -> bool:
        """Whether the high watermark has risen since the log was opened."""
        return self._state.has_raised_high_watermark

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest transaction that is open, or completed at the watermark."""
        return self._state.first_unstable_offset

    @property
    def last_stable_offset(self) -> int:
        """Consumers that read committed see what is below."""
        return self._state.last_stable_offset

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """All segments now, in order."""
        return tuple(self.local_log.segments)

    @property
    def size_bytes(self) -> int:
        """Length of all ``.log`` files."""
        return self.local_log.segments.size_bytes

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch, None if there is none."""
        return self.leader_epochs.latest_epoch

    @property
    def unflushed_messages(self) -> int:
        """Offsets that may not be on disk."""
        return self.log_end_offset - self.recovery_point

    def metrics(self) -> LogMetrics:
        """Return sizes, offsets and counts as they are now; nothing of it is read from disk."""
        counters, segments = self._state.counters, self.segments
        return LogMetrics(
            size=sum(segment.size_bytes for segment in segments),
            num_log_segments=len(segments),
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            bytes_in=counters.bytes_in,
            messages_in=counters.messages_in,
            bytes_rejected=counters.bytes_rejected,
            log_flush_count=counters.log_flush_count,
            log_flush_time_ms=counters.log_flush_time_ms,
            deleted_segments=counters.deleted_segments,
            deleted_bytes=counters.deleted_bytes,
        )

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        *,
        min_one_message: bool = True,
    ) -> FetchDataInfo:
        """Return bytes of one segment from the batch that holds ``start_offset`` on.

        Parameters
        ----------
        start_offset
            First offset wanted; the first batch may begin below it.
        max_length
            Most bytes to return; may cut the last batch.
        isolation
            How far to read. With TXN_COMMITTED the answer names the aborted transactions, too.
        min_one_message
            Return the first batch whole, however large it is.

        Raises
        ------
        OffsetOutOfRangeError
            ``start_offset`` is below the log's start or above its end.
        KafkaStorageError
            The log has been closed, or deleted.
        ValueError
            ``max_length`` is negative.
        """
        if max_length < 0:
            msg = f"max_length is {max_length}, expected 0 or more"
            raise ValueError(msg)
        while True:
            self._ensure_in_range(start_offset)
            segments = self.local_log.segments.values_from(0)
            try:
                return self.local_log.read(
                    start_offset,
                    max_length,
                    self._bound(isolation),
                    min_one_message=min_one_message,
                    include_aborted=isolation is FetchIsolation.TXN_COMMITTED,
                )
            except ValueError:
                self._ensure_open()
                # Of a segment whose files have been removed since it was found. Others have taken
                # its place, after a truncation or a cleaning, or the offset is out of range now.
                if self.local_log.segments.values_from(0) == segments:
                    raise

    def _ensure_open(self) -> None:
        """Raise if the log is closed: somebody still holds one that has been deleted, say."""
        if self._is_closed:
            reason = f"log of {self.topic_partition} is closed"
            raise KafkaStorageError(reason, self.directory)

    def _ensure_in_range(self, offset: int) -> None:
        start, end = self.log_start_offset, self.log_end_offset
        if not start <= offset <= end:
            raise OffsetOutOfRangeError(str(self.topic_partition), offset, start, end)

    def _bound(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        end = self.local_log.log_end_offset_metadata
        offset = end.message_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            offset = self.high_watermark
        elif isolation is FetchIsolation.TXN_COMMITTED:
            offset = self.last_stable_offset
        if offset >= end.message_offset:
            return end
        return self.local_log.locate(offset) or end

    def fetch_offset_by_timestamp(self, timestamp: int) -> OffsetForTime | None:
        """Return the first offset whose record has a timestamp at or above ``timestamp`` (ms).

        Also for Kafka's special values; see `pylog.log.log_reader`. None if there is none.
        """
        return find_offset_by_timestamp(self._state, timestamp)
