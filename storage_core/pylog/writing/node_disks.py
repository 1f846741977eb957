"""The log directories of a node: whose they are, in which order, and which are missing.

============================== ==================================================================
found                          what a broker does
============================== ==================================================================
no ``meta.properties`` beside  does not start
a broker's other files
``meta.properties`` that       does not start; where the metadata log is not in this log
cannot be read                 directory, it takes the directory offline, and starts
a reserved ``directory.id``,   does not start
or one of two directories
no ``directory.id``            makes one, which is none that a partition is assigned to
metadata log in two log        does not start
directories, or not in the
first one
============================== ==================================================================

Source: KafkaRaftServer.initializeLogDirs, MetaPropertiesEnsemble.verify, DirectoryId (Kafka 4.3);
KIP-858.
"""

from __future__ import annotations

import uuid
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError, LogDirectoryError, SegmentVanishedError
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    METADATA_SNAPSHOT,
    ONLY_REPLICA,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_LOG_INDEX_CACHE,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.storage import list_directory
from pylog.findings import kinds
from pylog.internal_topics.versions import KafkaVersion
from pylog.locations import join
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.writing.node_metadata import NodeProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.meta_properties import MetaProperties

_OF_A_BROKER = {
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
}
"""What a broker writes into a log directory beside ``meta.properties``."""
_NOT_PLACED = {uuid.UUID(int=0), uuid.UUID(int=1)}
"""Directory ids that say: whichever the broker chooses (Kafka: MIGRATING, UNASSIGNED)."""
HIGHEST_VERSION = 1
"""Of ``meta.properties`` that Kafka up to 4.4 knows; it takes a later one for damaged."""
RESERVED_IDS = 100
"""How many directory ids, the lowest, are no log directory's."""


class Place(Enum):
    """Which log directory the cluster's metadata assigns a node's replica to."""

    NONE = auto()  # whichever the broker chooses
    GIVEN = auto()  # one of those that were given
    GONE = auto()  # one that the node does not have any more
    NOT_KNOWN = auto()


class Assignment(NamedTuple):
    """What the metadata says of a partition and a node, to which it assigns it."""

    place: Place
    path: str | None  # of the log directory, where it is given
    directory_id: uuid.UUID | None
    others: tuple[int, ...]  # nodes that are in sync, and have its records too
    is_certain: bool
    is_new: bool  # whether nothing about the partition has changed since it was made


