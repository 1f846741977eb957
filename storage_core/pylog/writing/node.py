"""What a node of a KRaft cluster does at its start beside loading its logs.

============================== ==================================================================
found                          what a broker does
============================== ==================================================================
no ``meta.properties`` beside  does not start
a broker's other files
``partition.metadata`` that    does not start, or takes the log directory offline
cannot be read
no ``partition.metadata``; or  renames the partition to ``-stray``, which is neither served nor
the metadata have no such id,  deleted, and makes an empty one where it is assigned the partition
partition, or replica here
``-future`` beside the live    does not start: it takes the live one for what the other replaces,
partition                      and cannot rename onto it
metadata log in two of its     does not start
log directories
log of the metadata begins     does not start
above 0, without a snapshot
that reaches it
newest snapshot damaged        does not start
newest snapshot without its    starts with what is left of it: partitions of topics that are
footer                         missing become ``-stray``
newest snapshot of a later     deletes the log up to the snapshot
leader than the log, or beyond
its end
only a snapshot 0-0, and no    before 4.4 it does not start
``bootstrap.checkpoint``
``quorum-state`` or            does not start
``bootstrap.checkpoint`` that
cannot be read
level of ``metadata.version``  does not start
that its version does not know
============================== ==================================================================

Brokers of ZooKeeper's (version 0 of ``meta.properties``) do none of it. What is not on the given
disks, such as the metadata in another log directory of the node, is not known.

Source: KafkaRaftServer, MetaPropertiesEnsemble, LogManager.isStrayKraftReplica,
LogManager.recoverAbandonedFutureLogs, KafkaMetadataLog, FileQuorumStateStore, BootstrapDirectory,
MetadataVersion (Kafka 4.3); KIP-858, KIP-1262.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    InvalidRecordError,
    LogDirectoryError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    ONLY_REPLICA,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_LOG_INDEX_CACHE,
    find_partition_directory_name,
)
from pylog.files.meta_properties import KRAFT_VERSIONS, read_meta_properties
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from pylog.files.quorum_state import QUORUM_STATE, read_quorum_voters
from pylog.files.storage import list_directory
from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.internal_topics.versions import METADATA_VERSION_LEVELS, KafkaVersion
from pylog.locations import join, parent_of
from pylog.log_file.batch_walk import WholeBatches
from pylog.reading.internal_logs import (
    CLUSTER_METADATA,
    bootstrap_level,
    has_footer,
    is_behind,
    metadata_snapshots,
    read_committed_metadata,
    usable_snapshots,
)
from pylog.reading.log_directory import open_directory

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator

    from pylog.files.meta_properties import MetaProperties
    from pylog.internal_topics.metadata_image import TopicImage
    from pylog.model import TopicPartition
    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.reading.log_view import LogView

STRAY_PARTITION = "stray_partition"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_OF_A_BROKER = {
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
}
"""What a broker writes into a log directory beside ``meta.properties``."""


class NodeProblem(NamedTuple):
    """Something that a node does at its start, or why it does not start."""

    code: str  # a kind of finding, see `pylog.checks.findings`
    path: str
    reason: str


class Node:
    """Those of a node's log directories that were given, and what the metadata in them say.

    Parameters
    ----------
    directories
        What ``meta.properties`` of each log directory says, None where it cannot be read.
    kafka_version
        Of the broker that is to start.
    is_beside_kraft
        Whether one of the given log directories belongs to a KRaft node.
    """

    def __init__(
        self,
        directories: dict[str, MetaProperties | None],
        kafka_version: KafkaVersion,
        *,
        is_beside_kraft: bool = False,
    ) -> None:
        self.kafka_version = kafka_version
        self._directories = directories
        known = [meta for meta in directories.values() if meta is not None]
        self.is_kraft = any(meta.version in KRAFT_VERSIONS for meta in known)
        self._node_id = known[0].node_id if known else None
        self._metadata_logs = [
            path for path in directories if str(CLUSTER_METADATA) in _names_in(path)
        ]
        self._is_beside_kraft = is_beside_kraft

    @property
    def has_metadata_log(self) -> bool:
        """Whether one of the directories has the log of the cluster's metadata."""
        return bool(self._metadata_logs)

    @cached_property
    def _metadata(self) -> CommittedMetadata | None:
        """What the metadata say, as far as a broker reads them; None where that is not known."""
        if len(self._metadata_logs) != 1:
            return None
        try:
            view = _metadata_view(join(self._metadata_logs[0], str(CLUSTER_METADATA)))
            return read_committed_metadata(view, needs_footer=False)
        except LogStorageError:
            return None  # what is wrong with them is found beside

    @cached_property
    def _topics(self) -> dict[uuid.UUID, TopicImage]:
        metadata = self._metadata
        return {} if metadata is None else {each.topic_id: each for each in metadata.image.topics}

    def refreshed(self) -> Node:
        """Return the node as its metadata are now."""
        return Node(self._directories, self.kafka_version, is_beside_kraft=self._is_beside_kraft)

    @property
    def is_only_voter(self) -> bool:
        """Whether the node is surely the only controller that votes."""
        metadata = self._metadata
        return metadata is not None and metadata.voters == {self._node_id}

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """Return the id that the metadata have for a topic, None if they have none."""
        ids = [each.topic_id for each in self._topics.values() if each.name == topic]
        return ids[0] if ids else None

    def missing_meta_properties(self, directory: str) -> str | None:
        """Return why a broker needs the ``meta.properties`` that a directory of its own lacks.

        None where it does not: in a copy of partitions, and where pylog has made the directory.
        """
        if directory in self._metadata_logs:
            return "the log of the cluster's metadata is here"
        names = _names_in(directory)
        if ONLY_REPLICA in names or not names & _OF_A_BROKER:
            return None
        if self._is_beside_kraft:
            return "a broker's files are here; a KRaft node needs it in each log directory"
        partitions = filter(find_partition_directory_name, names)
        is_a_brokers = HIGH_WATERMARK_CHECKPOINT in names and not _was_closed_by_pylog(directory)
        needs_it = self.kafka_version >= KafkaVersion.V4_0 and is_a_brokers
        if needs_it and any(_has_partition_metadata(join(directory, each)) for each in partitions):
            return f"a broker's files are here, and Kafka {self.kafka_version} needs it"
        return None  # a broker of ZooKeeper's writes it again

    def shows_remote_storage(self, topic: str) -> bool:
        """Whether segments of a topic may be in remote storage alone."""
        return any(map(_has_used_remote_storage, self._directories)) or any(
            each.name == topic and each.configs.get("remote.storage.enable") == "true"
            for each in self._topics.values()
        )

    def is_assigned(self, topic_partition: TopicPartition) -> bool | None:
        """Return whether the metadata assign a partition to the node; None if that is not known."""
        if self._is_undecided(topic_partition) or self._node_id is None:
            return None
        topic, number = topic_partition
        found = [
            each.partitions.get(number) for each in self._topics.values() if each.name == topic
        ]
        return any(each is not None and self._node_id in each.replicas for each in found)

    def _is_undecided(self, topic_partition: TopicPartition) -> bool:
        metadata = self._metadata
        return (
            metadata is None
            or topic_partition in metadata.undecided_replicas
            or ConfigResource(ConfigResourceType.TOPIC, topic_partition.topic) in metadata.undecided
        )

    def problems(self, topic_partition: TopicPartition, directory: str) -> Iterator[NodeProblem]:
        """Yield what is wrong with a partition for this node, apart from its log."""
        if topic_partition == CLUSTER_METADATA:
            yield from self._problems_of_metadata(directory)
        elif self.is_kraft:
            reason = self._stray_reason(topic_partition, join(directory, PARTITION_METADATA))
            if reason is not None:
                yield NodeProblem(STRAY_PARTITION, directory, reason)

    def _stray_reason(self, topic_partition: TopicPartition, path: str) -> str | None:
        try:
            topic_id = read_partition_metadata(path).topic_id
        except SegmentVanishedError:
            return f"{PARTITION_METADATA} is missing, so its topic id is not known"
        except (CorruptCheckpointError, UnreadableFileError):
            return None  # a broker does not come as far as that
        if self._is_undecided(topic_partition):
            return None
        topic, number = topic_partition
        image = self._topics.get(topic_id)
        if image is None:
            ids = [each.topic_id for each in self._topics.values() if each.name == topic]
            there = f"has the id {format_uuid(ids[0])}" if ids else "does not exist"
            return (
                f"its topic id is {format_uuid(topic_id)}, which the cluster's metadata do not "
                f"have: topic {topic} {there} there"
            )
        registration = image.partitions.get(number)
        if registration is None:
            return f"the cluster's metadata have no partition {number} of topic {topic}"
        if self._node_id is not None and self._node_id not in registration.replicas:
            nodes = ", ".join(map(str, registration.replicas))
            return f"the cluster's metadata assign it to nodes {nodes}, not to {self._node_id}"
        return None

    def future_problem(self, topic_partition: TopicPartition, future: str) -> NodeProblem | None:
        """Return why a ``-future`` directory beside its live partition ends a broker, if so."""
        if not self.is_kraft:
            return None
        if self._stray_reason(topic_partition, join(future, PARTITION_METADATA)) is not None:
            return None  # it is set aside before
        reason = f"partition {topic_partition} lies here under its own name, too"
        return NodeProblem("future_beside_live", future, reason)

    # ---- metadata

    def _problems_of_metadata(self, directory: str) -> Iterator[NodeProblem]:
        others = [
            each for each in self._metadata_logs if join(each, str(CLUSTER_METADATA)) != directory
        ]
        if others:
            reason = f"{others[0]} of the same node has a log of the metadata, too"
            yield NodeProblem("metadata_log_twice", directory, reason)
        yield from self._problems_of_files(directory)
        try:
            view = _metadata_view(directory)
            if not view.segments and not metadata_snapshots(view):
                reason = "the log of the cluster's metadata is gone"
                yield NodeProblem("missing_metadata_log", directory, reason)
                return
            for code, path, reason in self._problems_of_snapshots(view):
                below = path[len(view.directory.path) :]
                yield NodeProblem(code, directory + below, reason)
            metadata = self._metadata
            level = None if metadata is None else metadata.image.metadata_version
            unknown = None if level is None else self._level_reason(level)
            if unknown is not None:
                yield NodeProblem("unusable_metadata", directory, unknown)
        except UnreadableFileError as error:
            yield NodeProblem("unusable_metadata", str(error.path or directory), error.reason)
        except LogStorageError as error:
            yield NodeProblem("unusable_metadata", directory, getattr(error, "reason", str(error)))

    def _problems_of_files(self, directory: str) -> Iterator[NodeProblem]:
        """Yield what is wrong with the files that a node reads beside its log of the metadata."""
        path = join(directory, QUORUM_STATE)
        try:
            read_quorum_voters(path)
        except (CorruptCheckpointError, UnreadableFileError) as error:
            reason = (
                f"{error.reason}. Delete the file: the node takes the epoch from its log then, and "
                "forgets for whom it has voted in it"
            )
            yield NodeProblem("unusable_metadata", path, reason)
        path = join(parent_of(directory), BOOTSTRAP_CHECKPOINT)
        problem = self._bootstrap_reason(path)
        if problem is not None:
            yield NodeProblem("unusable_metadata", path, problem)

    def _bootstrap_reason(self, path: str) -> str | None:
        try:
            level = bootstrap_level(path)
        except SegmentVanishedError:
            return None
        except (CorruptRecordError, InvalidRecordError, UnreadableFileError) as error:
            return error.reason
        if level is None:
            return "no record in it gives the level of metadata.version"
        metadata = self._metadata
        is_used = metadata is None or metadata.image.metadata_version is None
        # Kafka 3.9 looks at the level whether it needs it or not.
        if is_used or self.kafka_version < KafkaVersion.V4_0:
            return self._level_reason(level)
        return None

    def _level_reason(self, level: int) -> str | None:
        lowest, highest = METADATA_VERSION_LEVELS[self.kafka_version]
        if lowest <= level <= highest:
            return None
        reason = (
            f"metadata.version is {level}, and Kafka {self.kafka_version} can use {lowest} to "
            f"{highest}"
        )
        if level < lowest:
            return f"{reason}: raise it with Kafka 3.9 before the upgrade"
        able = [version for version, (_, most) in METADATA_VERSION_LEVELS.items() if level <= most]
        needed = f"Kafka {able[0]} or later" if able else "the version of Kafka that has written it"
        return f"{reason}: start {needed} on this"

    def _problems_of_snapshots(self, view: LogView) -> Iterator[NodeProblem]:
        snapshots = metadata_snapshots(view)
        if not snapshots:
            usable_snapshots(view)  # raises where the log begins above 0
            return
        newest = snapshots[-1]
        try:
            is_whole = has_footer(newest)
        except CorruptRecordError as error:
            reason = f"the newest snapshot of the metadata is damaged: {error.reason}"
            yield NodeProblem("unusable_metadata", newest.path, reason)
            return
        usable_snapshots(view)
        if not is_whole:
            reason = "the newest snapshot of the metadata does not end with its footer"
            yield NodeProblem("cut_metadata_snapshot", newest.path, reason)
        if is_behind(view, newest) and view.log_end_offset:
            reason = (
                f"the log ends at offset {view.log_end_offset}, and the newest snapshot is of "
                f"offset {newest.end_offset} and epoch {newest.epoch}, which it does not reach"
            )
            yield NodeProblem("discarded_metadata", view.directory.path, reason)
        is_fresh = newest.end_offset == 0 and not view.log_end_offset
        names = {each.name for each in list_directory(view.directory.log_directory)}
        if (
            is_fresh
            and self.kafka_version < KafkaVersion.V4_4
            and BOOTSTRAP_CHECKPOINT not in names
        ):
            reason = (
                f"the directory is formatted by Kafka 4.4 or later: {BOOTSTRAP_CHECKPOINT} is "
                f"missing, which Kafka {self.kafka_version} needs"
            )
            yield NodeProblem("unusable_metadata", newest.path, reason)


