"""What a node of a KRaft cluster does at its start beside loading its logs.

============================== ==================================================================
found                          what a broker does
============================== ==================================================================
no ``meta.properties``         does not start
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
============================== ==================================================================

Brokers of ZooKeeper's (version 0 of ``meta.properties``) do none of it. What is not on the given
disks, such as the metadata in another log directory of the node, is not known.

Source: KafkaRaftServer, MetaPropertiesEnsemble, LogManager.isStrayKraftReplica,
LogManager.recoverAbandonedFutureLogs, KafkaMetadataLog (Kafka 4.3); KIP-858, KIP-1262.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    LogDirectoryError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import META_PROPERTIES, PARTITION_METADATA
from pylog.files.meta_properties import KRAFT_VERSIONS, read_meta_properties
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from pylog.files.storage import list_directory
from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.internal_topics.versions import KafkaVersion
from pylog.locations import join
from pylog.reading.internal_logs import (
    CLUSTER_METADATA,
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
    """

    def __init__(
        self, directories: dict[str, MetaProperties | None], kafka_version: KafkaVersion
    ) -> None:
        self.kafka_version = kafka_version
        known = [meta for meta in directories.values() if meta is not None]
        self.is_kraft = any(meta.version in KRAFT_VERSIONS for meta in known)
        self._node_id = known[0].node_id if known else None
        self._metadata_logs = [path for path in directories if _has_metadata_log(path)]
        self.is_formatted = bool(known) or not self._metadata_logs

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
            view = open_directory(join(self._metadata_logs[0], str(CLUSTER_METADATA)))
            return read_committed_metadata(view[CLUSTER_METADATA], needs_footer=False)
        except LogStorageError:
            return None  # what is wrong with them is found beside

    @cached_property
    def _topics(self) -> dict[uuid.UUID, TopicImage]:
        metadata = self._metadata
        return {} if metadata is None else {each.topic_id: each for each in metadata.image.topics}

    @property
    def is_only_voter(self) -> bool:
        """Whether the node is surely the only controller that votes."""
        metadata = self._metadata
        return metadata is not None and metadata.voters == {self._node_id}

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """Return the id that the metadata have for a topic, None if they have none."""
        ids = [each.topic_id for each in self._topics.values() if each.name == topic]
        return ids[0] if ids else None

    def problems(self, topic_partition: TopicPartition, directory: str) -> Iterator[NodeProblem]:
        """Yield what is wrong with a partition for this node, apart from its log."""
        if topic_partition == CLUSTER_METADATA:
            yield from self._problems_of_metadata(directory)
        elif self.is_kraft:
            reason = self._stray_reason(topic_partition, join(directory, PARTITION_METADATA))
            if reason is not None:
                yield NodeProblem(STRAY_PARTITION, directory, reason)

    def _stray_reason(self, topic_partition: TopicPartition, path: str) -> str | None:
        """Return why a partition is not this node's, None if it is, or nobody knows."""
        try:
            topic_id = read_partition_metadata(path).topic_id
        except SegmentVanishedError:
            return f"{PARTITION_METADATA} is missing, so its topic id is not known"
        except (CorruptCheckpointError, UnreadableFileError):
            return None  # a broker does not come as far as that
        metadata = self._metadata
        if metadata is None or topic_partition in metadata.undecided_replicas:
            return None
        topic, number = topic_partition
        if ConfigResource(ConfigResourceType.TOPIC, topic) in metadata.undecided:
            return None
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
        try:
            view = open_directory(directory)[CLUSTER_METADATA]
            if not view.segments and not metadata_snapshots(view):
                reason = "the log of the cluster's metadata is gone"
                yield NodeProblem("missing_metadata_log", directory, reason)
                return
            for code, path, reason in self._problems_of_snapshots(view):
                below = path[len(view.directory.path) :]
                yield NodeProblem(code, directory + below, reason)
        except LogStorageError as error:
            yield NodeProblem("unusable_metadata", directory, getattr(error, "reason", str(error)))

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
    for path in dict.fromkeys(log_directories):
        try:
            meta = read_meta_properties(join(path, META_PROPERTIES))
        except (CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
            meta = None
        is_known = meta is not None and meta.node_id is not None
        owner = (meta.cluster_id, meta.node_id) if is_known and meta is not None else path
        owners.setdefault(owner, {})[path] = meta
    return {
        path: node
        for directories in owners.values()
        for node in [Node(directories, kafka_version)]
        for path in directories
    }


def _has_metadata_log(path: str) -> bool:
    try:
        return any(each.name == str(CLUSTER_METADATA) for each in list_directory(path))
    except LogDirectoryError:
        return False
