"""What the headers of one partition tell; which partitions are read in one task.

Every byte of a log has about the same chance to be in a run. What is random depends on the name of
the partition alone, so that two looks at the same log give the same answer.
"""

from __future__ import annotations

import heapq
import random
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.cleaner.keyed_records import KeyedRecordReader
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import CLEANER_OFFSET_CHECKPOINT
from pylog.files.looks import Looks
from pylog.kernels.decode_headers import RECORD_COUNT
from pylog.locations import join
from pylog.reading.damage import DamageReport
from pylog.reading.headers import SegmentHeaders
from pylog.reading.record_check import RecordCheck
from pylog.record.batch_scan import BatchHeaders
from pylog.record.batch_writer import MAX_INT64
from pylog.record.header_sums import HeaderSums, from_offset
from pylog.statistics.batches import BatchStatistics
from pylog.statistics.keys import FrequentKeys, LargestRecords, counted_hot_keys
from pylog.tables.cleaning import find_config, find_live_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.cleaner.offset_map import HashKey
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window
    from pylog.statistics.keys import HotKey, LargeRecord

    Int64Array = npt.NDArray[np.int64]
    WindowReader = Callable[[LogView, int, Window], BatchHeaders]


RUN_BYTES = 1 << 18
"""What a run has at the most, as it is stored; one batch may be larger."""
_MOST_RUNS = 256  # of a partition


class BatchRun(NamedTuple):
    """Whole batches ``[position, end_position)`` of a segment, given by its place in the log."""

    segment: int
    position: int
    end_position: int

    @property
    def size_bytes(self) -> int:
        """The bytes from the first to the last batch of the run."""
        return self.end_position - self.position


