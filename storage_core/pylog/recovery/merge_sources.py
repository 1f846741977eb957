"""From paths to the replicas of each partition, and what the metadata beside them say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pylog.comparison.lineage import LastLeader
from pylog.comparison.replica_log import ReplicaLog, directories_of
from pylog.errors import LogDirectoryError, LogStorageError, UnknownTopicOrPartitionError
from pylog.files.directory_lock import ensure_not_in_use
from pylog.files.file_names import find_partition_directory_name
from pylog.files.partition_metadata import format_uuid
from pylog.files.storage import list_directory
from pylog.internal_topics.metadata_image import NO_LEADER
from pylog.locations import is_remote, location, name_of, parent_of, printable_location
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.replicas import ensure_one_cluster
from pylog.recovery.metadata_copies import find_copies, metadata_of, seed_of
from pylog.writing.node import nodes_of

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Sequence

    from pylog.internal_topics.metadata_image import PartitionRegistration, TopicImage
    from pylog.model import TopicPartition
    from pylog.reading.discovery import PartitionDirectory


class Sources(NamedTuple):
    """The replicas of each partition, and which of the paths each one is from."""

    replicas: dict[TopicPartition, list[ReplicaLog]]
    paths: dict[str, int]  # by partition directory


def find_sources(
    paths: Sequence[str | os.PathLike[str]],
    topics: Collection[str] | None,
    partitions: Collection[int] | None,
) -> Sources:
    """Return the replicas under some paths, of the partitions that are wanted."""
    directories: list[PartitionDirectory] = []
    numbers: dict[str, int] = {}
    for number, path in enumerate(paths):
        for each in directories_of(location(path)):
            if each.is_live(include_stray=False) and each.path not in numbers:
                numbers[each.path] = number
                directories.append(each)
    wanted = [
        each
        for each in directories
        if each.topic_partition != CLUSTER_METADATA
        and (topics is None or each.topic_partition.topic in topics)
        and (partitions is None or each.topic_partition.partition in partitions)
    ]
    if not wanted:
        what = "no partition" if topics is None else f"no partition of topic {', '.join(topics)}"
        raise UnknownTopicOrPartitionError(f"{what} that is wanted is under the paths")
    for above in dict.fromkeys(each.log_directory for each in wanted):
        if not is_remote(above) and os.path.isdir(above):  # noqa: PTH112 - kept as text
            ensure_not_in_use(above)
    ensure_one_cluster(wanted)
    replicas: dict[TopicPartition, list[ReplicaLog]] = {}
    for each in wanted:
        replicas.setdefault(each.topic_partition, []).append(ReplicaLog(each))
    for found in replicas.values():
        topic_id_of(found)
    return Sources(dict(sorted(replicas.items())), numbers)


def topic_id_of(replicas: Iterable[ReplicaLog]) -> uuid.UUID | None:
    """Return the topic's id; raise if the replicas are of two topics."""
    by_id: dict[uuid.UUID, ReplicaLog] = {}
    for each in replicas:
        if each.topic_id is not None:
            by_id.setdefault(each.topic_id, each)
    if len(by_id) > 1:
        shown = ", ".join(f"{format_uuid(key)} in {each.path}" for key, each in by_id.items())
        name = next(iter(by_id.values())).directory.topic_partition
        reason = (
            f"the replicas of {name} are of {len(by_id)} topics of one name: {shown}. A topic that "
            "was deleted and made again has a new id: give the replicas of one of them"
        )
        raise LogDirectoryError(reason)
    return next(iter(by_id), None)


class ClusterMetadata:
    """Who led which partition last, as the furthest of some copies of the metadata log says."""

    def __init__(self, log_directories: Iterable[str]) -> None:
        self._topics: dict[str, TopicImage] = {}
        copies, errors = find_copies(nodes_of(log_directories).values())
        self.error: LogStorageError | None = errors[0] if errors and not copies else None
        self.path: str | None = None
        if copies:
            seed = seed_of(copies)
            self.path = printable_location(seed.directory)
            self._topics = {each.name: each for each in metadata_of(seed, copies).image.topics}

    def last_leader(
        self, topic_partition: TopicPartition, topic_id: uuid.UUID | None
    ) -> LastLeader | None:
        """Return who led a partition last; None where that is not known."""
        topic = self._topics.get(topic_partition.topic)
        if topic is None or (topic_id is not None and topic.topic_id != topic_id):
            return None
        found = topic.partitions.get(topic_partition.partition)
        return None if found is None else _last_leader(found)

    def is_compacted(self, topic: str) -> bool:
        """Whether the topic's own configuration says so."""
        found = self._topics.get(topic)
        return found is not None and "compact" in found.configs.get("cleanup.policy", "")


def _last_leader(partition: PartitionRegistration) -> LastLeader | None:
    if partition.leader != NO_LEADER:
        return LastLeader(partition.leader, partition.leader_epoch)
    # Of a partition without one, who led last is kept where nobody else was in sync.
    for kept in (partition.last_known_elr, partition.isr, partition.eligible_leader_replicas):
        if len(kept) == 1:
            return LastLeader(kept[0], partition.leader_epoch)
    return None


def metadata_beside(
    paths: Sequence[str | os.PathLike[str]], given: str | os.PathLike[str] | None
) -> ClusterMetadata | None:
    """Return the metadata of a copy that was given, else of those beside the replicas."""
    if given is not None:
        path = location(given).rstrip("/")
        if name_of(path) == str(CLUSTER_METADATA):
            path = parent_of(path)
        found = ClusterMetadata([path])
        if found.path is None:
            reason = "no log of the cluster's metadata is here (__cluster_metadata-0)"
            raise found.error or LogDirectoryError(reason, printable_location(path))
        return found
    above = []
    for path in (location(each).rstrip("/") for each in paths):
        is_named_so = find_partition_directory_name(name_of(path)) is not None
        is_partition = is_named_so and not any(map(find_partition_directory_name, _names(path)))
        above.append(parent_of(path) if is_partition else path)
    beside = [each for each in dict.fromkeys(above) if str(CLUSTER_METADATA) in _names(each)]
    return ClusterMetadata(beside) if beside else None


def _names(directory: str) -> list[str]:
    try:
        return [each.name for each in list_directory(directory)]
    except LogDirectoryError:
        return []
