"""What fills a disk: every file under a log directory, by the partition and the kind that it is of.

Sizes are lengths, as of ``du --apparent-size``; a link counts as a link. Files that come and go
meanwhile may be missing.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.files import disk
from pylog.files.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    METADATA_SNAPSHOT,
    PARTITION_METADATA,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.quorum_state import QUORUM_STATE
from pylog.files.storage import list_directory
from pylog.locations import is_remote, join, name_of, parent_of
from pylog.reading.discovery import directory_identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.errors import LogStorageError
    from pylog.files.storage import DirectoryEntry
    from pylog.reading.discovery import PartitionDirectory

_BESIDE = "beside"


@dataclass(slots=True)
class DiskUse:
    """The bytes under a directory.

    Attributes
    ----------
    kinds
        By kind: "log", "index", "timeindex", "txnindex" and "snapshot" are a segment's files;
        "deleted", "cleaned" and "swap" those that end so; "delete", "stray" and "future" are all
        files of partition directories in these states; "checkpoint" is what else a broker has in
        a partition, "other" what it has not; "beside" is what is beside the partitions.
    directories
        By the path of each partition directory.
    errors
        Why some of it is not counted.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    directories: Counter[str] = field(default_factory=Counter)
    errors: list[LogStorageError] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All bytes."""
        return self.kinds.total()


def disk_use(directory: str, *, is_partition: bool = False) -> DiskUse:
    """Return what is under a log directory, or a partition directory."""
    use = DiskUse()
    if is_partition:
        _add_partition(use, directory)
        return use
    for entry in _listed(use, directory):
        name = find_partition_directory_name(entry.name) if _is_directory(entry) else None
        if name is not None:
            _add_partition(use, entry.path)
        else:
            use.kinds[_BESIDE] += sum(size for _, size in _files(use, entry))
    return use


def disk_uses(directories: Iterable[PartitionDirectory]) -> dict[str, DiskUse]:
    """Return what is under each log directory that partition directories are in, by its path.

    A partition directory that was named itself stands for itself, unless the one above it is there.
    """
    found: dict[str | tuple[int, int], tuple[str, DiskUse]] = {}
    for each in sorted(directories, key=lambda each: each.is_named):
        above = directory_identity(each.log_directory)
        if each.is_named and above not in found:
            identity = directory_identity(each.path)
            if identity not in found:
                found[identity] = each.path, disk_use(each.path, is_partition=True)
        elif above not in found:
            found[above] = each.log_directory, disk_use(each.log_directory)
    return dict(found.values())


def _add_partition(use: DiskUse, path: str) -> None:
    name = find_partition_directory_name(os.path.basename(path.rstrip("/")))  # noqa: PTH119
    state = "" if name is None else name.state.removeprefix("-")
    use.directories[path] += 0
    for entry in _listed_within(use, path):
        is_file = not _is_directory(entry)
        for file_name, size in _files(use, entry):
            use.kinds[state or (_kind(file_name) if is_file else "other")] += size
            use.directories[path] += size


def _kind(name: str) -> str:
    parts = find_segment_file_name(name)
    if parts is not None:
        return (parts.state or parts.suffix).removeprefix(".")
    is_side_file = name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, QUORUM_STATE)
    return "checkpoint" if is_side_file or METADATA_SNAPSHOT.fullmatch(name) else "other"


def _listed(use: DiskUse, directory: str) -> list[DirectoryEntry]:
    try:
        return list(list_directory(directory))
    except LogDirectoryError as error:
        use.errors.append(error)
        return []


def _listed_within(use: DiskUse, directory: str) -> list[DirectoryEntry]:
    """Return what is in a directory that was listed; nothing if a broker has taken it away."""
    before = len(use.errors)
    entries = _listed(use, directory)
    if len(use.errors) > before and _was_taken_away(directory):
        del use.errors[before:]
    return entries


def _was_taken_away(directory: str) -> bool:
    """Whether a directory is gone, and not with the disk that it was on."""
    if is_remote(directory) or disk.lexists(directory):
        return False
    above = parent_of(directory)
    is_partition = find_partition_directory_name(name_of(directory)) is not None
    return disk.exists(join(above, META_PROPERTIES) if is_partition else above)


def _files(use: DiskUse, entry: DirectoryEntry) -> Iterator[tuple[str, int]]:
    """Yield name and size of a file, or of all files below a directory."""
    if _is_directory(entry):
        for each in _listed_within(use, entry.path):
            yield from _files(use, each)
        return
    try:
        local = not is_remote(entry.path)
        status = os.lstat(entry.path) if local else entry.stat()
    except OSError:
        return  # it is gone
    yield entry.name, status.st_size


def _is_directory(entry: DirectoryEntry) -> bool:
    """Whether an entry is a directory, and no link to one."""
    is_link = not is_remote(entry.path) and os.path.islink(entry.path)  # noqa: PTH114
    return not is_link and entry.is_dir()
