"""Forcing a log to disk, in the foreground and after a roll, and its recovery point.

The recovery point says up to where everything is on disk. It is raised after an fsync, and only
if the log's end has not gone back meanwhile: what was appended since a truncation has not been
forced.

Source: UnifiedLog.flush, roll (Kafka 4.3). Differs from Kafka, where the last rule is missing,
and where a flush up to an offset above the log's end puts the recovery point there: records
appended later would count as flushed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pylog.errors import SegmentVanishedError
from pylog.scheduling.clock import monotonic_milliseconds

if TYPE_CHECKING:
    from pylog.log.log_state import LogState


class LogFlusher:
    """Flushes one log; any number of threads."""

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._local_log = state.local_log
        self._context = state.context
        self._flush_lock = threading.Lock()
        self._is_stopped = False
        self.last_flushed_ms = state.context.clock.milliseconds()

    def stop(self) -> None:
        """Wait for a flush under way, and let there be no other one: the log is being closed."""
        with self._flush_lock:
            self._is_stopped = True

    def flush(self, offset: int, *, includes_end: bool = False) -> None:
        """Force everything below ``offset`` to disk; see `UnifiedLog.flush`."""
        upper = offset + 1 if includes_end else offset
        if upper <= self._local_log.recovery_point:
            return
        truncation_count = self._state.truncation_count
        with self._context.failures.watching(self._state.log_directory):
            with self._flush_lock:  # nothing is released or closed meanwhile
                if self._is_stopped:
                    return
                started_ms = monotonic_milliseconds()
                self._local_log.flush(upper)
                time_ms = monotonic_milliseconds() - started_ms
            with self._state.lock:
                self._state.counters.count_flush(time_ms)
                if truncation_count == self._state.truncation_count:
                    self._local_log.mark_flushed(min(offset, self._local_log.log_end_offset))
            self.last_flushed_ms = self._context.clock.milliseconds()

    def flush_rolled(self, base_offset: int, snapshot: str | None) -> None:
        """Force what lies before a new segment to disk, and let the segments there rest."""
        if self._is_stopped:
            return
        if snapshot is not None:
            with self._context.failures.watching(self._state.log_directory):
                self._sync_snapshot(snapshot)
        flushed_from = min(self._local_log.recovery_point, base_offset)
        self.flush(base_offset)
        self._release(flushed_from, base_offset)

    def _sync_snapshot(self, path: str) -> None:
        try:
            file = self._context.io.open(path)
        except SegmentVanishedError:  # by a truncation since
            return
        try:
            file.sync()
        finally:
            file.close()

    def _release(self, start_offset: int, end_offset: int) -> None:
        """Have the segments of a range give back what they hold."""
        segments = self._local_log.segments
        with self._flush_lock, self._state.lock:
            if self._is_stopped:
                return
            active = segments.active_segment
            for segment in segments.values(start_offset, end_offset):
                if segment is not active:
                    segment.release()
