"""The copy of the log of the cluster's metadata in a repaired log directory.

What is intact is copied as it is: segments, snapshots that are whole, and side files that can be
read; nothing else that lies there. Then the copy is judged as a node would judge it. It is taken
away again where a part is missing in it, or where other controllers have the log as well: a node
gets it from them.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    find_segment_file_name,
)
from pylog.files.leader_epochs import read_leader_epoch_checkpoint
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.quorum_state import QUORUM_STATE, read_quorum_state
from pylog.files.storage import list_directory
from pylog.findings import kinds
from pylog.locations import join
from pylog.reading.internal_logs import CLUSTER_METADATA, has_footer, metadata_snapshots
from pylog.writing.node import nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.checks.partition_check import PartitionCheck
    from pylog.files.storage import DirectoryEntry
    from pylog.reading.internal_logs import MetadataSnapshot
    from pylog.writing.node import Node

_READERS: dict[str, Callable[[str], object]] = {
    LEADER_EPOCH_CHECKPOINT: read_leader_epoch_checkpoint,
    PARTITION_METADATA: read_partition_metadata,
    QUORUM_STATE: read_quorum_state,
}
"""Side files that a node does without; one that cannot be read ends it."""


def copy_metadata(
    check: PartitionCheck, node: Node, target: str, copy_file: Callable[[str, str], None]
) -> bool:
    """Copy what is intact of a node's log of the metadata, and return whether all of it is.

    ``copy_file`` copies a file to a path, with the directories that it needs.
    """
    view, directory = check.view, join(target, str(CLUSTER_METADATA))
    snapshots = metadata_snapshots(view)
    whole = {each.path for each in snapshots if _is_whole(each)}
    # The log has to say all that a damaged snapshot does.
    needed = max([each.end_offset for each in snapshots if each.path not in whole], default=0)
    if check.damaged or check.end_offset < needed:
        return False
    for entry in list_directory(view.directory.path):
        if not entry.is_dir() and (entry.path in whole or _is_intact(entry)):
            copy_file(entry.path, join(directory, entry.name))
    copied = nodes_of([target])[target]
    problems = {each.kind for each in copied.problems(CLUSTER_METADATA, directory)}
    if (node.is_only_voter or copied.is_only_voter) and problems <= _HARMLESS:
        return True
    with suppress(FileNotFoundError):
        shutil.rmtree(directory)
    return False


_HARMLESS = {
    kinds.DISCARDED_METADATA,
    kinds.LOG_DIRECTORY_NOT_GIVEN,
    kinds.WAITS_FOR_CONTROLLERS,
}


def _is_whole(snapshot: MetadataSnapshot) -> bool:
    try:
        return has_footer(snapshot)
    except (CorruptRecordError, UnreadableFileError):
        return False


def _is_intact(entry: DirectoryEntry) -> bool:
    """Whether a file is one of a segment, or a side file that can be read."""
    name = find_segment_file_name(entry.name)
    if entry.name not in _READERS:
        return name is not None and not name.state
    try:
        _READERS[entry.name](entry.path)
    except (CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
        return False
    return True
