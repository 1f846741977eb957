"""Which segments retention removes from the start of a log, and removing them.

What decides, in this order; each looks at what the ones before have left:

================ ===============================================================================
reason           the oldest segment is removed if
================ ===============================================================================
log start offset a segment comes after it that begins at or below the log start offset; whatever
                 ``cleanup.policy`` says
retention.bytes  the log has at least that many bytes without it
retention.ms     its largest timestamp lies more than that in the past. Where no record has a
                 timestamp, it is the time when the file was changed last
================ ===============================================================================

Each stops at the first segment that it keeps: one with a timestamp in the future keeps all after
it. The last two need ``delete`` in ``cleanup.policy``, and a limit that is not negative. A segment
that reaches beyond the high watermark is kept, and so is a last one that is empty. If all are
removed, a new one is begun at the end of the log, which never starts anew.

Removing, step by step, and what a crash leaves:

1. if all are to go: a new segment is begun at the end, and the directory synced. A crash leaves a
   log that has been rolled;
2. the log start offset is raised to where the first segment begins that is kept, in memory, and
   the leader epochs below it are removed. A crash leaves the old segments, without the epochs of
   their records, as in Kafka;
3. the producer snapshots at their base offsets, then the segments, the oldest first, are renamed to
   ``….deleted`` (`pylog.log.local_log`). A crash leaves the log without some of the oldest
   ones, and it starts where the first one that is left begins;
4. the files are removed, at once or later. A crash leaves some, which start-up removes.

So after a crash the log ends where it did, and starts where it did, or where it would have, or at a
segment in between; the next run removes the rest.

Source: UnifiedLog.deleteOldSegments, deletableSegments, deleteSegments (Kafka 4.3). Differs from
Kafka in step 1, which syncs nothing: after a power loss a log could begin at offset 0 again. And
before a segment is removed for its age, the batches after its last time index entry are looked at,
too: an index that has lost entries makes a segment look older than it is.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from pylog.log.local_log import mark_snapshots_for_deletion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.config import LogConfig
    from pylog.log.log_roller import LogRoller
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_state import LogState

_LOGGER = logging.getLogger(__name__)
UNLIMITED = -1


class RetentionReason(StrEnum):
    """Why a segment is removed: by the log start offset, or by the property of that name."""

    LOG_START_OFFSET = "log start offset"
    SIZE = "retention.bytes"
    TIME = "retention.ms"


class DeletedSegment(NamedTuple):
    """A segment that retention has removed, or would remove.

    Attributes
    ----------
    base_offset, next_offset
        The offsets ``[base, next)``; ``next_offset`` is where the following segment begins.
    size_bytes
        Length of its ``.log`` file.
    reason
        Why.
    is_dated_by_file
        Whether its age is that of the file: no record has a timestamp, or its time index is empty.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    reason: RetentionReason
    is_dated_by_file: bool = False


class FutureSegment(NamedTuple):
    """A segment that keeps itself and all after it by a timestamp in the future.

    Attributes
    ----------
    base_offset
        Of the segment.
    largest_timestamp
        Of its records, in ms.
    kept_segments
        How many segments it keeps, itself included.
    """

    base_offset: int
    largest_timestamp: int
    kept_segments: int


class RetainedSegment(Protocol):
    """What retention asks of a segment; the timestamps only if its age decides."""

    @property
    def base_offset(self) -> int:
        """First offset that it can hold."""

    @property
    def size_bytes(self) -> int:
        """Length of its ``.log`` file."""

    @property
    def largest_record_timestamp(self) -> int | None:
        """Its largest timestamp by its time index, in ms; None if that is empty."""

    @property
    def largest_timestamp(self) -> int:
        """The same, else when its file was changed last; ms."""

    def read_largest_timestamp(self) -> int:
        """Return the same, after a look at the batches that the time index leaves out."""


SegmentT = TypeVar("SegmentT", bound=RetainedSegment)


class RetentionParams(NamedTuple):
    """What decides which segments of a log are removed, beside the segments."""

    retention_ms: int
    retention_bytes: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    now_ms: int

    @classmethod
    def of(
        cls,
        config: LogConfig,
        now_ms: int,
        *,
        log_start_offset: int,
        high_watermark: int,
        log_end_offset: int,
    ) -> RetentionParams:
        """Return those of a topic's configuration: unlimited unless its policy is to delete."""
        return cls(
            config.retention_ms if config.is_delete else UNLIMITED,
            config.retention_bytes if config.is_delete else UNLIMITED,
            log_start_offset,
            high_watermark,
            log_end_offset,
            now_ms,
        )


def deletable_segments(
    segments: Sequence[SegmentT], params: RetentionParams
) -> list[tuple[SegmentT, RetentionReason]]:
    """Return the segments that retention removes, the oldest first, and why."""
    replicated = _count_replicated(segments, params)
    deletable: list[tuple[SegmentT, RetentionReason]] = []
    for reason, count in (
        (RetentionReason.LOG_START_OFFSET, count_below_log_start),
        (RetentionReason.SIZE, count_above_size),
        (RetentionReason.TIME, count_expired),
    ):
        done = len(deletable)
        at_most = replicated - done
        found = count(segments[done:], params, at_most)
        deletable += [(each, reason) for each in segments[done : done + found]]
    return deletable


def _count_replicated(segments: Sequence[RetainedSegment], params: RetentionParams) -> int:
    """Return how many may be removed at all: all of them replicated, no empty last one."""
    count = 0
    for segment, next_offset in zip(segments, next_offsets(segments, params), strict=True):
        is_empty_last = count + 1 == len(segments) and segment.size_bytes == 0
        if is_empty_last or params.high_watermark < next_offset:
            break
        count += 1
    return count


