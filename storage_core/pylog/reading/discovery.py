"""What lies under a path: the topic-partition directories of a log directory, or one of them.

A path is either a *log directory* (Kafka: an entry of ``log.dirs``), whose sub-directories are
named ``<topic>-<partition>``, or such a partition directory itself. The content decides, not the
name: a log directory may well be called ``kafka-0``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, UnexpectedFileError
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    find_partition_directory_name,
    find_segment_file_name,
    parse_partition_directory_name,
)
from pylog.files.storage import list_directory
from pylog.locations import is_remote, name_of, parent_of, parse_location, printable_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.storage import DirectoryEntry
    from pylog.model import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class PartitionDirectory:
    """A directory that holds the segments of one partition.

    ``state`` is ``""`` for a live partition, else ``-delete``, ``-stray`` or ``-future``.
    ``is_named`` tells that the path which was given is this directory, not the one above.
    ``uses_indexes`` is False where a reader asked for no index file to be used; it goes wherever
    the directory does, to executors, too.
    """

    topic_partition: TopicPartition
    path: str
    state: str = ""
    is_named: bool = False
    uses_indexes: bool = True

    @property
    def log_directory(self) -> str:
        """The directory above, where the log directory's checkpoints lie."""
        return parent_of(self.path)


def _is_live_segment_file(name: str) -> bool:
    parts = find_segment_file_name(name)
    return parts is not None and not parts.state


def _is_partition_file(name: str) -> bool:
    return name in (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT) or (
        find_segment_file_name(name) is not None
    )


def discover_partitions(path: str | os.PathLike[str]) -> list[PartitionDirectory]:
    """Return the partition directories that ``path`` is or holds, sorted; all states.

    Parameters
    ----------
    path
        A log directory or a partition directory, absolute or relative to the working directory.

    Raises
    ------
    LogDirectoryError
        The path cannot be read, or holds no Kafka log.
    """
    root = parse_location(os.fspath(path))
    entries = list_directory(root)
    # An index alone makes it one, too: that its .log is gone is to be noticed.
    if any(_is_live_segment_file(entry.name) for entry in entries):
        return [_partition_directory(root)]
    directories = []
    for entry in entries:
        name = find_partition_directory_name(entry.name)
        if name is not None and _may_be_partition(entry):
            directories.append(PartitionDirectory(name.topic_partition, entry.path, name.state))
    if not directories:
        reason = (
            "no Kafka log here: neither segment files (<20 digits>.log) nor sub-directories named "
            "<topic>-<partition> with such files"
        )
        raise LogDirectoryError(reason, root)
    return sorted(directories)


def _may_be_partition(entry: DirectoryEntry) -> bool:
    """Whether an entry with a partition's name is a directory with a partition's files.

    So is one that cannot be looked into, and a link that leads nowhere (to a disk that is not
    mounted, say): passing over it would hide a partition. Its reader gets the error.
    """
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
        os.stat(path)  # noqa: PTH116 - kept as text
    except FileNotFoundError:
        return os.path.islink(path)  # noqa: PTH114 - kept as text
    except OSError:
        return True
    return False


def _holds_partition(path: str) -> bool:
    return any(_is_partition_file(child.name) for child in list_directory(path))


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
        reason = f"segment files in a directory whose topic cannot be told: {error.reason}"
        raise LogDirectoryError(reason, given) from error
    return PartitionDirectory(name.topic_partition, location, name.state, is_named=True)


def _place(path: str) -> str | tuple[int, int]:
    """Return what identifies a directory, whichever links led to it."""
    if is_remote(path):
        return path
    try:
        status = os.stat(path)  # noqa: PTH116 - kept as text
    except OSError:
        return path  # a link that leads nowhere, or what may not be looked at
    return status.st_dev, status.st_ino


def discover_all(
    paths: Iterable[str | os.PathLike[str]], *, include_stray: bool = False
) -> list[PartitionDirectory]:
    """Return the partition directories under several paths, sorted; each directory once.

    Raises
    ------
    LogDirectoryError
        A path cannot be read or holds no log, no path was given, or two directories hold the same
        live partition (two brokers' replicas, say): one row would come twice.
    """
    directories: dict[str | tuple[int, int], PartitionDirectory] = {}
    for path in paths:
        for directory in discover_partitions(path):
            place = _place(directory.path)
            if directory.is_named or place not in directories:
                directories[place] = directory
    if not directories:
        reason = "no path was given"
        raise LogDirectoryError(reason)
    ordered = sorted(directories.values())
    live = [each for each in ordered if include_stray or not each.state]
    for one, other in pairwise(live):
        if one.topic_partition == other.topic_partition:
            reason = (
                f"partition {one.topic_partition} lies both in {printable_location(one.path)} "
                f"and in {printable_location(other.path)}; read one of them"
            )
            raise LogDirectoryError(reason)
    return ordered
