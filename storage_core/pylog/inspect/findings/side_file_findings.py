"""Findings about checkpoints and leftovers: small files, read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
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
    RECOVERY_POINT_CHECKPOINT,
    SWAP_FILE_SUFFIX,
    find_segment_file_name,
)
from pylog.files.leader_epochs import EpochEntry, read_leader_epoch_checkpoint
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.storage import list_directory
from pylog.inspect.findings.finding import info, warning
from pylog.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.findings.finding import Finding
    from pylog.reading.log_view import LogView

UNREADABLE_CHECKPOINT = "damaged_checkpoint"
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


class Checkpoints(NamedTuple):
    """What checkpoints say of one partition, read before the end of its log is looked for.

    A broker that goes on working writes them after it has appended, so that they are never above
    an end that is found later.

    Attributes
    ----------
    offsets
        By the name of the file; of those that have a line of the partition.
    epochs
        Its leader epochs; empty where there is no checkpoint, or none that can be read.
    findings
        What cannot be read: first about the epochs, then as in `checkpoint_findings`.
    """

    offsets: dict[str, int]
    epochs: list[EpochEntry]
    findings: list[Finding]


def read_checkpoints(view: LogView) -> Checkpoints:
    """Return what the checkpoints of a partition, and of its log directory, say of it."""
    offsets: dict[str, int] = {}
    epochs, findings = _read_epochs(view)
    path = join(view.directory.path, PARTITION_METADATA)
    try:
        read_partition_metadata(path)
    except (CorruptCheckpointError, UnreadableFileError) as error:
        findings.append(warning("damaged_metadata", path, str(error.reason)))
    except SegmentVanishedError:
        pass  # brokers before 2.8 have none
    for name in _ABOVE:
        path = join(view.directory.log_directory, name)
        try:
            offset = read_offset_checkpoint(path).get(view.topic_partition)
        except (CorruptCheckpointError, UnreadableFileError) as error:
            findings.append(warning(UNREADABLE_CHECKPOINT, path, str(error.reason)))
            continue
        if offset is not None:
            offsets[name] = offset
    return Checkpoints(offsets, epochs, findings)


def checkpoint_findings(view: LogView, checkpoints: Checkpoints, end: int) -> Iterator[Finding]:
    """Yield what is wrong with what checkpoints say of a partition.

    Parameters
    ----------
    view
        Whose partition.
    checkpoints
        Of the partition.
    end
        Offset after the last batch of its files.
    """
    yield from checkpoints.findings
    for name, (code, what) in _ABOVE.items():
        offset = checkpoints.offsets.get(name, 0)
        path = join(view.directory.log_directory, name)
        if offset > end:
            message = f"{what} of {view.topic_partition} is {offset}, but its batches end at {end}"
            yield warning(code, path, message)
    cleaner_offset = checkpoints.offsets.get(CLEANER_OFFSET_CHECKPOINT)
    log_start = checkpoints.offsets.get(LOG_START_OFFSET_CHECKPOINT, 0)
    log_start = max(log_start, view.local_log_start_offset)
    if cleaner_offset is not None and cleaner_offset < log_start:
        path = join(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT)
        message = f"cleaner offset of {view.topic_partition} is {cleaner_offset}, its log starts at"
        yield info("cleaner_offset_below_log_start", path, f"{message} {log_start}")
    beyond = [each for each in checkpoints.epochs if each.start_offset > end]
    if beyond:
        path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
        epoch, start = beyond[0]
        message = f"leader epoch {epoch} begins at offset {start}, but the batches end at {end}"
        yield warning("leader_epoch_above_log_end", path, message)


def _read_epochs(view: LogView) -> tuple[list[EpochEntry], list[Finding]]:
    """Return the leader epochs of the checkpoint, and a warning if it cannot be read."""
    path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
    try:
        return read_leader_epoch_checkpoint(path), []
    except (CorruptCheckpointError, UnreadableFileError) as error:
        return [], [warning(UNREADABLE_CHECKPOINT, path, str(error.reason))]


def leftover_findings(view: LogView) -> Iterator[Finding]:
    """Yield one for each file that is not part of the log, or not under its final name."""
    for entry in list_directory(view.directory.path):
        name = find_segment_file_name(entry.name)
        if name is not None and name.state:
            message = f"file is left over {_LEFTOVERS[name.state]}"
            yield info("leftover_file", entry.path, message)
