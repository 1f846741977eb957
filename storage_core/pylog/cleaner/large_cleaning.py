"""Cleaning one log whose keys no task's memory holds, by an engine that shuffles, such as Spark.

1. One `RecordKeysTask` a segment reads the hash of each record's key (`pylog.cleaner.record_keys`).
2. The engine brings together the records of each hash, and finds those that are superseded: whose
   offset is below the last one of the hash that counts (column ``is_mapped``).
3. One `GroupTask` a group of segments gets the offsets of its superseded records, and writes what
   stays (`GroupTask.run`). Its memory is bounded by the group.

The result is that of `pylog.cleaner.cleaner` with an offset map that has room for all keys: what a
task cannot see from its own segments it is given, namely the transactions that are open where its
segments begin. The driver finds these in two passes over the log that look at headers and markers.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pylog.cleaner.aborted_entries import collect_aborted_entries
from pylog.cleaner.batch_retention import discardable_batches
from pylog.cleaner.checked_windows import checked_windows
from pylog.cleaner.cleaned_segments import CleanedSegments
from pylog.cleaner.cleaned_transaction_metadata import CleanedTransactionMetadata
from pylog.cleaner.cleaner import legacy_horizon_ms, window_bytes
from pylog.cleaner.cleaner_stats import CleanerStats
from pylog.cleaner.cleaning_round import CleaningRound
from pylog.cleaner.counted_segments import CountedSegments
from pylog.cleaner.group_cleaning import GroupCleaning
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.log_snapshot import SnapshotLog
from pylog.cleaner.offset_map import HashKey
from pylog.cleaner.record_keys import RecordKeysTask, dirty_position
from pylog.cleaner.segment_grouping import group_segments_by_size
from pylog.cleaner.staged_cleaning import CleanedGroup, StagedCleaning
from pylog.cleaner.throttler import Throttler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from pylog.cleaner.cleaning_task import CleaningTask
    from pylog.files.durable_io import DurableIO
    from pylog.log.log_segment import LogSegment
    from pylog.model import TopicPartition


class SupersededOffsets:
    """Which records of a group are superseded, in the place of an offset map.

    Parameters
    ----------
    offsets
        int64: of the superseded records, in any order.
    end_offset
        Where the cleaning ends, exclusive.
    """

    def __init__(self, offsets: npt.NDArray[np.int64], end_offset: int) -> None:
        self.latest_offset = end_offset - 1
        self.hash_key = HashKey(0, 0)
        self._offsets = np.sort(offsets)

    def are_latest(
        self,
        offsets: npt.NDArray[np.int64],
        hashes: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return for some records whether they are not superseded; ``hashes`` do not matter."""
        asked = offsets[rows]
        if self._offsets.size == 0:
            return np.ones(asked.size, dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._offsets, asked), self._offsets.size - 1)
        latest: npt.NDArray[np.bool_] = self._offsets[places] != asked
        return latest


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """Cleans one group of segments.

    Attributes
    ----------
    cleaning
        What is to be done to the log.
    number
        Of the group.
    base_offsets
        Of its segments.
    transactions
        Those that are open where it begins.
    horizon_ms
        Tombstones of formats v0 and v1 stay in segments that were changed last after it.
    size_bytes
        Of its segments.
    """

    cleaning: CleaningTask
    number: int
    base_offsets: tuple[int, ...]
    transactions: CleanedTransactionMetadata
    horizon_ms: int
    size_bytes: int

    def run(self, superseded: npt.NDArray[np.int64], io: DurableIO | None = None) -> CleanedGroup:
        """Clean the group into staged files; any number of attempts may, at the same time.

        Parameters
        ----------
        superseded
            int64: offsets of its records for whose keys there is a later one that counts; others
            do no harm.
        io
            What is written through; the real disk if None.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, KafkaStorageError, SegmentVanishedError
            As of `Cleaner.clean`. Nothing is left.
        """
        task = self.cleaning
        snapshot, config = task.snapshot, task.config
        log = SnapshotLog(snapshot, task.job_token, io)
        stats = CleanerStats()
        cleaning = CleaningRound(
            log=log,
            first_dirty_offset=snapshot.first_dirty_offset,
            end_offset=snapshot.first_uncleanable_offset,
            now_ms=task.now_ms,
            latest=SupersededOffsets(superseded, snapshot.first_uncleanable_offset),
            reader=KeyedRecordReader(),
            window_bytes=window_bytes(config),
            stats=stats,
            check_done=lambda _: None,
            throttle=Throttler(config.io_max_bytes_per_second).throttle,
            progress=None,
            begin_segments=CountedSegments if task.is_dry_run else CleanedSegments,
        )
        transactions = copy.deepcopy(self.transactions)
        group = GroupCleaning(cleaning, transactions, self.horizon_ms, self.size_bytes)
        chosen = set(self.base_offsets)
        try:
            group.clean([each for each in log.segments if each.base_offset in chosen])
        except BaseException:
            log.discard()
            raise
        finally:
            log.close()
        return CleanedGroup(self.number, tuple(log.staged), stats)


