"""Owners and modes that keep a broker, which runs as `USER`, from what it does at its start.

A harm changes a log directory in which everything is `USER`'s, as root. It gives files to root
where that user could change the mode back.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.faults.partitions import DirectoryHarm

USER = 65534
_METADATA = "__cluster_metadata-0"
_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def give(directory: Path, uid: int, gid: int | None = None) -> None:
    """Give a directory, and all that is in it, to a user and his group, or another one."""
    group = uid if gid is None else gid
    os.chown(directory, uid, group)
    for path in directory.rglob("*"):
        os.chown(path, uid, group)


def set_modes(directory: Path, of_files: int, of_directories: int) -> None:
    """Give a directory, and all that is in it, the same modes."""
    for path in directory.rglob("*"):
        path.chmod(of_directories if path.is_dir() else of_files)
    directory.chmod(of_directories)


def _of_root(find: Callable[[Path], Path], mode: int) -> Callable[[Path], object]:
    def harm(directory: Path) -> None:
        path = find(directory)
        if not path.exists():  # as .lock, or a checkpoint that no broker has needed yet
            path.touch()
        os.chown(path, 0, 0)
        path.chmod(mode)

    return harm


def _file(name: str) -> Callable[[Path], Path]:
    return lambda directory: directory / name


def _segment_file(partition: str, place: int, suffix: str) -> Callable[[Path], Path]:
    return lambda directory: sorted((directory / partition).glob(f"*{suffix}"))[place]


def _metadata_file(pattern: str) -> Callable[[Path], Path]:
    return lambda directory: sorted((directory / _METADATA).glob(pattern))[-1]


def _added(name: str, mode: int) -> Callable[[Path], object]:
    def harm(directory: Path) -> None:
        path = directory / name
        path.write_bytes(b"")
        path.chmod(mode)

    return harm


def _aside(partition: str, state: str, mode: int) -> Callable[[Path], object]:
    def harm(directory: Path) -> None:
        place = directory / f"{partition}.{1:032x}-{state}"
        shutil.copytree(directory / partition, place)
        give(place, USER)
        os.chown(place, 0, 0)
        place.chmod(mode)

    return harm


def _of_files(partition: str) -> Iterator[DirectoryHarm]:
    whole = {"the log directory": "", "a partition": partition}
    for what, name in whole.items():
        for mode in (0o555, 0o755, 0o711, 0o700, 0o777):
            yield f"{what} is root's, {mode:04o}", _of_root(_file(name), mode)
    files = {
        ".lock": _file(".lock"),
        "meta.properties": _file("meta.properties"),
        ".kafka_cleanshutdown": _file(".kafka_cleanshutdown"),
        **{name: _file(name) for name in _CHECKPOINTS},
        "first log": _segment_file(partition, 0, ".log"),
        "last log": _segment_file(partition, -1, ".log"),
        "first index": _segment_file(partition, 0, ".index"),
        "last index": _segment_file(partition, -1, ".index"),
        "first time index": _segment_file(partition, 0, ".timeindex"),
        "last snapshot": _segment_file(partition, -1, ".snapshot"),
        "leader epochs": _file(f"{partition}/leader-epoch-checkpoint"),
        "partition.metadata": _file(f"{partition}/partition.metadata"),
    }
    for what, find in files.items():
        for mode in (0o600, 0o644):
            yield f"{what} is root's, {mode:04o}", _of_root(find, mode)


def _of_metadata() -> Iterator[DirectoryHarm]:
    for mode in (0o555, 0o755, 0o711, 0o700, 0o777):
        yield f"the metadata is root's, {mode:04o}", _of_root(_file(_METADATA), mode)
    files = {
        "log of the metadata": _metadata_file("*.log"),
        "snapshot of the metadata": _metadata_file("*.checkpoint"),
        "quorum-state": _metadata_file("quorum-state"),
    }
    for what, find in files.items():
        for mode in (0o600, 0o644):
            yield f"{what} is root's, {mode:04o}", _of_root(find, mode)


def _everything(uid: int, gid: int, of_files: int, of_directories: int) -> Callable[[Path], object]:
    def harm(directory: Path) -> None:
        give(directory, uid, gid)
        set_modes(directory, of_files, of_directories)

    return harm


def permission_harms(partition: str, *, has_metadata: bool = True) -> tuple[DirectoryHarm, ...]:
    """Return the harms of a log directory; those of a partition are done to this one."""
    return (
        ("nothing", lambda _directory: None),
        ("all is root's", lambda directory: give(directory, 0)),
        ("all is root's, and the group's to write", _everything(0, USER, 0o660, 0o770)),
        ("all is root's, and the group's to read", _everything(0, USER, 0o640, 0o750)),
        ("all is root's, and everybody's", _everything(0, 0, 0o666, 0o777)),
        ("all is the user's, and only the group's to read", _everything(USER, USER, 0o040, 0o070)),
        *_of_files(partition),
        *(_of_metadata() if has_metadata else ()),
        ("a foreign file of root's, 0600", _added(f"{partition}/notes.txt", 0o600)),
        ("a foreign file of root's, 0644", _added(f"{partition}/notes.txt", 0o644)),
        ("a .deleted file of root's, 0600", _added(f"{partition}/{7:020d}.log.deleted", 0o600)),
        ("a foreign file of root's in the log directory", _added("notes.txt", 0o600)),
        *(
            (f"a {state} partition is root's, {mode:04o}", _aside(partition, state, mode))
            for state in ("stray", "delete")
            for mode in (0o555, 0o700)
        ),
    )
