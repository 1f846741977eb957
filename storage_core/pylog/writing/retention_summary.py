"""What `pylog.apply_retention` has removed, or would remove."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pylog.config.config_property import ConfigEntry
    from pylog.log.retention import DeletedSegment
    from pylog.model import TopicPartition
    from pylog.writing.held_back import HeldBack


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRetention:
    """What retention does to one partition.

    Attributes
    ----------
    topic_partition
        The partition.
    deleted
        The segments that are removed, the oldest first.
    records
        How many of the records that are served these hold; control records do not count. None if
        that has not been counted, which a dry run alone does, or cannot be, because of damage.
    log_start_offset, log_end_offset
        Of the log afterwards.
    size_bytes
        Of its ``.log`` files afterwards.
    failure
        Why nothing is removed from it; None if it was done, or would be.
    held_back
        What is removed as soon as it is replicated; None if nothing.
    """

    topic_partition: TopicPartition
    deleted: tuple[DeletedSegment, ...] = ()
    records: int | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    size_bytes: int = 0
    failure: str | None = None
    held_back: HeldBack | None = None

    @property
    def deleted_bytes(self) -> int:
        """Length of the ``.log`` files that are removed."""
        return sum(segment.size_bytes for segment in self.deleted)


class RetentionTotals(NamedTuple):
    """What retention does to several partitions.

    Attributes
    ----------
    partitions
        How many there are, and `changed_partitions` of how many segments are removed.
    segments, records, deleted_bytes
        What is removed; ``records`` is None where it is not known of some partition.
    size_bytes
        Of all ``.log`` files afterwards.
    """

    partitions: int
    changed_partitions: int
    segments: int
    records: int | None
    deleted_bytes: int
    size_bytes: int

    @classmethod
    def of(cls, partitions: Iterable[PartitionRetention]) -> RetentionTotals:
        """Add partitions up."""
        partitions = list(partitions)
        known = [each.records for each in partitions if each.records is not None]
        return cls(
            len(partitions),
            sum(bool(each.deleted) for each in partitions),
            sum(len(each.deleted) for each in partitions),
            sum(known) if len(known) == len(partitions) else None,
            sum(each.deleted_bytes for each in partitions),
            sum(each.size_bytes for each in partitions),
        )


@dataclass(frozen=True, slots=True)
class RetentionSummary:
    """What retention does to a log directory.

    Attributes
    ----------
    partitions
        All that were looked at, sorted.
    now_ms
        The time that the age of segments was counted to.
    is_dry_run
        Whether nothing has been changed.
    configs
        By topic: the properties that decided, and where each value comes from.
    """

    partitions: tuple[PartitionRetention, ...]
    now_ms: int
    is_dry_run: bool
    configs: Mapping[str, Sequence[ConfigEntry]] = field(default_factory=dict)

    @property
    def totals(self) -> RetentionTotals:
        """Of all partitions."""
        return RetentionTotals.of(self.partitions)

    @property
    def by_topic(self) -> dict[str, RetentionTotals]:
        """Of the partitions of each topic, sorted."""
        topics: dict[str, list[PartitionRetention]] = {}
        for each in self.partitions:
            topics.setdefault(each.topic_partition.topic, []).append(each)
        return {topic: RetentionTotals.of(each) for topic, each in sorted(topics.items())}