class RunChoice:
    """Chooses runs among the windows of one partition. One thread."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._random = random.Random(str(topic_partition))  # noqa: S311 - a sample, no secret
        self._kept: list[tuple[float, BatchRun]] = []

    def offer(self, segment: int, window: Window) -> None:
        """Have a window in the choice."""
        key = self._random.random() ** (1 / max(1, window.size_bytes))
        if len(self._kept) < _MOST_RUNS:
            heapq.heappush(self._kept, (key, self._run_in(segment, window)))
        elif key > self._kept[0][0]:
            heapq.heapreplace(self._kept, (key, self._run_in(segment, window)))

    def runs(self) -> list[tuple[float, BatchRun]]:
        """Return the runs with their keys, those that are to be taken first in front."""
        return sorted(self._kept, reverse=True)

    def _run_in(self, segment: int, window: Window) -> BatchRun:
        headers = window.headers
        ends = headers.positions + headers.sizes_bytes
        last_start = max(0, window.size_bytes - RUN_BYTES)
        wanted = self._random.randrange(last_start + 1)
        first = int(np.searchsorted(headers.positions, wanted, side="right")) - 1
        start = int(headers.positions[first])
        last = int(np.searchsorted(ends, start + RUN_BYTES, side="right")) - 1
        at = window.file_position
        return BatchRun(segment, at + start, at + int(ends[max(first, last)]))


def shared_budget(sizes_bytes: Sequence[int], budget_bytes: int, least_bytes: int) -> list[int]:
    """Return how much of each log to sample: by size, no less than ``least_bytes``."""
    shares = [0] * len(sizes_bytes)
    total, left = sum(sizes_bytes), budget_bytes
    for place in sorted(range(len(shares)), key=lambda each: -sizes_bytes[each]):
        wanted = max(least_bytes, budget_bytes * sizes_bytes[place] // max(1, total))
        shares[place] = min(wanted, sizes_bytes[place], left)
        left -= shares[place]
    return shares


_BATCHES_AT_ONCE = 1 << 15


class SegmentStatistics(NamedTuple):
    """One segment: its file, and the sums over its headers."""

    base_offset: int
    next_offset: int
    size_bytes: int
    valid_bytes: int
    sums: HeaderSums
    path: str


@dataclass(slots=True)
class PartitionStatistics:
    """One partition."""

    view: LogView  # what was read
    segments: list[SegmentStatistics] = field(default_factory=list)  # in offset order
    batches: BatchStatistics = field(default_factory=BatchStatistics)  # the sums over all headers
    # A sample, each run with its key, see `RunChoice`
    runs: list[tuple[float, BatchRun]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # what could not be read, a line for each

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return self.view.topic_partition

    @property
    def size_bytes(self) -> int:
        """The bytes of all ``.log`` files of the partition."""
        return sum(each.size_bytes for each in self.segments)


def walk_partition(
    view: LogView,
    now_ms: int,
    *,
    read_window: WindowReader | None = None,
    advance: Callable[[int], None],
) -> PartitionStatistics:
    """Return the statistics of all batch headers of a log.

    With ``read_window`` they are what that returns, and batches whose records cannot be decoded are
    left out and named.
    """
    found = PartitionStatistics(view)
    check = None if read_window is None else RecordCheck(view.topic_partition)
    choice = RunChoice(view.topic_partition)
    pending = _PendingHeaders(found.batches, now_ms)
    for index, segment in enumerate(view.segments):
        headers = SegmentHeaders(view, index, verifies_checksums=read_window is not None)
        sums = HeaderSums()
        for window in headers:
            choice.offer(index, window)
            counted = window
            if read_window is not None and check is not None:
                is_refused = check.refused_in(headers.slice, window)
                decodable = window.select(~is_refused if is_refused.any() else None)
                is_new = decodable.headers.last_offsets >= headers.first_new
                new = decodable.select(None if is_new.all() else is_new)
                counted = replace(window, headers=read_window(view, index, new))
            batches = from_offset(counted, headers.first_new).headers
            if len(batches):
                pending.add(batches, sums)
            advance(window.size_bytes)
        pending.finish(sums)
        if check is not None:
            check.end_segment()
        found.segments.append(
            SegmentStatistics(
                segment.base_offset,
                headers.next_offset,
                segment.size_bytes,
                headers.end_position,
                sums,
                segment.file_path(),
            )
        )
    pending.flush()
    found.runs = choice.runs()
    if check is not None:
        found.problems += [str(each) for each in check.damage]
    return found


class _PendingHeaders:
    """Headers of many windows that are added up at once, which is cheaper."""

    def __init__(self, into: BatchStatistics, now_ms: int) -> None:
        self._into = into
        self._now_ms = now_ms
        self._of_segment: list[Int64Array] = []
        self._of_log: list[Int64Array] = []
        self._batches = 0

    def add(self, headers: BatchHeaders, sums: HeaderSums) -> None:
        self._of_segment.append(headers.columns)
        self._batches += len(headers)
        if self._batches >= _BATCHES_AT_ONCE:
            self.finish(sums)
            self.flush()

    def finish(self, sums: HeaderSums) -> None:
        """Add to the sums of the segment what is of it."""
        if self._of_segment:
            columns = _joined(self._of_segment)
            sums.add(BatchHeaders(columns))
            self._of_log.append(columns)
            self._of_segment = []

    def flush(self) -> None:
        """Add to the sums of the log."""
        if self._of_log:
            self._into.add(BatchHeaders(_joined(self._of_log)), self._now_ms)
            self._of_log = []
            self._batches = 0


def _joined(columns: list[Int64Array]) -> Int64Array:
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


class LiveBytes(NamedTuple):
    """What of a compacted log a cleaning of all of it would keep, and what it would remove."""

    live_bytes: int
    dead_bytes: int


def is_compacted(view: LogView) -> bool | None:
    """Return whether a log is compacted; None if nothing says so.

    A configuration that is stored beside the logs says it, and so does the checkpoint of a broker's
    cleaner, which has a line for every log that it has cleaned.
    """
    config = find_config(view)
    if config is not None:
        return config.is_compact
    path = join(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT)
    return True if view.topic_partition in read_offset_checkpoint(path) else None


def live_bytes_of(view: LogView, valid_bytes: int) -> LiveBytes:
    """Return how much of a log is live, after all its records have been read, twice."""
    live = round(float(np.sum([each.live_bytes for each in find_live_records(view)])))
    return LiveBytes(live, valid_bytes - live)


_ALL_OFFSETS = range(MAX_INT64)


class DataRecords:
    """Reads the records of data batches; control batches are left out. One thread."""

    def __init__(self, hash_key: HashKey) -> None:
        self._hash_key = hash_key
        self._reader = KeyedRecordReader()

    def read(self, window: Window) -> Iterator[KeyedRecords]:
        """Yield the records of a window's batches, group by group."""
        headers = window.headers
        batches = np.flatnonzero(~headers.is_control & (headers.record_counts != 0))
        yield from self._reader.read(window, batches, self._hash_key, _ALL_OFFSETS)


