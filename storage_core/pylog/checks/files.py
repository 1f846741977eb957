"""A partition's directory, its checkpoints, and files that were left over.

They are the checkpoints that show what lies in remote storage, see `pylog.reading.log_view`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.namesakes import may_hold
from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.checkpoint_file import CheckpointNumberError, known_offset_checkpoint
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    CLEANER_OFFSET_CHECKPOINT,
    DELETED_FILE_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    MANIFEST,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    SWAP_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    file_name_prefix,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.java_numbers import find_offset_of
from pylog.files.leader_epochs import (
    EpochEntry,
    read_epoch_entries,
    read_leader_epoch_checkpoint,
)
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.storage import is_folder, list_directory, open_file
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.lazy_modules import LazyModule
from pylog.locations import join, name_of, parent_of
from pylog.reading.log_view import RemoteOffsets, find_remote_offsets, remote_offsets_note
from pylog.text.words import named, offsets_text

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from pylog.files.file_names import SegmentFileName
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.reading.pending_commit import PendingCommit
    from pylog.writing import node as node_rules  # imports NumPy; `pylog ls` starts without
    from pylog.writing.node import Node
else:
    node_rules = LazyModule("pylog.writing.node")


def directory_findings(
    view: LogView, node: Node | None = None, pending: PendingCommit | None = None
) -> Iterator[Finding]:
    """Yield what the names in a partition directory show, and where its log begins elsewhere.

    Without ``node``, it is the one of the log directory alone; without ``pending``, the view's.
    """
    yield from _missing_logs(view)
    yield from (_misnamed_log(view, name) for name in view.listing.misnamed_logs)
    of_commit = list(_pending_commit(view, pending or view.pending))
    yield from of_commit
    if any(each.kind == kinds.DAMAGED_MANIFEST for each in of_commit):
        return  # where the log ends for readers, nobody knows
    remote = find_remote_offsets(view)
    was_here = _first_segment_that_was_here(view)
    if remote is None and was_here is not None:
        remote = RemoteOffsets(was_here, view.local_log_start_offset)
    if remote is not None and not _shows_remote_storage(view, node):
        start, end = remote.start_offset, remote.end_offset
        message = (
            f"the log begins at offset {end}; it began at {start}, side files say, and nothing "
            "here shows remote storage"
        )
        message += may_hold(view.directory.path, start, end)
        # Of a log that was not closed in order, side files may be older than its last retention.
        is_lost = was_here is not None or has_clean_shutdown(view.directory.log_directory)
        severity = Severity.ERROR if is_lost else Severity.WARNING
        place = view.directory.path
        yield kinds.MISSING_SEGMENT.found(place, message, None, None, start, end, severity=severity)
    elif remote is not None:
        yield kinds.REMOTE_OFFSETS.found(
            view.directory.path,
            remote_offsets_note(remote),
            next_offset=remote.start_offset,
            end_offset=remote.end_offset,
        )


def _first_segment_that_was_here(view: LogView) -> int | None:
    """Return where the first segment began whose indexes are here, and whose ``.log`` is not.

    A broker that deletes a segment renames its ``.log`` first.
    """
    first = view.local_log_start_offset
    bases = [each for each in view.listing.base_offsets_without_log if each < first]
    start = 0
    with suppress(CorruptCheckpointError, LogDirectoryError):
        start = view.checkpointed_log_start_offset or 0
    if not view.segments or not bases or start >= first:
        return None
    names = {each.name for each in list_directory(view.directory.path) if not is_folder(each)}
    logs = {file_name_prefix(each) + LOG_FILE_SUFFIX: each for each in bases}
    gone = [base for log, base in logs.items() if log + DELETED_FILE_SUFFIX not in names]
    return max(gone[0], start) if gone else None


def _misnamed_log(view: LogView, name: str) -> Finding:
    """Return what a broker does with a ``.log`` file of an unusual name; it reads none of them.

    Source: LogLoader.loadSegmentFiles (Kafka 4.4).
    """
    message = f"file ends in {LOG_FILE_SUFFIX}, but is not named like a segment: it is not read"
    finding = kinds.MISNAMED_LOG.found(join(view.directory.path, name), message)
    offset = find_offset_of(name)
    if offset is None:
        action = "it does not start: what is before the first dot is not a number of 64 bits"
        return finding._replace(own_effect=Effect.REFUSES, own_action=action)
    bases = [each.base_offset for each in view.segments]
    if offset in bases:
        return finding._replace(own_action="it does not read the file")
    if offset < 0:
        action = "it makes an empty segment before all others, so that the log begins at offset 0"
        return finding._replace(own_action=action)
    action = f"it makes an empty segment at offset {offset}"
    end = next((base for base in bases if base > offset), None)
    if end is None:
        with suppress(CorruptRecordError):
            end = view.log_end_offset
    if not bases or offset < bases[0] or (end is not None and offset >= end):
        return finding._replace(own_action=action)
    action += ", which hides the records of the segment before it from there on"
    return finding._replace(
        next_offset=offset, end_offset=end, own_effect=Effect.CONSUMERS, own_action=action
    )


def _shows_remote_storage(view: LogView, node: Node | None) -> bool:
    log_directory = view.directory.log_directory
    node = node or node_rules.nodes_of([log_directory])[log_directory]
    return node.shows_remote_storage(view.topic)


def _pending_commit(view: LogView, pending: PendingCommit) -> Iterator[Finding]:
    """Say so if a commit to the log is under way, or was interrupted."""
    path = join(view.directory.log_directory, MANIFEST)
    try:
        end, manifest = pending.end_offset_of(view.topic_partition), pending.manifest()
    except (CorruptCheckpointError, CorruptRecordError, SegmentVanishedError) as error:
        yield kinds.DAMAGED_MANIFEST.found(path, str(error))
        return
    if end is None or manifest is None:
        return
    message = (
        f"a commit of {manifest.key} is under way or was interrupted; none of it is read: the log "
        f"ends at offset {end}. Whatever opens the log directory to write next completes it"
    )
    yield kinds.PENDING_COMMIT.found(path, message, next_offset=end)


def _missing_logs(view: LogView) -> Iterator[Finding]:
    """Yield a finding if there are index files without their ``.log``.

    A broker that crashes while it deletes a segment leaves such files, and deletes them when it
    starts. Where no ``.log`` is left at all, it starts with an empty log: that is a loss, unless a
    crash has met the making of the log.
    """
    bases = view.listing.base_offsets_without_log
    if not bases:
        return
    listed = named(list(map(str, bases)))
    message = f"index files have no .log file beside them, at base offsets {listed}"
    severity = Severity.WARNING
    if view.was_being_created:
        message += "; they were made for an empty log, and have no entry"
    elif not view.segments:
        severity = Severity.ERROR
        message += "; no .log file is left"
    yield kinds.MISSING_LOG.found(
        view.directory.path, message, next_offset=bases[0], severity=severity
    )


_LEFTOVERS = {
    DELETED_FILE_SUFFIX: "from a segment that was deleted, or that compaction replaced",
    CLEANED_FILE_SUFFIX: "from a compaction that did not finish; a broker deletes it",
    SWAP_FILE_SUFFIX: "from a compaction that was not finished when the broker stopped",
}
_ABOVE = {
    HIGH_WATERMARK_CHECKPOINT: (kinds.HIGH_WATERMARK_ABOVE_LOG_END, "high watermark"),
    RECOVERY_POINT_CHECKPOINT: (kinds.RECOVERY_POINT_ABOVE_LOG_END, "recovery point"),
    CLEANER_OFFSET_CHECKPOINT: (kinds.CLEANER_OFFSET_ABOVE_LOG_END, "cleaner offset"),
    LOG_START_OFFSET_CHECKPOINT: (kinds.LOG_START_OFFSET_ABOVE_LOG_END, "log start offset"),
}


_WITH_A_WRONG_NUMBER: dict[str, tuple[Severity, Effect | None, str]] = {
    RECOVERY_POINT_CHECKPOINT: (
        Severity.WARNING,
        None,
        "it takes the file for empty: after an unclean shutdown it scans all segments",
    ),
    HIGH_WATERMARK_CHECKPOINT: (
        Severity.ERROR,
        Effect.UNSERVED,
        "it starts, and serves no partition of this log directory",
    ),
    CLEANER_OFFSET_CHECKPOINT: (
        Severity.WARNING,
        None,
        "it starts, and compacts no partition of this log directory",
    ),
    LOG_START_OFFSET_CHECKPOINT: (
        Severity.ERROR,
        Effect.CONSUMERS,
        "it takes the file for empty: deleted records come back",
    ),
}
"""What a number that cannot be read does in each checkpoint, in all versions: it is no I/O error.

