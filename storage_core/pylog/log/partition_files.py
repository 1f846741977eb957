"""What lies in a partition directory that we own: names, and what may not lie there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    find_segment_file_name,
)
from pylog.files.regular_file import not_a_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIDE_FILES = frozenset({LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA})
_REMOVED_AT_START_UP = frozenset({CLEANED_FILE_SUFFIX, DELETED_FILE_SUFFIX})


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
