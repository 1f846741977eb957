"""The stopped nodes that are to serve adopted topics, and what their metadata says.

Records at the end of a log of the metadata count if most of the controllers that vote have them.
A node that was formatted and has never run has no such log: what formatting has laid down is in a
snapshot 0-0 (since Kafka 4.4, and for voters that are named in the log), or in
``bootstrap.checkpoint``.

Source: StorageTool, BootstrapDirectory (Kafka 3.9, 4.4).
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files import disk
from pylog.files.directory_lock import ensure_not_in_use
from pylog.files.file_names import META_PROPERTIES, file_name_prefix
from pylog.files.owned_directories import writable_log_directory
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.locations import join, parent_of, printable_location
from pylog.reading.internal_logs import (
    CLUSTER_METADATA,
    bootstrap_values,
    metadata_snapshots,
    metadata_values,
)
from pylog.recovery.access_records import effective_records
from pylog.recovery.cluster_info import ensure_one_cluster
from pylog.recovery.metadata_batches import BatchAppender, snapshot_of
from pylog.recovery.metadata_copies import cut_metadata, find_copies, metadata_of, seed_of
from pylog.text.words import counted, named
from pylog.writing.new_log_directory import UNFINISHED
from pylog.writing.node import nodes_of
from pylog.writing.node_metadata import BOOTSTRAP_CHECKPOINT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pylog.reading.internal_logs import CommittedMetadata, Voter
    from pylog.recovery.metadata_batches import MetadataAppend
    from pylog.recovery.metadata_copies import MetadataCopy
    from pylog.writing.node import Node


ADOPTION = ".pylog-adoption"
"""The directory that keeps brokers from starting while an adoption is under way."""
_SNAPSHOT_STEP = 1000
"""How far after the last snapshot the one for a node that has never run ends; one of formatting
ends at 0, and from another one at 0 Kafka 4 takes nothing."""
_SNAPSHOT_EPOCH = 1
_ANY = uuid.UUID(int=0)
"""The directory id of a voter that none is known of."""


def ensure_nothing_unfinished(log_directory: str) -> None:
    """Refuse to take for whole what an interrupted call has left."""
    for name in (ADOPTION, UNFINISHED):
        if disk.lexists(join(log_directory, name)):
            reason = "an earlier call was interrupted and has left this: end it, or take it back"
            raise LogDirectoryError(reason, join(log_directory, name))


class MetadataFile(NamedTuple):
    """Bytes that are put into a file of the metadata's log from a position on: to its end."""

    path: str
    position: int
    data: bytes
    replaces: tuple[str, ...] = ()
    """Files that go once these bytes are there."""


class TargetDisk(NamedTuple):
    """A log directory of one of the nodes."""

    path: str
    node_id: int
    directory_id: uuid.UUID | None


