"""The copies of a cluster's metadata log that are on some disks, and which of them goes furthest.

Each controller has a copy, and so has each broker: it follows the controllers. The copy with the
highest position is the seed: it has all that was agreed on, as far as the given disks have it.
Copies with another epoch part from it, and what only they have was never agreed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT
from pylog.files.leader_epochs import read_epoch_entries
from pylog.locations import join, printable_location
from pylog.reading.internal_logs import (
    CLUSTER_METADATA,
    latest_epoch,
    metadata_snapshots,
    read_committed_metadata,
)
from pylog.writing.metadata_quorum import LogHistory, agreed_end_offset, common_end
from pylog.writing.node_metadata import metadata_view

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node


class MetadataCopy(NamedTuple):
    """A copy of the metadata log that can be read.

    Attributes
    ----------
    node
        Whose it is.
    directory
        The partition directory.
    position
        The last epoch and the end offset, of log or snapshot: of two copies, the higher is further.
    """

    node: Node
    log_directory: str
    directory: str
    view: LogView
    position: tuple[int, int]
    snapshot: str | None
    history: LogHistory

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.position[1]


def find_copies(nodes: Iterable[Node]) -> tuple[list[MetadataCopy], list[LogStorageError]]:
    """Return the copies that can be read, in the order of the nodes, and why others cannot."""
    copies, errors = [], []
    for node in nodes:
        for log_directory in node.disks.metadata_logs:
            try:
                copies.append(_copy(node, log_directory))
            except LogStorageError as error:
                errors.append(error)
    return copies, errors


def _copy(node: Node, log_directory: str) -> MetadataCopy:
    directory = join(log_directory, str(CLUSTER_METADATA))
    view = metadata_view(directory)
    position = (latest_epoch(view), view.log_end_offset)
    snapshots = metadata_snapshots(view)
    if snapshots:
        position = max(position, (snapshots[-1].epoch, snapshots[-1].end_offset))
    history = LogHistory(
        read_epoch_entries(join(directory, LEADER_EPOCH_CHECKPOINT)), view.log_end_offset
    )
    name = printable_location(snapshots[-1].path) if snapshots else None
    return MetadataCopy(node, log_directory, directory, view, position, name, history)


def cut_metadata(copy: MetadataCopy) -> list[str]:
    """Return a sentence if a copy's leader epochs begin after its end: it was cut, or damaged.

    A node writes an epoch down before the first record of it, and writes that to the disk later.
    """
    reached = max((each.start_offset for each in copy.history.epochs), default=0)
    if reached <= copy.end_offset:
        return []
    path = printable_location(copy.directory)
    text = (
        f"{path} ends at offset {copy.end_offset}, and its leader epochs reach to {reached}: "
        "changes of the metadata are missing, which another copy may have"
    )
    return [text]


def seed_of(copies: Sequence[MetadataCopy]) -> MetadataCopy:
    """Return the copy that goes furthest, the first of equals."""
    return max(copies, key=lambda each: each.position)


def shared_end(copy: MetadataCopy, seed: MetadataCopy) -> int:
    """Return up to which offset a copy is the same as the seed."""
    return copy.end_offset if copy is seed else common_end(copy.history, seed.history)


def metadata_of(seed: MetadataCopy, copies: Sequence[MetadataCopy]) -> CommittedMetadata:
    """Return what the seed says; what most of the voters have counts as agreed on."""

    def agreed(voters: Collection[int]) -> int:
        found = {each.node.node_id: each.history for each in copies if each.node.node_id in voters}
        return agreed_end_offset(list(found.values()), len(voters))

    return read_committed_metadata(seed.view, agreed_end_offset=agreed)


def furthest_metadata(
    copies: Sequence[MetadataCopy], errors: list[LogStorageError]
) -> tuple[MetadataCopy | None, CommittedMetadata | None]:
    """Return the furthest copy that can be understood, and what it says; add why others cannot."""
    for seed in sorted(copies, key=lambda each: each.position, reverse=True):
        try:
            return seed, metadata_of(seed, copies)
        except LogStorageError as error:
            errors.append(error)
    return None, None
