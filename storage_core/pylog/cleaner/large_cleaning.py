"""Cleaning one log whose keys no task's memory holds, by an engine that shuffles, such as Spark.

1. One `SegmentTransactionsTask` a segment checks its batches, and says what they do to transactions
   (`pylog.cleaner.cleaning_task`). From these the planner, who reads no segment, knows which
   transactions are open where each segment begins (`LargeCleaning.plan`).
2. One `RecordKeysTask` a segment reads the hash of each record's key.
3. The engine brings together the records of each hash, and finds those that are superseded: whose
   offset is below the last one of the hash that counts (column ``is_mapped``).
4. One `GroupTask` a group of segments gets the offsets of its superseded records, and writes what
   stays (`GroupTask.run`). Its memory is bounded by the group.

The result is that of `pylog.cleaner.cleaner` with an offset map that has room for all keys.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.cleaner.batch_retention import CleanedTransactionMetadata
from pylog.cleaner.cleaned_segments import CleanedSegments, CountedSegments, group_segments_by_size
from pylog.cleaner.cleaner import (
    CleaningRound,
    GroupCleaning,
    collect_aborted_entries,
    legacy_horizon_ms,
    window_bytes,
)
from pylog.cleaner.cleaning_task import RecordKeysTask, SegmentTransactionsTask
from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.cleaner.log_snapshot import CleanedGroup, CleanerStats, SnapshotLog, StagedCleaning
from pylog.cleaner.offset_map import HashKey, SupersededOffsets
from pylog.cleaner.throttler import Throttler
from pylog.errors import CorruptRecordError, InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from pylog.cleaner.cleaning_task import CleaningTask, SegmentTransactions
    from pylog.files.durable_io import DurableIO
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.model import TopicPartition


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

        Returns
        -------
        CleanedGroup
            With a `failure`, and nothing staged, if a record of the group is damaged or larger than
            the topic allows.

        Raises
        ------
        KafkaStorageError, SegmentVanishedError
            The disk failed. Nothing is left.
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
            reader=KeyedRecordReader(snapshot.config.max_decompressed_message_bytes),
            window_bytes=window_bytes(config),
            stats=stats,
            check_done=lambda _: None,
            throttle=Throttler(config.io_max_bytes_per_second).throttle,
            progress=None,
            begin_segments=CountedSegments if task.is_dry_run else CleanedSegments,
        )
        transactions = copy.deepcopy(self.transactions)
        group = GroupCleaning(cleaning, transactions, self.horizon_ms)
        chosen = set(self.base_offsets)
        try:
            group.clean([each for each in log.segments if each.base_offset in chosen])
        except (CorruptRecordError, InvalidRecordError) as error:  # the other logs can be cleaned
            log.discard()
            return CleanedGroup(self.number, (), CleanerStats(), str(error))
        except BaseException:
            log.discard()
            raise
        finally:
            log.close()
        return CleanedGroup(self.number, tuple(log.staged), stats)


class _Segment(NamedTuple):
    """What the planner needs to know of a segment, which it does not read."""

    base_offset: int
    size_bytes: int
    group: int
    is_dirty: bool
    aborted: list[TransactionIndexEntry]


class LargeCleaning:
    """The cleaning of one log by an engine; see the module. Made where the log is owned.

    Parameters
    ----------
    cleaning
        The log, as one task would clean it.

    Attributes
    ----------
    topic_partition
        Whose log it is.
    transactions
        The tasks that come first, one a segment.
    group_count
        How many groups of segments there are.

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
        start, end = log.first_dirty_offset, log.first_uncleanable_offset
        dirty = log.local_log.segments.values(start, end)
        try:
            self._segments = tuple(_segments_in_groups(log, {each.base_offset for each in dirty}))
            self._dirty_aborted = collect_aborted_entries(log, dirty[0], end) if dirty else []
            self._horizon_ms = legacy_horizon_ms(log, start)
        finally:
            log.close()
        self.group_count = len({each.group for each in self._segments})
        self.transactions = tuple(
            SegmentTransactionsTask(
                cleaning=cleaning, base_offset=each.base_offset, is_dirty=each.is_dirty
            )
            for each in self._segments
        )

    def plan(self, found: Iterable[SegmentTransactions]) -> LargeCleaningPlan:
        """Return the tasks that clean the log.

        Parameters
        ----------
        found
            Of all tasks of `transactions`; of those that were run several times, any.

        Raises
        ------
        ValueError
            One is missing.
        """
        by_base = {each.base_offset: each for each in found}
        missing = {each.base_offset for each in self._segments} - set(by_base)
        if missing:
            msg = f"the transactions of segments {sorted(missing)} are not known"
            raise ValueError(msg)
        in_order = [by_base[each.base_offset] for each in self._segments]
        return LargeCleaningPlan(
            self._cleaning,
            tuple(self._record_keys(in_order)),
            tuple(self._groups(in_order)),
            next((each.failure for each in in_order if each.failure is not None), None),
        )

    def _groups(self, found: Sequence[SegmentTransactions]) -> Iterator[GroupTask]:
        transactions = CleanedTransactionMetadata()
        pairs = zip(self._segments, found, strict=True)
        for number, group in itertools.groupby(pairs, key=lambda pair: pair[0].group):
            members = list(group)
            yield GroupTask(
                cleaning=self._cleaning,
                number=number,
                base_offsets=tuple(segment.base_offset for segment, _ in members),
                transactions=copy.deepcopy(transactions),
                horizon_ms=self._horizon_ms,
                size_bytes=sum(segment.size_bytes for segment, _ in members),
            )
            for segment, events in members:
                transactions.add_aborted_transactions(segment.aborted)
                events.clean.show_to(transactions)
                events.dirty.show_to(transactions)

    def _record_keys(self, found: Sequence[SegmentTransactions]) -> Iterator[RecordKeysTask]:
        """Yield the tasks; dirty transactions are followed as by `OffsetMapBuilding`."""
        transactions = CleanedTransactionMetadata()
        transactions.add_aborted_transactions(self._dirty_aborted)
        hash_key = HashKey.random()
        for segment, events in zip(self._segments, found, strict=True):
            yield RecordKeysTask(
                cleaning=self._cleaning,
                hash_key=hash_key,
                base_offset=segment.base_offset,
                group=segment.group,
                transactions=copy.deepcopy(transactions) if segment.is_dirty else None,
            )
            if segment.is_dirty:
                events.dirty.show_to(transactions)


