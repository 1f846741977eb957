"""Beginning a new segment: when one is due, and what goes with it.

1. The segment is begun (`pylog.log.local_log` says what a crash leaves).
2. A producer snapshot is taken at its base offset, without waiting for the disk.
3. Everything before the new segment is forced to disk in the background: the snapshot first, then
   the segments; the recovery point follows (`LogFlusher.flush_rolled`).

Source: UnifiedLog.maybeRoll, roll (Kafka 4.3).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pylog.log.log_segment import RollParams
from pylog.validation.log_append_info import LogAppendInfo

if TYPE_CHECKING:
    from pylog.log.log_flusher import LogFlusher
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState
    from pylog.record.batch_scan import BatchHeaders

_MAX_OFFSET_DELTA = 2**31 - 1


class LogRoller:
    """Begins the segments of one log; whoever calls it holds the log's lock."""

    def __init__(self, state: LogState, flusher: LogFlusher) -> None:
        self._state = state
        self._flusher = flusher

    def maybe_roll(self, size_bytes: int, info: LogAppendInfo) -> LogSegment:
        """Begin a new segment if an append calls for one; return the segment to append to."""
        state = self._state
        segment = state.local_log.segments.active_segment
        params = self._params(size_bytes, info)
        first = info.first_offset
        # An append refused after its roll may have left an empty segment above the end. Only
        # records that are known to begin there may go into it.
        is_above = segment.base_offset > max(first, state.log_end_offset)
        if not is_above and not segment.should_roll(params):
            return segment
        if first < 0:  # v0/v1 of a leader: only the last offset of a wrapper is known
            first = info.last_offset - _MAX_OFFSET_DELTA
        return self.roll(first)

    def maybe_roll_before(self, headers: BatchHeaders) -> tuple[LogSegment, int]:
        """Do so before the first of many batches; return how many go to the segment, too."""
        size_bytes = int(headers.sizes_bytes[0])
        first = LogAppendInfo(
            first_offset=int(headers.offsets[0]),
            last_offset=int(headers.last_offsets[0]),
            max_timestamp=int(headers.max_timestamps[0]),
        )
        segment = self.maybe_roll(size_bytes, first)
        return segment, segment.count_until_roll(self._params(size_bytes, first), headers)

    def _params(self, size_bytes: int, info: LogAppendInfo) -> RollParams:
        config = self._state.config
        return RollParams(
            config.max_segment_ms,
            config.segment_bytes,
            info.max_timestamp,
            info.last_offset,
            size_bytes,
            self._state.context.clock.milliseconds(),
        )

    def roll(self, expected_next_offset: int | None = None) -> LogSegment:
        """Begin a new segment at the end, or at ``expected_next_offset`` if that is higher."""
        state = self._state
        local_log, producer_state = state.local_log, state.producer_state
        base_offset = local_log.next_base_offset(expected_next_offset)
        if base_offset < local_log.segments.active_segment.base_offset:
            self._forget_refused_roll()
        segment = local_log.roll(expected_next_offset)
        producer_state.update_map_end_offset(segment.base_offset)
        snapshot = producer_state.take_snapshot(sync=False)
        flush_rolled = partial(self._flusher.flush_rolled, segment.base_offset, snapshot)
        state.context.scheduler.schedule_once("flush-log", flush_rolled)
        return segment

    def _forget_refused_roll(self) -> None:
        """Have the producers at the log's end again, above which an append rolled in vain."""
        state = self._state
        end, now_ms = state.log_end_offset, state.context.clock.milliseconds()
        state.producer_state.update_map_end_offset(end)
        # The snapshot of that roll does not cover what will be appended below it.
        state.producer_state.truncate_and_reload(state.log_start_offset, end, now_ms)
