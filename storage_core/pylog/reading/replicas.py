"""Which directory of a partition is read where several of those given hold it.

Directories of several nodes of one cluster hold replicas. The one with the highest leader epoch is
taken: a broker writes its epoch down when it becomes the leader, before the first record, so that
of two histories this is the later one. Of replicas with the same epoch the longest is taken, of
equals the one that was given first. One whose end cannot be told is taken only where there is no
other. A caller may name the node, or the log directory, whose replicas come first.

Topics of one name in two clusters have nothing to do with each other. Two directories of one node,
or with two topic ids, are not two replicas. These are errors.

Source: KIP-101, KIP-279; UnifiedLog.assignEpochStartOffset (Kafka 4.3).
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files import disk
from pylog.files.file_names import PARTITION_METADATA
from pylog.files.leader_epochs import end_offset_for
from pylog.files.looks import lasting
from pylog.files.partition_metadata import read_partition_metadata
from pylog.locations import is_remote, join, name_of, printable_location
from pylog.model import TopicPartition
from pylog.reading.discovery import LogStartOffsets, directory_identity, in_order, meta_of
from pylog.reading.log_view import LogView
from pylog.reading.pending_commit import NoPendingCommit

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    from pylog.reading.discovery import PartitionDirectory

_logger = logging.getLogger(__name__)

_UNKNOWN = -1


def one_of_each(
    directories: Sequence[PartitionDirectory],
    *,
    include_stray: bool = False,
    replica: str | int | os.PathLike[str] | None = None,
    tells: bool = True,
) -> list[PartitionDirectory]:
    """Return the directories, sorted, with one of each live partition; tell which are read.

    Directories that are not live, and are included, keep their own names beside a live one.

    Raises
    ------
    LogDirectoryError
        Two clusters have a topic of one name, one node has a partition twice, or ``replica`` is
        none of them.
    """
    nodes = _Nodes(directories)
    wanted = None if replica is None else nodes.preferred(replica)
    by_partition: dict[TopicPartition, list[PartitionDirectory]] = {}
    by_topic: dict[str, list[PartitionDirectory]] = {}
    kept = []
    for each in directories:
        if each.is_live(include_stray=include_stray):
            by_partition.setdefault(each.topic_partition, []).append(each)
            by_topic.setdefault(each.topic_partition.topic, []).append(each)
        else:
            kept.append(each)
    for topic, found in by_topic.items():
        nodes.ensure_one_cluster(found, f"topic {topic} is in two clusters: ")
    taken: dict[str, int] = {}
    for found in by_partition.values():
        live = [each for each in found if not each.state]
        others = [each for each in found if each.state]
        if len(found) > 1:
            kept += map(_under_its_own_name, others)
        else:
            kept += others
        live = nodes.settled(live) if len(live) > 1 else live
        if len(live) > 1:
            nodes.ensure_replicas(live)
            best = max(live, key=lambda each: (each.log_directory == wanted, *_rank(each)))
            taken[best.log_directory] = taken.get(best.log_directory, 0) + 1
            live = [best]
        kept += live
    if taken and tells:
        _tell(taken, nodes)
    return in_order(kept)


def ensure_one_cluster(directories: Iterable[PartitionDirectory]) -> None:
    """Raise `LogDirectoryError` if directories are of two clusters, whatever they hold."""
    found = list(directories)
    _Nodes(found).ensure_one_cluster(found, "")


class _Nodes:
    """Whose the log directories are; their ``meta.properties`` are read if there are several."""

    def __init__(self, directories: Iterable[PartitionDirectory]) -> None:
        places = list(dict.fromkeys(each.log_directory for each in directories))
        self._metas = {path: meta_of(path) for path in places} if len(places) > 1 else {}
        self._places = places

    def ensure_one_cluster(self, directories: Iterable[PartitionDirectory], what: str) -> None:
        clusters: dict[str, str] = {}
        for each in directories:
            meta = self._metas.get(each.log_directory)
            if meta is not None and meta.cluster_id is not None:
                clusters.setdefault(meta.cluster_id, each.log_directory)
        if len(clusters) > 1:
            (one, first), (other, second), *_ = clusters.items()
            reason = (
                f"{what}{printable_location(first)} is of cluster {one}, and "
                f"{printable_location(second)} of cluster {other}; read one cluster at a time"
            )
            raise LogDirectoryError(reason)

    def preferred(self, replica: str | int | os.PathLike[str]) -> str:
        """Return the log directory that a node's id, or a path, stands for."""
        text = str(replica) if isinstance(replica, int) else os.fspath(replica)
        for path in self._places:
            if text == str(self.node_id(path)) or directory_identity(path) == directory_identity(
                text
            ):
                return path
        listed = ", ".join(map(self.name, self._places))
        reason = (
            f"replica {text!r} is neither the id of a node here nor its log directory: {listed}"
        )
        raise LogDirectoryError(reason)

    def node_id(self, path: str) -> int | None:
        """Return whose a log directory is; None where that is not known."""
        meta = self._metas.get(path)
        return None if meta is None else meta.node_id

    def name(self, path: str) -> str:
        """Return a log directory as messages name it."""
        node_id = self.node_id(path)
        where = printable_location(path)
        return where if node_id is None else f"{where} (node {node_id})"

    def settled(self, found: list[PartitionDirectory]) -> list[PartitionDirectory]:
        """Leave out what a node that moves a partition between its disks has taken away by now."""
        twice = {
            each.path: each
            for one, other in combinations(found, 2)
            if self._are_of_one_node(one, other)
            and not (is_remote(one.path) or is_remote(other.path))
            for each in (one, other)
        }

        def look() -> dict[str, PartitionDirectory]:
            return twice if all(map(disk.lexists, twice)) else {}

        if not twice or lasting(twice, look, [each.log_directory for each in twice.values()]):
            return found
        # A view of one that is on its way follows it.
        left = next(filter(disk.lexists, twice), next(iter(twice)))
        return [each for each in found if each.path not in twice or each.path == left]

    def _are_of_one_node(self, one: PartitionDirectory, other: PartitionDirectory) -> bool:
        if one.log_directory == other.log_directory:
            return True
        node_id = self.node_id(one.log_directory)
        return node_id is not None and node_id == self.node_id(other.log_directory)

    def ensure_replicas(self, found: Sequence[PartitionDirectory]) -> None:
        for one, other in combinations(found, 2):
            topic_ids = {_topic_id(each) for each in (one, other)} - {None}
            why = None
            if self._are_of_one_node(one, other):
                why = "which are of one node"
            elif len(topic_ids) > 1:
                why = "which have two topic ids"
            if why is not None:
                reason = (
                    f"partition {one.topic_partition} lies both in {printable_location(one.path)} "
                    f"and in {printable_location(other.path)}, {why}; read one of them"
                )
                raise LogDirectoryError(reason)


