"""Directories that we own: which may be opened for writing, and their partition directories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, LogDirectoryError, UnexpectedFileError
from pylog.files import disk
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    CLEANED_FILE_SUFFIX,
    CLEANER_OFFSET_CHECKPOINT,
    DELETE_DIR_SUFFIX,
    DELETED_FILE_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_LOG_INDEX_CACHE,
    STRAY_DIR_SUFFIX,
    PartitionDirectoryName,
    find_partition_directory_name,
    find_segment_file_name,
    is_partition_file,
)
from pylog.files.storage import list_directory
from pylog.files.system_calls import link_as_directory, not_a_regular_file
from pylog.locations import is_remote, parse_location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.files.disk import Entry

FILES_OF_LOG_DIRECTORIES = (
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_LOG_INDEX_CACHE,
)

NOT_LOADED = frozenset({DELETE_DIR_SUFFIX, STRAY_DIR_SUFFIX})
"""States of partition directories that no log is loaded from."""
_METADATA_TOPIC = "__cluster_metadata"
_IGNORED = frozenset({REMOTE_LOG_INDEX_CACHE})
_SIDE_FILES = frozenset({LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA})
_REMOVED_AT_START_UP = frozenset({CLEANED_FILE_SUFFIX, DELETED_FILE_SUFFIX})


def writable_log_directory(path: str | os.PathLike[str], *, must_exist: bool = False) -> str:
    """Return ``path`` as a local path, once it is known not to be something else."""
    location = local_location(path)
    ensure_writable_log_directory(location, must_exist=must_exist)
    return location


def local_location(path: str | os.PathLike[str]) -> str:
    """Return ``path``, also one given as ``file:///…``, as a local path."""
    location = parse_location(os.fspath(path))
    if is_remote(location):
        reason = "only local directories can be written to"
        raise LogDirectoryError(reason, location)
    return location


def ensure_writable_log_directory(location: str, *, must_exist: bool = False) -> None:
    """Raise `LogDirectoryError` as `writable_log_directory` does, for a local path."""
    resolved = Path(location).resolve()
    if not must_exist and not disk.lexists(location):
        _ensure_not_nested(resolved, location)
        return
    if disk.is_file(str(resolved)):
        raise _is_a_file(resolved, location)
    names = [entry.name for entry in list_directory(location)]
    if any(map(is_partition_file, names)):
        reason = (
            "this is a topic-partition directory: give the log directory that holds it, "
            f"{resolved.parent}"
        )
        raise LogDirectoryError(reason, location)
    # Whatever holds a log already is not made here, and cannot be moved by refusing it.
    if not any(map(find_partition_directory_name, names)):
        _ensure_not_nested(resolved, location)
        _ensure_not_above(resolved, names, location)
        if must_exist and names and not _is_log_directory(resolved):
            reason = (
                "this is not a log directory: it holds neither <topic>-<partition> directories nor "
                "a broker's files; give one of the log.dirs of a broker"
            )
            raise LogDirectoryError(reason, location)


def _is_a_file(resolved: Path, location: str) -> LogDirectoryError:
    partition = resolved.parent
    if find_partition_directory_name(partition.name) is None:
        return LogDirectoryError("this is a file: give a log directory", location)
    reason = f"this is a file of a partition: give the log directory, {partition.parent}"
    return LogDirectoryError(reason, location)


def _ensure_not_above(resolved: Path, names: list[str], location: str) -> None:
    """Refuse what is about to become a log directory around another one."""
    for name in names:
        below = resolved / name
        if _holds_partitions(below):
            reason = (
                f"no topic-partition directory here, but one level below, in {below}: give that "
                "path, or one outside it"
            )
            raise LogDirectoryError(reason, location)


