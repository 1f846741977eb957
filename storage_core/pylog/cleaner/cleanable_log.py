"""What a cleaning asks of the log that it cleans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog.config import LogConfig
    from pylog.log.log_segment import LogSegment
    from pylog.log.log_segments import LogSegments
    from pylog.model import TopicPartition
    from pylog.producers.producer_state_entry import LastRecord


class WithSegments(Protocol):
    """What has the segments of a log."""

    @property
    def segments(self) -> LogSegments:
        """By base offset."""
        ...


class CleanableLog(Protocol):
    """A `pylog.UnifiedLog`, or what a task has of one: `pylog.cleaner.log_snapshot`."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose log it is."""
        ...

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""
        ...

    @property
    def log_start_offset(self) -> int:
        """First offset served."""
        ...

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """All segments, in order."""
        ...

    @property
    def local_log(self) -> WithSegments:
        """What has them by base offset."""
        ...

    def last_records_of_active_producers(self) -> Mapping[int, LastRecord]:
        """Return what the log must not lose of each active producer, by producer id."""
        ...

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Make an empty segment for `replace_segments`."""
        ...

    def replace_segments(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], *, is_async: bool = True
    ) -> None:
        """Put rewritten segments in the place of old ones."""
        ...


class LogWithBounds(Protocol):
    """A log, and from where to where it is cleaned; see `pylog.cleaner.log_to_clean`."""

    @property
    def log(self) -> CleanableLog:
        """The log."""
        ...

    @property
    def first_dirty_offset(self) -> int:
        """Keys of all records from here on go into the offset map."""
        ...

    @property
    def first_uncleanable_offset(self) -> int:
        """Where cleaning ends, exclusive; the base offset of a segment."""
        ...
