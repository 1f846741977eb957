"""What a node of a KRaft cluster does at its start beside loading its logs.

============================== ==================================================================
found                          what a broker does
============================== ==================================================================
``partition.metadata`` that    does not start, or takes the log directory offline
cannot be read
no ``partition.metadata``; or  renames the partition to ``-stray``, which is neither served nor
the metadata has no such id,  deleted, and makes an empty one where it is assigned the partition
partition, or replica here
partition that is assigned to  starts, and tells the controller where the partition is; that makes
the id of a log directory      it leader at the next start only
which the node does not have
============================== ==================================================================

What it makes of its log directories stands in `pylog.writing.node_disks`, of its log of the
metadata in `pylog.writing.node_metadata`. Brokers of ZooKeeper's (version 0 of ``meta.properties``,
and no log of the metadata) do none of it. What is not on the given disks, such as the metadata in
another log directory of the node, is not known.

Source: LogManager.isStrayKraftReplica, ReplicationControlManager (Kafka 4.3); KIP-858.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.checkpoint_file import known_offset_checkpoint
from pylog.files.file_names import (
    FUTURE_DIR_SUFFIX,
    META_PROPERTIES,
    PARTITION_METADATA,
)
from pylog.files.looks import Looks
from pylog.files.meta_properties import KRAFT_VERSIONS, read_meta_properties
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from pylog.findings import kinds
from pylog.internal_topics.metadata_image import (
    NO_LEADER,
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
)
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.locations import join, parent_of
from pylog.model import TopicPartition
from pylog.reading.internal_logs import CLUSTER_METADATA, read_committed_metadata
from pylog.text.words import counted
from pylog.writing.metadata_quorum import LogHistory, agreed_end_offset
from pylog.writing.node_disks import (
    HIGHEST_VERSION,
    Assignment,
    NodeDisks,
    Place,
    is_of_a_broker,
    names_in,
)
from pylog.writing.node_metadata import (
    NodeProblem,
    metadata_view,
    problems_of_metadata,
    refused_configs,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pylog.files.meta_properties import MetaProperties
    from pylog.internal_topics.metadata_image import PartitionRegistration, TopicImage
    from pylog.reading.internal_logs import CommittedMetadata

_DEFAULTS = LogConfig()


class Node:
    """Those of a node's log directories that were given, and what the metadata in them say.

    Parameters
    ----------
    directories
        What ``meta.properties`` of each log directory says, None where it cannot be read; in the
        order of ``log.dirs``.
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
        self.cluster: list[Node] = [self]
        """The nodes of one cluster that were given; the same list for each."""
        known = [meta for meta in directories.values() if meta is not None]
        self.disks = NodeDisks(directories)
        has_kraft_version = any(meta.version in KRAFT_VERSIONS for meta in known)
        self.is_kraft = has_kraft_version or bool(known and self.disks.metadata_logs)
        self.node_id = known[0].node_id if known else None
        self.cluster_id = known[0].cluster_id if known else None
        self._is_beside_kraft = is_beside_kraft

    @property
    def lacks_metadata(self) -> bool:
        """Whether it is a KRaft node of which nothing shows what the cluster's metadata says."""
        is_shown = self.has_metadata_log or self.disks.has_lost_metadata or self._metadata
        return self.is_kraft and not is_shown

    @property
    def knows_metadata(self) -> bool:
        """Whether it can be read what the metadata says."""
        return self._metadata is not None

    @property
    def has_metadata_log(self) -> bool:
        """Whether one of the directories has the log of the cluster's metadata."""
        return bool(self.disks.metadata_logs)

    @property
    def _metadata(self) -> CommittedMetadata | None:
        """What the metadata says, as far as a broker reads them; None where that is not known."""
        found = self.metadata_or_error
        return None if isinstance(found, LogStorageError) else found

    @cached_property
    def metadata_or_error(self) -> CommittedMetadata | LogStorageError | None:
        """What the metadata says, as far as a broker reads them, or why it does not start."""
        if len(self.disks.metadata_logs) != 1 or self.disks.has_lost_metadata:
            return self._metadata_of_peers()
        path = join(self.disks.metadata_logs[0], str(CLUSTER_METADATA))
        try:
            return self._read_metadata(path)
        except LogStorageError as error:
            return error

    def _read_metadata(self, path: str) -> CommittedMetadata:
        looks = Looks()
        while True:
            try:
                return read_committed_metadata(
                    metadata_view(path),
                    needs_footer=False,
                    agreed_end_offset=self._agreed_end_offset,
                )
            except SegmentVanishedError as error:  # a broker replaces snapshots, removes segments
                looks.again(error)

    def _metadata_of_peers(self) -> CommittedMetadata | None:
        """Return what the other nodes that were given will tell; None if they are too few."""
        able = [
            each
            for each in self.cluster
            if each is not self
            and len(each.disks.metadata_logs) == 1  # one that has two asks the others
            and not each.disks.has_lost_metadata
            and each.knows_metadata
            and each.waiting_reason is None
        ]
        return max(able, key=lambda each: each._position)._metadata if able else None

    @cached_property
    def _history(self) -> LogHistory | None:
        if len(self.disks.metadata_logs) != 1:
            return None
        return LogHistory.of(join(self.disks.metadata_logs[0], str(CLUSTER_METADATA)))

    @property
    def _position(self) -> tuple[int, int]:
        return (-1, -1) if self._history is None else self._history.position

    def _agreed_end_offset(self, voters: Collection[int]) -> int:
        """Return up to which offset most voters are known to have the same log; 0 if none is."""
        found = [each._history for each in self.cluster if each.node_id in voters]
        return agreed_end_offset([each for each in found if each is not None], len(voters))

    @cached_property
    def _topics(self) -> dict[uuid.UUID, TopicImage]:
        metadata = self._metadata
        return {} if metadata is None else {each.topic_id: each for each in metadata.image.topics}

    @property
    def _voters(self) -> frozenset[int]:
        """The controllers that vote, or else those that have registered."""
        metadata = self._metadata
        if metadata is None:
            return frozenset()
        return metadata.voters or frozenset(metadata.image.controllers)

    @property
    def is_only_voter(self) -> bool:
        """Whether the node is surely the only controller that votes."""
        metadata = self._metadata
        return metadata is not None and metadata.voters == {self.node_id}

    @cached_property
    def _topics_by_name(self) -> dict[str, TopicImage]:
        return {each.name: each for each in self._topics.values()}

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """Return the id that the metadata has for a topic, None if it has none."""
        image = self._topics_by_name.get(topic)
        return None if image is None else image.topic_id

    @property
    def newest_image(self) -> MetadataImage:
        """What the newest metadata of the nodes that were given say; nothing if none are here."""
        newest = self._newest._metadata
        return MetadataImage() if newest is None else newest.image

    @property
    def _newest(self) -> Node:
        """The node that goes furthest of those whose metadata can be read."""
        able = [each for each in self.cluster if each.knows_metadata]
        return max(able or [self], key=lambda each: each._position)

    # ---- log directories

    @property
    def registrations(self) -> dict[int, frozenset[uuid.UUID]]:
        """By broker, the ids of the log directories that it last registered with."""
        metadata = self._metadata
        return {} if metadata is None else metadata.image.log_directories

    def assignment(self, topic_partition: TopicPartition) -> Assignment | None:
        """Return where the metadata place a partition on the node.

        None if they do not assign it to the node, or are not known.
        """
        if self.node_id is None or not self.is_kraft:
            return None
        registration = self._registration(topic_partition)
        if registration is None or self.node_id not in registration.replicas:
            return None
        directory_id = registration.directory_of(self.node_id)
        place, path = self.disks.place_of(
            directory_id, self.registrations.get(self.node_id, frozenset())
        )
        in_sync = {*registration.isr, *registration.eligible_leader_replicas}
        others = tuple(each for each in registration.replicas if each in in_sync - {self.node_id})
        is_certain = not self._is_undecided(topic_partition)
        is_new = registration.partition_epoch == 0
        return Assignment(place, path, directory_id, others, is_certain, is_new)

    def may_lead(self, topic_partition: TopicPartition) -> bool:
        """Whether the newest metadata has the node as leader of a partition, or in sync."""
        registration = self._newest._registration(topic_partition)
        return registration is not None and self.node_id in {registration.leader, *registration.isr}

    def next_leader_epoch(self, topic_partition: TopicPartition) -> int | None:
        """Return the highest epoch in which a partition gets a leader after a start of its nodes.

        None where it is not known. One that has a leader loses it first.
        """
        registration = self._registration(topic_partition)
        if registration is None:
            return None
        return registration.leader_epoch + (1 if registration.leader == NO_LEADER else 2)

    def is_placed_in(self, log_directory: str, topic_partition: TopicPartition) -> bool:
        """Whether the metadata assigns a partition to a log directory of the node, by its id."""
        assignment = self.assignment(topic_partition)
        return assignment is not None and assignment.path == log_directory

    def _registration(self, topic_partition: TopicPartition) -> PartitionRegistration | None:
        image = self._topics_by_name.get(topic_partition.topic)
        return None if image is None else image.partitions.get(topic_partition.partition)

    def assigned_partitions(self) -> Iterator[tuple[TopicPartition, Assignment]]:
        """Yield the partitions that the metadata assigns to the node, by name and number."""
        for topic in self._topics.values():
            for number in sorted(topic.partitions):
                topic_partition = TopicPartition(topic.name, number)
                assignment = self.assignment(topic_partition)
                if assignment is not None:
                    yield topic_partition, assignment

    def refreshed(self) -> Node:
        """Return the node as its metadata is now, and that of the cluster's other nodes."""
        cluster = [
            Node(each.disks.metas, each.kafka_version, is_beside_kraft=each._is_beside_kraft)
            for each in self.cluster
        ]
        for each in cluster:
            each.cluster = cluster
        return cluster[self.cluster.index(self)]

    def missing_meta_properties(self, directory: str) -> str | None:
        """Return why a broker needs the ``meta.properties`` that a directory of its own lacks."""
        return self.disks.missing_meta_properties(
            directory, self.kafka_version, is_beside_kraft=self._is_beside_kraft
        )

    def shows_remote_storage(self, topic: str) -> bool:
        """Whether segments of a topic may be in remote storage alone."""
        return self.disks.have_used_remote_storage() or any(
            each.name == topic and each.configs.get("remote.storage.enable") == "true"
            for each in self._topics.values()
        )

    def log_config(self, topic: str) -> LogConfig:
        """Return the configuration that a topic has by the metadata, as far as it is understood."""
        metadata = self._metadata
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        configs = {} if metadata is None else metadata.image.configs_of(resource)
        if not configs:
            return _DEFAULTS
        known = LogConfig.kinds()
        try:
            return LogConfig.from_properties(
                {name: value for name, value in configs.items() if name in known}
            )
        except ValueError:  # of a version that is newer
            return _DEFAULTS

    def is_compacted(self, topic: str) -> bool | None:
        """Whether the metadata says that a topic is compacted, of itself or as all of a broker.

        None where they are not known, or have no such topic.
        """
        metadata = self._metadata
        if metadata is None or self.topic_id(topic) is None:
            return None
        asked = [
            ("cleanup.policy", ConfigResourceType.TOPIC, topic),
            ("log.cleanup.policy", ConfigResourceType.BROKER, str(self.node_id)),
            ("log.cleanup.policy", ConfigResourceType.BROKER, ""),
        ]
        known = (
            metadata.image.configs_of(ConfigResource(kind, owner)).get(name)
            for name, kind, owner in asked
        )
        return "compact" in (next((each for each in known if each is not None), None) or "")

    def offsets_elsewhere(
        self, name: str, topic_partition: TopicPartition, directory: str
    ) -> dict[str, int]:
        """Return what a checkpoint says of a partition in the node's other directories, by path."""
        found = {}
        for path in (join(each, name) for each in self.disks.metas if each != directory):
            with suppress(CorruptCheckpointError, LogDirectoryError):
                offset = known_offset_checkpoint(path).get(topic_partition)
                if offset is not None:
                    found[path] = offset
        return found

    def is_assigned(self, topic_partition: TopicPartition) -> bool | None:
        """Return whether the metadata assigns a partition to the node; None if not known."""
        if self._is_undecided(topic_partition) or self.node_id is None:
            return None
        registration = self._registration(topic_partition)
        return registration is not None and self.node_id in registration.replicas

    def _is_undecided(self, topic_partition: TopicPartition) -> bool:
        metadata = self._metadata
        return (
            metadata is None
            or topic_partition in metadata.undecided_replicas
            or ConfigResource(ConfigResourceType.TOPIC, topic_partition.topic) in metadata.undecided
        )

    # ---- problems

    def problems(self, topic_partition: TopicPartition, directory: str) -> Iterator[NodeProblem]:
        """Yield what is wrong with a partition for this node, apart from its log."""
        if topic_partition == CLUSTER_METADATA:
            yield from self._problems_of_metadata(directory)
        elif self.disks.is_missing_properties(parent_of(directory)):
            return  # it does not come as far as that
        elif self.disks.is_offline(parent_of(directory)):
            assignment = self.assignment(topic_partition)
            if assignment is None or not assignment.others:
                reason = f"{META_PROPERTIES} of its log directory cannot be read"
                yield NodeProblem(kinds.UNSERVED_PARTITION, directory, reason)
        elif self.is_kraft:
            stray = self._stray_reason(topic_partition, join(directory, PARTITION_METADATA))
            if stray is not None:
                yield NodeProblem(kinds.STRAY_PARTITION, directory, *stray)
            # One that is set aside is made anew.
            yield from self.problems_of_place(topic_partition, directory)

    def _stray_reason(self, topic_partition: TopicPartition, path: str) -> tuple[str, bool] | None:
        """Return why a partition is set aside, and whether that is certain; None if it is not."""
        try:
            topic_id = read_partition_metadata(path).topic_id
        except SegmentVanishedError:
            return f"{PARTITION_METADATA} is missing, so its topic id is not known", True
        except (CorruptCheckpointError, UnreadableFileError):
            return None  # a broker does not come as far as that
        if self.disks.has_lost_metadata and self._metadata is None:
            reason = (
                "the log of the cluster's metadata is gone: unless other controllers have it, no "
                "topic is known"
            )
            return reason, True
        if self._metadata is None:
            return None
        topic, number = topic_partition
        image = self._topics.get(topic_id)
        registration = None if image is None else image.partitions.get(number)
        if image is None:
            ids = [each.topic_id for each in self._topics.values() if each.name == topic]
            there = f"has the id {format_uuid(ids[0])}" if ids else "does not exist"
            reason = (
                f"its topic id is {format_uuid(topic_id)}, which the cluster's metadata does not "
                f"have: topic {topic} {there} there"
            )
        elif registration is None:
            reason = f"the cluster's metadata has no partition {number} of topic {topic}"
        elif self.node_id is not None and self.node_id not in registration.replicas:
            nodes = ", ".join(map(str, registration.replicas))
            reason = f"the cluster's metadata assigns it to nodes {nodes}, not to {self.node_id}"
        else:
            return None
        if self._is_undecided(topic_partition):
            return f"{reason}. {_UNDECIDED}", False
        return reason, True

    def problems_of_place(
        self, topic_partition: TopicPartition, directory: str
    ) -> Iterator[NodeProblem]:
        """Yield why nobody leads a partition, if it is assigned to a directory that is gone."""
        assignment = self.assignment(topic_partition)
        if assignment is None or assignment.others or assignment.directory_id is None:
            return
        if directory.endswith(FUTURE_DIR_SUFFIX):
            return  # what becomes of it is found beside
        if assignment.place is Place.GONE:
            reason = (
                "the cluster's metadata assigns it to the log directory with the id "
                f"{format_uuid(assignment.directory_id)}, which none of the node's has"
            )
            if not assignment.is_certain:
                reason = f"{reason}. {_UNDECIDED}"
            yield NodeProblem(kinds.UNSERVED_PARTITION, directory, reason, assignment.is_certain)

    def is_set_aside(self, topic_partition: TopicPartition, directory: str) -> bool:
        """Whether a broker renames a partition's directory to ``-stray``, as far as is known."""
        path = join(directory, PARTITION_METADATA)
        return self.is_kraft and self._stray_reason(topic_partition, path) is not None

    def future_problem(self, topic_partition: TopicPartition, future: str) -> NodeProblem | None:
        """Return why a ``-future`` directory beside its live partition ends a broker, if so."""
        if not self.is_kraft or self.is_set_aside(topic_partition, future):
            return None
        reason = f"partition {topic_partition} lies here under its own name, too"
        return NodeProblem(kinds.FUTURE_BESIDE_LIVE, future, reason)

    def _problems_of_metadata(self, directory: str) -> Iterator[NodeProblem]:
        others = [
            each
            for each in self.disks.metadata_logs
            if join(each, str(CLUSTER_METADATA)) != directory
        ]
        if others:
            reason = f"{others[0]} of the same node has a log of the metadata, too"
            yield NodeProblem(kinds.METADATA_LOG_TWICE, directory, reason)
        yield from problems_of_metadata(directory, self.metadata_or_error, self.kafka_version)
        metadata = self._metadata
        if metadata is not None and self.node_id in metadata.image.brokers:
            for reason in refused_configs(metadata.image, self.kafka_version):
                yield NodeProblem(kinds.UNUSABLE_TOPIC_CONFIG, directory, reason)
        if self.waiting_reason is not None:
            is_voter = self.node_id in self._voters
            yield NodeProblem(
                kinds.WAITS_FOR_CONTROLLERS, directory, self.waiting_reason, is_certain=not is_voter
            )
        if self.elsewhere_reason is not None:
            yield NodeProblem(
                kinds.LOG_DIRECTORY_NOT_GIVEN, directory, self.elsewhere_reason, is_certain=False
            )

    @cached_property
    def elsewhere_reason(self) -> str | None:
        """Why more log directories of the node are needed to judge it; None if they are not."""
        placed = [each for _, each in self.assigned_partitions() if each.place is Place.NOT_KNOWN]
        if not placed or None in self.disks.metas.values():
            return None
        ids = _listed(
            sorted({format_uuid(each.directory_id) for each in placed if each.directory_id})
        )
        return (
            f"the cluster's metadata assigns {counted(len(placed), 'partition')} of node "
            f"{self.node_id} to log directories that were not given (ids {ids}). If one of them is "
            "gone, a broker makes empty logs for its partitions"
        )

    @property
    def waiting_reason(self) -> str | None:
        """Why the node needs controllers that were not given; None if it does not, or who knows."""
        voters = self._voters
        given = sorted({each.node_id for each in self.cluster if each.node_id in voters} - {None})
        needed = len(voters) // 2 + 1
        if len(given) >= needed or not voters:
            return None
        here = f"only {_listed(given)} is here" if given else "none of them is here"
        ids = _listed(sorted(voters))
        if len(voters) == 1:
            return f"it serves when controller {ids} runs, which is not here"
        if self.node_id in voters:
            return (
                f"this node is one of {len(voters)} voters ({ids}): it serves when {needed} of "
                f"them run, and {here}. If the others are gone, use pylog first-aid"
            )
        return f"it serves when {needed} of the controllers {ids} run, and {here}"


