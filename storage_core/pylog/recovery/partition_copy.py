"""The records of a range of one log, put into a new log at the same offsets."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.checks.absent_partitions import offsets_in
from pylog.checks.offsets import OffsetAccount
from pylog.comparison.replica_log import ReplicaLog
from pylog.errors import LogStorageError
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    LOG_FILE_SUFFIX,
    PARTITION_METADATA,
    file_name_prefix,
)
from pylog.files.index_entries import MAX_RELATIVE_OFFSET
from pylog.files.partition_metadata import write_partition_metadata
from pylog.locations import join
from pylog.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, ControlRecordType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.log_view import find_remote_offsets, read_steadily
from pylog.reading.slicing import segment_slices
from pylog.record.batch_header import MAGIC_VALUE_V2, RECORD_BATCH_OVERHEAD, BatchHeader
from pylog.record.batch_scan import find_batches
from pylog.record.batch_writer import write_batch_header
from pylog.record.control_record import EndTransactionMarker
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.recovery.retained_batches import BatchSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.files.durable_io import DurableIO
    from pylog.log.unified_log import UnifiedLog
    from pylog.producers.producer_state_entry import TxnMetadata
    from pylog.reading.log_view import LogView
    from pylog.reading.task_range import SegmentSlice
    from pylog.record.batch_scan import BatchHeaders, Window
    from pylog.recovery.retained_batches import Omission, RetainedBatches


_LOG_END_OFFSET = attrgetter("log_end_offset")


class CopyCounts(NamedTuple):
    """Batches, bytes and left-out records of a copy so far."""

    batches: int = 0
    rewritten_batches: int = 0
    size_bytes: int = 0
    left_out_records: int = 0
    left_out_of_transactions: int = 0

    def plus(self, part: RetainedBatches) -> CopyCounts:
        """Return the counts with some batches more."""
        count = len(part.headers)
        return CopyCounts(
            self.batches + count,
            self.rewritten_batches + (count if part.is_rewritten else 0),
            self.size_bytes + len(part.data),
            self.left_out_records + part.left_out,
            self.left_out_of_transactions + part.left_out_of_transactions,
        )


class RangeCopy:
    """Copies the offsets ``[start, end)`` of a log; used once.

    With ``is_exact`` batches that the range begins or ends in are written anew. Without, they are
    taken whole: the log then starts at ``start_offset`` by its checkpoint, and ends after them.
    ``goes_to_end`` says that the range ends where the log does, wherever that is.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, one for each thing a user may say
        self,
        view: LogView,
        start_offset: int,
        end_offset: int,
        *,
        is_exact: bool,
        omission: Omission | None = None,
        is_compacted: bool | None = None,
        goes_to_end: bool = False,
    ) -> None:
        self.view = view
        self._goes_to_end = goes_to_end
        self._account = OffsetAccount(
            view,
            offsets_in(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT).get(
                view.topic_partition
            ),
            is_compacted=is_compacted,
            start_offset=start_offset,
        )
        self.start_offset, self.end_offset = start_offset, end_offset
        self._is_exact = is_exact
        self._omission = omission
        self._segments = {each.base_offset: each for each in view.segments}
        self._slices = segment_slices(view, start_offset, end_offset, checks_gap=False)
        self.counts = CopyCounts()

    @property
    def size_bytes(self) -> int:
        """Bytes that the copy reads."""
        return sum(each.size_bytes for each in self._slices)

    def _parts(
        self, segment_slice: SegmentSlice, progress: Callable[[int], object]
    ) -> Iterator[RetainedBatches]:
        """Yield what stays of a segment, in the order of the log; valid until the next one."""
        start, end = (self.start_offset, self.end_offset) if self._is_exact else (None, None)
        if segment_slice.skipped_below:  # where segments overlap, records are an earlier one's
            start = max(start or 0, segment_slice.skipped_below)
        selection = BatchSelection(start, end, self._omission)
        self._account.begin(self._segments[segment_slice.segment_base_offset])
        for window in self._windows(segment_slice):
            self._account.add(window)
            for part in selection.select(window):
                self.counts = self.counts.plus(part)
                yield part
            progress(window.size_bytes)

    def _windows(self, segment_slice: SegmentSlice) -> Iterator[Window]:
        """Yield the batches of a slice that have offsets of the range."""
        lowest = max(self.start_offset, segment_slice.skipped_below)
        following = segment_slice.base_offset
        with segment_slice.open() as source:
            for window in CheckedWindows(source, segment_slice, checks_counts=True):
                headers = window.headers
                firsts = first_offsets(headers, following)
                following = int(headers.last_offsets[-1]) + 1
                chosen = slice(
                    int(np.searchsorted(headers.last_offsets, lowest)),
                    int(np.searchsorted(firsts, self.end_offset)),
                )
                if chosen.start < chosen.stop:
                    yield window.select(chosen)

    @cached_property
    def base_offset(self) -> int:
        """Return where the first segment begins: below the start where a batch is taken whole."""
        if self._is_exact:
            return self.start_offset
        for each in self._slices:
            for window in self._windows(each):
                return min(self.start_offset, _first_offset(window))
        return self.start_offset

    def prepare(self, io: DurableIO, log_directory: str) -> None:
        """Make the directory of a log that begins where the range does, and has nothing yet."""
        directory = join(log_directory, str(self.view.topic_partition))
        io.make_directory(directory)
        name = f"{file_name_prefix(self.base_offset)}{LOG_FILE_SUFFIX}"
        io.write_file(join(directory, name), b"")
        if self.view.metadata is not None:
            path = join(directory, PARTITION_METADATA)
            write_partition_metadata(io, path, self.view.metadata.topic_id)

    def count(self, progress: Callable[[int], object] = lambda _: None) -> None:
        """Find out what `write` would do, and do nothing."""
        for each in self._slices:
            for _ in self._parts(each, progress):
                pass

    @cached_property
    def missing(self) -> list[tuple[int, int]]:
        """Offsets of the range that the source has lost, after it was written or counted."""
        self._account.end(self.end_offset)
        found = [*self._account.missing(), *self._account.cleaned_or_lost()]
        gaps = sorted((each.start, min(each.end, self.end_offset)) for each in found)
        before = find_remote_offsets(self.view)
        is_from_start = self.start_offset <= self.view.local_log_start_offset
        if before is not None and is_from_start and self._account.is_compacted:
            gaps.insert(0, before)  # what is compacted is not tiered
        if self._goes_to_end:
            reached = ReplicaLog(self.view.directory).reached_offset
            # Looked for after that: what a broker has appended since is not lost.
            gaps.append((read_steadily(self.view.refreshed(), _LOG_END_OFFSET), reached))
        return [each for each in gaps if each[0] < each[1]]

    def write(self, log: UnifiedLog, progress: Callable[[int], object] = lambda _: None) -> None:
        """Append the range to the log of such a directory."""
        for each in self._slices:
            is_begun = log.log_end_offset == self.base_offset
            for part in self._parts(each, progress):
                if not len(part.headers):
                    continue
                if not is_begun:  # segments begin where those of the source do
                    log.roll(each.segment_base_offset)
                    is_begun = True
                log.append_copied(part.data, part.headers)
        if self._is_exact and log.log_end_offset < self.end_offset:
            # Nothing has the last offsets, as after a compaction: the log ends there all the same.
            append_batch(log, _empty_batch(log, self.end_offset))
        log.maybe_increment_log_start_offset(self.start_offset)


