"""`topics`: what ``kafka-topics --describe`` shows, without a cluster.

Where ``__cluster_metadata`` is under one of the paths it says which topics there are. Nothing on a
disk tells which of its last records the controllers have agreed on: all that are there count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs
from pylog.errors import InvalidRecordError, LogStorageError
from pylog.files.file_names import PARTITION_METADATA
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.locations import is_remote, join, printable_location
from pylog.reading.damage import Attempts
from pylog.reading.html_table import html_table
from pylog.reading.internal_logs import CLUSTER_METADATA, latest_epoch, metadata_values
from pylog.reading.log_directory import (
    compile_topic_pattern,
    ensure_known_topics,
    no_topic_matches,
    open_each,
)
from pylog.reading.replicas import ensure_one_cluster
from pylog.text.words import counted, named

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.internal_topics.metadata_image import PartitionRegistration, TopicImage
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition of a topic. What only the cluster's metadata says is None without them.

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
    """What `pylog.topics` returns.

    Attributes
    ----------
    topics
        Sorted by name.
    deleted
        Topics that have been deleted: those of which the metadata's log still has it, and those
        whose directories are on their way out.
    metadata_path
        Where the cluster's metadata was read; None where there is none.
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

    def __repr__(self) -> str:
        names = named([each.topic for each in self.topics])
        return f"TopicDescription({counted(len(self.topics), 'topic')}: {names})"

    def _repr_html_(self) -> str:
        rows = [
            (
                *(each.topic, each.topic_id, len(each.partitions), each.replication_factor),
                ", ".join(f"{name}={value}" for name, value in (each.configs or {}).items()),
            )
            for each in self.topics
        ]
        columns = ("topic", "id", "partitions", "replication factor", "configuration")
        notes = [str(each) for each in self.errors]
        return html_table(counted(len(rows), "topic"), columns, rows, len(rows), notes=notes)


_SHOWN_IDS = 5


def topics(
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
) -> TopicDescription:
    """Return the topics of a cluster, or those of which something lies under the paths.

    Parameters
    ----------
    *paths
        Log directories; one with ``__cluster_metadata-0``, as a broker's ``metadata.log.dir`` is,
        has the metadata. Of several the one that goes furthest counts.
    topics
        Only these; None for all.
    pattern
        Regular expression: only topics in whose name it is found; None for all.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no topic of a name that was given, or none that the pattern matches.
    CorruptRecordError
        The cluster's metadata is damaged. A record that is not understood is no error of this
        function: it is left out, and among `TopicDescription.errors`.
    LogStorageError
        A path cannot be read, or holds no log, or the paths are of two clusters.
    ValueError
        Both topics and a pattern were given, or the pattern is not a regular expression.

    Examples
    --------
    >>> found = pylog.topics("kafka/intact", pattern="^(orders|invoices)")
    >>> [(each.topic, len(each.partitions)) for each in found.topics]
    [('invoices-eu', 2), ('orders', 2)]
    """
    if topics is not None and pattern is not None:
        msg = "give either topics or a pattern, not both"
        raise ValueError(msg)
    attempts = Attempts()
    directories = open_each(paths)
    ensure_one_cluster(each for directory in directories for each in directory.directories)
    local = _LocalTopics(directories, attempts)
    logs = [each[CLUSTER_METADATA] for each in directories if CLUSTER_METADATA in each]
    if not logs:
        found = [local.described(name) for name in local.names]
        described = TopicDescription(found, local.deleted(), errors=attempts.errors)
    else:
        # A longer one of an earlier epoch has what was never agreed on.
        furthest = max(logs, key=lambda log: (latest_epoch(log), log.log_end_offset))
        described = _from_metadata(furthest, local, attempts)
    return _chosen(described, topics, pattern)


def _from_metadata(view: LogView, local: _LocalTopics, attempts: Attempts) -> TopicDescription:
    image = MetadataImage()
    for value in metadata_values(view):
        attempts.read(partial(_apply, image, value, view))
    attempts.read(partial(_ensure_whole, image, view))
    known = {topic.name for topic in image.topics}
    described = [local.described_by(topic) for topic in image.topics]
    # The metadata's own log is a topic to no tool of Kafka's.
    others = [name for name in local.names if name not in known and name != CLUSTER_METADATA.topic]
    described += [local.described(name, is_in_metadata=False) for name in others]
    deleted = [local.described_by(topic, is_deleted=True) for topic in image.deleted]
    ids = {each.topic_id for each in deleted}
    deleted += [each for each in local.deleted() if each.topic_id not in ids]
    return TopicDescription(
        sorted(described, key=lambda topic: topic.topic),
        deleted,
        printable_location(view.directory.path),
        view.log_end_offset,
        attempts.errors,
    )


def _apply(image: MetadataImage, value: bytes | None, view: LogView) -> None:
    try:
        image.apply(value)
    except InvalidRecordError as error:
        reason = (
            f"a record is not understood and left out, since a later version of Kafka wrote it or "
            f"it is broken: {error.reason}"
        )
        raise InvalidRecordError(reason, view.directory.path) from error