Source: LogManager.loadLogs, ReplicaManager.applyDelta, LogCleanerManager (Kafka 4.4).
"""


def stored_topic_id(view: LogView) -> uuid.UUID | None:
    """Return the id in ``partition.metadata``, None if there is none that can be read."""
    try:
        metadata = view.metadata
    except (CorruptCheckpointError, LogDirectoryError):
        return None  # a finding of the partition
    return None if metadata is None else metadata.topic_id


_REACHED = (HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT)
"""What says up to where a log had records."""


_NO_METADATA = ("partition metadata has 0 lines", "is not a UUID")
"""With which ``partition.metadata`` a broker's process ends, and not only its log directory."""


class Checkpoints(NamedTuple):
    """What checkpoints say of one partition, read before the end of its log is looked for.

    A broker that goes on working writes them after it has appended, so that they are never above
    an end that is found later.
    """

    offsets: dict[str, int]  # by the name of the file; of those that have a line of the partition
    # its leader epochs; empty where there is no checkpoint, or none that can be read
    epochs: list[EpochEntry]
    # what cannot be read: first about the epochs, then as in `checkpoint_findings`
    findings: list[Finding]


def read_checkpoints(view: LogView) -> Checkpoints:
    """Return what the checkpoints of a partition, and of its log directory, say of it."""
    offsets: dict[str, int] = {}
    epochs, findings = _read_epochs(view)
    path = join(view.directory.path, PARTITION_METADATA)
    try:
        read_partition_metadata(path)
    except (CorruptCheckpointError, UnreadableFileError) as error:
        found = kinds.DAMAGED_METADATA.found(path, str(error.reason))
        is_offline = not any(each in found.message for each in _NO_METADATA)
        findings.append(found._replace(own_effect=Effect.OFFLINE) if is_offline else found)
    except SegmentVanishedError:
        pass  # brokers before 2.8 have none
    for name in _ABOVE:
        path = join(view.directory.log_directory, name)
        try:
            offset = known_offset_checkpoint(path).get(view.topic_partition)
        except (CorruptCheckpointError, UnreadableFileError) as error:
            findings.append(_unreadable_checkpoint(path, error))
            continue
        if offset is not None:
            offsets[name] = offset
    return Checkpoints(offsets, epochs, findings)


