"""The stopped nodes that are to serve adopted topics, and what their metadata say.

Records at the end of a log of the metadata count if most of the controllers that vote have them.
A node that was formatted and has never run has no such log: what formatting has laid down is in a
snapshot 0-0 (since Kafka 4.4, and for voters that are named in the log), or in
``bootstrap.checkpoint``.

Source: StorageTool, BootstrapDirectory (Kafka 3.9, 4.4).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.directory_lock import ensure_not_in_use
from pylog.files.file_names import META_PROPERTIES
from pylog.files.owned_directories import writable_log_directory
from pylog.internal_topics.metadata_image import MetadataImage
from pylog.locations import join, printable_location
from pylog.reading.internal_logs import bootstrap_values, metadata_snapshots, metadata_values
from pylog.recovery.access_records import effective_records
from pylog.recovery.adoption_steps import ADOPTION
from pylog.recovery.cluster_info import ensure_one_cluster
from pylog.recovery.metadata_copies import find_copies, metadata_of, seed_of
from pylog.text.words import counted, named
from pylog.writing.node import nodes_of
from pylog.writing.node_metadata import BOOTSTRAP_CHECKPOINT

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Sequence

    from pylog.reading.internal_logs import Voter
    from pylog.recovery.metadata_copies import MetadataCopy
    from pylog.writing.node import Node


class TargetDisk(NamedTuple):
    """A log directory of one of the nodes."""

    path: str
    node_id: int
    directory_id: uuid.UUID | None


class AdoptionTarget:
    """The nodes that are to serve the topics, and what their metadata say.

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
        self, paths: Sequence[str | os.PathLike[str]], brokers: Iterable[int] | None
    ) -> None:
        if not paths:
            msg = "give the log directories of the node that is to serve the topics"
            raise ValueError(msg)
        self.log_directories = [
            os.path.abspath(writable_log_directory(each, must_exist=True))  # noqa: PTH100
            for each in paths
        ]
        for each in self.log_directories:
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
            self._ensure_most_voters(seed, metadata.voters or set(metadata.image.controllers))
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

    def _ensure_most_voters(self, seed: MetadataCopy, voters: Collection[int]) -> None:
        """Refuse what the other controllers would take back."""
        self.written = [
            each
            for each in self.copies
            if each.node.node_id in voters and each.position == seed.position
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

    @property
    def level(self) -> int:
        """The level of metadata.version."""
        return self.image.metadata_version or 0

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