class CountedRecords:
    """Counts all records of one partition: its keys, and its largest records. One thread."""

    def __init__(self, hash_key: HashKey, source: int, most: int) -> None:
        self.keys = FrequentKeys()
        self.largest = LargestRecords(most)
        self._records = DataRecords(hash_key)
        self._source = source

    def read_window(self, view: LogView, index: int, window: Window) -> BatchHeaders:
        """Count the records of a window of a segment of the log; errors as of `DataRecords`.

        Return its headers, with the record counts of compressed messages of v0 and v1.
        """
        columns = window.headers.columns.copy()
        for records in self._records.read(window):
            sizes = records.sizes_bytes
            self.keys.add(records.hashes, sizes, records.offsets, records.has_key, self._source)
            self.largest.add(sizes, records.offsets, self._source)
            columns[RECORD_COUNT, records.batches] = records.headers.record_counts
        return BatchHeaders(columns)

    def merge(self, other: CountedRecords) -> None:
        """Add all that was counted of another partition."""
        self.keys.merge(other.keys)
        self.largest.merge(other.largest)


class TopicCounts:
    """What is counted of a topic's partitions, added as each is done. Any number of threads."""

    def __init__(self, partitions: int, most: int) -> None:
        # What was found; empty before all partitions have been added
        self.hot_keys: list[HotKey] = []
        self.largest: list[LargeRecord] = []
        self._missing = partitions
        self._most = most
        self._sum: CountedRecords | None = None
        self._lock = threading.Lock()

    def add(self, counted: CountedRecords | None) -> None:
        """Add what was counted of a partition, None if it could not be read."""
        with self._lock:
            self._missing -= 1
            if self._sum is None:
                self._sum = counted
            elif counted is not None:
                self._sum.merge(counted)
            if self._missing == 0 and self._sum is not None:
                self.hot_keys = list(counted_hot_keys(self._sum.keys, self._most))
                self.largest = list(self._sum.largest)
                self._sum = None


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The statistics of one partition."""

    headers: PartitionStatistics  # from its headers
    is_compacted: bool | None = None  # none if that is not known, or was not asked for
    # what of it is live; None where that was not asked for or cannot be told
    live: LiveBytes | None = None


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """The options of a walk, the same for each partition."""

    now_ms: int  # timestamps after this are in the future
    hash_key: HashKey  # what keys are hashed with
    # where records are counted, by topic; None to read headers alone
    counts: Mapping[str, TopicCounts] | None
    most: int  # how many of the largest records are kept
    advance: Callable[[int], None]  # as of `walk_partition`

    def run(self, place: int, view: LogView) -> PartitionResult:
        """Return what is found in a log; what cannot be read is in its problems."""
        result, counted = self._run(place, view)
        if self.counts is not None:
            self.counts[view.topic].add(counted)
        return result

    def _run(self, place: int, view: LogView) -> tuple[PartitionResult, CountedRecords | None]:
        looks = Looks()
        try:
            while True:
                try:
                    return self._read(place, view)
                except SegmentVanishedError as error:  # a broker is at work there
                    looks.again(error)
                    view = view.refreshed()
                except (CorruptRecordError, InvalidRecordError, UnreadableFileError):
                    if view.damage is not None:
                        raise
                    view = view.refreshed().with_damage(DamageReport(is_logged=False))
        except LogStorageError as error:
            problem = error
        headers = PartitionStatistics(view)
        with suppress(LogStorageError):  # then nothing of it can be read
            headers = walk_partition(view, self.now_ms, advance=lambda _: None)
        headers.problems.append(str(problem))
        return PartitionResult(headers), None

    def _read(self, place: int, view: LogView) -> tuple[PartitionResult, CountedRecords | None]:
        counted = None
        if self.counts is not None:
            counted = CountedRecords(self.hash_key, place, self.most)
        headers = walk_partition(
            view,
            self.now_ms,
            read_window=None if counted is None else counted.read_window,
            advance=self.advance,
        )
        if view.damage is not None:
            headers.problems += [str(each) for each in view.damage]
        if counted is None:
            return PartitionResult(headers), None
        compacted, live = None, None
        try:
            compacted = is_compacted(view)
            if compacted and not headers.problems:
                valid_bytes = sum(each.valid_bytes for each in headers.segments)
                live = live_bytes_of(view, valid_bytes)
        except LogStorageError as error:
            headers.problems.append(str(error))
        return PartitionResult(headers, compacted, live), counted
