"""What an adoption has done, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class AdoptedPartition(NamedTuple):
    """A partition that the cluster gets.

    Attributes
    ----------
    source
        The directory that is copied; None where no disk has one, and the partition begins empty.
    replicas
        The ids of the nodes that get a copy, the leader first.
    directories
        Where the copies lie then, in the order of the nodes.
    leader_epoch
        The first one of the new cluster.
    end_offset
        Where the leader's copy ends, exclusive.
    missing
        Offsets ``[start, end)`` that were in the log, and are not in the copy.
    """

    topic: str
    partition: int
    source: str | None
    replicas: list[int]
    directories: list[str]
    leader_epoch: int
    end_offset: int
    missing: list[tuple[int, int]]


class AppendedRecords(NamedTuple):
    """What the log of the metadata gets at its end; its bytes may have credentials of users."""

    base_offset: int
    records: int
    size_in_bytes: int


@dataclass(frozen=True, slots=True)
class AdoptionSummary:
    """What `pylog.adopt` and `pylog.jobs.adopt_cluster` return.

    Attributes
    ----------
    into
        The log directories that got partitions.
    cluster_id
        Of the cluster that serves them from now on.
    is_written
        Whether it was done, and not only planned.
    topic_ids
        By the name that the topic has then.
    partitions
        What was adopted.
    appended
        What the log of the metadata gets at its end; None where a snapshot is written.
    snapshot
        The snapshot that nodes get which have never run; None where records are appended.
    losses
        What is lost, in sentences; empty if nothing is.
    notes
        What else is worth knowing.
    steps
        What is left to be done, a step each; of a cluster that moves as a whole.
    """

    into: list[str]
    cluster_id: str | None
    is_written: bool
    topic_ids: dict[str, str]
    partitions: list[AdoptedPartition]
    appended: AppendedRecords | None
    snapshot: str | None
    losses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