def nodes_of(
    log_directories: Iterable[str], kafka_version: KafkaVersion = KafkaVersion.V4_4
) -> dict[str, Node]:
    """Return the node of each log directory; those with one cluster and node id share one."""
    owners: dict[object, dict[str, MetaProperties | None]] = {}
    is_kraft = False
    for path in dict.fromkeys(log_directories):
        try:
            meta = read_meta_properties(join(path, META_PROPERTIES))
        except (CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
            meta = None
        is_known = meta is not None and meta.node_id is not None
        owner = (meta.cluster_id, meta.node_id) if is_known and meta is not None else path
        owners.setdefault(owner, {})[path] = meta
        is_kraft |= meta is not None and meta.version in KRAFT_VERSIONS
    return {
        path: node
        for directories in owners.values()
        for node in [Node(directories, kafka_version, is_beside_kraft=is_kraft)]
        for path in directories
    }


def _metadata_view(directory: str) -> LogView:
    view = open_directory(directory)[CLUSTER_METADATA]
    if not view.segments:  # a node deletes index files without a .log, and begins with an empty log
        view.end = WholeBatches(0, None, None)
    return view


def _names_in(directory: str) -> set[str]:
    try:
        return {each.name for each in list_directory(directory)}
    except LogDirectoryError:
        return set()  # which is a finding


def _has_partition_metadata(partition: str) -> bool:
    try:
        read_partition_metadata(join(partition, PARTITION_METADATA))
    except SegmentVanishedError:
        return False
    except (CorruptCheckpointError, LogDirectoryError):
        return True
    return True


def _was_closed_by_pylog(log_directory: str) -> bool:
    """Whether the marker of a clean stop has no epoch, which each broker of KRaft's writes."""
    try:
        marker = read_clean_shutdown(join(log_directory, CLEAN_SHUTDOWN))
    except LogDirectoryError:
        return False
    return marker is not None and marker.broker_epoch is None


def _has_used_remote_storage(log_directory: str) -> bool:
    names = _names_in(log_directory)
    return REMOTE_LOG_INDEX_CACHE in names or any(
        name.startswith("__remote_log_metadata-") for name in names
    )