def first_offsets(
    headers: BatchHeaders, lowest_offset: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return offsets that no record of the batches is below; of v2 the first ones."""
    if headers.traits.all_v2:
        return headers.offsets
    before = np.concatenate([[lowest_offset], headers.last_offsets[:-1] + 1])
    return np.where(headers.is_v2 | (headers.codec_ids == 0), headers.offsets, before)


def _first_offset(window: Window) -> int:
    """Return the first offset of a window; of a wrapper of v0 and v1 its records tell it."""
    if window.headers.is_v2[0]:
        return int(window.headers.offsets[0])
    return next(iter(RecordBatch(window.bytes_of(0)).records())).offset


def append_batch(log: UnifiedLog, data: bytes) -> None:
    """Append one batch that is right as it is."""
    headers = find_batches(np.frombuffer(data, dtype=np.uint8)).headers
    log.append_copied(memoryview(data), headers)


def _empty_batch(log: UnifiedLog, end_offset: int) -> bytes:
    """Return a batch without records from a log's end on, as a cleaning leaves one.

    It begins later where it would be wider than a batch can be.
    """
    base_offset = max(log.log_end_offset, end_offset - 1 - MAX_RELATIVE_OFFSET)
    data = bytearray(RECORD_BATCH_OVERHEAD)
    header = BatchHeader(
        offset=base_offset,
        size_bytes=len(data),
        magic=MAGIC_VALUE_V2,
        crc=0,
        attributes=0,
        partition_leader_epoch=max(log.latest_epoch or 0, 0),
        last_offset_delta=end_offset - 1 - base_offset,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=0,
    )
    write_batch_header(data, header)
    return bytes(data)


def end_transaction(
    log: UnifiedLog, transaction: TxnMetadata, kind: ControlRecordType = ControlRecordType.ABORT
) -> int:
    """Append the marker of a transaction that is open; return its offset."""
    entry = log.producer_state.last_entry(transaction.producer_id)
    if entry is None:
        reason = f"producer {transaction.producer_id} has a transaction and no state"
        raise LogStorageError(reason)
    offset = log.log_end_offset
    builder = RecordBatchBuilder(
        base_offset=offset,
        producer_id=transaction.producer_id,
        producer_epoch=entry.producer_epoch,
        is_transactional=True,
        is_control_batch=True,
        partition_leader_epoch=max(log.latest_epoch or 0, 0),
    )
    marker = EndTransactionMarker(kind, max(entry.coordinator_epoch, 0))
    builder.append_end_transaction_marker(max(entry.last_timestamp, 0), marker)
    append_batch(log, builder.build())
    return offset
