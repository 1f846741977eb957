"""One append to a log, from bytes to files.

Order of work; a failure in any step leaves the log as it was, but for a new segment and a leader
epoch:

1. every batch is looked at: size, checksum, offsets (without the log's lock);
2. a leader validates the records and gives them offsets; a follower's must go on where the log
   ends, or above;
3. leader epochs are noted;
4. a new segment is begun if one is due (`pylog.log.log_roller`);
5. producers are checked; a batch that was appended before ends the append here;
6. the records are written, producers and transactions are brought up to date;
7. the new end is published, and the watermarks that follow it. Until then no reader sees anything
   of the append, and where a step fails it is taken back.

Source: UnifiedLog.append (Kafka 4.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import RecordBatchTooLargeError, UnexpectedAppendOffsetError
from pylog.kernels import decode_headers as fields
from pylog.locations import printable_location
from pylog.model import TimestampType
from pylog.producers.producer_state_manager import ProducerUpdates, validate_producers
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.batch_scan import BatchHeaders, BatchScan, find_bad_checksum, find_batches
from pylog.record.batch_writer import MAX_INT32, MAX_INT64
from pylog.record.batches_writer import (
    set_append_times,
    set_base_offsets,
    set_partition_leader_epochs,
)
from pylog.validation.in_place_batches import may_stay_in_place, stays_in_place
from pylog.validation.log_append_info import (
    AppendedBatches,
    LogAppendInfo,
    analyze_records,
    ensure_fits_message_size,
)
from pylog.validation.log_validator import LogValidator
from pylog.validation.record_summary import summarize_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.log_roller import LogRoller
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import AppendOrigin
    from pylog.producers.producer_state_entry import BatchMetadata
    from pylog.validation.record_summary import BatchSummaries


_LOGGER = logging.getLogger(__name__)


class LogAppend:
    """The steps of one append; used once: `analyze`, then under the log's lock `write`."""

    def __init__(
        self,
        state: LogState,
        roller: LogRoller,
        origin: AppendOrigin,
        leader_epoch: int,
        *,
        transaction_version: int = 0,
    ) -> None:
        self._state = state
        self._roller = roller
        self._origin = origin
        self._leader_epoch = leader_epoch
        self._transaction_version = transaction_version
        self._info = LogAppendInfo()
        self._records = memoryview(b"")
        self._batches: Sequence[PositionedHeader] = ()

    def analyze(self, records: bytes | bytearray | memoryview) -> LogAppendInfo:
        """Look at every batch; return what will be filled in by `write`."""
        view = memoryview(records)
        self._info, self._batches = analyze_records(
            view,
            self._state.config,
            self._state.name,
            self._origin,
            leader_epoch=self._leader_epoch,
        )
        self._info.log_start_offset = self._state.log_start_offset
        self._records = view[: self._info.valid_bytes]
        return self._info

    def write(self, now_ms: int, *, assigns_offsets: bool) -> None:
        """Append what was analyzed; the caller holds the log's lock."""
        state, info = self._state, self._info
        if assigns_offsets:
            self._assign_offsets(now_ms)
        else:
            self._ensure_follows()
        self._assign_leader_epochs()
        if len(self._records) > state.config.segment_bytes:
            reason = (
                f"{len(self._records)} bytes in one append, segment.bytes is "
                f"{state.config.segment_bytes}"
            )
            raise RecordBatchTooLargeError(reason, self._state.name)
        segment = self._roller.maybe_roll(len(self._records), info)
        changes = validate_producers(
            state.producer_state,
            self._records,
            self._batches,
            self._origin,
            transaction_version=self._transaction_version,
        )
        info.log_start_offset = state.log_start_offset
        if changes.duplicate is not None:
            self._answer_duplicate(changes.duplicate)
            return
        segment.append(self._records, self._batches)
        try:
            self._update_producers(changes, segment)
        except BaseException:
            segment.take_back_append()
            raise
        first_offset = max(info.first_offset, info.lowest_offset)
        state.counters.count_append(len(self._records), info.last_offset - first_offset + 1)
        state.publish_end(info.last_offset + 1)

    def _assign_offsets(self, now_ms: int) -> None:
        state, info = self._state, self._info
        if self._records.readonly:
            self._records = memoryview(bytearray(self._records))
        first_offset = state.log_end_offset
        validator = LogValidator(
            self._state.name,
            state.config,
            self._origin,
            now_ms=now_ms,
            leader_epoch=self._leader_epoch,
            decompressor=state.decompressor,
        )
        result = validator.validate_and_assign_offsets(self._records, self._batches, first_offset)
        if result.message_size_maybe_changed:
            for batch in result.batches:
                ensure_fits_message_size(batch.header.size_bytes, state.config, self._state.name)
        self._records, self._batches = result.records, result.batches
        info.first_offset = first_offset
        info.last_offset = result.next_offset - 1
        info.max_timestamp = result.max_timestamp
        info.offset_of_max_timestamp = info.last_offset
        if state.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
            info.log_append_time = now_ms

    def _ensure_follows(self) -> None:
        info, end = self._info, self._state.log_end_offset
        first = info.lowest_offset
        if first < end:
            # Differs from Kafka, which looks at the last offset of a v0/v1 wrapper alone.
            reason = f"records to append begin at offset {first}, expected {end} or above"
            raise UnexpectedAppendOffsetError(reason, self._state.name, first, info.last_offset)

    def _assign_leader_epochs(self) -> None:
        epochs = self._state.leader_epochs
        for batch in self._batches:
            if batch.header.magic >= MAGIC_VALUE_V2:
                epochs.assign(batch.header.partition_leader_epoch, batch.header.offset)
            elif not epochs.is_empty:
                # This format has no epochs: earlier ones say nothing about what follows.
                _LOGGER.warning(
                    "clearing leader epochs of %s: old format",
                    printable_location(self._state.local_log.directory),
                )
                epochs.clear_and_flush()

    def _answer_duplicate(self, duplicate: BatchMetadata) -> None:
        info = self._info
        info.first_offset = duplicate.first_offset
        info.last_offset = duplicate.last_offset
        info.log_append_time = duplicate.timestamp
        info.is_duplicate = True

    def _update_producers(self, changes: ProducerUpdates, segment: LogSegment) -> None:
        state = self._state
        for update in changes.updates.values():
            state.producer_state.update(update)
        for completed in changes.completed:
            # Before it counts as completed: the other open transactions decide.
            last_stable_offset = state.producer_state.last_stable_offset(completed)
            segment.update_transaction_index(completed, last_stable_offset)
            state.producer_state.complete_transaction(completed)
        state.producer_state.update_map_end_offset(self._info.last_offset + 1)


