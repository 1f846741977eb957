"""One partition: walked over, whatever is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.inspect.statistics.compacted_logs import LiveBytes, is_compacted, live_bytes_of
from pylog.inspect.statistics.partition_statistics import PartitionStatistics, walk_partition
from pylog.inspect.statistics.record_reading import CountedRecords, TopicCounts
from pylog.reading.damage import DamageReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog.cleaner.offset_map import HashKey
    from pylog.reading.log_view import LogView

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What was found in one partition.

    Attributes
    ----------
    headers
        From its headers.
    is_compacted
        None if that is not known, or was not asked for.
    live
        What of it is live; None where that was not asked for or cannot be told.
    """

    headers: PartitionStatistics
    is_compacted: bool | None = None
    live: LiveBytes | None = None


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """What is done with each partition.

    Attributes
    ----------
    now_ms
        Timestamps after this are in the future.
    hash_key
        What keys are hashed with.
    counts
        Where records are counted, by topic; None to read headers alone.
    most
        How many of the largest records are kept.
    advance
        As of `walk_partition`.
    """

    now_ms: int
    hash_key: HashKey
    counts: Mapping[str, TopicCounts] | None
    most: int
    advance: Callable[[int], None]

    def run(self, place: int, view: LogView) -> PartitionResult:
        """Return what is found in a log; what cannot be read is in its problems.

        ``place`` stands for it in what is counted of its topic.
        """
        result, counted = self._run(place, view)
        if self.counts is not None:
            self.counts[view.topic].add(counted)
        return result

    def _run(self, place: int, view: LogView) -> tuple[PartitionResult, CountedRecords | None]:
        for _ in range(_ATTEMPTS):
            try:
                return self._read(place, view)
            except SegmentVanishedError as error:  # a broker is at work there
                problem: LogStorageError = error
                view = view.refreshed(view.damage)
            except (CorruptRecordError, InvalidRecordError, UnreadableFileError) as error:
                problem = error
                if view.damage is not None:
                    break
                view = view.refreshed(DamageReport(is_logged=False))
            except LogStorageError as error:
                problem = error
                break
        return PartitionResult(PartitionStatistics(view, problems=[str(problem)])), None

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
            if compacted and view.damage is None:
                valid_bytes = sum(each.valid_bytes for each in headers.segments)
                live = live_bytes_of(view, valid_bytes)
        except LogStorageError as error:
            headers.problems.append(str(error))
        return PartitionResult(headers, compacted, live), counted
