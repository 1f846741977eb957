"""What `pylog.jobs.merge` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pylog.model import NO_TIMESTAMP
from pylog.text.words import counted, offsets_text, time_text


class MergeSource(NamedTuple):
    """A replica that was given.

    Attributes
    ----------
    path
        Its partition directory.
    node_id
        Whose it is; None where no ``meta.properties`` says so.
    start_offset, end_offset
        Offsets ``[start_offset, end_offset)`` from its first to its last intact batch; both None
        without one.
    epoch
        Its highest leader epoch, in its checkpoint or in its batches; -1 if it has none.
    high_watermark
        What the checkpoint beside it says, which may be seconds old; None without one.
    damaged_ranges
        The number of damaged ranges among the bytes that were read. If several replicas have the
        same headers, only the batches of one are read.
    """

    path: str
    node_id: int | None
    start_offset: int | None
    end_offset: int | None
    epoch: int
    high_watermark: int | None
    damaged_ranges: int


class MergedRange(NamedTuple):
    """Offsets ``[start_offset, end_offset)`` of the result: from which replica, and by which rule.

    The rules are explained in `pylog.comparison.lineage`.
    """

    start_offset: int
    end_offset: int
    source: str
    rule: str


class GapCause(NamedTuple):
    """What one replica has where the result has a gap."""

    source: str
    found: str


class MergeGap(NamedTuple):
    """Offsets ``[start_offset, end_offset)`` that no replica has of the last leader's log.

    ``end_offset`` is None where the log ends in damaged batches, and nothing tells how far it went.
    """

    start_offset: int
    end_offset: int | None
    is_cleaned_or_lost: bool
    causes: list[GapCause]


class MergeBranch(NamedTuple):
    """Batches that are not in the result: another leader's, whose history has ended, or doubtful.

    Attributes
    ----------
    start_offset, end_offset
        Offsets ``[start_offset, end_offset)``.
    epoch
        Under which leader they were written.
    first_timestamp, max_timestamp
        Their first and largest timestamps in ms; -1 without one.
    sources
        Which replicas have them.
    reason
        Why they are not in the result.
    """

    start_offset: int
    end_offset: int
    epoch: int
    records: int
    first_timestamp: int
    max_timestamp: int
    sources: list[str]
    reason: str

    def __str__(self) -> str:
        times = ""
        if self.max_timestamp != NO_TIMESTAMP:
            times = f", {time_text(self.first_timestamp)} to {time_text(self.max_timestamp)}"
        return (
            f"{offsets_text(self.start_offset, self.end_offset)} of epoch {self.epoch} "
            f"({counted(self.records, 'record')}{times}) in {', '.join(self.sources)}: "
            f"{self.reason}"
        )


class MergeTransaction(NamedTuple):
    """A transaction that is open at the end of the result.

    Attributes
    ----------
    marker, marker_offset, marker_source
        Its marker on a branch: ``COMMIT`` or ``ABORT``, where it is, and in which replica. None
        where no replica has one.
    appended, appended_at
        The marker that was appended to the result, and where; None if it was left open.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int | None
    marker: str | None
    marker_offset: int | None
    marker_source: str | None
    appended: str | None = None
    appended_at: int | None = None


class MergeCut(NamedTuple):
    """Where a partition ends that was to end at an instant, or at an offset.

    Attributes
    ----------
    wanted_offset
        Where it would have ended by itself.
    end_offset
        Where its records end: later than ``wanted_offset`` if a transaction that is committed in
        another partition has records there. Markers may follow.
    left_out_records, left_out_earlier
        How many records are behind that, and how many of them are in batches of which all
        timestamps are before the instant.
    """

    wanted_offset: int
    end_offset: int
    left_out_records: int
    left_out_earlier: int


class MovedGroup(NamedTuple):
    """A group's position that was behind the end of a partition, and is at its end now."""

    group_id: str
    topic: str
    partition: int
    before: int
    offset: int


@dataclass(frozen=True, slots=True)
class MergedPartition:
    """One partition of the result.

    Attributes
    ----------
    start_offset, end_offset
        Offsets ``[start_offset, end_offset)`` that it spans.
    leader
        The replica whose history it is; None without one.
    is_proven
        Whether the cluster's metadata says that this was the last leader.
    sources, ranges, gaps, branches, transactions
        The replicas, what came from which, what is missing, what was left out, and which
        transactions are open at the end.
    notes
        What else is worth knowing, in sentences.
    size_bytes
        Of its ``.log`` files.
    cut
        Where it ends by ``until``; None without it.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    leader: str | None
    epoch: int
    is_proven: bool
    size_bytes: int
    sources: list[MergeSource]
    ranges: list[MergedRange] = field(default_factory=list)
    gaps: list[MergeGap] = field(default_factory=list)
    branches: list[MergeBranch] = field(default_factory=list)
    transactions: list[MergeTransaction] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cut: MergeCut | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing that is known to have been there."""
        return not self.gaps


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """What `pylog.jobs.merge` returns.

    Attributes
    ----------
    to
        The log directory; None after a dry run.
    partitions
        What was merged.
    groups
        Whose positions were brought back to the end of a partition.
    notes
        What else is worth knowing, in sentences.
    """

    to: str | None
    partitions: list[MergedPartition]
    groups: list[MovedGroup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether no partition has a gap."""
        return all(each.is_complete for each in self.partitions)