class LargeCleaning:
    """The tasks that clean one log by an engine; see the module. Made where the log is owned.

    Parameters
    ----------
    cleaning
        The log, as one task would clean it.

    Attributes
    ----------
    topic_partition
        Whose log it is.
    record_keys
        The tasks that read keys.
    groups
        The tasks that write, by their numbers.

    Raises
    ------
    CorruptRecordError, InvalidRecordError, CorruptIndexError
        The log is damaged.
    KafkaStorageError
        It cannot be read.
    """

    def __init__(self, cleaning: CleaningTask) -> None:
        self._cleaning = cleaning
        self.topic_partition: TopicPartition = cleaning.snapshot.topic_partition
        log = SnapshotLog(cleaning.snapshot, cleaning.job_token)
        try:
            self.groups = tuple(self._plan_groups(log))
            self.record_keys = tuple(self._plan_record_keys(log))
        finally:
            log.close()

    def _plan_groups(self, log: SnapshotLog) -> Iterator[GroupTask]:
        end = log.first_uncleanable_offset
        config = log.config
        horizon_ms = legacy_horizon_ms(log, log.first_dirty_offset)
        groups = group_segments_by_size(
            log.local_log.segments.values(-1, end),
            config.segment_bytes,
            config.segment_index_bytes,
            end,
        )
        transactions = CleanedTransactionMetadata()
        for number, segments in enumerate(groups):
            yield GroupTask(
                cleaning=self._cleaning,
                number=number,
                base_offsets=tuple(segment.base_offset for segment in segments),
                transactions=copy.deepcopy(transactions),
                horizon_ms=horizon_ms,
                size_bytes=sum(segment.size_bytes for segment in segments),
            )
            ends = [*(each.base_offset for each in segments[1:]), segments[-1].read_next_offset()]
            for segment, segment_end in zip(segments, ends, strict=True):
                transactions.add_aborted_transactions(
                    collect_aborted_entries(log, segment, segment_end)
                )
                self._show(segment, 0, transactions)

    def _plan_record_keys(self, log: SnapshotLog) -> Iterator[RecordKeysTask]:
        """Yield the tasks; dirty transactions are followed as by `OffsetMapBuilding`."""
        start, end = log.first_dirty_offset, log.first_uncleanable_offset
        dirty = log.local_log.segments.values(start, end)
        transactions = CleanedTransactionMetadata()
        if dirty:
            transactions.add_aborted_transactions(collect_aborted_entries(log, dirty[0], end))
        hash_key = HashKey.random()
        dirty_bases = {segment.base_offset for segment in dirty}
        group_of = {base: group.number for group in self.groups for base in group.base_offsets}
        for segment in log.local_log.segments.values(-1, end):
            is_dirty = segment.base_offset in dirty_bases
            yield RecordKeysTask(
                cleaning=self._cleaning,
                hash_key=hash_key,
                base_offset=segment.base_offset,
                group=group_of[segment.base_offset],
                transactions=copy.deepcopy(transactions) if is_dirty else None,
            )
            if is_dirty:
                self._show(segment, dirty_position(self._cleaning, segment), transactions)

    def _show(
        self, segment: LogSegment, start: int, transactions: CleanedTransactionMetadata
    ) -> None:
        """Show a segment's batches from byte ``start`` on to ``transactions``."""
        for window in checked_windows(segment, start, window_bytes(self._cleaning.config)):
            discardable_batches(window, transactions)

    def merge(self, cleaned: Iterable[CleanedGroup]) -> StagedCleaning:
        """Return what the tasks of all groups have made as what one task would have made.

        Parameters
        ----------
        cleaned
            One for each group; of tasks that were run several times, any.

        Raises
        ------
        ValueError
            A group is missing.
        """
        by_number = {each.number: each for each in cleaned}
        if set(by_number) != set(range(len(self.groups))):
            msg = f"groups {sorted(by_number)} were cleaned, expected 0 to {len(self.groups) - 1}"
            raise ValueError(msg)
        stats = CleanerStats()
        for each in by_number.values():
            stats.add(each.stats)
        return StagedCleaning(
            topic_partition=self.topic_partition,
            groups=tuple(staged for _, each in sorted(by_number.items()) for staged in each.staged),
            stats=stats,
            next_dirty_offset=self._cleaning.snapshot.first_uncleanable_offset,
        )
