"""What lies under a path: the topic-partition directories of a log directory, or one of them.

A path is either a *log directory* (Kafka: an entry of ``log.dirs``), whose sub-directories are
named ``<topic>-<partition>``, or such a partition directory itself. The content decides, not the
name: a log directory may well be called ``kafka-0``. A reader of records takes a single ``.log``
file, too: it stands for the offsets of that segment in its partition.

A broker moves partitions between its log directories (KIP-113): it makes a copy, puts that in its
place on the new disk, and takes the old one away after that. Disks that are listed one after the
other may show such a partition twice, or not at all; then it is looked for once more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    SegmentVanishedError,
    UnexpectedFileError,
    UnreadableFileError,
)
from pylog.files import disk
from pylog.files.checkpoint_file import CheckpointNumberError, known_offset_checkpoint
from pylog.files.file_names import (
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    METADATA_SNAPSHOT,
    find_partition_directory_name,
    find_segment_file_name,
    is_kafka_0_7_log,
    is_partition_file,
    parse_partition_directory_name,
)
from pylog.files.meta_properties import read_meta_properties
from pylog.files.storage import list_directory
from pylog.locations import is_remote, join, name_of, parent_of, parse_location, printable_location
from pylog.reading.foreign_layouts import what_it_looks_like
from pylog.text.words import named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.files.meta_properties import MetaProperties
    from pylog.files.storage import DirectoryEntry
    from pylog.model import TopicPartition


class LogStartOffsets:
    """What a log directory's ``log-start-offset-checkpoint`` says; read at the first question."""

    def __init__(self, log_directory: str) -> None:
        self._path = join(log_directory, LOG_START_OFFSET_CHECKPOINT)

    @cached_property
    def _offsets(self) -> Mapping[TopicPartition, int]:
        try:
            return known_offset_checkpoint(self._path)
        except CheckpointNumberError:
            return {}  # as for a broker, whose consumers get all that the files have

    def find(self, topic_partition: TopicPartition) -> int | None:
        """Return the offset that the checkpoint has for a partition, None if it has none."""
        return self._offsets.get(topic_partition)


_MOST_LOOKED_INTO = 100
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, order=True)
class PartitionDirectory:
    """A directory that holds the segments of one partition.

    ``state`` is ``""`` for a live partition, else ``-delete``, ``-stray`` or ``-future``.
    ``is_named`` tells that the path which was given is this directory, not the one above.
    ``segments`` are the base offsets of those whose ``.log`` files were given instead of the
    directory, ascending: nothing but the offsets from each of them up to the segment after it is
    read. It is empty for the whole partition. ``beside`` are log directories that were given
    together with the one above, where it may be found once it is moved.
    """

    topic_partition: TopicPartition
    path: str
    state: str = ""
    is_named: bool = False
    segments: tuple[int, ...] = ()
    beside: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def is_live(self, *, include_stray: bool) -> bool:
        """Whether it is read: it is live, or such directories are wanted, or it was named."""
        return include_stray or self.is_named or not self.state

    @property
    def log_directory(self) -> str:
        """The directory above, where the log directory's checkpoints lie."""
        return parent_of(self.path)

    def now(self) -> PartitionDirectory:
        """Return where it is: in another log directory of its node if a broker has moved it."""
        if self.state or not self.beside or is_remote(self.path) or disk.lexists(self.path):
            return self
        node = node_of(self.log_directory)
        for place in self.beside if node is not None else ():
            path = join(place, name_of(self.path))
            if disk.lexists(path) and node_of(place) == node:
                others = (each for each in self.beside if each != place)
                return replace(self, path=path, beside=(self.log_directory, *others))
        return self

    def was_moved(self) -> bool:
        """Whether a broker has moved it to another log directory since it was found."""
        return self.now() is not self

    def was_deleted(self) -> bool:
        """Whether a broker has deleted it since it was found: only it is gone, from all disks."""
        if self.is_named or is_remote(self.path):
            return False
        places = (self.log_directory, *self.beside)
        # Twice: it may be moved while they are looked at one after the other.
        if any(disk.lexists(join(each, name_of(self.path))) for each in (*places, *places)):
            return False
        return disk.exists(join(self.log_directory, META_PROPERTIES))


def node_of(log_directory: str) -> tuple[str | None, int] | None:
    """Return the cluster's id and the number of the node whose log directory it is, if known."""
    meta = meta_of(log_directory)
    return None if meta is None or meta.node_id is None else (meta.cluster_id, meta.node_id)


def meta_of(log_directory: str) -> MetaProperties | None:
    """Return the ``meta.properties`` of a log directory; None without one that can be read."""
    try:
        return read_meta_properties(join(log_directory, META_PROPERTIES))
    except (CorruptCheckpointError, UnreadableFileError, SegmentVanishedError):
        return None


_ORDER = attrgetter("topic_partition", "path", "state", "is_named", "segments")


def in_order(directories: Iterable[PartitionDirectory]) -> list[PartitionDirectory]:
    """Return directories sorted, in a third of the time that comparing them takes."""
    return sorted(directories, key=_ORDER)


