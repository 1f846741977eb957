"""A log as appends see it: its lock, its end, the segments that are rolled, what is on disk.

The state is in `pylog.log.log_state`, what needs no lock in `pylog.log.log_reader`; the work is
done by `pylog.log.log_append`, `batches_append`, `log_roller` and `log_flusher`. Threads and locks:
`pylog.log.unified_log`.

Source: UnifiedLog (Kafka 4.3).
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, LogStorageError, RecordTooLargeError
from pylog.log.log_append import BatchesAppend, LogAppend, adopt_segment, append_finished
from pylog.log.log_reader import LogReader
from pylog.log.log_roller import LogFlusher, LogRoller
from pylog.model import NO_PARTITION_LEADER_EPOCH, AppendOrigin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.config import LogConfig
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState
    from pylog.record.batch_scan import BatchHeaders
    from pylog.validation.log_append_info import AppendedBatches, LogAppendInfo

    Bytes = bytes | bytearray | memoryview


class WritableLog(LogReader):
    """What of a log moves its end on.

    Parameters
    ----------
    state
        What the log consists of.
    log_directory
        The log directory that the partition directory lies in.
    """

    def __init__(self, state: LogState, log_directory: str) -> None:
        super().__init__(state)
        self.log_directory = log_directory
        self._context = state.context
        self._lock = threading.RLock()
        self._flusher = LogFlusher(state, log_directory, self._lock)
        self._roller = LogRoller(state, self._flusher)

    @property
    def follows_end(self) -> bool:
        """Whether every append moves the high watermark; whoever replicates sets it to False."""
        return self._state.follows_end

    @follows_end.setter
    def follows_end(self, follows_end: bool) -> None:
        self._state.follows_end = follows_end

    @property
    def last_flushed_ms(self) -> int:
        """When the log was flushed last."""
        return self._flusher.last_flushed_ms

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock; a failing disk takes the log directory offline."""
        self._context.io.ensure_own_process(self.directory)  # a fork may have copied a held lock
        with self._lock:
            self._ensure_open()  # not a disk failure
            with self._context.failures.watching(self.log_directory):
                yield

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
                    with self._changing():
                        append.write(self._context.clock.milliseconds())
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
        with self._changing():
            append_finished(self._state, self._roller, records, headers)

    def adopt_segment(self, path: str, headers: BatchHeaders) -> None:
        """Make a file of such batches, which has been synced, the newest segment, by renaming it.

        It lies on the same file system, and all its offsets fit a segment. Errors as of
        `append_finished`; unless it was renamed, the file is as it was.
        """
        with self._changing():
            adopt_segment(self._state, self._roller, path, headers)

    def _append(self, append: LogAppend, records: Bytes, *, assigns_offsets: bool) -> LogAppendInfo:
        try:
            info = append.analyze(records)
            if info.valid_bytes > 0:
                with self._changing():
                    now_ms = self._context.clock.milliseconds()
                    append.write(now_ms, assigns_offsets=assigns_offsets)
        except RecordTooLargeError:
            with self._lock:
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
        with self._changing():
            return self._roller.roll(expected_next_offset)

    def flush(self, offset: int | None = None, *, includes_end: bool = False) -> None:
        """Force everything below ``offset`` to disk (None: all); raise the recovery point to it.

        With ``includes_end`` also the files of an empty active segment, as at a shutdown.
        `KafkaStorageError` if an fsync failed. The log directory is offline then: nobody knows
        what the system did with the pages that it could not write.
        """
        if not self._is_closed:
            self._context.io.ensure_own_process(self.directory)
            offset = self.log_end_offset if offset is None else offset
            self._flusher.flush(offset, includes_end=includes_end)

    def update_high_watermark(self, offset: int) -> int:
        """Move the high watermark as near to ``offset`` as start and end allow, and return it."""
        with self._lock:
            self._state.update_high_watermark(offset)
            return self.high_watermark

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark; return the old one, None if it is not lower.

        ``ValueError`` if ``offset`` is above the log's end.
        """
        with self._lock:
            return self._state.maybe_increment_high_watermark(offset)

    def update_config(self, config: LogConfig) -> None:
        """Follow another configuration from the next operation on; segments keep their indexes."""
        with self._lock:
            self._state.local_log.config = config
