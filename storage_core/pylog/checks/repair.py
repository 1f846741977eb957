"""The public `repair_copy`: a log directory of what is sound in another one.

Nothing is ever repaired in place. The new directory is made in three steps:

1. The sound bytes of every ``.log`` file are copied, under the same name, with what is sound of
   ``partition.metadata``, of the leader epochs, and of the log directory's files. No index, no
   snapshot, no recovery point and no marker of a clean stop is copied.
2. The directory is opened as its owner (`pylog.log.log_manager`), as after a crash: every segment
   is scanned, and indexes, snapshots and leader epochs are made from the batches.
3. It is closed in order, which writes the checkpoints and the marker.

A crash in it leaves a directory without the marker, which a broker recovers; it is refused as a
target, since it is not empty any more.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.batches import UNREADABLE
from pylog.checks.doctor import doctor, examine
from pylog.checks.report import RepairedPartition, RepairSummary
from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs, write_topic_configs
from pylog.errors import CorruptCheckpointError, LogDirectoryError, SegmentVanishedError
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    file_name_prefix,
)
from pylog.files.leader_epochs import (
    read_leader_epoch_checkpoint,
    write_leader_epoch_checkpoint,
)
from pylog.files.meta_properties import read_meta_properties
from pylog.files.owned_directories import writable_log_directory
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.storage import open_file
from pylog.locations import is_remote, join, parse_location
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.text.names import names_nearest_keyword
from pylog.writing.owned_directory import own_log_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylog.checks.partition import PartitionCheck
    from pylog.log.log_manager import LogManager
    from pylog.model import TopicPartition
    from pylog.reading.damage import DamagedRange
    from pylog.reading.segments import LogSegmentView


_CHUNK_BYTES = 1 << 22
_SIDE_FILE_BYTES = 1 << 18
"""Of each partition, next to a fiftieth of its records: what indexes and snapshots may take. Those
of an active segment are made at their full size, but as holes."""
_NOT_COPIED = frozenset({"__cluster_metadata"})
"""A controller's log is of one piece with its snapshots and its vote: it is not repaired by halves,
and the other controllers have it."""
_EPOCH_CODES = frozenset({"leader_epoch_back", "leader_epoch_disagrees"})


@names_nearest_keyword
def repair_copy(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    stop_at_damage: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RepairSummary:
    """Write a copy of a log directory that holds what is sound in it, and on which a broker boots.

    By default every sound batch is kept, also those after damage: what is lost leaves a gap in the
    offsets, which consumers pass over. A transaction of which damage has cost a part may then be
    given as committed without that part, or stay open where its marker is lost. The log of a
    controller, ``__cluster_metadata``, is not copied.

    Parameters
    ----------
    path
        A log directory, or a topic-partition directory. It is not changed, and no broker should be
        working on it.
    to
        The log directory to be made: it does not exist, or is empty.
    topics, partitions
        As of `doctor`.
    stop_at_damage
        Whether a partition's copy ends before its first damage, as after a broker's recovery: no
        gap, but nothing of what follows.
    threads, progress, max_decompressed_bytes
        As of `doctor`; the progress is that of looking for what is sound.

    Returns
    -------
    RepairSummary
        What was found in the source, what was copied, and what `doctor` says of the copy.

    Raises
    ------
    LogDirectoryError
        ``to`` is not empty, or lies where no log directory can be; there is not enough space; or
        the source cannot be read, be it a single ``.log`` file that cannot be opened.
    KafkaStorageError
        The copy could not be written; it is not finished then.
    SegmentVanishedError
        The source has changed meanwhile.
    """
    target = writable_log_directory(to)
    if os.path.isdir(target) and os.listdir(target):  # noqa: PTH112, PTH208 - kept as text
        reason = "directory is not empty, and a repaired copy is written nowhere else"
        raise LogDirectoryError(reason, target)
    _ensure_apart(target, os.fspath(path))
    source = examine(
        [path],
        topics=topics,
        partitions=partitions,
        threads=threads,
        progress=progress,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    copies = [
        _PartitionCopy.of(each, stop_at_damage=stop_at_damage)
        for each in source.partitions
        if each.view.topic not in _NOT_COPIED
    ]
    _ensure_each_once(copies)
    _ensure_readable(copies)
    _ensure_space(target, copies)
    io = DurableIO()
    io.make_directory(target, exist_ok=True)
    try:
        for copy in copies:
            copy.write(io, target)
        _copy_log_directory_files(io, copies, target)
        with own_log_directory(target) as manager:
            repaired = [_repaired(copy, manager, target) for copy in copies]
    except BaseException as error:  # Ctrl-C among them
        text = f"the copy in {target} is not finished: remove it, and start no broker on it"
        error.add_note(text)
        raise
    report = doctor(target, threads=threads, max_decompressed_bytes=max_decompressed_bytes)
    left_out = [
        each.view.topic_partition for each in source.partitions if each.view.topic in _NOT_COPIED
    ]
    return RepairSummary(target, source.report, repaired, report, left_out)


class _SegmentCopy(NamedTuple):
    """Bytes ``[start, end)`` of one ``.log`` file that are copied, in order."""

    segment: LogSegmentView
    ranges: list[tuple[int, int]]

    @property
    def size_bytes(self) -> int:
        return sum(end - start for start, end in self.ranges)


class _PartitionCopy(NamedTuple):
    """What is to be copied of one partition."""

    check: PartitionCheck
    segments: list[_SegmentCopy]

    @classmethod
    def of(cls, check: PartitionCheck, *, stop_at_damage: bool) -> _PartitionCopy:
        """Return the sound bytes of a partition, all or those before the first damage."""
        segments = []
        last = len(check.view.segments) - 1
        for index, segment in enumerate(check.view.segments):
            damaged = [each for each in check.damaged if each.path == segment.file_path()]
            end = check.segment_ends[index]
            if damaged and stop_at_damage:
                segments.append(_SegmentCopy(segment, [(0, damaged[0].position)]))
                break
            ranges = list(_sound_ranges(damaged, end))
            # An empty one may be what compaction left; the last one says where the log ends.
            if ranges or not damaged or index == last:
                segments.append(_SegmentCopy(segment, ranges))
        return cls(check, segments)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.segments)

    def write(self, io: DurableIO, target: str) -> None:
        """Copy the partition below ``target``."""
        view = self.check.view
        directory = join(target, str(view.topic_partition))
        io.make_directory(directory)
        for each in self.segments:
            name = f"{file_name_prefix(each.segment.base_offset)}.log"
            _copy_ranges(io, each, join(directory, name))
        _copy_metadata(io, view.directory.path, directory)
        if not any(each.code in _EPOCH_CODES for each in self.check.findings):
            _copy_epochs(io, view.directory.path, directory)
        io.sync_directory(directory)


def _sound_ranges(damaged: Iterable[DamagedRange], end: int) -> Iterator[tuple[int, int]]:
    """Yield what lies between damaged ranges, up to the end of the last whole batch."""
    start = 0
    for each in damaged:
        if start < each.position:
            yield start, each.position
        start = each.end_position
    if start < end:
        yield start, end


def _copy_ranges(io: DurableIO, copy: _SegmentCopy, target: str) -> None:
    with io.open(target, create=True) as file:
        at = 0
        if copy.ranges:
            with copy.segment.open_log() as source:
                for start, end in copy.ranges:
                    for position in range(start, end, _CHUNK_BYTES):
                        wanted = min(_CHUNK_BYTES, end - position)
                        data = source.read_at(position, wanted)
                        if len(data) < wanted:
                            reason = "file is shorter than when it was looked at"
                            raise SegmentVanishedError(reason, copy.segment.file_path())
                        file.write_at(at, data)
                        at += wanted
        file.sync()


def _copy_metadata(io: DurableIO, source: str, target: str) -> None:
    path = join(source, PARTITION_METADATA)
    try:
        read_partition_metadata(path)
    except (CorruptCheckpointError, LogDirectoryError, SegmentVanishedError):
        return
    _copy_small_file(io, path, join(target, PARTITION_METADATA))


def _copy_epochs(io: DurableIO, source: str, target: str) -> None:
    try:
        epochs = read_leader_epoch_checkpoint(join(source, LEADER_EPOCH_CHECKPOINT))
    except (CorruptCheckpointError, LogDirectoryError):
        return
    if epochs:
        write_leader_epoch_checkpoint(io, join(target, LEADER_EPOCH_CHECKPOINT), epochs)


def _copy_small_file(io: DurableIO, source: str, target: str) -> None:
    with open_file(source) as file:
        io.write_atomically(target, file.read_at(0, file.size()))


def _copy_log_directory_files(io: DurableIO, copies: list[_PartitionCopy], target: str) -> None:
    """Copy whose directory it is, configs of topics, and sound offsets of checkpoints."""
    if not copies:
        return
    source = copies[0].check.view.directory.log_directory
    try:
        read_meta_properties(join(source, META_PROPERTIES))
        _copy_small_file(io, join(source, META_PROPERTIES), join(target, META_PROPERTIES))
    except (CorruptCheckpointError, LogDirectoryError, SegmentVanishedError):
        pass  # the report has it
    with suppress(CorruptCheckpointError, LogDirectoryError):  # the report has it
        configs = read_topic_configs(join(source, TOPIC_CONFIGS))
        if configs:
            write_topic_configs(io, join(target, TOPIC_CONFIGS), configs)
    ends = {copy.check.view.topic_partition: copy.check.end_offset for copy in copies}
    for name in (LOG_START_OFFSET_CHECKPOINT, CLEANER_OFFSET_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT):
        try:
            stored = read_offset_checkpoint(join(source, name))
        except (CorruptCheckpointError, LogDirectoryError):
            continue
        sound = {
            partition: offset
            for partition, offset in stored.items()
            if partition in ends and 0 <= offset <= ends[partition]
        }
        if sound:
            write_offset_checkpoint(io, join(target, name), sound)


def _ensure_apart(target: str, source: str) -> None:
    """Refuse a copy that would lie in what is copied: a broker takes it for a partition there."""
    if is_remote(parse_location(source)):
        return
    if Path(target).resolve().is_relative_to(Path(parse_location(source)).resolve()):
        reason = f"directory lies in {source}, which is copied and not to be changed"
        raise LogDirectoryError(reason, target)


def _ensure_each_once(copies: Iterable[_PartitionCopy]) -> None:
    """Refuse to choose between two directories of one partition (t-0 and t-00)."""
    paths: dict[TopicPartition, str] = {}
    for copy in copies:
        view = copy.check.view
        other = paths.setdefault(view.topic_partition, view.directory.path)
        if other != view.directory.path:
            reason = (
                f"partition {view.topic_partition} lies in {other}, too: repair one of the two "
                "directories by its own path, and the other partitions by theirs"
            )
            raise LogDirectoryError(reason, view.directory.path)


def _ensure_readable(copies: Iterable[_PartitionCopy]) -> None:
    """Refuse to leave out what may well be sound: it only could not be opened."""
    for copy in copies:
        for each in copy.check.findings:
            if each.code == UNREADABLE:
                reason = (
                    f"{each.message}; what is in it may be sound, and a repaired copy would lack "
                    "it: make it readable, or choose the other partitions alone"
                )
                raise LogDirectoryError(reason, each.path)


def _ensure_space(target: str, copies: Iterable[_PartitionCopy]) -> None:
    """Refuse to begin what the disk has no room for."""
    needed = sum(copy.size_bytes * 51 // 50 + _SIDE_FILE_BYTES for copy in copies)
    existing = target
    while not os.path.exists(existing):  # noqa: PTH110 - kept as text
        existing = os.path.dirname(existing.rstrip("/")) or os.curdir  # noqa: PTH120
    free = shutil.disk_usage(existing).free
    if free < needed:
        reason = f"a repaired copy needs {needed} bytes, and {free} are free"
        raise LogDirectoryError(reason, target)


def _repaired(copy: _PartitionCopy, manager: LogManager, target: str) -> RepairedPartition:
    topic_partition = copy.check.view.topic_partition
    return RepairedPartition(
        topic_partition,
        join(target, str(topic_partition)),
        copy.size_bytes,
        copy.check.size_bytes - copy.size_bytes,
        manager.get_log(topic_partition).log_end_offset,
    )
