"""Which files a dump is of: those named, or all of a partition."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError
from pylog.files.file_names import (
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    find_segment_file_name,
    is_partition_file,
)
from pylog.files.storage import list_directory
from pylog.locations import (
    is_remote,
    join,
    name_of,
    parent_of,
    parse_location,
    printable_location,
)
from pylog.reading.log_directory import choose_partitions, open_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pylog.inspect.dump.dump_options import RecordRange

CHECKPOINT_SUFFIX = ".checkpoint"
"""Of a snapshot of the metadata log; other checkpoints have no dot in their names."""

SUFFIXES = (
    LOG_FILE_SUFFIX,
    CHECKPOINT_SUFFIX,
    INDEX_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)


class DumpFile(NamedTuple):
    """A file to dump.

    Attributes
    ----------
    location
        Where it lies.
    path
        The same as it is printed: as it was given, without credentials.
    """

    location: str
    path: str

    @classmethod
    def at(cls, location: str) -> DumpFile:
        """Return the file at a location."""
        return cls(location, printable_location(location))

    @property
    def absolute_path(self) -> str:
        """The path as the tool prints it where it lists what is wrong."""
        if is_remote(self.location):
            return self.path
        return os.path.abspath(self.path)  # noqa: PTH100 - links are not followed

    @property
    def name(self) -> str:
        """The last component."""
        return name_of(self.location)

    @property
    def suffix(self) -> str:
        """What the name ends in, from its last dot on; empty if there is none."""
        _, dot, rest = self.name.rpartition(".")
        return dot + rest

    def sibling(self, suffix: str) -> DumpFile:
        """Return the file of the same segment with another suffix."""
        name = self.name.partition(".")[0] + suffix
        return DumpFile.at(join(parent_of(self.location), name))

    @property
    def base_offset(self) -> int:
        """The offset in the name.

        Raises
        ------
        LogDirectoryError
            There is none.
        """
        digits = self.name.partition(".")[0]
        if not (digits.isascii() and digits.isdecimal()):
            reason = "the name does not begin with the base offset of a segment"
            raise LogDirectoryError(reason, self.location)
        return int(digits)


def dump_files(
    paths: Iterable[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    wanted: RecordRange,
) -> Iterator[DumpFile]:
    """Yield the files that paths name, and those of the partitions that they lead to.

    Of a partition's directory all files that can
    be dumped are, sorted by name; of a log directory all partitions that were chosen, by default
    those of topics that are not internal. Of a directory's segments those that lie outside of a
    range of offsets are left out.

    Raises
    ------
    LogDirectoryError
        A path leads to nothing, or to a directory that holds no log.
    UnknownTopicOrPartitionError
        A topic or partition that was named is not there.
    ValueError
        A path is not one.
    """
    for text in paths:
        location = parse_location(text)
        if _is_file(location):
            yield DumpFile.at(location)
            continue
        for directory in _partition_directories(location, topics, partitions):
            yield from _files_of_partition(directory, wanted)


def _is_file(location: str) -> bool:
    if is_remote(location):
        return DumpFile.at(location).suffix in SUFFIXES
    if os.path.isdir(location):  # noqa: PTH112 - kept as text
        return False
    if DumpFile.at(location).suffix in SUFFIXES or os.path.lexists(location):
        return True
    reason = "no such file or directory"
    raise LogDirectoryError(reason, location)


def _partition_directories(
    location: str, topics: Sequence[str], partitions: Sequence[int]
) -> Iterator[str]:
    is_partition = any(is_partition_file(entry.name) for entry in list_directory(location))
    if is_partition and not topics and not partitions:
        yield location
        return
    directory = open_directory(location)
    chosen = choose_partitions(directory, topics, partitions)
    for topic, numbers in chosen.items():
        for partition in numbers:
            yield location if is_partition else directory[topic, partition].directory.path


def _files_of_partition(directory: str, wanted: RecordRange) -> Iterator[DumpFile]:
    names = [
        entry.name
        for entry in list_directory(directory)
        if _is_segment_file(entry.name) or entry.name.endswith(CHECKPOINT_SUFFIX)
    ]
    bases = sorted({_base_offset(name) for name in names if name.endswith(LOG_FILE_SUFFIX)})
    following = dict(pairwise(bases))
    for name in names:
        if wanted.is_restricted and not _may_have(name, following, wanted):
            continue
        yield DumpFile.at(join(directory, name))


def _may_have(name: str, following: Mapping[int, int], wanted: RecordRange) -> bool:
    """Whether a file may hold records that are wanted; ``following`` has the next base offsets."""
    if not name.endswith(LOG_FILE_SUFFIX):
        return False
    base = _base_offset(name)
    end = following.get(base)
    start = wanted.start_offset
    is_before = end is not None and start is not None and end <= start
    return not is_before and (wanted.end_offset is None or base < wanted.end_offset)


def _is_segment_file(name: str) -> bool:
    parts = find_segment_file_name(name)
    return parts is not None and not parts.state


def _base_offset(name: str) -> int:
    parts = find_segment_file_name(name)
    return -1 if parts is None else parts.base_offset