# Many appends of a leader at once: batch after batch by the rules of one append, few writes.
#
# What is done to one batch above is done here to *windows* of batches that stay in place
# (`pylog.validation.record_summary`):
#
# 1. their checksums are computed, without the log's lock;
# 2. under it, their records are looked at, a window in one call of a kernel;
# 3. they are cut into *groups*, each of which ends where a new segment is begun, or a flush is due;
# 4. each group gets its offsets, is written with one write, and is published with its end.
#
# So after a crash, or on a disk that fails, the log ends between two batches of the buffer, or with
# one cut short, as after as many appends. Any other batch is left to an append of its own: one of a
# producer that counts its batches, one to be compressed anew, one that will be refused.
#
# Differs from Kafka, which takes one batch of format v2 in an append.


_WINDOW_BYTES = 1 << 20
"""Small enough to stay in the processor's cache from the checksum to the write."""


class _Window(NamedTuple):
    """Batches whose headers and checksums are right."""

    start: int
    records: memoryview
    headers: BatchHeaders

    @property
    def stop(self) -> int:
        """Index of the batch after the last one of the group."""
        return self.start + len(self.headers)


class BatchesAppend:
    """The batches of one buffer on their way into a log; used once."""

    def __init__(
        self, state: LogState, roller: LogRoller, records: memoryview, leader_epoch: int
    ) -> None:
        self._state = state
        self._roller = roller
        self._records = records
        self._leader_epoch = leader_epoch
        self._scan = find_batches(np.frombuffer(records.toreadonly(), dtype=np.uint8))
        headers = self._scan.headers
        self._ends = headers.positions + headers.sizes_bytes
        may_stay = may_stay_in_place(headers, state.config)
        if not 0 <= leader_epoch <= MAX_INT32 or len(headers) == 1:
            may_stay[:] = False
        self._others = np.flatnonzero(~may_stay)
        self._first_offsets = np.empty(len(headers), dtype=np.int64)
        self._last_offsets = np.empty(len(headers), dtype=np.int64)
        self._is_duplicate = np.zeros(len(headers), dtype=np.bool_)
        self._done = 0
        self._window: _Window | None = None
        self._summaries: BatchSummaries | None = None
        self._alone = -1  # the batch that does not stay in place, found out under the lock
        self.goes_in_place = False

    @property
    def next_batch(self) -> memoryview:
        """The bytes of the next batch; after the last one, those that cannot be one."""
        if self._done < len(self._ends):
            start, end = int(self._scan.headers.positions[self._done]), int(self._ends[self._done])
            return self._records[start:end]
        return self._records[self._scan.valid_bytes :]

    @property
    def progress(self) -> str:
        """Up to which batch and byte the buffer is appended, for an error."""
        whole = len(self._ends)
        at = int(self._scan.headers.positions[self._done]) if self._done < whole else None
        position = self._scan.valid_bytes if at is None else at
        return (
            f"{self._done} of {whole} batches have been appended; the next one begins at byte "
            f"{position} of what was to be appended"
        )

    @property
    def outcome(self) -> AppendedBatches:
        """The offsets that the batches got, and which of them were duplicates."""
        return AppendedBatches(
            self._first_offsets, self._last_offsets, self._is_duplicate, self._scan.valid_bytes
        )

    def look_ahead(self) -> bool:
        """Find out how the next batch is appended; False if there is none. Needs no lock."""
        if self._done >= len(self._ends):
            self.goes_in_place = False
            return self._done == len(self._ends) and self._scan.defect is not None
        if self._done == self._alone:
            self.goes_in_place = False
            return True
        if self._window is None or self._done >= self._window.stop:
            self._window, self._summaries = self._next_window(), None
        self.goes_in_place = self._window is not None
        return True

    def take(self, info: LogAppendInfo) -> None:
        """Note that `next_batch` has been appended."""
        if self._done < len(self._ends):
            self._first_offsets[self._done] = info.first_offset
            self._last_offsets[self._done] = info.last_offset
            self._is_duplicate[self._done] = info.is_duplicate
        self._done += 1

    def _next_window(self) -> _Window | None:
        start, scan = self._done, self._scan
        place = int(np.searchsorted(self._others, start))
        stop = int(self._others[place]) if place < self._others.size else len(scan.headers)
        first = int(scan.headers.positions[start])
        fitting = int(np.searchsorted(self._ends, first + _WINDOW_BYTES, side="right"))
        stop = min(stop, max(fitting, start + 1))
        if stop == start:
            return None
        headers = scan.headers.select(slice(start, stop))
        bad = find_bad_checksum(BatchScan(scan.buffer, headers, scan.valid_bytes, None))
        if bad is not None:
            if bad.index == 0:
                return None
            headers = headers.select(slice(bad.index))
        records = self._records[first : int(self._ends[start + len(headers) - 1])]
        if records.readonly:
            records = memoryview(bytearray(records))
        columns = headers.columns.copy()
        columns[fields.POSITION] -= first
        return _Window(start, records, BatchHeaders(columns))

    def write(self, now_ms: int) -> None:
        """Append batches of the window; the caller holds the log's lock."""
        state, window = self._state, self._window
        if window is None:
            return
        if self._summaries is None:
            self._summaries = summarize_batches(
                window.records,
                window.headers,
                state.decompressor,
                state.config.max_decompressed_message_bytes,
            )
        stays = stays_in_place(window.headers, self._summaries, state.config, now_ms)
        inside = self._done - window.start
        stop = inside + int(np.append(stays[inside:], values=False).argmin())
        if state.log_end_offset > MAX_INT64 - int(window.headers.record_counts.sum()):
            stop = inside
        while inside < stop:
            inside += self._append_group(window, inside, stop, now_ms)
            self._done = window.start + inside
            if self._records_until_flush() <= 0:
                return
        if 0 < stays.size == inside:  # the rest has not been summarized
            self._window = None
        else:
            self._alone = self._done

    def _append_group(self, window: _Window, start: int, stop: int, now_ms: int) -> int:
        """Append batches of the window, from ``start`` on, to one segment; return how many."""
        state = self._state
        headers = self._with_offsets(window.headers.select(slice(start, stop)), now_ms)
        state.leader_epochs.assign(self._leader_epoch, int(headers.offsets[0]))
        segment, count = self._roller.maybe_roll_before(headers)
        taken = headers.last_offsets + 1 - state.log_end_offset
        count = min(count, int(np.searchsorted(taken, self._records_until_flush())) + 1)
        headers = headers.select(slice(count))
        first = int(window.headers.positions[start])
        end = first + int(headers.positions[-1] + headers.sizes_bytes[-1])
        records = window.records[first:end]
        self._put_headers(records, headers, now_ms)
        _append_to(segment, state, records, headers)
        done = slice(self._done, self._done + count)
        self._first_offsets[done] = headers.offsets
        self._last_offsets[done] = headers.last_offsets
        return count

    def _with_offsets(self, headers: BatchHeaders, now_ms: int) -> BatchHeaders:
        """Return headers as the log has them from its end on; positions count from the first."""
        columns = headers.columns.copy()
        columns[fields.POSITION] -= headers.positions[0]
        next_offsets = self._state.log_end_offset + np.cumsum(headers.record_counts)
        columns[fields.OFFSET] = next_offsets - headers.record_counts
        columns[fields.LAST_OFFSET] = next_offsets - 1
        columns[fields.PARTITION_LEADER_EPOCH] = self._leader_epoch
        if self._is_append_time:
            columns[fields.MAX_TIMESTAMP] = now_ms
        return BatchHeaders(columns)

    def _put_headers(self, records: memoryview, headers: BatchHeaders, now_ms: int) -> None:
        positions = headers.positions
        set_base_offsets(records, positions, headers.offsets)
        set_partition_leader_epochs(records, positions, self._leader_epoch)
        if self._is_append_time:
            ends = positions + headers.sizes_bytes
            set_append_times(records, positions, ends, headers.codec_ids, now_ms)

    @property
    def _is_append_time(self) -> bool:
        return self._state.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME

    def _records_until_flush(self) -> int:
        """Return after how many records a flush is due; not positive if it is due now."""
        local_log = self._state.local_log
        unflushed = local_log.log_end_offset - local_log.recovery_point
        return self._state.config.flush_messages - unflushed


