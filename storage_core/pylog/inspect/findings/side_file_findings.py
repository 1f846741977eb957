"""Findings about snapshots, checkpoints and leftovers: small files, read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    CorruptSnapshotError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    CLEANER_OFFSET_CHECKPOINT,
    DELETED_FILE_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    RECOVERY_POINT_CHECKPOINT,
    SWAP_FILE_SUFFIX,
    file_name_prefix,
    find_segment_file_name,
)
from pylog.files.leader_epoch_checkpoint import EpochEntry, read_leader_epoch_checkpoint
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.files.storage import list_directory
from pylog.inspect.findings.finding import note, warning
from pylog.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.findings.finding import Finding
    from pylog.reading.log_view import LogView

_UNREADABLE = "damaged_checkpoint"
_LEFTOVERS = {
    DELETED_FILE_SUFFIX: "from a segment that was deleted, or that compaction replaced",
    CLEANED_FILE_SUFFIX: "from a compaction that did not finish; a broker deletes it",
    SWAP_FILE_SUFFIX: "from a compaction that was not finished when the broker stopped",
}
_ABOVE = {
    HIGH_WATERMARK_CHECKPOINT: ("high_watermark_above_log_end", "high watermark"),
    RECOVERY_POINT_CHECKPOINT: ("recovery_point_above_log_end", "recovery point"),
    CLEANER_OFFSET_CHECKPOINT: ("cleaner_offset_above_log_end", "cleaner offset"),
    LOG_START_OFFSET_CHECKPOINT: ("log_start_offset_above_log_end", "log start offset"),
}


def snapshot_findings(view: LogView) -> Iterator[Finding]:
    """Yield a warning for each producer snapshot that cannot be read."""
    for offset in sorted(view.producer_snapshot_offsets):
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        path = join(view.directory.path, name)
        try:
            read_producer_snapshot(path)
        except (CorruptSnapshotError, UnreadableFileError) as error:
            yield warning("damaged_snapshot", path, str(error.reason))
        except SegmentVanishedError:
            continue  # a broker deletes old ones


def checkpoint_findings(view: LogView, end: int) -> Iterator[Finding]:
    """Yield what is wrong with what checkpoints say of a partition.

    Parameters
    ----------
    view
        Whose partition.
    end
        Offset after the last batch of its files.
    """
    path = join(view.directory.path, PARTITION_METADATA)
    try:
        read_partition_metadata(path)
    except (CorruptCheckpointError, UnreadableFileError) as error:
        yield warning("damaged_metadata", path, str(error.reason))
    except SegmentVanishedError:
        pass  # brokers before 2.8 have none
    for name, (code, what) in _ABOVE.items():
        path = join(view.directory.log_directory, name)
        try:
            offset = read_offset_checkpoint(path).get(view.topic_partition, 0)
        except (CorruptCheckpointError, UnreadableFileError) as error:
            yield warning(_UNREADABLE, path, str(error.reason))
            continue
        if offset > end:
            message = f"{what} of {view.topic_partition} is {offset}, but its batches end at {end}"
            yield warning(code, path, message)


def read_epochs(view: LogView) -> tuple[list[EpochEntry], list[Finding]]:
    """Return the leader epochs of the checkpoint, and a warning if it cannot be read."""
    path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
    try:
        return read_leader_epoch_checkpoint(path), []
    except (CorruptCheckpointError, UnreadableFileError) as error:
        return [], [warning(_UNREADABLE, path, str(error.reason))]


def leftover_findings(view: LogView) -> Iterator[Finding]:
    """Yield a note for each file that is not part of the log, or not under its final name."""
    for entry in list_directory(view.directory.path):
        name = find_segment_file_name(entry.name)
        if name is not None and name.state:
            message = f"file is left over {_LEFTOVERS[name.state]}"
            yield note("leftover_file", entry.path, message)