def checkpoint_findings(
    view: LogView, checkpoints: Checkpoints, end: int | None
) -> Iterator[Finding]:
    """Yield what is wrong with what checkpoints say of a partition, whose end may be unknown."""
    yield from checkpoints.findings
    if end is not None:
        yield from _findings_at_end(view, checkpoints, end)
    cleaner_offset = checkpoints.offsets.get(CLEANER_OFFSET_CHECKPOINT)
    log_start = checkpoints.offsets.get(LOG_START_OFFSET_CHECKPOINT, 0)
    log_start = max(log_start, view.local_log_start_offset)
    if cleaner_offset is not None and cleaner_offset < log_start:
        path = join(view.directory.log_directory, CLEANER_OFFSET_CHECKPOINT)
        message = f"cleaner offset of {view.topic_partition} is {cleaner_offset}, its log starts at"
        yield kinds.CLEANER_OFFSET_BELOW_LOG_START.found(path, f"{message} {log_start}")


def _findings_at_end(view: LogView, checkpoints: Checkpoints, end: int) -> Iterator[Finding]:
    for name, (kind, what) in _ABOVE.items():
        offset = checkpoints.offsets.get(name, 0)
        path = join(view.directory.log_directory, name)
        if offset > end:
            message = f"{what} of {view.topic_partition} is {offset}, but its batches end at {end}"
            found = kind.found(path, message, severity=Severity.WARNING)
            if name in _REACHED and had_more(view, checkpoints, end):
                found = found._replace(severity=Severity.ERROR, next_offset=end, end_offset=offset)
            yield found
    high_watermark = checkpoints.offsets.get(HIGH_WATERMARK_CHECKPOINT)
    if high_watermark is not None and high_watermark < end:
        path = join(view.directory.log_directory, HIGH_WATERMARK_CHECKPOINT)
        message = (
            f"high watermark of {view.topic_partition} is {high_watermark}, and its batches end at "
            f"{end}: that the records between are in all replicas was not known"
        )
        yield kinds.HIGH_WATERMARK_BELOW_LOG_END.found(
            path, message, next_offset=high_watermark, end_offset=end
        )
    beyond = [each for each in checkpoints.epochs if each.start_offset > end]
    if beyond:
        path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
        epoch, start = beyond[0]
        message = f"leader epoch {epoch} begins at offset {start}, but the batches end at {end}"
        yield kinds.LEADER_EPOCH_ABOVE_LOG_END.found(path, message)


