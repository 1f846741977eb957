"""What a write has appended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid

    from pylog.model import TopicPartition


@dataclass(slots=True)
class PartitionSummary:
    """What was appended to one partition.

    Attributes
    ----------
    topic_partition
        The partition.
    end_offset
        The end offset of its log after the write (exclusive).
    records
        How many records were appended.
    size_bytes
        The size of the batches that were appended.
    """

    topic_partition: TopicPartition
    end_offset: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, records: int, size_bytes: int, end_offset: int) -> None:
        """Count batches, after which the log ends at ``end_offset``."""
        self.records += records
        self.size_bytes += size_bytes
        self.end_offset = end_offset


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """What `pylog.write_topic` has appended.

    Attributes
    ----------
    topic
        The name of the topic.
    topic_id
        The id of the topic; None if it is older than topic ids (Kafka 2.8).
    records, size_bytes
        Records and bytes of batches that were appended, over all partitions.
    end_offsets
        The end offset (exclusive) of every partition of the topic.
    """

    topic: str
    topic_id: uuid.UUID | None
    records: int
    size_bytes: int
    end_offsets: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteJobSummary:
    """What `WriteJob.commit` has done.

    Attributes
    ----------
    job_id, batch_id
        Of the job.
    already_committed
        Whether the ledger had the job, so that nothing was written.
    records, size_bytes
        Records and bytes of batches that were appended, over all partitions.
    partitions
        What was appended to each, sorted.
    """

    job_id: str
    batch_id: int | None
    already_committed: bool
    records: int = 0
    size_bytes: int = 0
    partitions: tuple[PartitionSummary, ...] = ()
