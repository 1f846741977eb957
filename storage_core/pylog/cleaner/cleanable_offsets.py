"""From which offset to which a log can be cleaned, and how much that is: decided from plain facts.

::

    log start         first dirty        first uncleanable     active segment   log end
        |   clean          |     cleanable        |                   |             |
        +------------------+----------------------+-------------------+-------------+

Segments are cleaned as a whole. A segment that holds the first dirty offset inside it counts as
clean and as cleanable, as in Kafka; so the cleanable ratio is not quite a share.

Source: LogCleanerManager.cleanableOffsets, calculateCleanableBytes, LogToClean (Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition


class SizedSegment(Protocol):
    """A segment that may be cleaned."""

    @property
    def base_offset(self) -> int:
        """First offset that it can hold."""

    @property
    def size_bytes(self) -> int:
        """Length of its ``.log`` file."""


class AgedSegment(SizedSegment, Protocol):
    """One of which the age may count."""

    @property
    def largest_timestamp(self) -> int:
        """In ms; of its file where no record has one."""


SegmentT = TypeVar("SegmentT", bound=SizedSegment)


class CleanableParams(NamedTuple):
    """What decides where a log is dirty, beside its segments."""

    checkpoint: int | None
    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int
    min_compaction_lag_ms: int
    now_ms: int


class CleanableOffsets(NamedTuple):
    """Where the next cleaning of a log begins and ends."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    resets_checkpoint: bool

    @classmethod
    def of(cls, segments: Sequence[AgedSegment], params: CleanableParams) -> CleanableOffsets:
        """Return them for all segments of a log, in order; the last of them is active."""
        start = params.log_start_offset
        first_dirty = start if params.checkpoint is None else params.checkpoint
        is_outside = not start <= first_dirty <= params.log_end_offset
        if is_outside:
            first_dirty = start
        bounds = [params.last_stable_offset, segments[-1].base_offset]
        if params.min_compaction_lag_ms > 0:
            oldest_kept = params.now_ms - params.min_compaction_lag_ms
            inactive = non_active_segments_from(segments, first_dirty)
            young = [each for each in inactive if each.largest_timestamp > oldest_kept]
            bounds += [each.base_offset for each in young[:1]]
        return cls(first_dirty, max(first_dirty, min(bounds)), is_outside)


class NotCleaned(StrEnum):
    """Why nothing of a log is cleaned.

    Attributes
    ----------
    EMPTY
        It has no records.
    CLEAN
        All of it has been cleaned.
    ACTIVE_SEGMENT
        What is dirty is in the active segment.
    HIGH_WATERMARK
        What is dirty may not be replicated.
    OPEN_TRANSACTION
        What is dirty follows the first record of an open transaction.
    MIN_COMPACTION_LAG
        What is dirty is younger than ``min.compaction.lag.ms``.
    DIRTY_RATIO
        A broker would not clean it yet: its ratio is not above ``min.cleanable.dirty.ratio``.
    """

    EMPTY = "empty"
    CLEAN = "clean"
    ACTIVE_SEGMENT = "active_segment"
    HIGH_WATERMARK = "high_watermark"
    OPEN_TRANSACTION = "open_transaction"
    MIN_COMPACTION_LAG = "min_compaction_lag"
    DIRTY_RATIO = "dirty_ratio"

    @classmethod
    def of(
        cls, segments: Sequence[AgedSegment], params: CleanableParams, high_watermark: int
    ) -> NotCleaned:
        """Return why, for all segments of a log of which nothing is cleanable."""
        offsets = CleanableOffsets.of(segments, params)
        active, stable = segments[-1].base_offset, params.last_stable_offset
        if params.log_start_offset == params.log_end_offset:
            return cls.EMPTY
        if offsets.first_dirty_offset >= params.log_end_offset:
            return cls.CLEAN
        without_lag = CleanableOffsets.of(segments, params._replace(min_compaction_lag_ms=0))
        if offsets.first_uncleanable_offset < without_lag.first_uncleanable_offset:
            return cls.MIN_COMPACTION_LAG
        if stable <= active and stable < params.log_end_offset:
            return cls.HIGH_WATERMARK if stable == high_watermark else cls.OPEN_TRANSACTION
        return cls.ACTIVE_SEGMENT


class CleanableBytes(NamedTuple):
    """How much of a log is clean, and how much can be cleaned."""

    end_offset: int
    clean_bytes: int
    cleanable_bytes: int

    @classmethod
    def of(
        cls,
        segments: Sequence[SizedSegment],
        first_dirty_offset: int,
        first_uncleanable_offset: int,
    ) -> CleanableBytes:
        """Return the bytes, in whole segments, of all segments of a log, in order."""
        inactive = non_active_segments_from(segments, first_uncleanable_offset)
        end = (inactive[0] if inactive else segments[-1]).base_offset
        start = min(first_dirty_offset, end)
        clean = [each for each in segments if each.base_offset < first_dirty_offset]
        cleanable = [each for each in segments_from(segments, start) if each.base_offset < end]
        if start == end:
            cleanable = []
        return cls(end, *(sum(each.size_bytes for each in some) for some in (clean, cleanable)))

    @property
    def ratio(self) -> float:
        """How much of it can be cleaned, 0 to 1; 0 where there is nothing."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def segments_from(segments: Sequence[SegmentT], offset: int) -> Sequence[SegmentT]:
    """Return the segments from the one that holds ``offset`` on."""
    index = bisect_right(segments, offset, key=lambda segment: segment.base_offset)
    return segments[max(0, index - 1) :]


def non_active_segments_from(segments: Sequence[SegmentT], offset: int) -> Sequence[SegmentT]:
    """Return the segments from the one that holds ``offset`` on, without the active one.

    Source: LogSegments.nonActiveLogSegmentsFrom (Kafka 4.3).
    """
    active = segments[-1]
    # An offset above the active segment's base is in it; at its base nothing is left, either.
    if offset > active.base_offset:
        return ()
    return [each for each in segments_from(segments, offset) if each is not active]


# A log that is to be cleaned, from which offset to which, and how dirty it is.
#
# Source: LogToClean (Kafka 4.3).


class LogToClean:
    """What one cleaning is to do; the numbers are those of the moment when it was made."""

    __slots__ = (
        "_bytes",
        "first_dirty_offset",
        "log",
        "needs_compaction_now",
    )

    def __init__(
        self,
        log: UnifiedLog,
        first_dirty_offset: int,
        uncleanable_offset: int,
        *,
        needs_compaction_now: bool = False,
    ) -> None:
        self.log = log
        self.first_dirty_offset = first_dirty_offset
        self.needs_compaction_now = needs_compaction_now
        self._bytes = CleanableBytes.of(log.segments, first_dirty_offset, uncleanable_offset)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the log."""
        return self.log.topic_partition

    @property
    def first_uncleanable_offset(self) -> int:
        """Where cleaning ends, exclusive; the base offset of a segment."""
        return self._bytes.end_offset

    @property
    def clean_bytes(self) -> int:
        """Length of the ``.log`` files below the first dirty offset."""
        return self._bytes.clean_bytes

    @property
    def cleanable_bytes(self) -> int:
        """Length of those from there to the first uncleanable offset."""
        return self._bytes.cleanable_bytes

    @property
    def total_bytes(self) -> int:
        """Length of what is clean and of what can be cleaned."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """How much of it can be cleaned, 0 to 1; 0 where there is nothing."""
        return self._bytes.ratio