def had_more(view: LogView, checkpoints: Checkpoints, end: int) -> bool:
    """Whether the log reached beyond its last batch, as more than a stray checkpoint says.

    A broker that stops in order writes where each log ends three times: as its recovery point, its
    high watermark, unless replicas lag, and in the name of a producer snapshot. Of one that has
    crashed the high watermark alone tells.
    """
    high_watermark, recovery_point = (checkpoints.offsets.get(each, 0) for each in _REACHED)
    if not has_clean_shutdown(view.directory.log_directory):
        return max(high_watermark, recovery_point) > end
    has_snapshot = any(each > end for each in view.producer_snapshot_offsets)
    return recovery_point > end and (high_watermark > end or has_snapshot)


def log_start_findings(view: LogView, checkpoints: Checkpoints, node: Node) -> Iterator[Finding]:
    """Yield one for each line of a log's start that is on a disk where the log is not any more.

    A broker looks for it beside the log alone.

    Source: LogManager.loadLogs (Kafka 4.3).
    """
    topic_partition, here = view.topic_partition, view.directory.log_directory
    start = checkpoints.offsets.get(LOG_START_OFFSET_CHECKPOINT, 0)
    start = max(start, view.local_log_start_offset)
    elsewhere = node.offsets_elsewhere(LOG_START_OFFSET_CHECKPOINT, topic_partition, here)
    for path, offset in elsewhere.items():
        if offset <= start or _holds(parent_of(path), topic_partition):
            continue
        message = (
            f"says that {topic_partition} starts at offset {offset}; the log lies in {here}, and "
            f"starts at {start} there: records come back that were deleted"
        )
        found = kinds.LOG_START_OFFSET_ELSEWHERE.found(path, message)
        yield found._replace(next_offset=start, end_offset=offset, own_effect=Effect.CONSUMERS)


def _holds(log_directory: str, topic_partition: TopicPartition) -> bool:
    """Whether a log directory has the partition, or a copy of it that is being moved."""
    try:
        names = [each.name for each in list_directory(log_directory)]
    except LogDirectoryError:
        return True  # which is a finding
    found = map(find_partition_directory_name, names)
    return any(each is not None and each.topic_partition == topic_partition for each in found)


