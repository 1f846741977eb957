"""What a node makes of its log of the cluster's metadata, and of the files beside it, at its start.

============================== ==================================================================
found                          what a node does
============================== ==================================================================
log of the metadata begins     does not start
above 0, without a snapshot
that reaches it
newest snapshot damaged, or    does not start, though the log may have all that it says
without a batch
newest snapshot without its    starts with what is left of it: partitions of topics that are
footer                         missing become ``-stray``; does not start if the log after it is
                               about what is missing
newest snapshot of a later     deletes the log up to the snapshot
leader than the log, or beyond
its end
only a snapshot 0-0, and no    before 4.4 it does not start
``bootstrap.checkpoint``
``quorum-state`` or            does not start
``bootstrap.checkpoint`` that
cannot be read
level of ``metadata.version``  does not start
that its version does not know
topic with a smaller           from 4.0 on, a broker does not start, whether it has a partition of
``segment.bytes`` than 1 MiB   the topic or not
============================== ==================================================================

Source: KafkaMetadataLog, FileQuorumStateStore, BootstrapDirectory, MetadataVersion, LogManager,
LogConfig (Kafka 4.3); KIP-1030, KIP-1262.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    InvalidRecordError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.quorum_state import QUORUM_STATE, read_quorum_state
from pylog.files.storage import list_directory
from pylog.findings import kinds
from pylog.internal_topics.versions import METADATA_VERSION_LEVELS, KafkaVersion
from pylog.locations import join, parent_of
from pylog.log_file.batch_walk import WholeBatches
from pylog.reading.internal_logs import (
    CLUSTER_METADATA,
    MissingOffsetsError,
    bootstrap_image,
    has_footer,
    is_behind,
    metadata_snapshots,
    usable_snapshots,
)
from pylog.reading.log_directory import open_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pylog.findings.finding import FindingKind
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.reading.log_view import LogView

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
SEGMENT_BYTES = "segment.bytes"
LEAST_SEGMENT_BYTES = 1 << 20
"""Of Kafka 4.0 and later."""


class NodeProblem(NamedTuple):
    """Something that a node does at its start, or why it does not start."""

    kind: FindingKind
    path: str
    reason: str
    is_certain: bool = True  # False where other controllers may know better


def metadata_view(directory: str) -> LogView:
    """Return the log of the metadata; an empty one if no ``.log`` file is left, as for a node."""
    view = open_directory(directory)[CLUSTER_METADATA]
    # A node deletes index files without a .log, and cuts off what is no batch.
    if not view.segments or not _has_end(view):
        view.end = WholeBatches(0, None, None)
    return view


def _has_end(view: LogView) -> bool:
    try:
        _ = view.log_end_offset
    except CorruptRecordError:
        return False
    return True


def problems_of_metadata(
    directory: str,
    metadata: CommittedMetadata | LogStorageError | None,
    kafka_version: KafkaVersion,
) -> Iterator[NodeProblem]:
    """Yield what is wrong with a log of the metadata; ``metadata``: what it says, if known."""
    level = None
    if metadata is not None and not isinstance(metadata, LogStorageError):
        level = metadata.image.metadata_version
    yield from _problems_of_files(directory, level, kafka_version)
    try:
        view = metadata_view(directory)
        if not view.segments and not metadata_snapshots(view):
            reason = "the log of the cluster's metadata is gone"
            yield NodeProblem(kinds.MISSING_METADATA_LOG, directory, reason)
            return
        found = list(_problems_of_snapshots(view, kafka_version))
        if isinstance(metadata, MissingOffsetsError):
            where = view.directory.path
            yield NodeProblem(kinds.UNUSABLE_METADATA, where, metadata.reason, is_certain=False)
        elif isinstance(metadata, InvalidRecordError):
            found = [each for each in found if each[0] != kinds.CUT_METADATA_SNAPSHOT]
            if not found:
                found = [(kinds.UNUSABLE_METADATA, view.directory.path, metadata.reason)]
        for kind, path, reason in found:
            below = path[len(view.directory.path) :]
            yield NodeProblem(kind, directory + below, reason)
        unknown = None if level is None else _level_reason(level, kafka_version)
        if unknown is not None:
            yield NodeProblem(kinds.UNUSABLE_METADATA, directory, unknown)
    except UnreadableFileError as error:
        yield NodeProblem(kinds.UNUSABLE_METADATA, str(error.path or directory), error.reason)
    except LogStorageError as error:
        yield NodeProblem(kinds.UNUSABLE_METADATA, directory, getattr(error, "reason", str(error)))


def too_small_segments(configs: Mapping[str, str]) -> str | None:
    """Return a topic's ``segment.bytes`` where Kafka 4.0 or later refuses it."""
    size = configs.get(SEGMENT_BYTES, "")
    return size if size.isdecimal() and int(size) < LEAST_SEGMENT_BYTES else None