def _ensure_whole(image: MetadataImage, view: LogView) -> None:
    if image.unknown_types:
        found = ", ".join(f"{n} of type {each}" for each, n in sorted(image.unknown_types.items()))
        reason = f"records that a later version of Kafka wrote are left out: {found}"
        raise InvalidRecordError(reason, view.directory.path)
    unknown = sorted(map(format_uuid, image.unknown_topic_ids))
    if unknown:
        shown = ", ".join(unknown[:_SHOWN_IDS]) + (", …" if len(unknown) > _SHOWN_IDS else "")
        reason = (
            f"records name topics that no record has introduced (ids {shown}): a part of the "
            "metadata is missing, and so may be topics and changes of topics"
        )
        raise InvalidRecordError(reason, view.directory.path)


class _LocalTopics:
    """Topics of the partition directories under the paths."""

    def __init__(self, directories: Sequence[LogDirectory], attempts: Attempts) -> None:
        self._attempts = attempts
        self._views: dict[str, list[LogView]] = {}
        self._deleted: list[PartitionDirectory] = []
        for directory in directories:
            for view in directory:
                self._views.setdefault(view.topic, []).append(view)
            self._deleted += [each for each in directory.others if each.state == "-delete"]
        self._configs: dict[str, dict[str, dict[str, str]]] = {}

    @property
    def names(self) -> list[str]:
        return sorted(self._views)

    def described(self, name: str, *, is_in_metadata: bool | None = None) -> DescribedTopic:
        views = self._views[name]
        partitions = (
            DescribedPartition(number, directories=self._places(name, number))
            for number in sorted({view.partition for view in views})
        )
        topic_id = self._topic_id(views)
        return DescribedTopic(
            name, topic_id, tuple(partitions), self._stored_configs(views), is_in_metadata
        )

    def described_by(self, image: TopicImage, *, is_deleted: bool = False) -> DescribedTopic:
        partitions = (
            _described_partition(each, () if is_deleted else self._places(image.name, number))
            for number, each in sorted(image.partitions.items())
        )
        topic_id = format_uuid(image.topic_id)
        return DescribedTopic(
            image.name, topic_id, tuple(partitions), dict(image.configs), not is_deleted
        )

    def deleted(self) -> list[DescribedTopic]:
        """Return topics that are being deleted, from their directories."""
        numbers: dict[tuple[str, str | None], set[int]] = {}
        for each in self._deleted:
            # The id tells topics apart that had one name after another.
            key = each.topic_partition.topic, self._deleted_id(each)
            numbers.setdefault(key, set()).add(each.topic_partition.partition)
        return [
            DescribedTopic(name, topic_id, tuple(map(DescribedPartition, sorted(of))), None, None)
            for (name, topic_id), of in numbers.items()
        ]

    def _deleted_id(self, directory: PartitionDirectory) -> str | None:
        try:
            metadata = read_partition_metadata(join(directory.path, PARTITION_METADATA))
        except LogStorageError:
            return None  # it is on its way out, and what is wrong with it does not matter
        return format_uuid(metadata.topic_id)

    def _places(self, name: str, number: int) -> tuple[str, ...]:
        return tuple(
            printable_location(view.directory.path)
            for view in self._views.get(name, ())
            if view.partition == number
        )

    def _topic_id(self, views: Sequence[LogView]) -> str | None:
        for view in views:
            metadata = self._attempts.read(partial(getattr, view, "metadata"))
            if metadata is not None:
                return format_uuid(metadata.topic_id)
        return None

    def _stored_configs(self, views: Sequence[LogView]) -> dict[str, str] | None:
        """Return the properties of a topic that pylog has stored, None if it has none of it."""
        for above in dict.fromkeys(view.directory.log_directory for view in views):
            if is_remote(above):
                continue
            if above not in self._configs:
                path = join(above, TOPIC_CONFIGS)
                stored_there = self._attempts.read(partial(read_topic_configs, path))
                self._configs[above] = stored_there or {}
            stored = self._configs[above].get(views[0].topic)
            if stored is not None:
                return stored
        return None


def _described_partition(
    registration: PartitionRegistration, directories: tuple[str, ...]
) -> DescribedPartition:
    return DescribedPartition(
        registration.partition,
        registration.leader,
        registration.leader_epoch,
        registration.replicas,
        registration.isr,
        registration.adding_replicas,
        registration.removing_replicas,
        registration.eligible_leader_replicas,
        registration.last_known_elr,
        directories,
    )


def _chosen(
    described: TopicDescription, names: Iterable[str] | None, pattern: str | None
) -> TopicDescription:
    if names is None and pattern is None:
        return described
    known = {each.topic for each in [*described.topics, *described.deleted]}
    is_chosen: Callable[[str], object]
    if names is not None:
        chosen = set(names)
        ensure_known_topics(sorted(chosen), known)
        is_chosen = chosen.__contains__
    else:
        is_chosen = compile_topic_pattern(pattern or "").search
        if not any(map(is_chosen, known)):
            raise no_topic_matches(pattern or "", known)

    def kept(some: Iterable[DescribedTopic]) -> Iterator[DescribedTopic]:
        return (each for each in some if is_chosen(each.topic))

    return TopicDescription(
        list(kept(described.topics)),
        list(kept(described.deleted)),
        described.metadata_path,
        described.metadata_end_offset,
        described.errors,
    )