class NodeDisks:
    """Those log directories of a node that were given, in the order of ``log.dirs``.

    Parameters
    ----------
    metas
        What ``meta.properties`` of each says, None where it cannot be read.
    """

    def __init__(self, metas: dict[str, MetaProperties | None]) -> None:
        self.metas = metas
        self.metadata_logs = [path for path in metas if str(CLUSTER_METADATA) in names_in(path)]
        """Those with a log of the cluster's metadata."""

    @cached_property
    def for_partitions(self) -> list[str]:
        """All, but for one that has the metadata alone, as ``metadata.log.dir`` may say."""
        return [
            path
            for path in self.metas
            if path not in self.metadata_logs
            or RECOVERY_POINT_CHECKPOINT in names_in(path)
            or _has_partitions(path)
        ]

    @cached_property
    def has_lost_metadata(self) -> bool:
        """Whether the log of the metadata is empty, or was on a disk that a new one replaces."""
        if self.metadata_logs:
            return not any(map(_has_metadata, self.metadata_logs))
        return len(self.metas) > 1 and _is_new(self.first)

    def is_missing_properties(self, log_directory: str) -> bool:
        """Whether a log directory of a known node has no ``meta.properties``."""
        is_illegible = self.metas.get(log_directory, ...) is None
        is_known = any(meta is not None for meta in self.metas.values())
        return is_illegible and is_known and META_PROPERTIES not in names_in(log_directory)

    def is_offline(self, log_directory: str) -> bool:
        """Whether a node starts without a log directory, since its ``meta.properties`` is damaged.

        Where it is missing, or is that beside the log of the metadata, the node does not start.
        """
        is_illegible = self.metas.get(log_directory, ...) is None
        is_needed = log_directory in (self.metadata_logs or [self.first])
        return is_illegible and not is_needed and META_PROPERTIES in names_in(log_directory)

    @property
    def first(self) -> str:
        """The one in which a node looks for the log of the metadata."""
        return next(iter(self.metas))

    def place_of(
        self, directory_id: uuid.UUID | None, registered: frozenset[uuid.UUID]
    ) -> tuple[Place, str | None]:
        """Return where a directory id leads; ``registered``: those that the node last had."""
        if directory_id is None or directory_id in _NOT_PLACED:
            return Place.NONE, None
        for path, meta in self.metas.items():
            if meta is not None and meta.directory_id == directory_id:
                return Place.GIVEN, path
        is_whole = len(self.for_partitions) >= (len(registered) or 2)
        # One whose id cannot be read may be this.
        is_known = is_whole and None not in self.metas.values()
        return Place.GONE if is_known else Place.NOT_KNOWN, None

    def problems(self) -> Iterator[NodeProblem]:
        """Yield why a KRaft node does not start on these log directories together."""
        if len(self.metadata_logs) == 1 and self.first not in self.metadata_logs:
            [path] = self.metadata_logs
            if path in self.for_partitions:
                reason = (
                    f"the log of the cluster's metadata is here, and {self.first} was given "
                    "first: a node looks for it in the first one of log.dirs, or in "
                    "metadata.log.dir. If they stand in another order there, give them in that"
                )
                where = join(path, str(CLUSTER_METADATA))
                yield NodeProblem(kinds.MISPLACED_METADATA_LOG, where, reason)
        if self.has_lost_metadata and not self.metadata_logs:
            reason = (
                "this log directory is new, and no other one has the log of the cluster's metadata"
            )
            where = join(self.first, str(CLUSTER_METADATA))
            yield NodeProblem(kinds.MISSING_METADATA_LOG, where, reason)

    def missing_meta_properties(
        self, directory: str, kafka_version: KafkaVersion, *, is_beside_kraft: bool
    ) -> str | None:
        """Return why a broker needs the ``meta.properties`` that a directory of its own lacks.

        None where it does not: in a copy of partitions, and where pylog has made the directory.
        """
        if directory in self.metadata_logs:
            return "the log of the cluster's metadata is here"
        names = names_in(directory)
        if not names and is_beside_kraft:
            return "the directory is empty; a KRaft node needs it in each log directory"
        if not is_of_a_broker(directory):
            return None
        if is_beside_kraft:
            return "a broker's files are here; a KRaft node needs it in each log directory"
        partitions = filter(find_partition_directory_name, names)
        is_a_brokers = HIGH_WATERMARK_CHECKPOINT in names and not _was_closed_by_pylog(directory)
        needs_it = kafka_version >= KafkaVersion.V4_0 and is_a_brokers
        if needs_it and any(_has_partition_metadata(join(directory, each)) for each in partitions):
            return f"a broker's files are here, and Kafka {kafka_version} needs it"
        return None  # a broker of ZooKeeper's writes it again

    def have_used_remote_storage(self) -> bool:
        """Whether segments of some topics were in remote storage alone."""
        return any(
            name == REMOTE_LOG_INDEX_CACHE or name.startswith("__remote_log_metadata-")
            for path in self.metas
            for name in names_in(path)
        )


def names_in(directory: str) -> set[str]:
    """Return the names in a directory; none if it cannot be listed, which is a finding."""
    try:
        return {each.name for each in list_directory(directory)}
    except LogDirectoryError:
        return set()


def is_of_a_broker(log_directory: str) -> bool:
    """Whether a broker, and not pylog, has written files beside the partitions."""
    names = names_in(log_directory)
    return ONLY_REPLICA not in names and bool(names & _OF_A_BROKER)


def is_new_disk(path: str, *, is_alone: bool) -> bool:
    """Whether a directory without a partition is a formatted log directory, or empty beside one."""
    try:
        names = {each.name for each in list_directory(path)}
    except LogDirectoryError:
        return False
    return META_PROPERTIES in names or not (names or is_alone)


def _has_partitions(log_directory: str) -> bool:
    names = names_in(log_directory) - {str(CLUSTER_METADATA)}
    return any(map(find_partition_directory_name, names))


def _has_metadata(log_directory: str) -> bool:
    names = names_in(join(log_directory, str(CLUSTER_METADATA)))
    return any(find_segment_file_name(each) or METADATA_SNAPSHOT.fullmatch(each) for each in names)


def _is_new(log_directory: str) -> bool:
    """Whether a log directory has been formatted, and no broker has worked on it since."""
    is_formatted = META_PROPERTIES in names_in(log_directory)
    return is_formatted and not is_of_a_broker(log_directory) and not _has_partitions(log_directory)


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
