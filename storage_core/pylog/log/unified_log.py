"""One partition's log that we own: appended to, read, rolled, flushed, truncated.

What it consists of, and its lock, is `pylog.log.log_state`; the work is done by functions and
classes that take this state: `log_append`, `log_roller`, `log_truncation`, `retention`,
`segment_replacement`, `offsets_for_times`.

Threads: any number may append and change; one lock lets one through at a time. Whoever holds it may
have checkpoints written, and takes neither the flusher's lock nor the manager's lock of creation
and deletion, which come before it (`pylog.log.log_manager`); a cleaner that may be at work on the
log is stopped before the lock is taken (`pylog.log.log_truncation`). After a failed write or fsync
the log directory is offline, and the log refuses whatever changes it. So it does in a child that
was forked since the log was opened: `LogLockedError`.

Source: UnifiedLog (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pylog.errors import (
    KafkaStorageError,
    LogStorageError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
)
from pylog.log import retention
from pylog.log.copied_batches import append_copied
from pylog.log.log_append import BatchesAppend, LogAppend, adopt_segment, append_finished
from pylog.log.log_flusher import LogFlusher
from pylog.log.log_roller import LogRoller
from pylog.log.log_segment import FetchIsolation
from pylog.log.log_truncation import (
    boundary_at,
    ensure_not_negative,
    truncate_fully_and_start_at,
    truncate_to,
)
from pylog.log.metrics import LogMetrics
from pylog.log.offsets_for_times import find_offset_by_timestamp
from pylog.log.segment_replacement import create_cleaned_segment, replace_in_log
from pylog.model import NO_PARTITION_LEADER_EPOCH, AppendOrigin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.config import LogConfig
    from pylog.log.log_segment import FetchDataInfo, LogOffsetMetadata, LogSegment
    from pylog.log.log_state import LogState
    from pylog.log.log_truncation import TruncationGuard
    from pylog.log.offsets_for_times import OffsetForTime
    from pylog.log.retention import DeletedSegment
    from pylog.model import TopicPartition
    from pylog.producers.producer_state_entry import LastRecord
    from pylog.record.batch_scan import BatchHeaders
    from pylog.validation.log_append_info import AppendedBatches, LogAppendInfo

    Bytes = bytes | bytearray | memoryview


class UnifiedLog:
    """A log; made by `pylog.log.log_loader.load_log`.

    Reading needs no lock: what one property says may be outdated by the time the next one is
    asked; a read never gives half an append.

    Parameters
    ----------
    state
        What the log consists of.
    truncation_guard
        Around what takes the log's end back.
    """

    def __init__(self, state: LogState, truncation_guard: TruncationGuard) -> None:
        self._state = state
        self._truncation_guard = truncation_guard
        self._flusher = LogFlusher(state)
        self._roller = LogRoller(state, self._flusher)
        self.log_directory = state.log_directory
        self.local_log = state.local_log
        self.producer_state = state.producer_state
        self.leader_epochs = state.leader_epochs
        self.topic_partition: TopicPartition = state.local_log.topic_partition

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
        segments = self.segments
        return LogMetrics(
            size=sum(segment.size_bytes for segment in segments),
            num_log_segments=len(segments),
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            **asdict(self._state.counters),
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
                self._state.ensure_open()
                # Of a segment whose files have been removed since it was found. Others have taken
                # its place, after a truncation or a cleaning, or the offset is out of range now.
                if self.local_log.segments.values_from(0) == segments:
                    raise

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

        Also for Kafka's special values; see `pylog.log.offsets_for_times`. None if there is none.
        """
        return find_offset_by_timestamp(self._state, timestamp)

    @property
    def follows_end(self) -> bool:
        """Whether every append moves the high watermark; whoever replicates sets it to False."""
        return self._state.follows_end

    @follows_end.setter
    def follows_end(self, follows_end: bool) -> None:
        self._state.follows_end = follows_end

    @property
    def last_flushed_ms(self) -> int:
        """Time of the last flush, in ms since the epoch."""
        return self._flusher.last_flushed_ms

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
        CorruptRecordError, InvalidRecordError, RecordValidationError
            The records are not what may be appended.
        RecordTooLargeError, RecordBatchTooLargeError
            They are above ``max.message.bytes``, or fit no segment.
        OutOfOrderSequenceError, InvalidProducerEpochError, InvalidTxnStateError
            The producer may not append them.
        TransactionCoordinatorFencedError
            A marker of an old coordinator.
        KafkaStorageError
            The disk failed, or has failed before. After any error the log is as before, but for a
            new segment or leader epoch, as in Kafka.
        """
        append = LogAppend(
            self._state, self._roller, origin, leader_epoch, transaction_version=transaction_version
        )
        return self._append(append, records, assigns_offsets=origin is not AppendOrigin.RAFT_LEADER)

    def append_batches_as_leader(self, records: Bytes, leader_epoch: int = 0) -> AppendedBatches:
        """Append the batches of clients one after the other, with few writes for many of them.

        The log, its files and its errors are those of as many calls of `append_as_leader`.

        Parameters
        ----------
        records
            v2 batches without a gap between them, each with base offset 0; one cut short at the end
            does not count. A writable buffer is changed in place; of another one, copies are made.
        leader_epoch
            Written into the batches; not negative.

        Returns
        -------
        AppendedBatches
            The offsets given to each batch.

        Raises
        ------
        LogStorageError
            As of `append_as_leader`. The batches before have been appended, and `log_end_offset`
            shows how far that is; a note says which batch was refused.
        """
        append = BatchesAppend(self._state, self._roller, memoryview(records), leader_epoch)
        try:
            while append.look_ahead():
                if append.goes_in_place:
                    with self._state.changing():
                        append.write(self._state.context.clock.milliseconds())
                    self._flush_if_due()
                else:
                    append.take(self.append_as_leader(append.next_batch, leader_epoch))
        except KafkaStorageError:
            raise
        except LogStorageError as error:
            error.add_note(append.progress)
            raise
        return append.outcome

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
        append = LogAppend(self._state, self._roller, AppendOrigin.REPLICATION, leader_epoch)
        return self._append(append, records, assigns_offsets=False)

    def append_finished(self, records: memoryview, headers: BatchHeaders) -> None:
        """Append v2 batches that have their offsets, leader epochs and checksums already.

        They begin where the log ends, and are not looked at. Segments are rolled as by appends.
        `UnexpectedAppendOffsetError` if they begin elsewhere; `KafkaStorageError` if the disk
        failed: then the log ends between two of them.
        """
        with self._state.changing():
            append_finished(self._state, self._roller, records, headers)

    def append_copied(self, records: memoryview, headers: BatchHeaders) -> None:
        """Append batches as another log has them, whose checksums are known to be right.

        As `append_as_follower`, for many at once: offsets go up and are at or above the end, gaps
        are accepted. `UnexpectedAppendOffsetError` if they begin below it; `KafkaStorageError` if
        the disk failed: then the log ends between two of them.
        """
        with self._state.changing():
            append_copied(self._state, self._roller, records, headers)

    def adopt_segment(self, path: str, headers: BatchHeaders) -> None:
        """Make a file of such batches, which has been synced, the newest segment, by renaming it.

        It lies on the same file system, and all its offsets fit a segment. Errors as of
        `append_finished`; unless it was renamed, the file is as it was.
        """
        with self._state.changing():
            adopt_segment(self._state, self._roller, path, headers)

    def _append(self, append: LogAppend, records: Bytes, *, assigns_offsets: bool) -> LogAppendInfo:
        try:
            info = append.analyze(records)
            if info.valid_bytes > 0:
                with self._state.changing():
                    now_ms = self._state.context.clock.milliseconds()
                    append.write(now_ms, assigns_offsets=assigns_offsets)
        except RecordTooLargeError:
            with self._state.lock:
                self._state.counters.count_rejected(memoryview(records).nbytes)
            raise
        if info.valid_bytes > 0:
            self._flush_if_due()
        return info

    def _flush_if_due(self) -> None:
        if self.unflushed_messages >= self.config.flush_messages:
            self.flush()

    def roll(self, expected_next_offset: int | None = None) -> LogSegment:
        """Begin a new segment at the end, or at ``expected_next_offset`` if that is higher.

        A producer snapshot is taken, and everything before is flushed in the background.
        ``ValueError`` if the log holds records from there on; cannot be while its end is right.
        """
        with self._state.changing():
            return self._roller.roll(expected_next_offset)

    def flush(self, offset: int | None = None, *, includes_end: bool = False) -> None:
        """Force everything below ``offset`` to disk (None: all); raise the recovery point to it.

        With ``includes_end`` also the files of an empty active segment, as at a shutdown.
        `KafkaStorageError` if an fsync failed. The log directory is offline then: nobody knows
        what the system did with the pages that it could not write.
        """
        if not self._state.is_closed:
            self._state.context.io.ensure_own_process(self.directory)
            offset = self.log_end_offset if offset is None else offset
            self._flusher.flush(offset, includes_end=includes_end)

    def update_high_watermark(self, offset: int) -> int:
        """Move the high watermark as near to ``offset`` as start and end allow, and return it."""
        with self._state.lock:
            self._state.update_high_watermark(offset)
            return self.high_watermark

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark; return the old one, None if it is not lower.

        ``ValueError`` if ``offset`` is above the log's end.
        """
        with self._state.lock:
            return self._state.maybe_increment_high_watermark(offset)

    def update_config(self, config: LogConfig) -> None:
        """Follow another configuration from the next operation on; segments keep their indexes."""
        with self._state.lock:
            self._state.local_log.config = config

    def truncate_to(self, target_offset: int) -> bool:
        """Remove everything from ``target_offset`` on; False if nothing is there.

        The batch that holds the offset goes as a whole. ``ValueError`` if the offset is negative,
        `KafkaStorageError` if the disk failed.
        """
        ensure_not_negative(self._state, target_offset)
        with self._truncation_guard.truncating(self._state, target_offset):
            return truncate_to(self._state, target_offset)

    def truncate_at_boundary(self, offset: int, *, takes_whole_batch: bool = False) -> None:
        """Remove everything from ``offset`` on, and nothing below it; with no other writer.

        At or after the log's end nothing is removed. With ``takes_whole_batch`` a batch that holds
        records on both sides of ``offset`` goes as a whole, as in Kafka; the log ends where it
        began.

        Raises
        ------
        OffsetInsideBatchError, OffsetOutOfRangeError
            There is such a batch, and it is not to go; or ``offset`` is below the log's start.
            Nothing has been removed.
        CorruptRecordError, InvalidRecordError
            The batch there is of v0 or v1, and damaged.
        """
        self.truncate_to(boundary_at(self._state, offset, takes_whole_batch=takes_whole_batch))

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove all records; the next one gets ``new_offset``.

        Records are served from ``log_start_offset`` on, from ``new_offset`` if None.
        """
        with self._truncation_guard.removing_all(self._state, new_offset):
            truncate_fully_and_start_at(self._state, new_offset, log_start_offset)

    def ensure_records_may_be_deleted(self, offset: int | None = None) -> None:
        """Raise what `delete_records` would raise; nothing is changed."""
        self.config.ensure_records_may_be_deleted(str(self.topic_partition))
        self._state.ensure_possible_start(offset)

    def delete_records(self, offset: int | None = None) -> int:
        """Serve no record below ``offset`` any more; return the new log start offset.

        None for the high watermark. The files stay as they are; segments that lie below as a whole
        are retention's business.

        Raises
        ------
        PolicyViolationError
            The topic is compacted and nothing else.
        OffsetOutOfRangeError
            The offset is negative or above the high watermark.
        """
        self.config.ensure_records_may_be_deleted(str(self.topic_partition))
        with self._state.changing():
            return self._state.delete_records(offset)

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset; False if it is not lower.

        `OffsetOutOfRangeError` if ``offset`` is above the high watermark.
        """
        with self._state.changing():
            return self._state.maybe_increment_log_start_offset(offset)

    def delete_old_segments(
        self, now_ms: int | None = None, *, is_async: bool = True
    ) -> list[DeletedSegment]:
        """Remove the oldest segments, as far as retention does not keep them; return those.

        Parameters
        ----------
        now_ms
            The time; that of the clock if None.
        is_async
            Whether the files are removed after ``file.delete.delay.ms``, or at once.

        Raises
        ------
        CorruptRecordError
            A segment may be younger than its time index says, and is damaged; none is removed.
        KafkaStorageError
            The disk failed.
        """
        with self._state.changing():
            now_ms = self._state.context.clock.milliseconds() if now_ms is None else now_ms
            return retention.delete_old_segments(
                self._state, self._roller, now_ms, is_async=is_async
            )

    def held_back_offsets(self, now_ms: int) -> tuple[int, int] | None:
        """Return the offsets ``[start, end)`` that `delete_old_segments` removes once replicated.

        None if there are none. `CorruptRecordError` as of `delete_old_segments`.
        """
        return retention.held_back_offsets(self._state, now_ms)

    def future_segment(self, now_ms: int) -> retention.FutureSegment | None:
        """Return the first segment if `delete_old_segments` keeps it for a time in the future."""
        return retention.future_segment(self._state, now_ms)

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Make an empty segment for `replace_segments`; `KafkaStorageError` if the disk failed."""
        return create_cleaned_segment(self._state, base_offset)

    def replace_segments(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], *, is_async: bool = True
    ) -> None:
        """Put rewritten segments in the place of old ones, which have not been changed meanwhile.

        Readers see the ones or the others. What a crash leaves: `pylog.log.segment_replacement`.

        Parameters
        ----------
        new
            From `create_cleaned_segment`, by offset, forced to disk. The first begins where the
            first old one does.
        old
            By offset, neighbours; the active segment is not among them.
        is_async
            Whether the old files are removed after ``file.delete.delay.ms``, or at once.

        Raises
        ------
        KafkaStorageError
            The disk failed; the next start completes it or takes it back.
        """
        with self._state.changing():
            replace_in_log(self._state, new, old, is_async=is_async)

    def last_records_of_active_producers(self) -> dict[int, LastRecord]:
        """Return what the log must not lose of each active producer, by producer id."""
        with self._state.lock:
            return self.producer_state.last_records()

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for ``producer.id.expiration.ms``."""
        with self._state.lock:
            self.producer_state.remove_expired_producers(self._state.context.clock.milliseconds())

    def close(self) -> None:
        """Take a producer snapshot and close all files as at a clean shutdown; no flush of records.

        The names of all files are on the disk then: without its snapshot or transaction index a
        log that was closed in order would be another one.
        """
        self._state.context.io.ensure_own_process(self.directory)
        self._flusher.stop()
        with self._state.changing():
            self.producer_state.take_snapshot()
            self._state.is_closed = True
            self.local_log.close()
            self._state.context.io.sync_directory(self.directory)

    def close_handlers(self) -> None:
        """Release all files, changing nothing: for a log whose disk failed."""
        self._flusher.stop()
        with self._state.lock:
            self._state.is_closed = True
            self.local_log.close_handlers()