def _is_live_segment_file(name: str) -> bool:
    parts = find_segment_file_name(name)
    return is_kafka_0_7_log(name) if parts is None else not parts.state


def discover_partitions(
    path: str | os.PathLike[str],
    *,
    takes_segment_files: bool = False,
    known: Collection[str] = (),
    may_be_empty: bool = False,
) -> list[PartitionDirectory]:
    """Return the partition directories that ``path`` is or holds, sorted; all states.

    None is an error, unless ``path`` is a log directory by its ``meta.properties`` and
    ``may_be_empty``: a broker may have moved all partitions to other disks.
    """
    root = parse_location(os.fspath(path))
    if takes_segment_files:
        named = _find_partition_of_segment_file(root)
        if named is not None:
            return [named]
    entries = list_directory(root)
    # An index alone makes it one, too: that its .log is gone is to be noticed.
    if any(
        _is_live_segment_file(entry.name) or METADATA_SNAPSHOT.fullmatch(entry.name)
        for entry in entries
    ):
        return [_partition_directory(root)]
    partitions = in_order(_partitions_among(entries, known))
    is_log_directory = any(entry.name == META_PROPERTIES for entry in entries)
    if not partitions and not (may_be_empty and is_log_directory):
        raise LogDirectoryError(_why_no_log(entries), root)
    return partitions


def _partitions_among(
    entries: Iterable[DirectoryEntry], known: Collection[str] = ()
) -> Iterator[PartitionDirectory]:
    for entry in entries:
        name = find_partition_directory_name(entry.name)
        if name is not None and (entry.path in known or _may_be_partition(entry)):
            yield PartitionDirectory(name.topic_partition, entry.path, name.state)


def _why_no_log(entries: Sequence[DirectoryEntry]) -> str:
    """Return what is wrong with a directory that holds no log, and where logs are, if below it."""
    below = [
        printable_location(entry.path)
        for entry in entries[:_MOST_LOOKED_INTO]
        if _is_log_directory(entry)
    ]
    if not below:
        return (
            "no Kafka log here: neither segment files (<20 digits>.log) nor sub-directories named "
            f"<topic>-<partition> with such files{what_it_looks_like(entries)}"
        )
    listed = named(below, _MOST_NAMED)
    what = "that path" if len(below) == 1 else "one or more of these paths"
    return f"no Kafka log here, but one level below, in {listed}; give {what}"


def _is_log_directory(entry: DirectoryEntry) -> bool:
    """Whether an entry is a directory that holds partition directories, as far as can be seen."""
    try:
        return entry.is_dir() and any(_partitions_among(list_directory(entry.path)))
    except (OSError, LogDirectoryError):
        return False


def _find_partition_of_segment_file(location: str) -> PartitionDirectory | None:
    """Return the partition of a ``.log`` file, None if the location does not name such a file."""
    file_name = name_of(location)
    parts = find_segment_file_name(file_name)
    if parts is None or parts.suffix != LOG_FILE_SUFFIX or parts.state:
        return None
    directory = parent_of(location) or os.curdir
    entry = next((each for each in list_directory(directory) if each.name == file_name), None)
    if entry is None:
        reason = "there is no such file"
        raise LogDirectoryError(reason, location)
    if entry.is_dir():
        return None
    return replace(_partition_directory(directory), segments=(parts.base_offset,))


def _may_be_partition(entry: DirectoryEntry) -> bool:
    """Whether an entry with a partition's name is a directory with a partition's files."""
    if is_remote(entry.path):
        # A directory such as backup-2024 has a partition's name and holds nothing of Kafka's.
        return entry.is_dir() and _holds_partition(entry.path)
    try:
        if not entry.is_dir():
            return _is_lost_link(entry.path)
    except OSError:
        return True
    try:
        return _holds_partition(entry.path)
    except LogDirectoryError:
        return True


def _is_lost_link(path: str) -> bool:
    """Whether a link leads to nothing that could be looked at."""
    try:
        disk.stat(path)
    except FileNotFoundError:
        return disk.is_link(path)
    except OSError:
        return True
    return False


def _holds_partition(path: str) -> bool:
    return any(is_partition_file(child.name) for child in list_directory(path))


def _partition_directory(path: str) -> PartitionDirectory:
    """Return the directory under its own name, or under that of a link to it if it has none."""
    if is_remote(path):
        return _named_directory(path, path)
    resolved = Path(path).resolve()
    name = find_partition_directory_name(resolved.name)
    if name is not None:
        return PartitionDirectory(name.topic_partition, str(resolved), name.state, is_named=True)
    return _named_directory(str(Path(path).absolute()), path)


def _named_directory(location: str, given: str) -> PartitionDirectory:
    try:
        name = parse_partition_directory_name(name_of(location))
    except UnexpectedFileError as error:
        reason = (
            "segment files in a directory whose name does not say which partition it is: "
            f"{error.reason}; give it such a name, or make a link to it that has one"
        )
        raise LogDirectoryError(reason, given) from error
    return PartitionDirectory(name.topic_partition, location, name.state, is_named=True)


