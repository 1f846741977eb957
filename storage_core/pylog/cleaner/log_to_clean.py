"""A log that is to be cleaned, from which offset to which, and how dirty it is.

Source: LogToClean (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cleaner.cleanable_offsets import CleanableBytes

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import TopicPartition


class LogToClean:
    """What one cleaning is to do; the numbers are those of the moment when it was made.

    Parameters
    ----------
    log
        A compacted log.
    first_dirty_offset
        Keys of all records from here on go into the offset map.
    uncleanable_offset
        Nothing from here on may be cleaned; at or above the first dirty offset.
    needs_compaction_now
        Whether ``max.compaction.lag.ms`` asks for it, whatever the ratio.
    """

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
        """Whose log it is."""
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
