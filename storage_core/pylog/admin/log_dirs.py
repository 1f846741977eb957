"""`list_partitions`: what lies in log directories, even where something cannot be read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.files import directory_findings
from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    LogStorageError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import META_PROPERTIES
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import format_uuid
from pylog.findings.finding import Severity
from pylog.locations import join, printable_location
from pylog.reading.damage import Attempts
from pylog.reading.discovery import directory_identity
from pylog.reading.disk_use import disk_uses
from pylog.reading.html_table import html_table
from pylog.reading.log_directory import (
    compile_topic_pattern,
    ensure_known_topics,
    no_topic_matches,
    open_each,
)
from pylog.reading.log_end import ensure_last_batch_is_sound
from pylog.reading.log_view import read_steadily
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable

    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.disk_use import DiskUse
    from pylog.reading.log_view import LogView


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """One live partition. A value is None if it does not exist, or if damage hides it.

    Attributes
    ----------
    log_end_offset
        The end of the log, exclusive.
    size_bytes
        The size of all ``.log`` files.
    leader_epoch
        The latest leader epoch, as a broker has it that has loaded the log.
    topic_id
        The topic id as Kafka prints it: 22 characters.
    leftover_files
        How many files end in ``.deleted``, ``.cleaned`` or ``.swap``; they are not part of the log.
    path, log_directory
        The directory of the partition, and the one above it, without the secrets of a URI.
    errors
        The errors of what could not be read, each once.
    warnings
        What else is wrong, a line for each.
    notes
        What is worth knowing and not wrong, such as that the log begins in remote storage.
    disk_bytes
        The length of all files in the directory: indexes, snapshots, checkpoints, leftovers, too.
    is_readable
        Whether anything of the log can be read: the directory can be listed and, if it holds
        segments, one of their ``.log`` files can be opened.
    """

    topic: str
    partition: int
    log_start_offset: int | None
    log_end_offset: int | None
    segments: int
    size_bytes: int
    leader_epoch: int | None
    topic_id: str | None
    leftover_files: int
    path: str
    log_directory: str
    errors: list[LogStorageError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_readable: bool = True
    disk_bytes: int = 0

    @property
    def findings(self) -> list[str]:
        """All that is wrong, a line for each."""
        return [*map(str, self.errors), *self.warnings]


class NotLiveLog(NamedTuple):
    """A partition directory that is ``delete`` (being deleted), ``stray`` or ``future``."""

    topic: str
    partition: int
    state: str
    path: str
    disk_bytes: int = 0


class ListedLogDirectory(NamedTuple):
    """A log directory: whose it is, and what fills it.

    Attributes
    ----------
    path
        The directory, without the secrets of a URI.
    cluster_id, node_id, directory_id
        As ``meta.properties`` says; None where that does not say it.
    disk_bytes
        The length of all files in it.
    kinds
        The same by kind, see `pylog.reading.disk_use.DiskUse`.
    errors
        Why some of it is not counted.
    """

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    disk_bytes: int
    kinds: dict[str, int]
    errors: tuple[LogStorageError, ...] = ()


class ListingTotals(NamedTuple):
    """Sums over a listing; ``disk_bytes`` are those of its directories, and of no file beside."""

    topics: int
    partitions: int
    segments: int
    size_bytes: int
    not_live: int
    leftover_files: int
    findings: int
    disk_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """What `list_partitions` returns."""

    partitions: list[ListedPartition]
    not_live: list[NotLiveLog]
    log_directories: list[ListedLogDirectory] = field(default_factory=list)

    def __repr__(self) -> str:
        totals = self.totals
        return (
            f"PartitionListing({counted(totals.partitions, 'partition')} of "
            f"{counted(totals.topics, 'topic')}, {format_bytes(totals.size_bytes)}, "
            f"{counted(totals.findings, 'finding')})"
        )

    @property
    def totals(self) -> ListingTotals:
        """The sums over the partitions."""
        return ListingTotals(
            topics=len({each.topic for each in self.partitions}),
            partitions=len(self.partitions),
            segments=sum(each.segments for each in self.partitions),
            size_bytes=sum(each.size_bytes for each in self.partitions),
            not_live=len(self.not_live),
            leftover_files=sum(each.leftover_files for each in self.partitions),
            findings=sum(len(each.findings) for each in self.partitions),
            disk_bytes=sum(each.disk_bytes for each in self.partitions)
            + sum(each.disk_bytes for each in self.not_live),
        )

    def _repr_html_(self) -> str:
        rows = [
            (
                *(each.topic, each.partition, each.log_start_offset, each.log_end_offset),
                *(each.segments, each.size_bytes, "; ".join(each.findings)),
            )
            for each in self.partitions
        ]
        columns = ("topic", "partition", "start", "end", "segments", "bytes", "findings")
        return html_table(counted(len(rows), "partition"), columns, rows, len(rows))


def list_partitions(
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
) -> PartitionListing:
    """Return the listing of some paths, each partition directory once.

    It comes from file names, side files and a few batch headers; no record is read. Each path is
    opened by itself, so that the replicas of several brokers may be listed at once.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories.
    topics
        Only these; None for all.
    pattern
        Regular expression: only topics in whose name it is found, internal ones included; None for
        all.

    Raises
    ------
    UnknownTopicOrPartitionError
        A topic that was named is under none of the paths, or no topic matches the pattern.
    LogStorageError
        A path cannot be read or holds no log.
    ValueError
        Both topics and a pattern were given, or the pattern is not a regular expression.

    Examples
    --------
    >>> for each in pylog.list_partitions("kafka/intact", topics=["orders"]).partitions:
    ...     print(each.topic, each.partition, each.log_start_offset, each.log_end_offset)
    orders 0 0 60
    orders 1 0 49
    """
    views: dict[str | tuple[int, int], LogView] = {}
    others: dict[str | tuple[int, int], PartitionDirectory] = {}
    directories: list[PartitionDirectory] = []
    for directory in open_each(paths):
        for view in directory:
            views.setdefault(directory_identity(view.directory.path), view)
        for each in directory.others:
            others[directory_identity(each.path)] = each
        directories += directory.directories
    uses = disk_uses(directories)
    sizes = {
        directory_identity(path): size_bytes
        for use in uses.values()
        for path, size_bytes in use.directories.items()
    }
    known = {view.topic for view in views.values()}
    known |= {each.topic_partition.topic for each in others.values()}
    chosen = _chosen_topics(known, topics, pattern)
    listed = [
        (view, _list_partition(view, sizes.get(identity, 0)))
        for identity, view in views.items()
        if view.topic in chosen
    ]
    return PartitionListing(
        [
            row
            for view, row in listed
            if topics is not None or not row.errors or not view.directory.was_deleted()
        ],
        [
            NotLiveLog(
                *each.topic_partition,
                each.state.removeprefix("-"),
                printable_location(each.path),
                sizes.get(identity, 0),
            )
            for identity, each in others.items()
            if each.topic_partition.topic in chosen
        ],
        [_listed_log_directory(*each) for each in uses.items()],
    )


def _listed_log_directory(path: str, use: DiskUse) -> ListedLogDirectory:
    meta = None
    with suppress(CorruptCheckpointError, SegmentVanishedError, UnreadableFileError):
        meta = read_meta_properties(join(path, META_PROPERTIES))
    directory_id = None if meta is None else meta.directory_id
    return ListedLogDirectory(
        printable_location(path),
        None if meta is None else meta.cluster_id,
        None if meta is None else meta.node_id,
        None if directory_id is None else format_uuid(directory_id),
        use.total,
        dict(use.kinds.most_common()),
        tuple(use.errors),
    )


def _chosen_topics(
    known: set[str], topics: Iterable[str] | None, pattern: str | None
) -> Collection[str]:
    if topics is not None and pattern is not None:
        msg = "give either topics or a pattern, not both"
        raise ValueError(msg)
    if topics is not None:
        names = set(topics)
        ensure_known_topics(sorted(names), known)
        return names
    if pattern is None:
        return known
    compiled = compile_topic_pattern(pattern)
    matching = {topic for topic in known if compiled.search(topic)}
    if not matching:
        raise no_topic_matches(pattern, known)
    return matching


def _list_partition(view: LogView, disk_bytes: int) -> ListedPartition:
    return read_steadily(view, lambda view: _listed_now(view, disk_bytes))


def _listed_now(view: LogView, disk_bytes: int) -> ListedPartition:
    attempts = Attempts()
    is_listed = attempts.read(lambda: view.listing) is not None
    segments = (attempts.read(lambda: view.segments) if is_listed else None) or ()
    for segment in segments:
        attempts.read(segment.ensure_readable)
    is_readable = is_listed and (not segments or any(each.defect is None for each in segments))
    metadata = attempts.read(lambda: view.metadata)
    log_start_offset = attempts.read(lambda: view.log_start_offset)
    log_end_offset = attempts.read(lambda: _log_end_offset(view, log_start_offset))
    if log_end_offset is not None:
        attempts.read(lambda: _check_last_batch(view))
    attempts.read(lambda: view.leader_epochs)
    leader_epoch = attempts.read(lambda: view.latest_leader_epoch)
    attempts.ensure_all_there()
    findings = list(directory_findings(view)) if is_listed else []
    warnings = [
        f"{each.message} in {printable_location(each.path)}"
        for each in findings
        if each.severity is Severity.WARNING
    ]
    return ListedPartition(
        topic=view.topic,
        partition=view.partition,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        segments=len(segments),
        size_bytes=sum(segment.size_bytes for segment in segments),
        leader_epoch=leader_epoch,
        topic_id=None if metadata is None else format_uuid(metadata.topic_id),
        leftover_files=view.leftover_file_count if is_listed else 0,
        path=printable_location(view.directory.path),
        log_directory=printable_location(view.directory.log_directory),
        errors=attempts.errors,
        warnings=warnings,
        notes=[each.message for each in findings if each.severity is Severity.INFO],
        is_readable=is_readable,
        disk_bytes=disk_bytes,
    )


def _log_end_offset(view: LogView, log_start_offset: int | None) -> int:
    """Return the log end offset; that of the files where the log's start is unknown."""
    try:
        return view.next_offset if log_start_offset is None else view.log_end_offset
    except CorruptRecordError as error:
        if view.end.last is None:
            raise
        reason = (
            f"{error}; the batches before that end at offset {view.end.last.header.next_offset}"
        )
        raise CorruptRecordError(reason) from error


def _check_last_batch(view: LogView) -> None:
    if view.end.last is not None:
        ensure_last_batch_is_sound(view.segments[-1], view.end.last)
