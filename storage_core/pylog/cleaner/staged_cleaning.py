"""What tasks say of what they have staged; small, and pickled on its way to the log's owner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pylog.cleaner.cleaner_stats import CleanerStats

if TYPE_CHECKING:
    from pylog.files.staged_segments import StagedSegment
    from pylog.model import TopicPartition


class StagedGroup(NamedTuple):
    """Segments that are to take the place of others.

    Attributes
    ----------
    old
        Base offsets and sizes of those that they are made of, neighbours, in order.
    new
        Staged ones, in order.
    """

    old: tuple[tuple[int, int], ...]
    new: tuple[StagedSegment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCleaning:
    """What a task has made of a log.

    Attributes
    ----------
    topic_partition
        Whose log.
    groups
        What is to take the place of what, in order; none in a dry run.
    stats
        What was read and written.
    next_dirty_offset
        Where the next cleaning begins.
    keys_fit
        Whether the offset map had room for all keys. If not, nothing has been staged:
        `pylog.cleaner.large_cleaning` is for such logs.
    failure
        Why the log cannot be cleaned; None if it can. Nothing has been staged then.
    """

    topic_partition: TopicPartition
    groups: tuple[StagedGroup, ...] = ()
    stats: CleanerStats = field(default_factory=CleanerStats)
    next_dirty_offset: int
    keys_fit: bool = True
    failure: str | None = None


class CleanedGroup(NamedTuple):
    """What a task has made of one group: its number, what was staged if anything was, counts."""

    number: int
    staged: tuple[StagedGroup, ...]
    stats: CleanerStats
