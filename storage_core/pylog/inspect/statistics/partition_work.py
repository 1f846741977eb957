"""One partition after another, on several threads: walked over, whatever is wrong with it."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.inspect.statistics.compacted_logs import LiveBytes, is_compacted, live_bytes_of
from pylog.inspect.statistics.partition_statistics import PartitionStatistics, walk_partition
from pylog.inspect.statistics.record_reading import CountedRecords
from pylog.reading.damage import DamageReport
from pylog.worker_threads import thread_count, usable_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylog.cleaner.offset_map import HashKey
    from pylog.reading.log_view import LogView

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_MOST_THREADS = 16
_ATTEMPTS = 3
_SECONDS_BETWEEN_LOOKS = 0.1


class StoppedError(Exception):
    """The work is not wanted any more: its caller was interrupted."""


class SharedProgress:
    """Bytes that threads have passed over. Any number of threads may add to them.

    Parameters
    ----------
    total_bytes
        Of all the work.
    report
        Is called with the bytes done and the total, in the thread of the caller; None for nobody.
    """

    def __init__(self, total_bytes: int, report: Callable[[int, int], None] | None) -> None:
        self._total_bytes = total_bytes
        self._report = report
        self._done_bytes = 0
        self._is_stopped = False
        self._lock = threading.Lock()

    def advance(self, size_bytes: int) -> None:
        """Note that some more bytes are done; `StoppedError` if the caller has gone."""
        if self._is_stopped:
            raise StoppedError
        with self._lock:
            self._done_bytes += size_bytes

    def side_by_side(
        self, work: Callable[[_Task], _Result], tasks: Sequence[_Task], threads: int | None
    ) -> list[_Result]:
        """Return what ``work`` returns of each task, in their order, done by some threads.

        Parameters
        ----------
        work
            Calls `advance` now and then.
        tasks
            What to do.
        threads
            How many; None for as many as there are processors, or as ``PYLOG_NUM_THREADS`` says.
        """
        count = thread_count(threads, default=min(_MOST_THREADS, usable_processors()))
        with ThreadPoolExecutor(max(1, min(count, len(tasks))), "pylog-stats") as pool:
            futures = [pool.submit(work, each) for each in tasks]
            waiting = set(futures)
            try:
                while waiting:
                    _, waiting = wait(waiting, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
                    self._tell()
                return [each.result() for each in futures]
            except BaseException:
                self._is_stopped = True
                for each in futures:
                    each.cancel()
                raise

    def _tell(self) -> None:
        if self._report is not None:
            self._report(min(self._done_bytes, self._total_bytes), self._total_bytes)


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What was found in one partition.

    Attributes
    ----------
    headers
        From its headers.
    counted
        From its records, where all have been read, else None.
    is_compacted
        None if that is not known, or was not asked for.
    live
        What of it is live; None where that was not asked for or cannot be told.
    """

    headers: PartitionStatistics
    counted: CountedRecords | None = None
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
        What keys are hashed with; None to read headers alone.
    most
        How many of the largest records are kept.
    advance
        As of `walk_partition`.
    """

    now_ms: int
    hash_key: HashKey | None
    most: int
    advance: Callable[[int], None]

    def run(self, place: int, view: LogView) -> PartitionResult:
        """Return what is found in a log; what cannot be read is in its problems."""
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
        return PartitionResult(PartitionStatistics(view, problems=[str(problem)]))

    def _read(self, place: int, view: LogView) -> PartitionResult:
        counted = None
        if self.hash_key is not None:
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
            return PartitionResult(headers)
        compacted, live = None, None
        try:
            compacted = is_compacted(view)
            if compacted and view.damage is None:
                valid_bytes = sum(each.valid_bytes for each in headers.segments)
                live = live_bytes_of(view, valid_bytes)
        except LogStorageError as error:
            headers.problems.append(str(error))
        return PartitionResult(headers, counted, compacted, live)
