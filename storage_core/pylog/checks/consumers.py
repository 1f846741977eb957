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

from pylog.checks.findings import named
from pylog.config.server_properties import ServerProperties
from pylog.errors import (
    CorruptCheckpointError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import META_PROPERTIES
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import ZERO_UUID
from pylog.locations import join
from pylog.model import TopicPartition
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC, last_group_records, stored_groups
from pylog.text.words import counted

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Sequence

    from pylog.internal_topics.group_kinds import MixedKinds
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.log_directory import LogDirectory


class LogRange(NamedTuple):
    """Where a log starts and ends, exclusive."""

    start: int
    end: int


class Placement:
    """What the cluster's metadata say about partitions that are not in some log directories."""

    def __init__(self, directory: LogDirectory, image: MetadataImage) -> None:
        self._directory = directory
        self._here = _directory_ids({each.log_directory for each in directory.directories})
        self._topics = {each.name: each for each in image.topics}

    def why_gone(self, where: TopicPartition) -> str | None:
        """Return why the cluster has no log of a partition that is not here, None if it may."""
        if not self._topics:
            return None
        topic = self._topics.get(where.topic)
        if topic is None or where.partition not in topic.partitions:
            return "the cluster has no such partition"
        directories = topic.partitions[where.partition].directories
        if directories and self._here.issuperset(directories):
            return "its log is gone from the disk that the cluster's metadata name"
        return None

    def why_reset(
        self, where: TopicPartition, topic_id: uuid.UUID | None, offset: int, log: LogRange | None
    ) -> str | None:
        """Return why a consumer does not go on at a committed offset, None if it may.

        ``topic_id`` is what the offset was committed for, ``log`` is None if there is none here.
        """
        if offset < 0:
            return None
        if topic_id not in (None, ZERO_UUID) and self._topic_id(where) not in (None, topic_id):
            return "it was committed for an earlier topic of that name"
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


def _directory_ids(paths: Iterable[str]) -> set[uuid.UUID]:
    found = set()
    for path in paths:
        with suppress(CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
            directory_id = read_meta_properties(join(path, META_PROPERTIES)).directory_id
            if directory_id is not None:
                found.add(directory_id)
    return found


def _why_outside(offset: int, log: LogRange) -> str | None:
    if offset < log.start == log.end:
        return f"the log is empty, and starts at {log.start}"
    if offset < log.start:
        return f"the log starts at {log.start}: offsets {offset} to {log.start - 1} are gone"
    return f"the log ends at {log.end}" if offset > log.end else None


class CommitAtRisk(NamedTuple):
    """A committed offset that will not be there, or will not be used, and why."""

    group_id: str
    topic: str
    partition: int
    offset: int
    reason: str

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
        The kind of the record; the group has another kind by then.
    """

    partition: int
    offset: int
    group_id: str
    kind: str
    group_kind: str

    @classmethod
    def of(cls, partition: int, mixed: MixedKinds) -> RefusedPartition:
        """Return what a partition is refused for."""
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
        Those that the cluster's metadata assign to these log directories.
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

    resetting: list[CommitAtRisk]
    expiring: list[CommitAtRisk]
    refused: list[RefusedPartition]
    missing: MissingPartitions | None


def group_outlook(
    directory: LogDirectory,
    image: MetadataImage,
    range_of: Callable[[TopicPartition], LogRange | None],
    now_ms: int,
    settings: ServerProperties | None = None,
) -> GroupOutlook:
    """Return what becomes of the groups in log directories.

    Parameters
    ----------
    directory
        The log directories.
    image
        The cluster's metadata; an empty one where they are not here.
    range_of
        Where the log of a partition starts and ends once a broker has started; None where it has
        no directory, or that is not known.
    now_ms
        When it starts.
    settings
        The broker's file; Kafka's defaults if None.
    """
    settings = settings or ServerProperties()
    found = {
        view.partition: last_group_records(view)
        for view in directory.topics.get(CONSUMER_OFFSETS_TOPIC, [])
    }
    stored = stored_groups(found, image, settings.offsets_topic_partitions)
    undecided = {place for each in found.values() for place in each.undecided}
    placement = Placement(directory, image)
    outlook = GroupOutlook(
        [],
        [],
        [
            RefusedPartition.of(number, each.mixed)
            for number, each in sorted(found.items())
            if each.mixed is not None
        ],
        MissingPartitions.of(stored.missing, stored.partition_count, placement)
        if stored.missing
        else None,
    )
    retention_ms = settings.offsets_retention_ms
    for group_id, state in sorted(stored.states.items()):
        for (topic, number), each in sorted(state.offsets.items()):
            where = TopicPartition(topic, number)
            at_risk = (group_id, topic, number, each.offset)
            why = placement.why_reset(where, each.topic_id, each.offset, range_of(where))
            if why is not None:
                outlook.resetting.append(CommitAtRisk(*at_risk, why))
            is_free = (group_id, topic, number) not in undecided
            expires = state.expires(topic, each, now_ms, retention_ms) if is_free else False
            if expires is not False:
                outlook.expiring.append(CommitAtRisk(*at_risk, expiry_text(expires=expires)))
    return outlook


def expiry_text(*, expires: bool | None) -> str:
    """Return why an offset goes, as of `GroupState.expires`."""
    if expires:
        return "a broker deletes it for its age, unless it is committed anew before"
    return "whether a broker deletes it for its age depends on whether members come back"
