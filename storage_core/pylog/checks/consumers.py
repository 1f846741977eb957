"""What becomes of consumer groups once a broker has started: positions reset, offsets expire.

A consumer whose committed position is not in its partition's log starts anew, by its
``auto.offset.reset``. A coordinator deletes offsets that nobody has committed anew for
``offsets.retention.minutes``, as soon as ``offsets.retention.check.interval.ms`` have passed after
its start. A partition of ``__consumer_offsets`` in which a group is of two kinds is not loaded.

Source: Fetcher and OffsetFetcher of the consumer, GroupCoordinatorShard.cleanupGroupMetadata,
OffsetMetadataManager.cleanupExpiredOffsets (Kafka 4.4).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.files.partition_metadata import ZERO_UUID
from pylog.findings.finding import Severity
from pylog.model import TopicPartition
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC
from pylog.text.words import counted, named, offsets_text
from pylog.writing.node import nodes_of
from pylog.writing.node_disks import Place

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping, Sequence

    from pylog.internal_topics.group_kinds import MixedKinds
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.group_records import LastRecords, StoredGroups
    from pylog.reading.log_directory import LogDirectory
    from pylog.writing.node import Node


class LogRange(NamedTuple):
    """The start offset of a log, and its exclusive end offset."""

    start: int
    end: int


UNKNOWN_RANGE = LogRange(0, (1 << 63) - 1)
"""The range of a log that cannot be read: no offset is known to lie outside of it."""


class Reset(NamedTuple):
    """Why a consumer does not go on at its position."""

    reason: str
    severity: Severity  # a warning where records are gone that there were


class Placement:
    """What the cluster's metadata says about partitions that are not in some log directories.

    ``nodes`` are those of the log directories, `nodes_of` if they are not known yet.
    """

    def __init__(
        self,
        directory: LogDirectory,
        image: MetadataImage,
        nodes: Mapping[str, Node] | None = None,
    ) -> None:
        self._directory = directory
        if nodes is None:
            nodes = nodes_of(each.log_directory for each in directory.directories)
        self._nodes = {each.node_id: each for each in nodes.values()}
        self._topics = {each.name: each for each in image.topics}
        self._registered = image.log_directories

    def why_gone(self, where: TopicPartition) -> Reset | None:
        """Return why the cluster has no log of a partition that is not here, None if it may."""
        if not self._topics:
            return None
        topic = self._topics.get(where.topic)
        if topic is None or where.partition not in topic.partitions:
            return Reset("the cluster has no such partition", Severity.INFO)
        replicas = topic.partitions[where.partition]
        if replicas.directories and all(
            self._is_gone(each, replicas.directory_of(each)) for each in replicas.replicas
        ):
            reason = "its log is gone from the disk that the cluster's metadata names"
            return Reset(reason, Severity.WARNING)
        return None

    def _is_gone(self, node_id: int, directory_id: uuid.UUID | None) -> bool:
        """Whether a replica that is not here should be, or was on a disk that its node has lost."""
        node = self._nodes.get(node_id)
        if node is None:
            return False
        place, _ = node.disks.place_of(directory_id, self._registered.get(node_id, frozenset()))
        return place in (Place.GIVEN, Place.GONE)

    def why_reset(
        self, where: TopicPartition, topic_id: uuid.UUID | None, offset: int, log: LogRange | None
    ) -> Reset | None:
        """Return why a consumer does not go on at a committed offset, None if it may.

        ``topic_id`` is what the offset was committed for, ``log`` is None if there is none here.
        """
        if offset < 0:
            return None
        if topic_id not in (None, ZERO_UUID) and self._topic_id(where) not in (None, topic_id):
            return Reset("it was committed for an earlier topic of that name", Severity.INFO)
        return self.why_gone(where) if log is None else _why_outside(offset, log)

    def _topic_id(self, where: TopicPartition) -> uuid.UUID | None:
        """Return the id that a topic has now; None where neither metadata nor files say it."""
        if where.topic in self._topics:
            return self._topics[where.topic].topic_id
        with suppress(LogStorageError):
            if where in self._directory:
                metadata = self._directory[where].metadata
                return None if metadata is None else metadata.topic_id
        return None


def _why_outside(offset: int, log: LogRange) -> Reset | None:
    if offset > log.end:
        return Reset(f"the log ends at {log.end}", Severity.WARNING)
    if offset >= log.start:
        return None
    if log.start == log.end:
        return Reset(f"the log is empty, and starts at {log.start}", Severity.INFO)
    gone = f"{offsets_text(offset, log.start)} {'is' if log.start - offset == 1 else 'are'} gone"
    return Reset(f"the log starts at {log.start}: {gone}", Severity.INFO)


class CommitAtRisk(NamedTuple):
    """A committed offset that will not be there, or will not be used, and why."""

    group_id: str
    topic: str
    partition: int
    offset: int
    reason: str
    severity: Severity = Severity.INFO
    is_certain: bool = True  # False where it depends on which members come back

    def __str__(self) -> str:
        return f"{self.group_id} at {self.offset} in {self.topic}-{self.partition}: {self.reason}"


class RefusedPartition(NamedTuple):
    """A partition of ``__consumer_offsets`` that no coordinator loads.

    Attributes
    ----------
    partition
        Its number.
    offset
        Of the record at which the loading ends.
    group_id, kind, group_kind
        The kind of the record, and that of the group before it.
    """

    partition: int
    offset: int
    group_id: str
    kind: str
    group_kind: str

    @classmethod
    def of(cls, partition: int, mixed: MixedKinds) -> RefusedPartition:
        """Return a partition as one that is refused for groups of two kinds."""
        return cls(partition, mixed.offset, mixed.group_id, mixed.kind, mixed.group_kind)

    def __str__(self) -> str:
        return (
            f"partition {self.partition} of {CONSUMER_OFFSETS_TOPIC} cannot be loaded by a broker "
            f"of Kafka 4.0 or later, so that none of its groups is available: the record at offset "
            f"{self.offset} is of a {self.kind} group, and {self.group_id} is a {self.group_kind} "
            "group there"
        )


class MissingPartitions(NamedTuple):
    """Partitions of ``__consumer_offsets`` that are not here.

    Attributes
    ----------
    partitions
        Their numbers.
    gone
        The numbers of those that the cluster's metadata assigns to these log directories.
    partition_count
        How many partitions the topic has; None where that is not known.
    """

    partitions: tuple[int, ...]
    gone: tuple[int, ...]
    partition_count: int | None

    @classmethod
    def of(
        cls, numbers: tuple[int, ...], count: int | None, placement: Placement
    ) -> MissingPartitions:
        """Return what is missing, and what of that is gone."""
        gone = tuple(
            number
            for number in numbers
            if placement.why_gone(TopicPartition(CONSUMER_OFFSETS_TOPIC, number)) is not None
        )
        return cls(numbers, gone, count)

    def __str__(self) -> str:
        of = "" if self.partition_count is None else f" of {self.partition_count}"
        is_one = len(self.partitions) == 1
        lost = f"; gone from these log directories: {_numbers(self.gone)}" if self.gone else ""
        return (
            f"{counted(len(self.partitions), 'partition')}{of} of {CONSUMER_OFFSETS_TOPIC} "
            f"{'is' if is_one else 'are'} not here ({_numbers(self.partitions)}): groups in "
            f"{'it' if is_one else 'them'} are not known{lost}"
        )


def _numbers(partitions: Sequence[int]) -> str:
    return named(list(map(str, partitions)), 10)


Position = tuple[str, str, int]
"""A group, and the topic and partition that it has committed an offset for."""


class GroupOutlook(NamedTuple):
    """What becomes of the groups in some log directories.

    Attributes
    ----------
    resetting
        Positions that are not in their logs.
    expiring
        Offsets that a coordinator deletes for their age, unless members come back before.
    refused
        Partitions that no coordinator loads.
    missing
        Partitions that are not here; None if that is not known of any.
    """

    resetting: dict[Position, CommitAtRisk]
    expiring: dict[Position, CommitAtRisk]
    refused: tuple[RefusedPartition, ...]
    missing: MissingPartitions | None


def group_outlook(
    found: Mapping[int, LastRecords],
    stored: StoredGroups,
    placement: Placement,
    range_of: Callable[[TopicPartition], LogRange | None],
    now_ms: int,
    retention_ms: int,
) -> GroupOutlook:
    """Return what becomes of groups once a broker has started.

    Parameters
    ----------
    found
        The records of each partition of ``__consumer_offsets`` that is here.
    stored
        The groups in them that are asked for.
    placement
        Where the cluster's metadata has partitions that are not here.
    range_of
        Where the log of a partition starts and ends then, `UNKNOWN_RANGE` where that is not known;
        None where it has no directory.
    now_ms
        When it starts.
    retention_ms
        How long the broker keeps offsets.
    """
    undecided = {place for each in found.values() for place in each.undecided}
    resetting, expiring = {}, {}
    for group_id, state in sorted(stored.states.items()):
        for (topic, number), each in sorted(state.offsets.items()):
            where = TopicPartition(topic, number)
            place = group_id, topic, number
            reset = placement.why_reset(where, each.topic_id, each.offset, range_of(where))
            if reset is not None:
                resetting[place] = CommitAtRisk(*place, each.offset, *reset)
            if place in undecided:
                continue  # a transaction is about to replace it
            expires = state.expires(topic, each, now_ms, retention_ms)
            if expires is not False:
                why = _EXPIRES if expires else _MAY_EXPIRE
                risk = CommitAtRisk(*place, each.offset, why, is_certain=expires is True)
                expiring[place] = risk
    return GroupOutlook(resetting, expiring, *refused_and_missing(found, stored, placement))


_EXPIRES = "a broker deletes it for its age, unless it is committed anew before"
_MAY_EXPIRE = "whether a broker deletes it for its age depends on whether members come back"


def refused_and_missing(
    found: Mapping[int, LastRecords], stored: StoredGroups, placement: Placement
) -> tuple[tuple[RefusedPartition, ...], MissingPartitions | None]:
    """Return the partitions of ``__consumer_offsets`` that nobody loads, and those not here."""
    refused = tuple(
        RefusedPartition.of(number, each.mixed)
        for number, each in sorted(found.items())
        if each.mixed is not None
    )
    missing = None
    if stored.missing:
        missing = MissingPartitions.of(stored.missing, stored.partition_count, placement)
    return refused, missing