def _segments_in_groups(log: SnapshotLog, dirty: set[int]) -> Iterator[_Segment]:
    """Yield the segments that are cleaned; those whose base offsets are in ``dirty`` are dirty."""
    end, config = log.first_uncleanable_offset, log.config
    groups = group_segments_by_size(
        log.local_log.segments.values(-1, end),
        config.segment_bytes,
        config.segment_index_bytes,
        end,
    )
    for number, segments in enumerate(groups):
        ends = [*(each.base_offset for each in segments[1:]), segments[-1].read_next_offset()]
        for segment, segment_end in zip(segments, ends, strict=True):
            yield _Segment(
                segment.base_offset,
                segment.size_bytes,
                number,
                segment.base_offset in dirty,
                collect_aborted_entries(log, segment, segment_end),
            )


class LargeCleaningPlan:
    """The tasks that clean one log by an engine; from `LargeCleaning.plan`.

    Attributes
    ----------
    record_keys
        The tasks that read keys.
    groups
        The tasks that write, by their numbers.
    failure
        What is returned in the place of the tasks' work if the log cannot be cleaned; else None.
    """

    def __init__(
        self,
        cleaning: CleaningTask,
        record_keys: tuple[RecordKeysTask, ...],
        groups: tuple[GroupTask, ...],
        failure: str | None,
    ) -> None:
        self._cleaning = cleaning
        self.record_keys = record_keys
        self.groups = groups
        self.failure = None if failure is None else cleaning.nothing_staged(failure=failure)

    def merge(self, cleaned: Iterable[CleanedGroup]) -> StagedCleaning:
        """Return what the tasks of all groups have made as what one task would have made.

        Where one has failed, the log stays as it is.

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
        for _, each in sorted(by_number.items()):
            if each.failure is not None:
                return self._cleaning.nothing_staged(failure=each.failure)
        stats = CleanerStats()
        for each in by_number.values():
            stats.add(each.stats)
        snapshot = self._cleaning.snapshot
        return StagedCleaning(
            topic_partition=snapshot.topic_partition,
            groups=tuple(staged for _, each in sorted(by_number.items()) for staged in each.staged),
            stats=stats,
            next_dirty_offset=snapshot.first_uncleanable_offset,
        )
