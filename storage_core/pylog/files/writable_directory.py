"""Which paths may be opened as a log directory for writing."""

from __future__ import annotations

import os
from pathlib import Path

from pylog.errors import LogDirectoryError
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    find_partition_directory_name,
    is_partition_file,
)
from pylog.files.storage import list_directory
from pylog.locations import is_remote, parse_location

_FILES_OF_LOG_DIRECTORIES = (
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)


def writable_log_directory(path: str | os.PathLike[str], *, must_exist: bool = False) -> str:
    """Return ``path`` as a local path, once it is known not to be something else.

    Parameters
    ----------
    path
        A log directory, or one to be made; also as ``file:///…``.
    must_exist
        Whether one to be made will not do.

    Raises
    ------
    LogDirectoryError
        It lies in an object store, is a file, is a topic-partition directory or lies in one, or
        does not exist though it must. If it must, it may not hold other things alone, either. Or it
        would be a new log directory inside another one, or around one, which a broker then refuses.
    ValueError
        It is empty, or a URI of a scheme that is not known.
    """
    location = local_location(path)
    ensure_writable_log_directory(location, must_exist=must_exist)
    return location


def local_location(path: str | os.PathLike[str]) -> str:
    """Return ``path``, also one given as ``file:///…``, as a local path.

    `LogDirectoryError` if it lies in an object store; ``ValueError`` as `writable_log_directory`.
    """
    location = parse_location(os.fspath(path))
    if is_remote(location):
        reason = "only local directories can be written to"
        raise LogDirectoryError(reason, location)
    return location


def ensure_writable_log_directory(location: str, *, must_exist: bool = False) -> None:
    """Raise `LogDirectoryError` as `writable_log_directory` does, for a local path."""
    resolved = Path(location).resolve()
    if not must_exist and not os.path.lexists(location):
        _ensure_not_nested(resolved, location)
        return
    if resolved.is_file():
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
    return any(os.path.lexists(directory / name) for name in _FILES_OF_LOG_DIRECTORIES)


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
        return [entry.name for entry in directory.iterdir()]
    except OSError:
        return []
