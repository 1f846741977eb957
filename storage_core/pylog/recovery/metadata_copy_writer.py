"""A copy of the cluster's metadata that goes on after its end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.checks.repair import copy_file
from pylog.errors import LogStorageError
from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, file_name_prefix
from pylog.files.quorum_state import QUORUM_STATE, quorum_state_without_leader, read_quorum_state
from pylog.files.storage import list_directory
from pylog.locations import join, name_of
from pylog.reading.internal_logs import CLUSTER_METADATA, is_behind, metadata_snapshots

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.files.durable_io import DurableIO
    from pylog.recovery.metadata_batches import MetadataAppend
    from pylog.recovery.metadata_copies import MetadataCopy
    from pylog.writing.node import Node


def write_metadata_copy(
    io: DurableIO, seed: MetadataCopy, appended: Sequence[MetadataAppend], directory: str
) -> None:
    """Copy the log up to its end, with its snapshots, and append to it."""
    view = seed.view
    snapshots = metadata_snapshots(view)
    is_discarded = bool(snapshots) and is_behind(view, snapshots[-1])
    io.make_directory(directory)
    for snapshot in snapshots[-1:] if is_discarded else snapshots:
        copy_file(io, snapshot.path, join(directory, name_of(snapshot.path)))
    segments = [] if is_discarded else list(view.segments)
    names = {entry.name for entry in list_directory(seed.directory)}
    kept = [PARTITION_METADATA, *([] if is_discarded else [LEADER_EPOCH_CHECKPOINT])]
    for name in kept:
        if name in names:
            copy_file(io, join(seed.directory, name), join(directory, name))
    base_offsets = [each.base_offset for each in segments]
    for base_offset in base_offsets:
        name = f"{file_name_prefix(base_offset)}.log"
        copy_file(io, join(seed.directory, name), join(directory, name))
    position = view.end.end_position if segments else 0
    last = base_offsets[-1] if segments else seed.end_offset
    with io.open(join(directory, f"{file_name_prefix(last)}.log"), create=True) as file:
        if file.size() > position:
            file.truncate(position)
        for each in appended:
            file.write_at(position, each.data)
            position += len(each.data)
        file.sync()
    io.sync_directory(directory)


def quorum_state_after(
    seed: MetadataCopy, nodes: Iterable[Node], voters: Iterable[int] | None
) -> bytes:
    """Return the memory of an epoch that no election has been in; voters where no log names them.

    Without one, a node that was the last leader does not know it. It ends at the first answer of
    another voter that does ("inconsistent with current leader").
    """
    epoch, _ = seed.position
    for node in nodes:
        for path in node.disks.metadata_logs:
            with suppress(LogStorageError):  # one that cannot be read ends a node, and goes
                metadata = join(path, str(CLUSTER_METADATA))
                state = read_quorum_state(join(metadata, QUORUM_STATE))
                epoch = max(epoch, -1 if state is None else state.leader_epoch)
    return quorum_state_without_leader(epoch + 1, voters)
