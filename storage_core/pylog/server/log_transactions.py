"""What the markers of a log say of its transactions, kept up to date while the log grows.

A ``.txnindex`` says which were aborted, too, without a look at the log. But it has no checksum: if
it has lost an entry nobody can tell, and what was aborted would be served as committed.

Without producer snapshots, and where a transaction stays open, a walk reads the whole log. So walks
have threads of their own (`LogWalks`), and end where they are when the server is closed.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError
from pylog.model import AbortedTransaction
from pylog.reading.open_transactions import OpenTransactions
from pylog.reading.transactions import FollowedTransactions, follow_transactions

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from pylog.reading.log_view import LogView

_THREADS = 8


class AbortedInSegment(NamedTuple):
    """The aborted transactions that overlap a segment.

    Where damage hides how one was decided, read_committed ends at ``undecided_offset``.
    """

    aborted: tuple[AbortedTransaction, ...]
    undecided_offset: int | None = None
    error: CorruptRecordError | None = None


class LogTransactions:
    """The transactions of a log, for all views of it. Any number of threads."""

    def __init__(self) -> None:
        self._is_wanted = True
        self._followed = FollowedTransactions(self._ensure_wanted)
        self._segments: dict[tuple[int, int], _SegmentWalk] = {}
        self._lock = threading.Lock()

    def give_up(self) -> None:
        """End a walk that is under way with `WalkGivenUpError`, after its window."""
        self._is_wanted = False

    def _ensure_wanted(self) -> None:
        if not self._is_wanted:
            raise WalkGivenUpError

    def last_stable_offset(self, view: LogView, high_watermark: int) -> int:
        """Return the first offset of the oldest transaction that is open at the high watermark.

        A marker at or above it does not count: the transaction could still be truncated (Kafka:
        ProducerStateManager.firstUnstableOffset).
        """
        with self._lock:
            return self._followed.last_stable_offset(view, high_watermark)

    def of_segment(self, view: LogView, index: int) -> AbortedInSegment:
        """Return the aborted transactions of a segment; walks over what no view had before."""
        with self._lock:
            known = {(each.base_offset, each.file_id) for each in view.segments}
            self._segments = {key: it for key, it in self._segments.items() if key in known}
            segment = view.segments[index]
            key = segment.base_offset, segment.file_id
            walk = self._segments.pop(key, None) or _SegmentWalk(
                segment.base_offset, self._ensure_wanted
            )
            found = walk.look(view, view.limit_offset(index))
            if found.error is None:
                self._segments[key] = walk
            return found


class _SegmentWalk:
    """Follows the transactions that began in a segment until all of them are decided."""

    def __init__(self, base_offset: int, ensure_wanted: Callable[[], None]) -> None:
        self._base_offset = base_offset
        self._ensure_wanted = ensure_wanted
        self._offset = base_offset  # up to where markers and data have been looked at
        self._open = OpenTransactions({})
        self._aborted: list[AbortedTransaction] = []

    def look(self, view: LogView, limit: int | None) -> AbortedInSegment:
        """Return what is known with this view, where the segment's batches lie below ``limit``."""
        log_end = view.log_end_offset
        end = log_end if limit is None else limit
        try:
            if self._offset < end:
                self._walk(view, end, end)
            if self._open and self._offset < log_end:
                self._walk(view, log_end, end)
        except CorruptRecordError as error:
            undecided = min(self._open.first_offsets.values(), default=None)
            return AbortedInSegment(tuple(self._aborted), undecided, error)
        # What is below the last stable offset has been decided, but for what damage hides.
        open_ones = [
            AbortedTransaction(producer_id, since, max(end, since))
            for producer_id, since in self._open.undecidable.items()
        ]
        return AbortedInSegment((*self._aborted, *open_ones))

    def _walk(self, view: LogView, end: int, below: int) -> None:
        is_inside = end == below
        for each in follow_transactions(view, self._open, (self._offset, end), below=below):
            self._ensure_wanted()
            if each is not None:
                self._aborted.append(each)
            elif not is_inside and not self._open:
                break
        self._offset = end


class WalkGivenUpError(Exception):
    """The server has been closed before a walk was at its end."""


class NotWalkedError(Exception):
    """The answer needs a walk over a log, which may take long; `LogWalks` has it done."""

    def __init__(self, log: LogTransactions, walk: Callable[[], None]) -> None:
        super().__init__(log, walk)
        self.log = log
        self.walk = walk


class LogWalks:
    """Walks over logs: one at a time for each log, however many clients wait. Any thread."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="pylog-serve-walk")
        self._running: dict[LogTransactions, Future[None]] = {}
        self._lock = threading.Lock()

    def start(self, needed: NotWalkedError) -> Future[None]:
        """Return a walk over the log: the one that is under way, or else the one that is needed."""
        with self._lock:
            running = self._running.get(needed.log)
            if running is None:
                running = self._executor.submit(self._walk, needed)
                self._running[needed.log] = running
            return running

    def _walk(self, needed: NotWalkedError) -> None:
        try:
            needed.walk()
        finally:
            with self._lock:
                del self._running[needed.log]

    def close(self) -> None:
        """End the threads; walks that are under way are given up."""
        with self._lock:
            for log in self._running:
                log.give_up()
        self._executor.shutdown(wait=True, cancel_futures=True)