class AdoptionTarget:
    """The nodes that are to serve the topics, and what their metadata says.

    Attributes
    ----------
    is_new
        Whether none of them has run since it was formatted.
    snapshots
        Those of its copies of the metadata.
    values
        The records of the metadata.
    voters
        Of new nodes, those that formatting has put into the log; None if it has put none there.
    written
        The copies of the metadata that records are appended to; empty for new nodes.
    epoch
        The last one of these copies.
    brokers
        The ids of the nodes that can have partitions.
    partition_disks
        The log directories in which they have them.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        brokers: Iterable[int] | None = None,
        *,
        is_begun: bool = False,
    ) -> None:
        if not paths:
            msg = "give the log directories of the node that is to serve the topics"
            raise ValueError(msg)
        self.log_directories = [os.fspath(each) for each in paths]
        if not is_begun:
            self.log_directories = [
                os.path.abspath(writable_log_directory(each, must_exist=True))  # noqa: PTH100
                for each in paths
            ]
        for each in self.log_directories if not is_begun else ():
            ensure_not_in_use(each)
            if os.path.lexists(join(each, ADOPTION)):
                reason = (
                    "an earlier call was interrupted and has left this: end it with resume "
                    "(--resume), or take it back with undo (--undo)"
                )
                raise LogDirectoryError(reason, join(each, ADOPTION))
        by_path = nodes_of(self.log_directories)
        self.nodes = list(dict.fromkeys(by_path.values()))
        ensure_one_cluster(by_path)
        self.disks = [self._disk(path, by_path[path]) for path in self.log_directories]
        self.cluster_id = self.nodes[0].cluster_id
        copies, errors = find_copies(self.nodes)
        if errors:
            raise errors[0]
        self.copies = [each for each in copies if each.view.log_end_offset]
        self.is_new = not self.copies
        self.snapshots = [each for copy in copies for each in metadata_snapshots(copy.view)]
        self._read(copies)
        self._choose_brokers(None if brokers is None else set(brokers))

    def _disk(self, path: str, node: Node) -> TargetDisk:
        meta = node.disks.metas.get(path)
        if meta is None or meta.node_id is None or not node.is_kraft:
            reason = (
                f"{META_PROPERTIES} is missing, cannot be read, or is not of a KRaft node: format "
                "the node with kafka-storage.sh first"
            )
            raise LogDirectoryError(reason, path)
        return TargetDisk(path, meta.node_id, meta.directory_id)

    def _read(self, copies: Sequence[MetadataCopy]) -> None:
        self.voters: Sequence[Voter] | None = None
        self.written: list[MetadataCopy] = []
        self.epoch = 1
        if self.is_new:
            self.values = _formatted_values(copies, self.log_directories)
            for each in copies:
                metadata = metadata_of(each, copies)
                if metadata.kraft_version:
                    self.voters = metadata.voter_set
        else:
            seed = seed_of(self.copies)
            metadata = metadata_of(seed, self.copies)
            self._ensure_most_voters(seed, metadata)
            if metadata.image.is_in_transaction:
                raise self._refusal("a metadata transaction is open: start the node once")
            self.values = [each for each in metadata_values(seed.view) if each is not None]
            self.epoch = seed.position[0]
        self.image = _image_of(self.values)
        if self.image.metadata_version is None:
            raise self._refusal(
                "nothing tells its metadata.version: format the node with kafka-storage.sh, or "
                "give the log directory with the log of the metadata, too"
            )

    def _choose_brokers(self, chosen: set[int] | None) -> None:
        ids = list(dict.fromkeys(each.node_id for each in self.disks))
        if chosen is not None and not chosen <= set(ids):
            msg = f"no log directory of broker {min(chosen - set(ids))} was given"
            raise ValueError(msg)
        known = set(self.image.brokers) or set(ids)
        self.brokers = [each for each in ids if each in (known if chosen is None else chosen)]
        if not self.brokers:
            raise self._refusal("none of these nodes has registered as a broker")
        self.partition_disks = [
            each
            for node in self.nodes
            for each in self.disks
            if each.path in (node.disks.for_partitions or node.disks.metas)
        ]

    def _ensure_most_voters(self, seed: MetadataCopy, metadata: CommittedMetadata) -> None:
        """Refuse what the other controllers would take back.

        A voter in the log is a node with a log directory: on another one it only listens.
        """
        voters: Collection[int] = metadata.voters or set(metadata.image.controllers)
        places = {each.voter_id: each.directory_id for each in metadata.voter_set}
        ids = {each.path: each.directory_id for each in self.disks}
        self.written = [
            each
            for each in self.copies
            if each.node.node_id in voters
            and each.position == seed.position
            and places.get(each.node.node_id or 0, _ANY) in (_ANY, ids.get(each.log_directory))
        ]
        if len(self.written) <= len(voters) // 2:
            shown = named(sorted(map(str, voters)))
            raise self._refusal(
                f"{len(self.written)} of its {counted(len(voters), 'controller')} ({shown}) "
                "was given with the whole log of the metadata, and the others would take back what "
                "is appended: give the log directories of most of them, stopped"
            )

    def _refusal(self, reason: str) -> LogDirectoryError:
        return LogDirectoryError(reason, printable_location(self.log_directories[0]))

    def notes(self) -> Iterator[str]:
        """Yield sentences about what is not known of the nodes."""
        for copy in self.written:
            yield from cut_metadata(copy)
        for node_id, directories in sorted(self.image.log_directories.items()):
            given = sum(each.node_id == node_id for each in self.partition_disks)
            if 0 < given < len(directories):
                yield (
                    f"{given} of {len(directories)} log directories of node {node_id} were given: "
                    "if another one has a directory of such a partition, the node does not start"
                )

    @property
    def level(self) -> int:
        """The level of metadata.version."""
        return self.image.metadata_version or 0

    def metadata_files(self, values: Sequence[bytes], now_ms: int) -> Iterator[MetadataFile]:
        """Yield what is put into which files so that the metadata has some more records."""
        if self.is_new:
            data = snapshot_of([*self.values, *values], _SNAPSHOT_EPOCH, now_ms, self.voters)
            end = max((each.end_offset for each in self.snapshots), default=0) + _SNAPSHOT_STEP
            name = f"{file_name_prefix(end)}-{_SNAPSHOT_EPOCH:010d}.checkpoint"
            for node in self.nodes:
                disks = node.disks
                place = disks.metadata_logs[0] if disks.metadata_logs else disks.first
                directory = join(place, str(CLUSTER_METADATA))
                old = [each.path for each in self.snapshots if parent_of(each.path) == directory]
                yield MetadataFile(join(directory, name), 0, data, tuple(old))
            return
        data = b"".join(each.data for each in self.batches_of(values, now_ms))
        for copy in self.written:
            last = copy.view.segments[-1] if copy.view.segments else None
            base = copy.end_offset if last is None else last.base_offset
            position = 0 if last is None else copy.view.end.end_position
            path = join(copy.directory, f"{file_name_prefix(base)}.log")
            yield MetadataFile(path, position, data)

    def batches_of(self, values: Sequence[bytes], now_ms: int) -> list[MetadataAppend]:
        """Return the batches that append some records to the log."""
        appender = BatchAppender(self.written[0].end_offset, self.epoch, now_ms)
        appender.append_records(values, "topics, partitions, producer ids")
        return appender.appended

    def next_producer_id(self) -> int:
        """Return the first producer id that was not given to a broker yet."""
        found = 0
        for _, record in effective_records(self.values):
            if record.message.name == "ProducerIdsRecord":
                found = record.fields["nextProducerId"]
        return found


def _formatted_values(
    copies: Sequence[MetadataCopy], log_directories: Sequence[str]
) -> list[bytes]:
    """Return the records that formatting has laid down: in a snapshot 0-0, or beside the log."""
    for each in copies:
        values = [value for value in metadata_values(each.view) if value is not None]
        if values:
            return values
    for path in log_directories:
        try:
            found = bootstrap_values(join(path, BOOTSTRAP_CHECKPOINT))
            return [value for value in found if value is not None]
        except SegmentVanishedError:
            continue
    return []


def _image_of(values: Iterable[bytes]) -> MetadataImage:
    image = MetadataImage()
    for value in values:
        image.apply(value)
    return image
