"""What `pylog.doctor` says of one partition, and of one log directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pylog.findings import kinds
from pylog.findings.finding import Finding, FindingKind, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylog.checks.broker_start import BrokerStart
    from pylog.checks.group_findings import GroupPosition
    from pylog.model import TopicPartition


class OffsetTotals(NamedTuple):
    """How many offsets of a log hold records, control records, nothing, or damage."""

    # In sound batches
    records: int = 0
    control_records: int = 0
    compacted: int = 0  # removed by compaction
    missing: int = 0  # missing without a sign of compaction
    # of batches that are damaged, or cannot be decoded; after the last batch they are not known
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition.

    Attributes
    ----------
    topic_partition, path
        Which, and where it lies; without the secrets of a URI.
    findings
        About the log, the directory, indexes and side files, in this order.
    size_bytes, scanned_bytes
        Of the ``.log`` files; of them, what was read and is intact.
    start_offset, end_offset
        Of the files on the disk; the end is exclusive.
    offsets
        What has become of the offsets between them.
    start
        What a broker would do to the log; None where it cannot be read at all.
    """

    topic_partition: TopicPartition
    path: str
    findings: list[Finding]
    size_bytes: int
    scanned_bytes: int
    start_offset: int
    end_offset: int
    offsets: OffsetTotals
    start: BrokerStart | None

    @property
    def loses_records(self) -> bool:
        """Whether a broker's start is known to lose records of it."""
        return self.start is not None and self.start.loses_records

    @property
    def is_unreadable(self) -> bool:
        """Whether something of it could not be read at all."""
        return any(each.kind == kinds.UNREADABLE for each in self.findings)

    def has(self, kind: FindingKind) -> bool:
        """Whether the partition has an error of this kind."""
        return any(each.kind == kind and each.severity is Severity.ERROR for each in self.findings)

    @property
    def start_text(self) -> str | None:
        """What a broker does to it, in a sentence; None where that is not known."""
        if self.has(kinds.STRAY_PARTITION):
            return "a broker sets it aside as -stray, and serves none of it"
        return None if self.start is None else self.start.describe()


@dataclass(frozen=True, slots=True)
class LogDirectoryReport:
    """One log directory, the partitions in it left out.

    Attributes
    ----------
    path
        Without the secrets of a URI.
    is_clean
        Whether it was shut down cleanly: the marker of a clean stop is in it.
    is_of_a_controller
        Whether it is a node's that is no broker, which has no such marker.
    lacks_metadata
        Whether it is a KRaft node's, and the log of the cluster's metadata is not in it.
    findings
        About the files right in it, and its partitions together.
    cluster_id, node_id, directory_id
        Whose it is, as ``meta.properties`` says; None where that does not say it.
    positions
        By partition, the consumer groups of the cluster and their committed offsets; in the first
        log directory with one of their partitions.
    """

    path: str
    is_clean: bool
    is_of_a_controller: bool
    lacks_metadata: bool
    findings: list[Finding]
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    positions: Mapping[TopicPartition, Sequence[GroupPosition]] = field(default_factory=dict)
