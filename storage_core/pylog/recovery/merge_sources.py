"""From paths to the replicas of each partition, and what the metadata beside them say."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.absent_partitions import LOADED, RECORDED, offsets_in
from pylog.comparison.lineage import LastLeader
from pylog.comparison.replica_log import ReplicaLog, directories_of
from pylog.errors import LogDirectoryError, LogStorageError, UnknownTopicOrPartitionError
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.directory_lock import ensure_not_in_use
from pylog.files.file_names import (
    FUTURE_DIR_SUFFIX,
    META_PROPERTIES,
    STRAY_DIR_SUFFIX,
    find_partition_directory_name,
)
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import format_uuid
from pylog.files.storage import list_directory
from pylog.internal_topics.metadata_image import NO_LEADER
from pylog.locations import is_remote, join, location, name_of, parent_of, printable_location
from pylog.model import TopicPartition
from pylog.reading.discovery import PartitionDirectory
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.replicas import ensure_one_cluster
from pylog.recovery.metadata_copies import find_copies, metadata_of, seed_of
from pylog.writing.node import nodes_of
from pylog.writing.node_disks import RESERVED_IDS

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pylog.internal_topics.metadata_image import PartitionRegistration, TopicImage


_ABSENT = "-absent"
"""State of a partition directory that checkpoints name, and that is not there."""
_WHY_LEFT_OUT = {
    STRAY_DIR_SUFFIX: "is left out: a broker has put it aside, since it is not its replica; give "
    "it as a path of its own if it is needed",
    _ABSENT: "is missing, and checkpoints beside it name it: it was lost, or was deleted just "
    "before the broker was killed",
}


class Sources(NamedTuple):
    """The replicas of each partition, and which of the paths each one is from.

    ``notes`` tells what may have records, too, and is left out.
    """

    replicas: dict[TopicPartition, list[ReplicaLog]]
    paths: dict[str, int]  # by partition directory
    notes: list[str]


def find_sources(
    paths: Sequence[str | os.PathLike[str]],
    topics: Collection[str] | None,
    partitions: Collection[int] | None,
    metadata: ClusterMetadata | None = None,
) -> Sources:
    """Return the replicas under some paths, of the partitions that are wanted.

    Also copies that were being moved to another disk, after the live ones, and replicas whose
    directory is gone: checkpoints, or the metadata, name them.
    """
    chosen, notes = _chosen(paths, topics, partitions, metadata)
    directories = [each for each, _ in chosen.values()]
    for above in dict.fromkeys(each.log_directory for each in directories):
        if not is_remote(above) and os.path.isdir(above):  # noqa: PTH112 - kept as text
            ensure_not_in_use(above)
    ensure_one_cluster(directories)
    replicas: dict[TopicPartition, list[ReplicaLog]] = {}
    for each in directories:
        replicas.setdefault(each.topic_partition, []).append(ReplicaLog(each))
    for logs in replicas.values():
        topic_id_of(logs)
    numbers = {path: number for path, (_, number) in chosen.items()}
    return Sources(dict(sorted(replicas.items())), numbers, notes)


def merge_partitions(
    *paths: str | os.PathLike[str],
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    metadata: str | os.PathLike[str] | None = None,
) -> list[TopicPartition]:
    """Return the partitions that `merge` makes of some paths, also those whose files are all lost.

    Parameters
    ----------
    *paths, topics, partitions, metadata
        As for `merge`, and so are errors.

    Examples
    --------
    >>> found = pylog.jobs.merge_partitions("kafka/intact", "kafka/damaged", topics=["orders"])
    >>> [str(each) for each in found]
    ['orders-0', 'orders-1']
    """
    chosen, _ = _chosen(paths, topics, partitions, metadata_beside(paths, metadata))
    return sorted({each.topic_partition for each, _ in chosen.values()})


def _chosen(
    paths: Sequence[str | os.PathLike[str]],
    topics: Collection[str] | None,
    partitions: Collection[int] | None,
    metadata: ClusterMetadata | None,
) -> tuple[dict[str, tuple[PartitionDirectory, int]], list[str]]:
    """Return the directories of replicas, each with the number of its path, and notes."""
    found = [
        (each, number)
        for number, path in enumerate(paths)
        for each in _directories(location(path))
        if _is_wanted(each, topics, partitions)
    ]
    places = {each.topic_partition for each, _ in found if each.state in LOADED}
    chosen: dict[str, tuple[PartitionDirectory, int]] = {}
    for one in found:
        if one[0].is_live(include_stray=False):
            chosen.setdefault(one[0].path, one)
    for one in found:
        if one[0].state == FUTURE_DIR_SUFFIX or _is_lost(one[0], places, metadata):
            chosen.setdefault(one[0].path, one)
    notes = [
        f"{printable_location(each.path)} {_WHY_LEFT_OUT[each.state]}"
        for each in dict.fromkeys(each for each, _ in found)
        if each.path not in chosen and each.state in _WHY_LEFT_OUT
    ]
    here = {each.topic_partition for each, _ in chosen.values()}
    for number, each in _never_seen(paths, metadata):
        if each.topic_partition not in here and _is_wanted(each, topics, partitions):
            chosen.setdefault(each.path, (each, number))
    topics_here = {each.topic_partition.topic for each, _ in chosen.values()}
    missing = sorted(set(topics or ()) - topics_here)
    if missing or not chosen:
        what = f"no partition of topic {', '.join(missing)}" if missing else "no partition"
        raise UnknownTopicOrPartitionError(f"{what} that is wanted is under the paths")
    return chosen, notes


def _never_seen(
    paths: Sequence[str | os.PathLike[str]], metadata: ClusterMetadata | None
) -> Iterator[tuple[int, PartitionDirectory]]:
    """Yield what the metadata have of the nodes whose log directories are given, by their paths."""
    if metadata is None:
        return
    metas = {}
    for number, path in enumerate(map(location, paths)):
        with suppress(LogStorageError):  # it is no log directory, or does not say whose
            metas[number] = read_meta_properties(join(path, META_PROPERTIES)), path
    for place, partition in metadata.partitions():
        for number, (meta, path) in metas.items():
            if meta.node_id not in partition.replicas:
                continue
            assigned = partition.directory_of(meta.node_id)
            is_known = assigned is not None and assigned.int >= RESERVED_IDS
            if not is_known or assigned == meta.directory_id:
                yield number, PartitionDirectory(place, join(path, str(place)), _ABSENT)


def _is_wanted(
    directory: PartitionDirectory,
    topics: Collection[str] | None,
    partitions: Collection[int] | None,
) -> bool:
    topic, partition = directory.topic_partition
    return (
        directory.topic_partition != CLUSTER_METADATA
        and (topics is None or topic in topics)
        and (partitions is None or partition in partitions)
    )


def _directories(path: str) -> Iterator[PartitionDirectory]:
    """Yield the partition directories of a path, and those that its checkpoints miss."""
    here = directories_of(path)
    yield from here
    if all(each.is_named for each in here):
        return
    places = {each.topic_partition for each in here if each.state in LOADED}
    ends = [offsets_in(path, name) for name in RECORDED]
    for each in sorted({place for found in ends for place, end in found.items() if end} - places):
        yield PartitionDirectory(each, join(path, str(each)), _ABSENT)


def _is_lost(
    directory: PartitionDirectory,
    places: Collection[TopicPartition],
    metadata: ClusterMetadata | None,
) -> bool:
    """Whether a directory is missed that is not there; as `pylog.checks.absent_partitions` says."""
    place = directory.topic_partition
    if directory.state != _ABSENT or place in places:
        return directory.state == _ABSENT
    if metadata is not None and metadata.path is not None:
        return metadata.has(place)
    return has_clean_shutdown(directory.log_directory)


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

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionRegistration]]:
        """Yield all partitions."""
        for topic in self._topics.values():
            for number, each in topic.partitions.items():
                yield TopicPartition(topic.name, number), each

    def has(self, topic_partition: TopicPartition) -> bool:
        """Whether there is such a partition."""
        topic = self._topics.get(topic_partition.topic)
        return topic is not None and topic_partition.partition in topic.partitions

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
