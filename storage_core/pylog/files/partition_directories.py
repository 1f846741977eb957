"""Partition directories that we own: which there are, what lies in them, and what may not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError, LogDirectoryError, UnexpectedFileError
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    DELETE_DIR_SUFFIX,
    DELETED_FILE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_FILE_SUFFIX,
    PARTITION_METADATA,
    STRAY_DIR_SUFFIX,
    PartitionDirectoryName,
    find_partition_directory_name,
    find_segment_file_name,
)
from pylog.files.regular_file import link_as_directory, not_a_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOT_LOADED = frozenset({DELETE_DIR_SUFFIX, STRAY_DIR_SUFFIX})
"""States of partition directories that no log is loaded from."""

_METADATA_TOPIC = "__cluster_metadata"
_IGNORED = frozenset({"remote-log-index-cache"})
_SIDE_FILES = frozenset({LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA})
_REMOVED_AT_START_UP = frozenset({CLEANED_FILE_SUFFIX, DELETED_FILE_SUFFIX})


def partition_directories(log_directory: str) -> list[tuple[str, PartitionDirectoryName]]:
    """Return path and parsed name of every partition directory of a log directory, sorted.

    One that is not loaded (deleted or stray) may be a link.

    Raises
    ------
    UnexpectedFileError
        A directory is none of Kafka's: a broker would refuse to start. Or a partition directory
        is a link, which Kafka would follow.
    LogDirectoryError
        The directory cannot be listed.
    """
    try:
        with os.scandir(log_directory) as entries:
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


def _leads_on(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a directory, or a link that is named like one or leads to one."""
    if not entry.is_symlink():
        return entry.is_dir()
    # A circular link does not lead to one, as for Java, and is no reason to refuse the others.
    leads_to_one = os.path.isdir(entry.path)  # noqa: PTH112 - kept as text
    return leads_to_one or find_partition_directory_name(entry.name) is not None


def file_names(directory: str) -> list[str]:
    """Return the names of all entries of a directory but directories, sorted.

    Links are among them, wherever they lead: they are removed like files.

    Raises
    ------
    KafkaStorageError
        It cannot be listed.
    """
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

    Raises
    ------
    UnexpectedFileError
        A file of the log is a symbolic link, a FIFO, a device or a directory.
    KafkaStorageError
        The directory cannot be listed.
    """
    for entry in _entries(directory):
        if not entry.is_file(follow_symlinks=False) and _is_used(entry.name):
            raise not_a_regular_file(entry.path)


def _is_used(name: str) -> bool:
    parts = find_segment_file_name(name)
    if parts is None:
        return name in _SIDE_FILES
    return parts.state not in _REMOVED_AT_START_UP


def _entries(directory: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except OSError as error:
        reason = f"cannot list directory: {error.strerror}"
        raise KafkaStorageError(reason, directory) from error