def refused_configs(image: MetadataImage, kafka_version: KafkaVersion) -> Iterator[str]:
    """Yield why a broker does not start with the configurations of topics."""
    if kafka_version < KafkaVersion.V4_0:
        return
    for topic in image.topics:
        size = too_small_segments(topic.configs)
        if size is not None:
            yield (
                f"topic {topic.name} has {SEGMENT_BYTES}={size}, and Kafka 4.0 or later does not "
                f"start with less than {LEAST_SEGMENT_BYTES}: raise it with Kafka 3.9 before the "
                "upgrade"
            )


def _problems_of_files(
    directory: str, level: int | None, kafka_version: KafkaVersion
) -> Iterator[NodeProblem]:
    """Yield what is wrong with the files that a node reads beside its log of the metadata."""
    path = join(directory, QUORUM_STATE)
    try:
        read_quorum_state(path)
    except (CorruptCheckpointError, UnreadableFileError) as error:
        reason = (
            f"{error.reason}. Delete the file: the node takes the epoch from its log then, and "
            "forgets for whom it has voted in it"
        )
        yield NodeProblem(kinds.UNUSABLE_METADATA, path, reason)
    path = join(parent_of(directory), BOOTSTRAP_CHECKPOINT)
    problem = _bootstrap_reason(path, level, kafka_version)
    if problem is not None:
        yield NodeProblem(kinds.UNUSABLE_METADATA, path, problem)


def _bootstrap_reason(
    path: str, level_of_log: int | None, kafka_version: KafkaVersion
) -> str | None:
    try:
        level = bootstrap_image(path).metadata_version
    except SegmentVanishedError:
        return None
    except (CorruptRecordError, InvalidRecordError, UnreadableFileError) as error:
        return error.reason
    if level is None:
        return "no record in it gives the level of metadata.version"
    # Kafka 3.9 looks at the level whether it needs it or not.
    if level_of_log is None or kafka_version < KafkaVersion.V4_0:
        return _level_reason(level, kafka_version)
    return None


def _level_reason(level: int, kafka_version: KafkaVersion) -> str | None:
    lowest, highest = METADATA_VERSION_LEVELS[kafka_version]
    if lowest <= level <= highest:
        return None
    reason = f"metadata.version is {level}, and Kafka {kafka_version} can use {lowest} to {highest}"
    if level < lowest:
        return f"{reason}: raise it with Kafka 3.9 before the upgrade"
    able = [version for version, (_, most) in METADATA_VERSION_LEVELS.items() if level <= most]
    needed = f"Kafka {able[0]} or later" if able else "the version of Kafka that has written it"
    return f"{reason}: start {needed} on this"


def _problems_of_snapshots(
    view: LogView, kafka_version: KafkaVersion
) -> Iterator[tuple[FindingKind, str, str]]:
    snapshots = metadata_snapshots(view)
    if not snapshots:
        usable_snapshots(view)  # raises where the log begins above 0
        return
    newest = snapshots[-1]
    try:
        is_whole = has_footer(newest)
    except CorruptRecordError as error:
        reason = f"the newest snapshot of the metadata is damaged: {error.reason}"
        if not view.local_log_start_offset and newest.end_offset <= view.log_end_offset:
            reason = f"{reason}. The log has all that it says: move the file away"
        yield kinds.UNUSABLE_METADATA, newest.path, reason
        return
    usable_snapshots(view)
    if not is_whole:
        reason = "the newest snapshot of the metadata does not end with its footer"
        yield kinds.CUT_METADATA_SNAPSHOT, newest.path, reason
    if is_behind(view, newest) and view.log_end_offset:
        reason = (
            f"the log ends at offset {view.log_end_offset}, and the newest snapshot is of "
            f"offset {newest.end_offset} and epoch {newest.epoch}, which it does not reach"
        )
        yield kinds.DISCARDED_METADATA, view.directory.path, reason
    is_fresh = newest.end_offset == 0 and not view.log_end_offset
    names = {each.name for each in list_directory(view.directory.log_directory)}
    if is_fresh and kafka_version < KafkaVersion.V4_4 and BOOTSTRAP_CHECKPOINT not in names:
        reason = (
            f"the directory is formatted by Kafka 4.4 or later: {BOOTSTRAP_CHECKPOINT} is "
            f"missing, which Kafka {kafka_version} needs"
        )
        yield kinds.UNUSABLE_METADATA, newest.path, reason