def _topic_id(directory: PartitionDirectory) -> uuid.UUID | None:
    try:
        return read_partition_metadata(join(directory.path, PARTITION_METADATA)).topic_id
    except (CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
        return None


def _rank(directory: PartitionDirectory) -> tuple[int, int]:
    """Return the last leader epoch of a replica and where it ends."""
    above = directory.log_directory
    view = LogView(directory, LogStartOffsets(above), pending=NoPendingCommit(above))
    try:
        end = view.log_end_offset
    except LogStorageError:
        return _UNKNOWN, _UNKNOWN
    try:
        epochs = view.leader_epochs
    except LogStorageError:
        epochs = []
    return epochs[-1].epoch if epochs else _UNKNOWN, end


def find_diverged(
    directories: Iterable[PartitionDirectory],
) -> tuple[PartitionDirectory, PartitionDirectory] | None:
    """Return two replicas of a partition of which neither is the beginning of the other.

    By their leader epochs, as a follower asks its leader for them before it truncates its log. A
    replica that can tell neither its epochs nor its end is no such one.
    """
    by_partition: dict[TopicPartition, list[PartitionDirectory]] = {}
    for each in directories:
        by_partition.setdefault(each.topic_partition, []).append(each)
    for found in by_partition.values():
        ranked = sorted(found, key=_rank, reverse=True)
        for other in ranked[1:]:
            if _has_diverged(ranked[0], other):
                return other, ranked[0]
    return None


def _has_diverged(leader: PartitionDirectory, other: PartitionDirectory) -> bool:
    above = leader.log_directory, other.log_directory
    views = [
        LogView(each, LogStartOffsets(path), pending=NoPendingCommit(path))
        for each, path in zip((leader, other), above, strict=True)
    ]
    try:
        ends = [view.log_end_offset for view in views]
        epochs = [view.leader_epochs for view in views]
    except LogStorageError:
        return False
    if not all(epochs):
        return False
    last = epochs[1][-1].epoch
    epoch, end_offset = end_offset_for(epochs[0], last, ends[0])
    return epoch != last or end_offset < ends[1]


def _under_its_own_name(directory: PartitionDirectory) -> PartitionDirectory:
    """Return a directory that is not live as a partition of a topic ``<topic>.<id>-<state>``."""
    topic, partition = directory.topic_partition
    suffix = name_of(directory.path).rpartition(".")[2]
    return replace(directory, topic_partition=TopicPartition(f"{topic}.{suffix}", partition))


def _tell(taken: dict[str, int], nodes: _Nodes) -> None:
    def listed() -> Iterator[str]:
        for path, count in taken.items():
            yield f"{count} from {nodes.name(path)}"

    total = sum(taken.values())
    what = "1 partition has" if total == 1 else f"{total} partitions have"
    _logger.warning(
        "%s several replicas here; the one with the highest leader epoch, of these the longest, "
        "is read: %s",
        what,
        ", ".join(listed()),
    )