def directory_identity(path: str) -> str | tuple[int, int]:
    """Return what identifies a directory, whichever links led to it."""
    if is_remote(path):
        return path
    try:
        status = disk.stat(path)
    except OSError:
        return path  # a link that leads nowhere, or what may not be looked at
    return status.st_dev, status.st_ino


def _merged(one: PartitionDirectory, other: PartitionDirectory) -> PartitionDirectory:
    """Return what two paths to the same directory ask for: all of it, unless both are files."""
    segments = {*one.segments, *other.segments} if one.segments and other.segments else set()
    return replace(other if other.is_named else one, segments=tuple(sorted(segments)))


def beside_one_another(
    listed: Sequence[tuple[str, list[PartitionDirectory]]], *, of_node: bool
) -> list[list[PartitionDirectory]]:
    """Return what several paths hold, once it is known where each partition of a node is.

    ``listed`` are the paths, and what was found in each. Each directory has the other log
    directories of its node beside it, or all of them.
    """
    places: dict[str, list[PartitionDirectory]] = {}  # of local log directories
    for path, found in listed:
        if not is_remote(path) and not any(each.is_named for each in found):
            place = found[0].log_directory if found else parse_location(path)
            places.setdefault(place, found)
    if len(places) < 2:
        return [found for _, found in listed]
    nodes: dict[object, list[str]] = {}
    for place in places:
        nodes.setdefault(node_of(place) or place, []).append(place)
    for disks in nodes.values():
        if len(disks) > 1:
            _settle({place: places[place] for place in disks})
    beside = {
        place: tuple(each for each in (disks if of_node else places) if each != place)
        for disks in nodes.values()
        for place in disks
    }
    return [
        [
            each if each.is_named else _beside(each, beside.get(each.log_directory, ()))
            for each in found
        ]
        for _, found in listed
    ]


def _beside(directory: PartitionDirectory, places: tuple[str, ...]) -> PartitionDirectory:
    # In a third of the time that `replace` takes: there are thousands.
    return PartitionDirectory(
        *(directory.topic_partition, directory.path, directory.state, False, directory.segments),
        beside=places,
    )


def _settle(disks: Mapping[str, list[PartitionDirectory]]) -> None:
    """Add the partitions of a node that were in none of its disks when each was listed.

    Where one was in two, it leaves out the directory that the broker has deleted by now.
    """
    found: dict[TopicPartition, list[PartitionDirectory]] = {}
    for each in chain.from_iterable(disks.values()):
        if not each.state:
            found.setdefault(each.topic_partition, []).append(each)
    names: dict[str, set[str]] = {}
    for place, listed in disks.items():
        entries = {each.name: each for each in list_directory(place)}
        names[place] = set(entries)
        new = names[place].difference([name_of(each.path) for each in listed])
        parsed = {each: find_partition_directory_name(each) for each in new}
        missed = [
            entries[name]
            for name, each in parsed.items()
            if each is not None and not each.state and each.topic_partition not in found
        ]
        if missed:
            listed[:] = in_order([*listed, *_partitions_among(missed)])
    for twice in found.values():
        if len(twice) > 1:
            gone = [each for each in twice if name_of(each.path) not in names[each.log_directory]]
            for each in gone if len(gone) < len(twice) else ():
                disks[each.log_directory].remove(each)


def discover_each(
    paths: Iterable[str | os.PathLike[str]],
    *,
    takes_segment_files: bool = False,
    known: Collection[str] = (),
    of_node: bool = True,
) -> list[list[PartitionDirectory]]:
    """Return the partition directories under each of several paths.

    ``known`` is as for `discover_partitions`, ``of_node`` as for `beside_one_another`.
    """
    given = [os.fspath(each) for each in paths]
    listed = [
        (
            each,
            discover_partitions(
                each,
                takes_segment_files=takes_segment_files,
                known=known,
                may_be_empty=len(given) > 1,
            ),
        )
        for each in given
    ]
    if not any(found for _, found in listed):
        shown = ", ".join(map(printable_location, given))
        reason = f"no partition is in any of {shown}" if given else "no path was given"
        raise LogDirectoryError(reason)
    return beside_one_another(listed, of_node=of_node)


def discover_all(
    paths: Iterable[str | os.PathLike[str]],
    *,
    takes_segment_files: bool = False,
    known: Collection[str] = (),
) -> list[PartitionDirectory]:
    """Return the partition directories under several paths, in their order; each directory once.

    ``known`` is as for `discover_partitions`.
    """
    directories: dict[str | tuple[int, int], PartitionDirectory] = {}
    for found in discover_each(
        paths, takes_segment_files=takes_segment_files, known=known, of_node=False
    ):
        for directory in found:
            place = directory_identity(directory.path)
            other = directories.get(place)
            directories[place] = directory if other is None else _merged(other, directory)
    return list(directories.values())
