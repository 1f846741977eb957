"""What the disks that were given have of the partitions that their nodes are to lead.

The metadata says who was in sync; whether the log is there, and all of it, only the disk says. A
broker makes an empty log where it finds none, and sets aside what its metadata does not know: as
the leader it then has its followers delete what they have.

Source: LogManager.isStrayReplica, ReplicaManager.applyDelta (Kafka 4.4).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.checks.absent_partitions import RECORDED, offsets_in
from pylog.checks.files import unreadable_checkpoints
from pylog.errors import LogStorageError
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    find_partition_directory_name,
)
from pylog.files.leader_epochs import read_epoch_entries
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from pylog.files.storage import list_directory
from pylog.locations import join, printable_location
from pylog.model import TopicPartition
from pylog.reading.discovery import LogStartOffsets, PartitionDirectory
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.log_view import LogView
from pylog.reading.pending_commit import PendingCommit
from pylog.text.words import named

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator

    from pylog.internal_topics.metadata_image import MetadataImage, TopicImage
    from pylog.writing.node import Node


_SHOWN = 5


class GivenLogs:
    """The logs on the disks of some nodes, held against the metadata that they will have."""

    def __init__(self, nodes: Iterable[Node], image: MetadataImage) -> None:
        self._topics = {each.topic_id: each for each in image.topics}
        self._deleted = {each.topic_id for each in image.deleted}
        self._registered = image.log_directories
        self._nodes = {each.node_id: each for each in nodes if each.node_id is not None}
        self._around = {
            path: (LogStartOffsets(path), PendingCommit(path))
            for each in self._nodes.values()
            for path in each.disks.metas
        }
        self._recorded = {
            path: [offsets_in(path, name) for name in RECORDED] for path in self._around
        }
        self._given = {each: len(node.disks.for_partitions) for each, node in self._nodes.items()}
        self._places: dict[int, dict[TopicPartition, str]] = {}
        self._others: dict[TopicPartition, str] = {}
        self._ids: dict[str, uuid.UUID | None] = {}
        self._ends: dict[str, int | None] = {}
        self._without_log: dict[str, list[int]] = {}
        for node_id, node in self._nodes.items():
            places = self._places.setdefault(node_id, {})
            for path in node.disks.metas:
                for entry in list_directory(path):
                    name = find_partition_directory_name(entry.name)
                    if name is not None and not name.state:
                        places.setdefault(name.topic_partition, entry.path)
                    elif name is not None:
                        self._others.setdefault(name.topic_partition, entry.path)

    def ends(self, topic_partition: TopicPartition) -> dict[int, int]:
        """Return where a partition's log ends on each node that was given and has it."""
        found = {}
        for node_id in self._nodes:
            end = self._end(node_id, topic_partition)
            if end is not None:
                found[node_id] = end
        return found

    def _end(self, node_id: int, topic_partition: TopicPartition) -> int | None:
        path = self._places[node_id].get(topic_partition)
        if path is not None and path not in self._ends:
            self._ends[path] = self._read_end(PartitionDirectory(topic_partition, path))
        return None if path is None else self._ends[path]

    def _read_end(self, directory: PartitionDirectory) -> int | None:
        starts, pending = self._around[directory.log_directory]
        with suppress(LogStorageError):
            view = LogView(directory, starts, pending=pending)
            self._without_log[directory.path] = view.listing.base_offsets_without_log
            if view.segments:
                return view.log_end_offset
        return None

    def lacks(self, node_id: int, topic: TopicImage, partition: int) -> str | None:
        """Return why a node begins with an empty log of a partition; None if it does not.

        None also where not all of its log directories were given.
        """
        node = self._nodes.get(node_id)
        if node is None:
            return None
        place = TopicPartition(topic.name, partition)
        path = self._places[node_id].get(place)
        if path is None:
            if self._given[node_id] < len(self._registered.get(node_id, ())):
                return None
            other = self._others.get(place)
            where = "" if other is None else f", but for {printable_location(other)}"
            return f"no log directory of node {node_id} has it{where}"
        why = self._why_set_aside(path, topic.topic_id)
        return None if why is None else f"{printable_location(path)} {why}"

    def _why_set_aside(self, path: str, topic_id: uuid.UUID) -> str | None:
        stored = self._stored_id(path)
        if stored == topic_id:
            return None
        if stored is None:
            return f"has no {PARTITION_METADATA} that can be read"
        return f"is of the topic id {format_uuid(stored)}, and not of {format_uuid(topic_id)}"

    def shortened(self, node_id: int, place: TopicPartition) -> str | None:
        """Return that a log ends before what checkpoints say it had reached, or lacks a segment."""
        node = self._nodes.get(node_id)
        path = None if node is None else self._places[node_id].get(place)
        if path is None:
            return None
        log_directory = PartitionDirectory(place, path).log_directory
        reached = max(each.get(place, 0) for each in self._recorded[log_directory])
        with suppress(LogStorageError):
            epochs = read_epoch_entries(join(path, LEADER_EPOCH_CHECKPOINT))
            reached = max([reached, *(each.start_offset for each in epochs)])
        end = self._end(node_id, place)
        if end is None:
            return f"{place}: its log on node {node_id} cannot be read to its end"
        if end >= reached:
            lost = [f"{each}.log" for each in self._without_log[path]]
            text = f"{place}: its log on node {node_id} has lost {named(lost, _SHOWN)}"
            return f"{text}: the index is left" if lost else None
        return (
            f"{place}: its log on node {node_id} ends at offset {end}, and had reached {reached}, "
            "as checkpoints say"
        )

    def unknown(self) -> Iterator[str]:
        """Yield the directories of partitions that the metadata does not know."""
        for places in self._places.values():
            for place, path in sorted(places.items()):
                if place != CLUSTER_METADATA:
                    stored = self._stored_id(path)
                    if stored is None or stored in self._deleted:
                        continue
                    topic = self._topics.get(stored)
                    if topic is None or place.partition not in topic.partitions:
                        yield printable_location(path)

    def incomplete(self) -> Iterator[str]:
        """Yield sentences about what is not known of the logs: what was not given, or not read."""
        for node_id, given in self._given.items():
            count = len(self._registered.get(node_id, ()))
            if given < count:
                yield (
                    f"{given} of {count} log directories of node {node_id} were given: of "
                    "partitions in the others it is not known whether their logs are there"
                )
        for path in self._around:
            for each in unreadable_checkpoints(path):
                yield f"{printable_location(each.path)} cannot be read: {each.message}"

    def _stored_id(self, directory: str) -> uuid.UUID | None:
        if directory not in self._ids:
            self._ids[directory] = None
            with suppress(LogStorageError):
                stored = read_partition_metadata(join(directory, PARTITION_METADATA))
                self._ids[directory] = stored.topic_id
        return self._ids[directory]
