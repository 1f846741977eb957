"""A log directory in the making: its place is empty, then holds an unfinished one, then all of it.

===== ============================================= =============================================
step  what is done                                  a crash after it
===== ============================================= =============================================
1     the directory is made, and in it              no broker starts there, since it refuses a log
      ``.pylog-unfinished``                         directory with any other directory
2     the log directory is made in that, and        the same
      has a clean shutdown
3     ``.pylog-moved`` is written, which names all  the same
      of it
4     it is moved up, the marker of a clean stop    the same
      last
5     ``.pylog-unfinished`` is removed              it is done; brokers ignore a file
6     ``.pylog-moved`` is removed                   it is done
===== ============================================= =============================================

The place is locked meanwhile. The next call for it removes what an interrupted one has left, and
begins anew; it is refused where something else is there.

Source: LogManager.loadLogs, UnifiedLog.parseTopicPartitionName (Kafka 4.3).
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs, write_topic_configs
from pylog.errors import (
    CorruptCheckpointError,
    KafkaStorageError,
    LogDirectoryError,
    SegmentVanishedError,
)
from pylog.files import disk
from pylog.files.directory_lock import LOCK_FILE, DirectoryLock, ensure_not_in_use
from pylog.files.durable_io import TEMPORARY_SUFFIX, DurableIO
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
)
from pylog.files.meta_properties import read_meta_properties
from pylog.files.owned_directories import local_location, writable_log_directory
from pylog.files.storage import open_file
from pylog.locations import is_remote, join, parent_of, parse_location, printable_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNFINISHED = ".pylog-unfinished"
"""What is being made: the name of a directory in its place, or the end of one beside it."""
MOVED = ".pylog-moved"
_OF_MOVE = (MOVED, f"{MOVED}{TEMPORARY_SUFFIX}")


def ensure_new(
    to: str | os.PathLike[str],
    *,
    apart_from: Iterable[str | os.PathLike[str]] = (),
    what: str = "the copy",
) -> str:
    """Return a local path at which ``what`` can be made: empty, absent, or unfinished."""
    place = local_location(to).rstrip("/")
    names = _names_in(place)
    if UNFINISHED in names or names == {LOCK_FILE}:  # which a call that was killed has left
        ensure_not_in_use(place)
        _ensure_nothing_else(place)
        for path in apart_from:
            ensure_apart(place, os.fspath(path))
        return place
    return ensure_empty(to, apart_from=apart_from, what=what)


def ensure_empty(
    to: str | os.PathLike[str],
    *,
    apart_from: Iterable[str | os.PathLike[str]] = (),
    what: str = "the copy",
) -> str:
    """Return a local path at which ``what`` can be made: empty or absent, and apart from others."""
    place = writable_log_directory(to).rstrip("/")
    if os.path.isdir(place) and os.listdir(place):  # noqa: PTH112, PTH208 - kept as text
        reason = f"directory is not empty: give a new one, or an empty one, for {what}"
        raise LogDirectoryError(reason, place)
    beside = f"{place}{UNFINISHED}"
    if disk.lexists(beside):
        reason = "an earlier call was interrupted and has left this: remove it, and call again"
        raise LogDirectoryError(reason, beside)
    for path in apart_from:
        ensure_apart(place, os.fspath(path))
    return place


def ensure_apart(target: str, source: str) -> None:
    """Refuse a copy that would lie in what is copied: a broker takes it for a partition there."""
    if is_remote(parse_location(source)):
        return
    if Path(target).resolve().is_relative_to(Path(parse_location(source)).resolve()):
        reason = f"directory lies in {source}, which is copied and not to be changed"
        raise LogDirectoryError(reason, target)


def _names_in(place: str) -> set[str]:
    return set(os.listdir(place)) if os.path.isdir(place) else set()  # noqa: PTH112, PTH208


def _ensure_nothing_else(place: str) -> None:
    """Refuse what no interrupted call has left, which would be removed."""
    others = _names_in(place) - {LOCK_FILE}
    is_unfinished = UNFINISHED in others
    if is_unfinished:
        others -= {UNFINISHED, *_OF_MOVE}
        with suppress(FileNotFoundError, ValueError, TypeError):
            others -= set(json.loads(Path(place, MOVED).read_bytes()))
    other = min(others, default=None)
    if other is not None and is_unfinished:
        reason = (
            f"an interrupted call has left {UNFINISHED} here, and {other} is not from it: move "
            "that away, or give another directory"
        )
        raise LogDirectoryError(reason, place)
    if other is not None:
        reason = f"directory has {other} by now: give a new one, or an empty one"
        raise LogDirectoryError(reason, place)


@contextmanager
def new_log_directory(place: str) -> Iterator[str]:
    """Give the path at which to make a log directory, which is at `place` once the block ends.

    ``place`` is from `ensure_new`, which may have been called long before. An error in the block
    leaves nothing there.
    """
    io = DurableIO()
    is_new = io.make_directory(place, exist_ok=True)
    if is_new:
        io.sync_directory(parent_of(place) or os.curdir)
    try:
        with DirectoryLock(place):
            _ensure_nothing_else(place)
            _clear(io, place)
            try:
                unfinished = join(place, UNFINISHED)
                io.make_directory(unfinished)
                io.sync_directory(place)
                yield unfinished
            except BaseException:  # Ctrl-C among them
                _clear(io, place)
                raise
            _move_up(io, place)
    except BaseException:
        if is_new:
            with suppress(KafkaStorageError):  # somebody else has put something there
                io.remove_directory(place)
        raise


def _move_up(io: DurableIO, place: str) -> None:
    unfinished, moved = join(place, UNFINISHED), join(place, MOVED)
    names = sorted(_names_in(unfinished), key=lambda each: (each == CLEAN_SHUTDOWN, each))
    io.write_atomically(moved, json.dumps(names).encode())
    for name in names:
        if name == CLEAN_SHUTDOWN:
            io.sync_directory(place)
        io.replace(join(unfinished, name), join(place, name))
    io.sync_directory(place)
    io.remove_directory(unfinished)
    io.sync_directory(place)
    io.remove(moved)
    io.sync_directory(place)


def _clear(io: DurableIO, place: str) -> None:
    """Remove what is in a place but its lock; the sign that it is unfinished last."""
    last = (*_OF_MOVE, UNFINISHED)
    for name in sorted(_names_in(place) - {LOCK_FILE}, key=lambda each: (each in last, each)):
        _remove(io, join(place, name))


def remove_all(io: DurableIO, directory: str) -> None:
    """Remove what is in a directory."""
    for name in sorted(os.listdir(directory)):  # noqa: PTH208 - kept as text
        _remove(io, join(directory, name))


def _remove(io: DurableIO, path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        remove_all(io, path)
        io.remove_directory(path)
    else:
        io.remove(path)


def copy_identity(source: str, target: str, topics: Iterable[str]) -> None:
    """Copy whose log directory it is, and what topics are configured to, as far as it is there."""
    io = DurableIO()
    path = join(source, META_PROPERTIES)
    with suppress(CorruptCheckpointError, LogDirectoryError, SegmentVanishedError):
        read_meta_properties(path)
        with open_file(path) as file:
            copied = join(target, META_PROPERTIES)
            if not disk.lexists(copied):
                io.write_atomically(copied, file.read_at(0, file.size()))
    try:
        stored = read_topic_configs(join(source, TOPIC_CONFIGS))
    except (CorruptCheckpointError, LogDirectoryError) as error:
        reason = f"what topics are configured to cannot be read: {error}"
        raise LogDirectoryError(reason, printable_location(source)) from error
    chosen = set(topics)
    kept = {topic: each for topic, each in stored.items() if topic in chosen}
    if kept:
        known = read_topic_configs(join(target, TOPIC_CONFIGS))
        write_topic_configs(io, join(target, TOPIC_CONFIGS), {**known, **kept})