def append_finished(
    state: LogState, roller: LogRoller, records: memoryview, headers: BatchHeaders
) -> None:
    """Append batches that are as the log is to have them; see `UnifiedLog.append_finished`."""
    state.leader_epochs.assign(
        int(headers.partition_leader_epochs[0]), _first_offset_at_end(state, headers)
    )
    while len(headers):
        start = int(headers.positions[0])
        columns = headers.columns.copy()
        columns[fields.POSITION] -= start
        headers = BatchHeaders(columns)
        segment, count = roller.maybe_roll_before(headers)
        group = headers.select(slice(count))
        end = int(group.positions[-1] + group.sizes_bytes[-1])
        _append_to(segment, state, records[start : start + end], group)
        records, headers = records[start:], headers.select(slice(count, None))


def adopt_segment(state: LogState, roller: LogRoller, path: str, headers: BatchHeaders) -> None:
    """Make a file of batches the newest segment; see `UnifiedLog.adopt_segment`."""
    base_offset = _first_offset_at_end(state, headers)
    state.leader_epochs.assign(int(headers.partition_leader_epochs[0]), base_offset)
    segment = state.local_log.segments.active_segment
    if segment.base_offset != base_offset or segment.size_bytes:
        segment = roller.roll()
    segment.log.take_over(path)
    # Before anything else syncs the directory that it came from: a file system that keeps the two
    # names apart could lose both.
    state.context.io.sync_directory(state.local_log.directory)
    segment.entry_writer.add_all(headers, 0)
    _publish(state, headers)


def _first_offset_at_end(state: LogState, headers: BatchHeaders) -> int:
    """Return the offset of the first batch, which is where the log ends."""
    first, end = int(headers.offsets[0]), state.log_end_offset
    if first != end:
        reason = f"batches to append begin at offset {first}, expected {end}"
        last = int(headers.last_offsets[-1])
        raise UnexpectedAppendOffsetError(reason, state.name, first, last)
    return first


def _append_to(
    segment: LogSegment, state: LogState, records: memoryview, headers: BatchHeaders
) -> None:
    segment.append_all(records, headers)
    _publish(state, headers)


def _publish(state: LogState, headers: BatchHeaders) -> None:
    next_offset = int(headers.last_offsets[-1]) + 1
    state.producer_state.update_map_end_offset(next_offset)
    state.counters.count_append(int(headers.sizes_bytes.sum()), int(headers.record_counts.sum()))
    state.publish_end(next_offset)
