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
from typing import TYPE_CHECKING

from pylog.errors import RecordBatchTooLargeError, UnexpectedAppendOffsetError
from pylog.model import TimestampType
from pylog.producers.append_validation import ProducerUpdates, validate_producers
from pylog.record.batch_layout import MAGIC_VALUE_V2
from pylog.validation.log_append_info import (
    LogAppendInfo,
    analyze_records,
    ensure_fits_message_size,
)
from pylog.validation.log_validator import LogValidator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.log_roller import LogRoller
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState
    from pylog.log_file.batch_walk import PositionedHeader
    from pylog.model import AppendOrigin
    from pylog.producers.producer_state_entry import BatchMetadata

_LOGGER = logging.getLogger(__name__)


class LogAppend:
    """The steps of one append; used once: `analyze`, then under the log's lock `write`.

    Parameters
    ----------
    state
        Of the log that is appended to.
    roller
        Begins its segments.
    origin
        Who appends.
    leader_epoch
        Written into batches by a leader; a bound for a follower.
    transaction_version
        Of the transaction that a marker ends.
    """

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
        """Look at every batch; return what will be filled in by `write`.

        Nothing is to be written if its `valid_bytes` are 0.
        """
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
        """Append what was analyzed; the caller holds the log's lock.

        Parameters
        ----------
        now_ms
            The time.
        assigns_offsets
            Whether the log gives the offsets, or they are those in the batches.
        """
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
                    "clearing leader epochs of %s: old format", self._state.local_log.directory
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
