"""A consumer group, as `pylog.inspect.groups` finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.errors import LogStorageError
    from pylog.model import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group.

    Attributes
    ----------
    member_id, instance_id, client_id, client_host
        As the member and the broker named them; ``instance_id`` is None of dynamic members.
    assigned
        What it is assigned. Topics that are known by their id alone have that for a name.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assigned: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group has committed for a partition, against the partition's log.

    Attributes
    ----------
    topic, partition
        The partition.
    offset
        The next one that the group would read; None where compaction has removed what was
        committed at that time.
    leader_epoch, metadata, commit_timestamp
        As committed; the timestamp is the coordinator's, in ms.
    log_start_offset, log_end_offset
        Of the log under the paths; None where it is not there, or is of a later topic of that
        name. Up to the last stable offset, for consumers that read committed records.
    member_id
        Who is assigned the partition; None if nobody is.
    """

    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    member_id: str | None

    @property
    def lag(self) -> int | None:
        """How many offsets are between the group and the end; None if one is not known."""
        if self.offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group.

    Attributes
    ----------
    group_id
        Its name.
    kind
        ``classic``, ``consumer`` (KIP-848), ``share`` or ``streams``.
    state
        As a coordinator has it that has just loaded the group.
    protocol_type, protocol
        Of a classic group that has had members.
    epoch
        Of the group: the generation of a classic one; None where offsets are all that there is.
    members, offsets
        By member id, and by topic and partition.
    """

    group_id: str
    kind: str
    state: str
    protocol_type: str | None
    protocol: str | None
    epoch: int | None
    members: tuple[GroupMember, ...]
    offsets: tuple[CommittedOffset, ...]


@dataclass(frozen=True, slots=True)
class GroupListing:
    """What `pylog.inspect.groups.groups` returns.

    Attributes
    ----------
    groups
        Sorted by id.
    partitions
        The partitions of ``__consumer_offsets`` that were read: a group is in one of them, and
        those whose partition is elsewhere are not here.
    unreadable_records
        How many of their records are of types that later versions of Kafka have, or are broken.
    ignored_records
        How many are of types that only earlier versions have, and that brokers pass over: they say
        nothing of what is here.
    errors
        What could not be read: partitions of ``__consumer_offsets``, whose groups are missing, and
        logs of the groups' topics.
    """

    groups: list[ConsumerGroup]
    partitions: tuple[int, ...]
    unreadable_records: int = 0
    ignored_records: int = 0
    errors: list[LogStorageError] = field(default_factory=list)