def _read_epochs(view: LogView) -> tuple[list[EpochEntry], list[Finding]]:
    """Return the leader epochs of the checkpoint, and a warning if it cannot be read."""
    path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
    try:
        return read_leader_epoch_checkpoint(path), []
    except (CorruptCheckpointError, UnreadableFileError) as error:
        with suppress(CorruptCheckpointError, UnreadableFileError):
            _ = read_epoch_entries(path)  # then each line by itself is right
            return [], [kinds.CONTRADICTING_EPOCHS.found(path, str(error.reason))]
        return [], [_unreadable_checkpoint(path, error)]


def unreadable_checkpoints(log_directory: str) -> Iterator[Finding]:
    """Yield what is wrong with each checkpoint of a log directory that cannot be read."""
    for name in _ABOVE:
        path = join(log_directory, name)
        try:
            known_offset_checkpoint(path)
        except (CorruptCheckpointError, UnreadableFileError) as error:
            yield _unreadable_checkpoint(path, error)


def _unreadable_checkpoint(
    path: str, error: CorruptCheckpointError | UnreadableFileError
) -> Finding:
    reason = str(error.reason)
    finding = kinds.DAMAGED_CHECKPOINT.found(path, reason, severity=Severity.ERROR)
    if not isinstance(error, CheckpointNumberError):
        return finding._replace(own_effect=Effect.OFFLINE)
    if name_of(path) not in _WITH_A_WRONG_NUMBER:
        return finding
    severity, effect, action = _WITH_A_WRONG_NUMBER[name_of(path)]
    return finding._replace(severity=severity, own_effect=effect, own_action=action)


def lost_leftover(path: str, start: int, end: int) -> Finding:
    """Return that a broker deletes a file that alone holds offsets ``[start, end)`` of a log."""
    message = f"no other file holds {offsets_text(start, end)} of the log"
    finding = kinds.LOST_AT_START.found(path, message, None, None, start, end)
    return finding._replace(own_action="it deletes the file")


def leftover_findings(view: LogView) -> Iterator[Finding]:
    """Yield one for each file that is not part of the log, or not under its final name."""
    for entry in list_directory(view.directory.path) if view.leftover_file_count else ():
        name = find_segment_file_name(entry.name)
        if name is not None and name.state and not is_folder(entry):
            message = f"file is left over {_LEFTOVERS[name.state]}"
            replaced = entry.path.removesuffix(name.state)
            if name.suffix != LOG_FILE_SUFFIX and _replaces_another(entry.path, view):
                yield _replaced_index(name, entry.path, replaced)
            else:
                yield kinds.LEFTOVER_FILE.found(entry.path, message, severity=Severity.INFO)


def _replaces_another(path: str, view: LogView) -> bool:
    """Whether a ``.swap`` file takes the place of an index of a segment that stays, and differs.

    A broker takes the suffix off the ``.log`` first, and the old index is gone then.
    """
    live = {each.file_path(suffix) for each in view.segments for suffix in each.suffixes}
    replaced = path.removesuffix(SWAP_FILE_SUFFIX)
    if replaced == path or replaced not in live:
        return False
    with (
        suppress(LogDirectoryError, SegmentVanishedError),
        open_file(path) as swap,
        open_file(replaced) as old,
    ):
        return swap.read_at(0, swap.size()) != old.read_at(0, old.size())
    return False


def _replaced_index(name: SegmentFileName, path: str, replaced: str) -> Finding:
    """Return that a start puts another index in the place of a segment's."""
    message = f"file differs from {name_of(replaced)}, whose segment stays"
    decides = name.suffix == TXN_INDEX_FILE_SUFFIX  # which transactions were aborted
    return kinds.LEFTOVER_FILE.found(
        path,
        message,
        own_effect=Effect.CONSUMERS if decides else None,
        own_action=f"it puts the file in the place of {name_of(replaced)}, whatever is in it",
        severity=Severity.ERROR if decides else Severity.WARNING,
    )