_UNDECIDED = "Whether the controllers have agreed on that is not known: only most of them can tell"


def _listed(ids: Iterable[object]) -> str:
    return ", ".join(map(str, ids))


def nodes_of(
    log_directories: Iterable[str], kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
) -> dict[str, Node]:
    """Return the node of each log directory; those with one cluster and node id share one.

    So do those of which it cannot be read, if all others are one KRaft node's. A cluster id that
    has blanks at its ends is that of the same node, which does not start.
    """
    metas = {path: _meta_of(path) for path in dict.fromkeys(log_directories)}
    known = [meta for meta in metas.values() if meta is not None and meta.node_id is not None]
    is_kraft = any(meta.version in KRAFT_VERSIONS for meta in known)
    only = {_owner(meta) for meta in known} if is_kraft else set()
    owners: dict[object, dict[str, MetaProperties | None]] = {}
    for path, meta in metas.items():
        owner: object = path
        if meta is not None and meta.node_id is not None:
            owner = _owner(meta)
        elif len(only) == 1 and _is_beside(path):
            [owner] = only
        owners.setdefault(owner, {})[path] = meta
    nodes = [
        Node(directories, kafka_version, is_beside_kraft=is_kraft)
        for directories in owners.values()
    ]
    clusters: dict[str | None, list[Node]] = {}
    for node in nodes:
        if node.cluster_id is not None:
            node.cluster = clusters.setdefault(node.cluster_id, node.cluster)
            node.cluster += [node] if node not in node.cluster else []
    return {path: node for node in nodes for path in node.disks.metas}


def _owner(meta: MetaProperties) -> tuple[str | None, int | None]:
    return meta.cluster_id and meta.cluster_id.strip(), meta.node_id


def _meta_of(log_directory: str) -> MetaProperties | None:
    try:
        meta = read_meta_properties(join(log_directory, META_PROPERTIES))
    except (CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
        return None  # which is a finding
    return meta if meta.version <= HIGHEST_VERSION else None


def _is_beside(log_directory: str) -> bool:
    """Whether a directory without a legible ``meta.properties`` is a broker's, or a new disk."""
    names = names_in(log_directory)
    return not names or META_PROPERTIES in names or is_of_a_broker(log_directory)


def nodes_now(nodes: Mapping[str, Node]) -> dict[str, Node] | None:
    """Return nodes as their metadata is now; None where one cannot be read that could be."""
    versions = {each.kafka_version for each in nodes.values()}
    now = nodes_of(nodes, *versions)
    if any(nodes[each].knows_metadata and not now[each].knows_metadata for each in nodes):
        return None
    return now
