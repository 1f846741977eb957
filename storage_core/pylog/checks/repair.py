"""The public `repair_copy`: a log directory of what is intact in another one.

Nothing is ever repaired in place. The new directory is made in four steps:

1. Intact batches are copied (`pylog.checks.rescue`), with what is valid of the leader epochs and of
   the log directory's files, and with the topic's id, from ``partition.metadata``, from the
   cluster's metadata, or from another partition of the topic. No index, no snapshot, no recovery
   point and no marker of a clean stop is copied.
2. The directory is opened as its owner (`pylog.log.log_manager`), as after a crash: every segment
   is scanned, and indexes, snapshots and leader epochs are made from the batches.
3. It is closed in order, which writes the checkpoints and the marker.
4. What is intact of the log of the cluster's metadata is copied as it is, if that is the whole log
   and this node is the only controller (`pylog.checks.metadata_copy`). Elsewhere the other
   controllers have it, and give it to the node.

A ``-future`` directory is copied as the partition if there is no live one, or if it is longer and
begins with all that the live one has.

A crash in it leaves a directory without the marker, which a broker recovers; it is refused as a
target, since it is not empty any more.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.doctor import doctor, examine
from pylog.checks.files import stored_topic_id
from pylog.checks.future_logs import extends
from pylog.checks.metadata_copy import copy_metadata
from pylog.checks.partition import check_partition
from pylog.checks.report import RepairedPartition, RepairSummary
from pylog.checks.rescue import doubt, kept_of_overlaps, lacking, rescue
from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs, write_topic_configs
from pylog.errors import CorruptCheckpointError, LogDirectoryError, SegmentVanishedError
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    FUTURE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    file_name_prefix,
    find_segment_file_name,
)
from pylog.files.free_space import NeededSpace, ensure_space, log_space
from pylog.files.leader_epochs import (
    read_leader_epoch_checkpoint,
    write_leader_epoch_checkpoint,
)
from pylog.files.ledger import copy_ledger
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import format_uuid, write_partition_metadata
from pylog.files.storage import open_file
from pylog.findings import kinds
from pylog.findings.finding import Effect
from pylog.locations import (
    join,
    name_of,
    parent_of,
    printable_location,
)
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.record.batch_header import OFFSET_LENGTH
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.text.names import names_nearest_keyword
from pylog.writing.new_log_directory import ensure_new, new_log_directory
from pylog.writing.node import nodes_of
from pylog.writing.owned_directory import own_log_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.checks.doctor import Examined
    from pylog.checks.partition_check import PartitionCheck
    from pylog.checks.report import DoctorReport
    from pylog.checks.rescue import Piece, SegmentCopy
    from pylog.files.byte_source import ByteSource
    from pylog.files.writable_file import WritableFile
    from pylog.findings.finding import Finding
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node


_CHUNK_BYTES = 1 << 22
"""Of each partition, next to a fiftieth of its records: what indexes and snapshots may take. Those
of an active segment are made at their full size, but as holes."""
_EPOCH_KINDS = frozenset({kinds.LEADER_EPOCH_BACK, kinds.LEADER_EPOCH_DISAGREES})


@names_nearest_keyword
def repair_copy(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    to: str | os.PathLike[str],
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RepairSummary:
    """Write a copy of what is intact in a log directory, from which a broker can start.

    Every sound batch is kept, also those after damage, and those that stand where they do not
    belong: what is lost leaves a gap in the offsets, which consumers pass over. A transaction of
    which damage has cost a part may then be given as committed without that part, or stay open
    where its marker is lost. ``__cluster_metadata`` is copied where all of it is intact and the
    node is the only controller; a ``-future`` directory where it is all that is left of the
    partition, or has all of the live one and more.

    Parameters
    ----------
    path
        A log directory, or a topic-partition directory. It is not changed, and no broker should be
        working on it. Or several of them: the log directories of a node.
    to
        The log directory to be made: it does not exist, or is empty; what an interrupted call has
        left there is replaced. Of several paths, the directory in which one is made for each of
        them, under the name that it has there.
    topics, partitions
        As of `doctor`.
    threads, progress, max_decompressed_bytes
        See `doctor`; the progress is that of the first step, which looks for what is intact.

    Returns
    -------
    RepairSummary
        What was found in the source, what was copied, and what `doctor` says of the copy.

    Raises
    ------
    LogDirectoryError
        ``to`` is not empty, or lies where no log directory can be; there is not enough space; two
        of several log directories have the same name; or the source cannot be read, be it a single
        ``.log`` file that cannot be opened.
    KafkaStorageError
        The copy could not be written; nothing is left of it.
    LogLockedError
        Another call, or a broker, works on ``to``.
    SegmentVanishedError
        The source has changed meanwhile.

    Examples
    --------
    >>> summary = pylog.repair_copy("kafka/damaged", "repaired", topics=["orders"])
    >>> [(str(each.topic_partition), each.missing) for each in summary.partitions]
    [('orders-0', [(15, 28)]), ('orders-1', [(42, 49)])]
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    place = ensure_new(to, apart_from=paths, what="the repaired copy")
    return write_repaired_copy(
        paths,
        place,
        topics=topics,
        partitions=partitions,
        threads=threads,
        progress=progress,
        max_decompressed_bytes=max_decompressed_bytes,
    )


