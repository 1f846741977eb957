"""What a topic consists of, as `pylog.inspect.topics` finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.errors import LogStorageError


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition of a topic. What only the cluster's metadata say is None without them.

    Attributes
    ----------
    partition
        Its number.
    leader
        The id of the broker that leads it; -1 if none does.
    leader_epoch
        How often that has changed.
    replicas, isr
        Ids of brokers: all that hold it, and those that are in sync.
    adding_replicas, removing_replicas
        Of a reassignment that is under way.
    eligible_leader_replicas, last_known_elr
        Of KIP-966.
    directories
        Where it lies under the paths, without the secrets of a URI.
    """

    partition: int
    leader: int | None = None
    leader_epoch: int | None = None
    replicas: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic.

    Attributes
    ----------
    topic
        Its name.
    topic_id
        As Kafka prints it, 22 characters; None if it is not known.
    partitions
        Sorted by number. Without the cluster's metadata these are those that lie under the paths,
        and the topic may have more.
    configs
        The properties of the topic itself: from the cluster's metadata, else those that pylog has
        stored beside the logs. None if neither is there.
    is_in_metadata
        Whether the cluster's metadata has it; None where there are none to ask.
    """

    topic: str
    topic_id: str | None
    partitions: tuple[DescribedPartition, ...]
    configs: dict[str, str] | None
    is_in_metadata: bool | None

    @property
    def replication_factor(self) -> int | None:
        """How many replicas the first partition has, as Kafka's tool counts them."""
        if not self.partitions or self.partitions[0].replicas is None:
            return None
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """What `pylog.inspect.topics.topics` returns.

    Attributes
    ----------
    topics
        Sorted by name.
    deleted
        Topics that have been deleted: those of which the metadata's log still has it, and those
        whose directories are on their way out.
    metadata_path
        Where the cluster's metadata were read; None where there are none.
    metadata_end_offset
        The offset after the last record of them.
    errors
        What could not be read, such as metadata records of types that later versions have.
    """

    topics: list[DescribedTopic]
    deleted: list[DescribedTopic]
    metadata_path: str | None = None
    metadata_end_offset: int | None = None
    errors: list[LogStorageError] = field(default_factory=list)
