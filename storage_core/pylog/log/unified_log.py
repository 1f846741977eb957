"""One partition's log that we own: appended to, read, rolled, flushed, cut.

Offsets, from low to high::

    log start offset        first offset served; records below may still be in the files
    recovery point          everything below is on disk
    last stable offset      below it every transaction is decided
    high watermark          below it records are replicated; what consumers may see
    log end offset          of the next record

Without other replicas the high watermark follows the end after every append; whoever replicates
sets ``follows_end`` to False and moves it by `update_high_watermark`.

Threads: any number may append and change; one lock lets one through at a time. Readers take no
lock. Whoever holds it may have checkpoints written, and takes neither the flusher's lock nor the
manager's lock of creation and deletion, which come before it (`pylog.log.log_manager`). After a
failed write or fsync the log directory is offline, and the log refuses whatever changes it. So it
does in a child that was forked since the log was opened: `LogLockedError`.

Source: UnifiedLog (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pylog.append_origin import AppendOrigin
from pylog.errors import (
    KafkaStorageError,
    OffsetOutOfRangeError,
)
from pylog.log.fetch_isolation import FetchIsolation
from pylog.log.log_append import LogAppend
from pylog.log.log_flusher import LogFlusher
from pylog.log.log_offsets import LogOffsets
from pylog.log.offsets_for_times import find_offset_by_timestamp
from pylog.log.producer_state_rebuild import rebuild_producer_state
from pylog.log.roll_params import RollParams
from pylog.log.segment_deletion import remove_later
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.record.compression import Decompressor
from pylog.record.decompression_limit import SEND_LESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylog.config import LogConfig
    from pylog.files.leader_epoch_file_cache import LeaderEpochFileCache
    from pylog.log.fetch_data_info import FetchDataInfo, LogOffsetMetadata
    from pylog.log.local_log import LocalLog
    from pylog.log.log_context import LogContext
    from pylog.log.log_segment import LogSegment
    from pylog.log.offsets_for_times import OffsetForTime
    from pylog.model import TopicPartition
    from pylog.producers.producer_state_manager import ProducerStateManager
    from pylog.validation.log_append_info import LogAppendInfo

    Bytes = bytes | bytearray | memoryview

_LOGGER = logging.getLogger(__name__)
_MAX_OFFSET_DELTA = 2**31 - 1


class UnifiedLog:
    """A log; made by `pylog.log.log_loader.load_log`.

    Parameters
    ----------
    local_log
        Its segments.
    producer_state
        Its producers, up to its end.
    leader_epochs
        Its leader epochs.
    log_start_offset
        First offset served.
    context
        Of the manager.
    log_directory
        The log directory that the partition directory lies in.
    recovery_point_lowered
        Called when the recovery point went back, so that the checkpoint on disk does, too.
    """

    def __init__(  # noqa: PLR0913 - what a log is made of
        self,
        local_log: LocalLog,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochFileCache,
        *,
        log_start_offset: int,
        context: LogContext,
        log_directory: str,
        recovery_point_lowered: Callable[[UnifiedLog], None] | None = None,
    ) -> None:
        self.local_log = local_log
        self.producer_state = producer_state
        self.leader_epochs = leader_epochs
        self.topic_partition: TopicPartition = local_log.topic_partition
        self.log_directory = log_directory
        self.follows_end = True
        self.decompressor = Decompressor(advice=SEND_LESS)
        self._context = context
        self._lock = threading.RLock()
        self._flusher = LogFlusher(local_log, context, log_directory, self._lock)
        self.offsets = LogOffsets(log_start_offset, producer_state)
        self._is_closed = False
        self._recovery_point_lowered = recovery_point_lowered

    # ---- state

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
        return self.offsets.log_start_offset

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
        return self.offsets.high_watermark

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest transaction that is open, or completed at the watermark."""
        return self.offsets.first_unstable_offset

    @property
    def last_stable_offset(self) -> int:
        """Consumers that read committed see what is below."""
        return self.offsets.last_stable_offset

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

    @property
    def last_flushed_ms(self) -> int:
        """When the log was flushed last."""
        return self._flusher.last_flushed_ms

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock; a failing disk takes the log directory offline."""
        self._context.io.ensure_own_process(self.directory)  # a fork may have copied a held lock
        with self._lock:
            if self._is_closed:  # no failure of the disk: whoever holds on to a deleted log
                reason = f"log of {self.topic_partition} is closed"
                raise KafkaStorageError(reason, self.directory)
            with self._context.failures.watching(self.log_directory):
                yield

    # ---- appending

    def append_as_leader(
        self,
        records: Bytes,
        leader_epoch: int = 0,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Give records the next offsets and append them.

        Parameters
        ----------
        records
            One v2 batch with base offset 0, or messages of v0 or v1. A writable buffer is changed
            in place; otherwise a copy is made.
        leader_epoch
            Written into the batch; not negative.
        origin
            COORDINATOR for markers and offset commits.
        transaction_version
            Of the transaction that a marker ends.

        Returns
        -------
        LogAppendInfo
            The offsets given. Those of then if the producer repeats one of its last batches, which
            is not appended again.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, RecordValidationError, RecordTooLargeError
            The records are not what may be appended.
        RecordBatchTooLargeError
            They fit no segment.
        OutOfOrderSequenceError, InvalidProducerEpochError, InvalidTxnStateError
            The producer may not append them.
        TransactionCoordinatorFencedError
            A marker of an old coordinator.
        KafkaStorageError
            The disk failed, or has failed before.

        Notes
        -----
        After any error the log is as before, but for a new segment or leader epoch, as in Kafka.
        """
        return self._append(
            records,
            origin,
            leader_epoch=leader_epoch,
            assigns_offsets=origin is not AppendOrigin.RAFT_LEADER,
            transaction_version=transaction_version,
        )

    def append_as_follower(
        self, records: Bytes, leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    ) -> LogAppendInfo:
        """Append batches as a leader has written them: offsets and epochs stay.

        Parameters
        ----------
        records
            Batches whose offsets go up and are at or above the end; gaps are accepted.
        leader_epoch
            The newest epoch that this replica knows; from the first batch of a higher one on
            nothing is appended. `NO_PARTITION_LEADER_EPOCH` for no such bound.

        Raises
        ------
        OffsetsOutOfOrderError, UnexpectedAppendOffsetError
            A batch does not begin after the one before it, or the first one below the end.
        CorruptRecordError, InvalidRecordError, RecordBatchTooLargeError, KafkaStorageError
            As in `append_as_leader`.
        """
        return self._append(
            records, AppendOrigin.REPLICATION, leader_epoch=leader_epoch, assigns_offsets=False
        )

    def _append(
        self,
        records: Bytes,
        origin: AppendOrigin,
        *,
        leader_epoch: int,
        assigns_offsets: bool,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        append = LogAppend(self, origin, leader_epoch, transaction_version=transaction_version)
        info = append.analyze(records)
        if info.valid_bytes > 0:
            with self._changing():
                append.write(self._context.clock.milliseconds(), assigns_offsets=assigns_offsets)
            if self.unflushed_messages >= self.config.flush_messages:
                self.flush()
        return info

    def maybe_roll(self, size_bytes: int, info: LogAppendInfo) -> LogSegment:
        """Begin a new segment if an append calls for one; return the segment to append to."""
        segment = self.local_log.segments.active_segment
        params = RollParams(
            self.config.max_segment_ms,
            self.config.segment_bytes,
            info.max_timestamp,
            info.last_offset,
            size_bytes,
            self._context.clock.milliseconds(),
        )
        first = info.first_offset
        # An append refused after its roll may have left an empty segment above the end. Only
        # records that are known to begin there may go into it.
        is_above = segment.base_offset > max(first, self.log_end_offset)
        if not is_above and not segment.should_roll(params):
            return segment
        if first < 0:  # v0/v1 of a leader: only the last offset of a wrapper is known
            first = info.last_offset - _MAX_OFFSET_DELTA
        return self.roll(first)

    # ---- rolling and flushing

    def roll(self, expected_next_offset: int | None = None) -> LogSegment:
        """Begin a new segment at the end, or at ``expected_next_offset`` if that is higher.

        A producer snapshot is taken, and everything before is flushed in the background.

        Raises
        ------
        ValueError
            The log holds records from that offset on; cannot be while its end is right.
        """
        with self._changing():
            base_offset = self.local_log.next_base_offset(expected_next_offset)
            if base_offset < self.local_log.segments.active_segment.base_offset:
                self._forget_refused_roll()
            segment = self.local_log.roll(expected_next_offset)
            self.producer_state.update_map_end_offset(segment.base_offset)
            snapshot = self.producer_state.take_snapshot(sync=False)
        flush_rolled = partial(self._flusher.flush_rolled, segment.base_offset, snapshot)
        self._context.scheduler.schedule_once("flush-log", flush_rolled)
        return segment

    def _forget_refused_roll(self) -> None:
        """Have the producers at the log's end again, above which an append rolled in vain."""
        end, now_ms = self.log_end_offset, self._context.clock.milliseconds()
        self.producer_state.update_map_end_offset(end)
        # Its snapshot tells nothing of what will lie below it.
        self.producer_state.truncate_and_reload(self.log_start_offset, end, now_ms)

    def flush(self, offset: int | None = None, *, includes_end: bool = False) -> None:
        """Force everything below ``offset`` to disk, then raise the recovery point to it.

        Parameters
        ----------
        offset
            The log's end if None.
        includes_end
            Also force the files of an empty active segment, as at a shutdown.

        Raises
        ------
        KafkaStorageError
            An fsync failed. The log directory is offline then: what the system did with the pages
            that it could not write, nobody knows.
        """
        if not self._is_closed:
            self._context.io.ensure_own_process(self.directory)
            offset = self.log_end_offset if offset is None else offset
            self._flusher.flush(offset, includes_end=includes_end)

    # ---- watermarks

    def update_high_watermark(self, offset: int) -> int:
        """Move the high watermark as near to ``offset`` as start and end allow, and return it."""
        with self._lock:
            self.offsets.update_high_watermark(offset, self.log_end_offset)
            return self.high_watermark

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark; return the old one, None if it is not lower.

        Raises
        ------
        ValueError
            ``offset`` is above the log's end.
        """
        with self._lock:
            if offset > self.log_end_offset:
                msg = f"high watermark {offset} would pass the log's end {self.log_end_offset}"
                raise ValueError(msg)
            old = self.high_watermark
            if old >= offset:
                return None
            self.offsets.update_high_watermark(offset, self.log_end_offset)
            return old

    # ---- reading

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
            How far to read. With TXN_COMMITTED the aborted transactions are told, too.
        min_one_message
            Return the first batch whole, however large it is.

        Raises
        ------
        OffsetOutOfRangeError
            ``start_offset`` is below the log's start or above its end.
        ValueError
            ``max_length`` is negative.
        """
        if max_length < 0:
            msg = f"max_length is {max_length}, expected 0 or more"
            raise ValueError(msg)
        bound = self._bound(isolation)
        if start_offset < self.log_start_offset:
            raise OffsetOutOfRangeError(
                str(self.topic_partition), start_offset, self.log_start_offset, self.log_end_offset
            )
        return self.local_log.read(
            start_offset,
            max_length,
            bound,
            min_one_message=min_one_message,
            include_aborted=isolation is FetchIsolation.TXN_COMMITTED,
        )

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

        Also for Kafka's special values; see `pylog.log.offsets_for_times`. None if there is none.
        """
        return find_offset_by_timestamp(self, timestamp)

    # ---- cutting

    def truncate_to(self, target_offset: int) -> bool:
        """Remove everything from ``target_offset`` on; False if nothing is there.

        The batch that holds the offset goes as a whole.

        Raises
        ------
        ValueError
            The offset is negative.
        KafkaStorageError
            The disk failed.
        """
        if target_offset < 0:
            msg = f"cannot truncate {self.topic_partition} to the negative offset {target_offset}"
            raise ValueError(msg)
        with self._changing():
            if target_offset >= self.log_end_offset:
                # A leader that appended nothing has noted its epoch at the end all the same.
                self.leader_epochs.truncate_from_end(self.log_end_offset)
                return False
            _LOGGER.info("truncating %s to offset %d", self.directory, target_offset)
            if target_offset < self.local_log.segments.first_segment.base_offset:
                self.truncate_fully_and_start_at(target_offset)
                return True
            gone = self.local_log.truncate_to(target_offset)
            # At once: the start is never above the end, whatever fails from here on.
            self.offsets.log_start_offset = min(target_offset, self.log_start_offset)
            self._delete_snapshots_of(gone)
            self.leader_epochs.truncate_from_end(target_offset)
            self.rebuild_producer_state(target_offset)
            self._after_cut()
            return True

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove all records and begin anew at ``new_offset``.

        Parameters
        ----------
        new_offset
            The next record's.
        log_start_offset
            First offset served; ``new_offset`` if None.
        """
        with self._changing():
            _LOGGER.info("deleting all of %s, to begin at offset %d", self.directory, new_offset)
            self.local_log.truncate_fully_and_start_at(new_offset)
            self.offsets.log_start_offset = (
                new_offset if log_start_offset is None else log_start_offset
            )
            self.leader_epochs.clear_and_flush()
            self.producer_state.truncate_fully_and_start_at(new_offset)
            self.rebuild_producer_state(new_offset)
            self._after_cut()

    def _after_cut(self) -> None:
        self._flusher.note_cut()
        end = self.log_end_offset
        # Differs from Kafka, which leaves the first unstable offset as it was where the high
        # watermark lies below the new end: a transaction that is gone would hold readers back.
        self.offsets.update_high_watermark(self.high_watermark, end)
        if self._recovery_point_lowered is not None:
            self._recovery_point_lowered(self)

    def _delete_snapshots_of(self, segments: Sequence[LogSegment]) -> None:
        paths = [
            path
            for segment in segments
            if (
                path := self.producer_state.remove_and_mark_snapshot_for_deletion(
                    segment.base_offset
                )
            )
        ]
        if paths:
            io = self._context.io
            remove_later(
                lambda: [io.remove(path, missing_ok=True) for path in paths],
                self.config,
                self._context,
            )

    def rebuild_producer_state(self, last_offset: int, *, is_clean: bool = False) -> None:
        """Have the producers of the log before ``last_offset``."""
        rebuild_producer_state(
            self.producer_state,
            self.local_log.segments,
            self.log_start_offset,
            last_offset,
            now_ms=self._context.clock.milliseconds(),
            is_clean=is_clean,
        )

    def delete_records(self, offset: int | None = None) -> int:
        """Serve no record below ``offset`` any more; return the new log start offset.

        The files stay as they are; segments that lie below as a whole are retention's business.

        Parameters
        ----------
        offset
            The high watermark if None.

        Raises
        ------
        PolicyViolationError
            The topic is compacted and nothing else.
        OffsetOutOfRangeError
            The offset is negative or above the high watermark.
        """
        self.config.ensure_records_may_be_deleted(str(self.topic_partition))
        with self._changing():
            offset = self.high_watermark if offset is None else offset
            if not 0 <= offset <= self.high_watermark:
                raise OffsetOutOfRangeError(
                    str(self.topic_partition), offset, self.log_start_offset, self.high_watermark
                )
            self.maybe_increment_log_start_offset(offset)
            return self.log_start_offset

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset; False if it is not lower.

        Raises
        ------
        OffsetOutOfRangeError
            ``offset`` is above the high watermark.
        """
        with self._changing():
            if offset > self.high_watermark:
                raise OffsetOutOfRangeError(
                    str(self.topic_partition), offset, self.log_start_offset, self.high_watermark
                )
            if offset <= self.log_start_offset:
                return False
            self.local_log.mark_flushed(offset)
            self.leader_epochs.truncate_from_start(offset)
            self.offsets.raise_log_start(offset)
            return True

    # ---- end

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for ``producer.id.expiration.ms``."""
        with self._lock:
            self.producer_state.remove_expired_producers(self._context.clock.milliseconds())

    def close(self) -> None:
        """Take a producer snapshot and close all files as at a clean shutdown; no flush of records.

        The names of all files are on the disk then: without its snapshot or transaction index a
        log that was closed in order would be another one.
        """
        self._context.io.ensure_own_process(self.directory)
        self._flusher.stop()
        with self._changing():
            self.producer_state.take_snapshot()
            self.local_log.close()
            self._context.io.sync_directory(self.directory)
            self._is_closed = True

    def close_handlers(self) -> None:
        """Release all files, changing nothing: for a log whose disk failed."""
        self._flusher.stop()
        with self._lock:
            self.local_log.close_handlers()
            self._is_closed = True