def write_repaired_copy(  # noqa: PLR0913 - what `repair_copy` has
    paths: Sequence[str | os.PathLike[str]],
    place: str,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> RepairSummary:
    """Do what `repair_copy` does, once it is known that a copy can be made at a place."""
    source = examine(
        paths,
        topics=topics,
        partitions=partitions,
        threads=threads,
        progress=progress,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    views = [*(each.view for each in source.partitions), *source.not_live]
    nodes = nodes_of(each.directory.log_directory for each in views)
    chosen = _with_futures(source, nodes, max_decompressed_bytes)
    unreadable = _unreadable(source.report, chosen)
    readable = [each for each in chosen if each.view.topic_partition not in unreadable]
    metadata = [each for each in readable if each.view.topic_partition == CLUSTER_METADATA]
    copies = [
        _PartitionCopy(each, *rescue(each)[:2], _topic_id(each.view, source, nodes))
        for each in readable
        if each not in metadata
    ]
    _ensure_each_once(copies, nodes)
    io = DurableIO()
    repaired: list[RepairedPartition] = []
    left_out = list(unreadable)
    targets = _targets(place, nodes, is_one=len(paths) == 1)
    with new_log_directory(place) as unfinished:
        ensure_space(
            (space_of_copy(place, each.check.view, each.size_bytes) for each in copies),
            "a repaired copy",
        )
        made = {each: f"{unfinished}{each.removeprefix(place)}" for each in targets.values()}
        for target, place_now in made.items():
            here = [each for each in copies if targets[each.log_directory] == target]
            of_target = [each for each in targets if targets[each] == target]
            ends = _write_log_directory(io, place_now, here, of_target)
            repaired += [
                _repaired(copy, end_offset, target)
                for copy, end_offset in zip(here, ends, strict=True)
            ]
        for each in metadata:
            log_directory = each.view.directory.log_directory
            target = targets[log_directory]
            if copy_metadata(each, nodes[log_directory], made[target], partial(copy_file, io)):
                repaired.append(_copied_as_it_is(each, target))
            else:
                left_out.append(each.view.topic_partition)
        for place_now in made.values():
            io.sync_directory(place_now)
    report = doctor(
        *dict.fromkeys(targets.values()),
        threads=threads,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    return RepairSummary(
        place,
        source.report,
        repaired,
        report,
        left_out,
        is_kraft=any(node.is_kraft for node in nodes.values()),
        absent=source.absent,
        unreadable={
            at: f"{printable_location(each.path)}: {each.message}"
            for at, each in unreadable.items()
        },
    )


def missing_in_copy(
    paths: Sequence[str], *, threads: int | None = None
) -> dict[str, list[tuple[int, int]]]:
    """Return the offsets that `write_repaired_copy` will not find, by partition directory."""
    source = examine(
        paths,
        topics=None,
        partitions=None,
        threads=threads,
        progress=None,
        max_decompressed_bytes=DEFAULT_MAX_DECOMPRESSED_BYTES,
    )
    _unreadable(source.report, source.partitions)
    return {
        each.view.directory.path: lacking(each, rescue(each).in_place, each.end_offset)
        for each in source.partitions
    }


class _PartitionCopy(NamedTuple):
    check: PartitionCheck
    segments: list[SegmentCopy]
    in_place: list[tuple[int, int]]  # offsets ``[start, end)`` of batches that stood elsewhere
    topic_id: uuid.UUID | None

    @property
    def log_directory(self) -> str:
        return self.check.view.directory.log_directory

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.segments)

    @property
    def left_out_bytes(self) -> int:
        """The bytes of live segments that the copy does not have."""
        pieces = [piece for each in self.segments for piece in each.pieces]
        live = sum(each.end - each.start for each in pieces if not each.segment.state)
        return self.check.size_bytes - live

    def write(self, io: DurableIO, target: str) -> None:
        view = self.check.view
        directory = join(target, str(view.topic_partition))
        io.make_directory(directory)
        for each in self.segments:
            name = f"{file_name_prefix(each.base_offset)}.log"
            copy_pieces(io, each.pieces, join(directory, name))
        if self.topic_id is not None:
            write_partition_metadata(io, join(directory, PARTITION_METADATA), self.topic_id)
        if not any(each.kind in _EPOCH_KINDS for each in self.check.findings):
            _copy_epochs(io, view.directory.path, directory)
        io.sync_directory(directory)


def _with_futures(
    source: Examined, nodes: Mapping[str, Node], max_decompressed_bytes: int
) -> list[PartitionCheck]:
    """Return the partitions to copy, from ``-future`` directories where those have more."""
    futures = [each for each in source.partitions if _is_future(each.view)]
    chosen = [each for each in source.partitions if not _is_future(each.view)]
    futures += [
        check_partition(each, max_decompressed_bytes=max_decompressed_bytes)
        for each in source.not_live
        if _is_future(each)
    ]
    for future in futures:
        view = future.view
        node = nodes[view.directory.log_directory]
        same = [
            each
            for each in chosen
            if each.view.topic_partition == view.topic_partition
            and nodes[each.view.directory.log_directory] is node
        ]
        if all(extends(view, each.view) for each in same):
            chosen = [each for each in chosen if each not in same] + [future]
    return chosen


def _is_future(view: LogView) -> bool:
    return view.directory.state == FUTURE_DIR_SUFFIX


def _targets(place: str, log_directories: Iterable[str], *, is_one: bool) -> dict[str, str]:
    """Return where the copy of each log directory lies: in a place, or below it by its name."""
    targets: dict[str, str] = {}
    for each in log_directories:
        name = name_of(each.rstrip("/"))
        target = place if is_one else join(place, name)
        other = next((path for path in targets if targets[path] == target), None)
        if other is not None and not is_one:
            reason = (
                f"{printable_location(each)} and {printable_location(other)} have the same name, "
                f"{name}: copy each by itself, to a directory of its own"
            )
            raise LogDirectoryError(reason, place)
        targets[each] = target
    return targets


def _write_log_directory(
    io: DurableIO, target: str, copies: list[_PartitionCopy], sources: Iterable[str]
) -> list[int]:
    """Write a log directory of copies, and close it in order; return where they end."""
    io.make_directory(target, exist_ok=True)
    for copy in copies:
        copy.write(io, target)
    for log_directory in sources:
        _copy_log_directory_files(io, log_directory, copies, target)
    with own_log_directory(target) as manager:
        logs = [manager.get_log(each.check.view.topic_partition) for each in copies]
        return [each.log_end_offset for each in logs]


def _topic_id(view: LogView, source: Examined, nodes: Mapping[str, Node]) -> uuid.UUID | None:
    """Return a topic's id from wherever it is known: here, in the metadata, of a sibling."""
    siblings = [each.view for each in source.partitions if each.view.topic == view.topic]
    ids = [
        stored_topic_id(view),
        nodes[view.directory.log_directory].topic_id(view.topic),
        *map(stored_topic_id, siblings),
    ]
    return next((each for each in ids if each is not None), None)


def copy_file(io: DurableIO, source: str, target: str) -> None:
    """Copy a file, and sync it; its directory is made if need be.

    Where the file system can, the copy shares the bytes of the file until one of them changes.
    """
    directory = parent_of(target)
    io.make_directory(directory, exist_ok=True)
    with open_file(source) as file, io.open(target, create=True) as to:
        if not to.clone(file):
            _copy_bytes(file, 0, file.size(), to, 0)
        to.sync()
    io.sync_directory(directory)


def space_of_copy(place: str, view: LogView, size_bytes: int | None = None) -> NeededSpace:
    """Return what the copy of a log needs, or of so many bytes of it."""
    size = view.size_bytes if size_bytes is None else size_bytes
    source = view.segments[0].file_path() if view.segments else None
    return NeededSpace(place, log_space(size), source)


def copy_pieces(io: DurableIO, pieces: list[Piece], target: str) -> None:
    """Write pieces of files one after the other to a new one, and sync it."""
    with io.open(target, create=True) as file:
        at = 0
        for segment, run in groupby(pieces, key=attrgetter("segment")):
            with segment.open_log() as source:
                for each in run:
                    is_whole = not (at or each.start) and each.end == source.size()
                    if not (is_whole and file.clone(source)):
                        _copy_bytes(source, each.start, each.end, file, at)
                    if each.base_offset is not None:
                        file.write_at(at, each.base_offset.to_bytes(OFFSET_LENGTH, "big"))
                    at += each.end - each.start
        file.sync()


def _copy_bytes(source: ByteSource, start: int, end: int, target: WritableFile, at: int) -> None:
    for position in range(start, end, _CHUNK_BYTES):
        wanted = min(_CHUNK_BYTES, end - position)
        data = source.read_at(position, wanted)
        if len(data) < wanted:
            reason = "file is shorter than when it was looked at"
            raise SegmentVanishedError(reason, source.path)
        target.write_at(at + position - start, data)


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


def _copy_log_directory_files(
    io: DurableIO, source: str, copies: list[_PartitionCopy], target: str
) -> None:
    """Copy whose directory it is, configs, written jobs, and sound offsets of checkpoints."""
    try:
        read_meta_properties(join(source, META_PROPERTIES))
        _copy_small_file(io, join(source, META_PROPERTIES), join(target, META_PROPERTIES))
    except (CorruptCheckpointError, LogDirectoryError, SegmentVanishedError):
        pass  # the report has it
    with suppress(CorruptCheckpointError, LogDirectoryError):  # the report has it
        configs = read_topic_configs(join(source, TOPIC_CONFIGS))
        if configs:
            write_topic_configs(io, join(target, TOPIC_CONFIGS), configs)
    with suppress(CorruptCheckpointError, LogDirectoryError):  # the report has it
        copy_ledger(io, source, target)
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


def _ensure_each_once(copies: Iterable[_PartitionCopy], nodes: Mapping[str, Node]) -> None:
    """Refuse to choose between two directories of a node's partition (t-0 and t-00)."""
    paths: dict[tuple[Node, TopicPartition], str] = {}
    for copy in copies:
        view = copy.check.view
        which = nodes[copy.log_directory], view.topic_partition
        other = paths.setdefault(which, view.directory.path)
        if other != view.directory.path:
            reason = (
                f"partition {view.topic_partition} lies in {other}, too: repair one of the two "
                "directories by its own path, and the other partitions by theirs"
            )
            raise LogDirectoryError(reason, view.directory.path)


def _unreadable(
    report: DoctorReport, checks: Sequence[PartitionCheck]
) -> dict[TopicPartition, Finding]:
    """Return the partitions that cannot be copied whole, and why; refuse if that is all of them.

    What could not be opened may well be intact.
    """
    found = {
        each.view.topic_partition: next(filter(_is_hidden, each.findings), None) for each in checks
    }
    unreadable = {each: finding for each, finding in found.items() if finding is not None}
    of_directories = [one for each in report.directories for one in each.findings]
    refused = next(filter(_is_hidden, of_directories), None)
    if refused is None and len(unreadable) == len(found):
        refused = next(iter(unreadable.values()), None)
    if refused is not None:
        reason = f"{refused.message}; what is in it may be intact: make it readable"
        raise LogDirectoryError(reason, refused.path)
    return unreadable


def _is_hidden(finding: Finding) -> bool:
    """Tell whether bytes could not be read that nothing else has, as indexes are made again."""
    name = find_segment_file_name(name_of(finding.path))
    is_made_again = name is not None and name.suffix != LOG_FILE_SUFFIX
    is_there = finding.kind == kinds.UNREADABLE and finding.effect is not Effect.GONE
    return is_there and not is_made_again


_METADATA_TOPIC_ID = uuid.UUID(int=1)  # Uuid.METADATA_TOPIC_ID


def _copied_as_it_is(check: PartitionCheck, target: str) -> RepairedPartition:
    return RepairedPartition(
        check.view.topic_partition,
        join(target, str(check.view.topic_partition)),
        sum(each.size_bytes for each in check.view.segments),
        left_out_bytes=0,
        end_offset=check.end_offset,
        missing=[],
        topic_id=format_uuid(_METADATA_TOPIC_ID),
        kept=[],
        source=printable_location(check.view.directory.path),
    )


def _repaired(copy: _PartitionCopy, end_offset: int, target: str) -> RepairedPartition:
    topic_partition = copy.check.view.topic_partition
    return RepairedPartition(
        topic_partition,
        join(target, str(topic_partition)),
        copy.size_bytes,
        copy.left_out_bytes,
        end_offset,
        lacking(copy.check, copy.in_place, end_offset),
        None if copy.topic_id is None else format_uuid(copy.topic_id),
        kept_of_overlaps(copy.check.view),
        doubt(copy.check),
        source=printable_location(copy.check.view.directory.path),
    )