def _ensure_not_nested(resolved: Path, location: str) -> None:
    """Refuse what is about to become a log directory inside another one."""
    name = find_partition_directory_name(resolved.name)
    above = resolved.parent
    if name is not None and (_is_log_directory(above) or _holds_partitions(above)):
        reason = (
            f"this is the path of a topic-partition directory ({name.topic_partition}): give the "
            f"log directory, {above}"
        )
        raise LogDirectoryError(reason, location)
    for directory in resolved.parents:
        if find_partition_directory_name(directory.name) and _is_partition_directory(directory):
            reason = (
                f"this lies inside the topic-partition directory {directory}: give the log "
                f"directory, {directory.parent}"
            )
            raise LogDirectoryError(reason, location)
        if _is_log_directory(directory):
            reason = (
                f"this lies inside the log directory {directory}, and a broker refuses a log "
                f"directory that holds anything but partitions: give {directory} itself, or a path "
                "outside it"
            )
            raise LogDirectoryError(reason, location)


def _is_log_directory(directory: Path) -> bool:
    """Whether a broker, or a log manager, has had this directory among its log directories."""
    return any(disk.lexists(str(directory / name)) for name in FILES_OF_LOG_DIRECTORIES)


def _is_partition_directory(directory: Path) -> bool:
    return any(map(is_partition_file, _names_in(directory)))


def _holds_partitions(directory: Path) -> bool:
    return any(
        find_partition_directory_name(name) is not None
        and _is_partition_directory(directory / name)
        for name in _names_in(directory)
    )


def _names_in(directory: Path) -> list[str]:
    """Return the names of all entries; none where they cannot be listed."""
    try:
        with disk.scandir(str(directory)) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def partition_directories(log_directory: str) -> list[tuple[str, PartitionDirectoryName]]:
    """Return path and parsed name of every partition directory of a log directory, sorted."""
    try:
        with disk.scandir(log_directory) as entries:
            names = [(each.name, each.is_symlink()) for each in entries if _leads_on(each)]
    except OSError as error:
        reason = f"cannot list log directory: {error.strerror}"
        raise LogDirectoryError(reason, log_directory) from error
    partitions = []
    for name, is_link in sorted(names):
        if name in _IGNORED:
            continue
        path = os.path.join(log_directory, name)  # noqa: PTH118 - kept as text
        parts = find_partition_directory_name(name)
        if parts is None:
            reason = (
                "directory is not named <topic>-<partition>, and a broker refuses a log directory "
                "that holds any other: move it away"
            )
            raise UnexpectedFileError(reason, path)
        if parts.topic_partition.topic == _METADATA_TOPIC:
            continue
        if is_link and parts.state not in NOT_LOADED:
            raise link_as_directory(path)
        partitions.append((path, parts))
    return partitions


def _leads_on(entry: Entry) -> bool:
    """Whether an entry is a directory, or a link that is named like one or leads to one."""
    if not entry.is_symlink():
        return entry.is_dir()
    # A circular link does not lead to one, as for Java, and is no reason to refuse the others.
    leads_to_one = disk.is_dir(entry.path)
    return leads_to_one or find_partition_directory_name(entry.name) is not None


def file_names(directory: str) -> list[str]:
    """Return the names of all entries of a directory but directories, sorted."""
    return sorted(
        entry.name for entry in _entries(directory) if not entry.is_dir(follow_symlinks=False)
    )


def base_offsets_of_logs(names: Sequence[str]) -> list[int]:
    """Return the base offsets of the ``.log`` files among file names, in the order of the names."""
    parsed = (find_segment_file_name(name) for name in names)
    return [
        parts.base_offset
        for parts in parsed
        if parts is not None and parts.suffix == LOG_FILE_SUFFIX and not parts.state
    ]


def ensure_regular_files(directory: str) -> None:
    """Raise if a file of the log is not a regular file; nothing has to be changed to know that.

    What start-up removes anyway may be a link, and so may files that are not Kafka's.
    """
    for entry in _entries(directory):
        if not entry.is_file(follow_symlinks=False) and _is_used(entry.name):
            raise not_a_regular_file(entry.path)


def _is_used(name: str) -> bool:
    parts = find_segment_file_name(name)
    if parts is None:
        return name in _SIDE_FILES
    return parts.state not in _REMOVED_AT_START_UP


def _entries(directory: str) -> Iterator[Entry]:
    try:
        with disk.scandir(directory) as entries:
            yield from entries
    except OSError as error:
        reason = f"cannot list directory: {error.strerror}"
        raise KafkaStorageError(reason, directory) from error