def next_offsets(segments: Sequence[RetainedSegment], params: RetentionParams) -> Iterator[int]:
    """Yield for each segment where the next one begins; for the last one, where the log ends."""
    yield from (segment.base_offset for segment in segments[1:])
    if segments:
        yield params.log_end_offset


def count_below_log_start(
    segments: Sequence[RetainedSegment], params: RetentionParams, at_most: int
) -> int:
    """Return how many of the oldest segments lie below the log start offset."""
    following = segments[1 : at_most + 1]
    return sum(segment.base_offset <= params.log_start_offset for segment in following)


def count_above_size(
    segments: Sequence[RetainedSegment], params: RetentionParams, at_most: int
) -> int:
    """Return how many of the oldest segments the log can lose and still have the bytes to keep."""
    if params.retention_bytes < 0:
        return 0
    excess = sum(segment.size_bytes for segment in segments) - params.retention_bytes
    for count, segment in enumerate(segments[:at_most]):
        excess -= segment.size_bytes
        if excess < 0:
            return count
    return at_most


def count_expired(
    segments: Sequence[RetainedSegment], params: RetentionParams, at_most: int
) -> int:
    """Return how many of the oldest segments are too old."""
    if params.retention_ms < 0:
        return 0
    for count, segment in enumerate(segments[:at_most]):
        if not _is_expired(segment, params):
            return count
    return at_most


def _is_expired(segment: RetainedSegment, params: RetentionParams) -> bool:
    timestamp = segment.largest_timestamp
    if params.now_ms - timestamp <= params.retention_ms:
        return False
    read = segment.read_largest_timestamp()
    if params.now_ms - read > params.retention_ms:
        return True
    _LOGGER.warning(
        "segment %d is kept: its time index says that its largest timestamp is %d, and its batches "
        "that it is %d",
        segment.base_offset,
        timestamp,
        read,
    )
    return False


def delete_old_segments(
    state: LogState, roller: LogRoller, now_ms: int, *, is_async: bool
) -> list[DeletedSegment]:
    """Remove the segments that retention does not keep; the caller holds the log's lock."""
    local_log = state.local_log
    segments = tuple(local_log.segments)
    params = _params_of(state, now_ms)
    deletable = deletable_segments(segments, params)
    if not deletable:
        return []
    if len(deletable) == len(segments):
        roller.roll()
        # Else a power loss might keep the removals, and not the only segment that is left.
        state.context.io.sync_directory(local_log.directory)
    deleted = describe_deletable(segments, deletable, params)
    for each in deleted:
        _LOGGER.info("removing segment %d of %s: %s", each.base_offset, state.name, each.reason)
    gone = [segment for segment, _ in deletable]
    _remove(state, gone, deleted[-1].next_offset, is_async=is_async)
    state.counters.count_deleted(len(deleted), sum(each.size_bytes for each in deleted))
    return deleted


def held_back_segments(
    segments: Sequence[SegmentT], params: RetentionParams
) -> list[tuple[SegmentT, RetentionReason]]:
    """Return what the high watermark alone keeps, of the segments that retention leaves."""
    if params.high_watermark >= params.log_end_offset:
        return []
    return deletable_segments(segments, params._replace(high_watermark=params.log_end_offset))


def describe_deletable(
    segments: Sequence[SegmentT],
    deletable: Sequence[tuple[SegmentT, RetentionReason]],
    params: RetentionParams,
) -> list[DeletedSegment]:
    """Return what `deletable_segments` has found, as values."""
    return [
        DeletedSegment(
            segment.base_offset,
            next_offset,
            segment.size_bytes,
            reason,
            reason is RetentionReason.TIME and segment.largest_record_timestamp is None,
        )
        for (segment, reason), next_offset in zip(
            deletable, next_offsets(segments, params), strict=False
        )
    ]


def future_segment(state: LogState, now_ms: int) -> FutureSegment | None:
    """Return the first segment, if a timestamp in the future is why it is kept; else None."""
    segments, params = tuple(state.local_log.segments), _params_of(state, now_ms)
    first = segments[0].largest_record_timestamp if segments else None
    if params.retention_ms < 0 or first is None or first <= now_ms:
        return None
    return FutureSegment(segments[0].base_offset, first, len(segments))


def held_back_offsets(state: LogState, now_ms: int) -> tuple[int, int] | None:
    """Return the offsets ``[start, end)`` that the high watermark alone keeps, None if none."""
    segments, params = tuple(state.local_log.segments), _params_of(state, now_ms)
    return offsets_of(describe_deletable(segments, held_back_segments(segments, params), params))


def offsets_of(segments: Sequence[DeletedSegment]) -> tuple[int, int] | None:
    """Return the offsets ``[start, end)`` of neighbouring segments, None if there are none."""
    return (segments[0].base_offset, segments[-1].next_offset) if segments else None


def _params_of(state: LogState, now_ms: int) -> RetentionParams:
    return RetentionParams.of(
        state.config,
        now_ms,
        log_start_offset=state.log_start_offset,
        high_watermark=state.high_watermark,
        log_end_offset=state.log_end_offset,
    )


def _remove(
    state: LogState, segments: Sequence[LogSegment], new_start: int, *, is_async: bool
) -> None:
    state.maybe_increment_log_start_offset(new_start)
    snapshots = mark_snapshots_for_deletion(state.producer_state, segments)
    state.local_log.remove_segments(segments, is_async=is_async, snapshots=snapshots)
