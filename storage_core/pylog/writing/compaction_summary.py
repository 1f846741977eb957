"""What `pylog.compact` has removed, or would remove."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pylog.cleaner.cleaner_stats import CleanerStats
    from pylog.config.config_property import ConfigEntry
    from pylog.model import TopicPartition
    from pylog.writing.held_back import HeldBack


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCompaction:
    """What compaction does to one partition.

    Attributes
    ----------
    topic_partition
        The partition.
    rounds
        How often it was cleaned; 0 if nothing had to be, or was chosen to be.
    records, removed_bytes
        What is removed, records without a key and control records included. Bytes may be negative:
        records of formats v0 and v1 become larger.
    invalid_records
        How many of the records had no key.
    segments
        How many segments the ones that were cleaned are fewer by.
    first_dirty_offset
        Up to where the log is clean afterwards.
    size_bytes
        Of its ``.log`` files afterwards.
    is_complete
        Whether nothing is left that could be cleaned now. False of a dry run if the dedupe buffer
        has no room for all keys: the rounds after the first one would remove more than is said.
    failure
        Why it could not be cleaned to the end; None if it was, or would be.
    held_back
        What can be cleaned as soon as it is replicated; None if nothing.
    """

    topic_partition: TopicPartition
    rounds: int = 0
    records: int = 0
    removed_bytes: int = 0
    invalid_records: int = 0
    segments: int = 0
    first_dirty_offset: int | None = None
    size_bytes: int = 0
    is_complete: bool = True
    failure: str | None = None
    held_back: HeldBack | None = None

    @classmethod
    def of(  # noqa: PLR0913 - all that there is to say of it
        cls,
        topic_partition: TopicPartition,
        rounds: Sequence[CleanerStats],
        *,
        first_dirty_offset: int | None,
        size_bytes: int,
        is_dry_run: bool,
        is_complete: bool,
        failure: str | None,
        held_back: HeldBack | None,
    ) -> PartitionCompaction:
        """Add up the rounds; ``size_bytes`` is that of the log now, whether or not it changed."""
        removed_bytes = sum(each.bytes_read - each.bytes_written for each in rounds)
        return cls(
            topic_partition=topic_partition,
            rounds=len(rounds),
            records=sum(each.records_read - each.records_written for each in rounds),
            removed_bytes=removed_bytes,
            invalid_records=sum(each.invalid_records for each in rounds),
            segments=sum(each.segments_read - each.segments_written for each in rounds),
            first_dirty_offset=first_dirty_offset,
            size_bytes=size_bytes - removed_bytes if is_dry_run else size_bytes,
            is_complete=is_complete,
            failure=failure,
            held_back=held_back,
        )


class CompactionTotals(NamedTuple):
    """What compaction does to several partitions.

    Attributes
    ----------
    partitions, cleaned_partitions
        How many there are, and how many are cleaned.
    records, removed_bytes
        What is removed.
    size_bytes
        Of all ``.log`` files afterwards.
    is_complete
        Whether all are complete.
    """

    partitions: int
    cleaned_partitions: int
    records: int
    removed_bytes: int
    size_bytes: int
    is_complete: bool

    @classmethod
    def of(cls, partitions: Iterable[PartitionCompaction]) -> CompactionTotals:
        """Add partitions up."""
        partitions = list(partitions)
        return cls(
            len(partitions),
            sum(each.rounds > 0 for each in partitions),
            sum(each.records for each in partitions),
            sum(each.removed_bytes for each in partitions),
            sum(each.size_bytes for each in partitions),
            all(each.is_complete for each in partitions),
        )


@dataclass(frozen=True, slots=True)
class CompactionSummary:
    """What compaction does to a log directory.

    Attributes
    ----------
    partitions
        Those of compacted topics, sorted.
    now_ms
        The time that lags and delete horizons were counted to.
    is_dry_run
        Whether nothing has been changed.
    configs
        By topic: the properties that decided, and where each value comes from.
    """

    partitions: tuple[PartitionCompaction, ...]
    now_ms: int
    is_dry_run: bool
    configs: Mapping[str, Sequence[ConfigEntry]] = field(default_factory=dict)

    @property
    def totals(self) -> CompactionTotals:
        """Of all partitions."""
        return CompactionTotals.of(self.partitions)

    @property
    def by_topic(self) -> dict[str, CompactionTotals]:
        """Of the partitions of each topic, sorted."""
        topics: dict[str, list[PartitionCompaction]] = {}
        for each in self.partitions:
            topics.setdefault(each.topic_partition.topic, []).append(each)
        return {topic: CompactionTotals.of(each) for topic, each in sorted(topics.items())}
